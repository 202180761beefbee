"""Shop: a list of products with a search field, a cart, orders; it loads slowly."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..blocks import (
    Block,
    Choice,
    Lead,
    Trail,
    banner,
    buttons,
    empty,
    field,
    header,
    paragraph,
    row,
    stepper,
)
from ..screen import Dialog, Page, Tool
from ..stock import PRODUCTS
from .base import App, Fact, Intent, Route, tap

_TINTS = ("#1a73e8", "#c2185b", "#2e7d32", "#ef6c00", "#6750a4", "#00838f")


class Shop(App):
    """A small shop where nothing costs real money."""

    name, title, icon, color = "shop", "Shop", "bag", "#c2410c"
    slow = True

    def fill_in(self, rng: Random) -> None:
        """Draw prices and the order of the shelves."""
        chosen = rng.sample(PRODUCTS, 16)
        self.prices = {name: price + rng.randint(0, 4) for name, price, _ in chosen}
        self.icons = {name: icon for name, _, icon in chosen}
        self.cart: dict[str, int] = {}
        self.orders: dict[str, int] = {}
        self.favourites: set[str] = set()
        self.query = ""

    def facts(self) -> frozenset[Fact]:
        """Return ("cart", item, number), ("order", item, number), ("favourite", item)."""
        facts: set[Fact] = {("cart", item, str(count)) for item, count in self.cart.items()}
        facts |= {("order", item, str(count)) for item, count in self.orders.items()}
        return frozenset(facts | {("favourite", item) for item in self.favourites})

    def page(self) -> Page:
        """Return the shelves, a product, the cart, the orders or the thanks after an order."""
        name = self.route[0]
        if name == "product":
            return self._product(self.route[1])
        if name == "cart":
            return self._cart()
        if name == "orders":
            return self._orders()
        if name == "thanks":
            shown = (
                banner("Thank you!", "Your order is on its way", "check"),
                buttons(Choice("shelves:", "Continue shopping")),
            )
            return Page("Order placed", shown, up=True)
        blocks = [field("search", "Search products", self.draft("search"), self.focus == "search", "search")]
        blocks += [self._shelf(item) for item in self.prices if self.query.lower() in item.lower()]
        if len(blocks) == 1:
            blocks.append(empty("search", "Nothing found"))
        return Page("Shop", tuple(blocks), tools=self._tools())

    def _tools(self) -> tuple[Tool, ...]:
        count = sum(self.cart.values())
        return Tool("orders:", "box", "Orders"), Tool(
            "cart:", "cart", f"Cart, {count} items", str(count or "")
        )

    def _lead(self, item: str) -> Lead:
        return Lead("square", self.icons[item], _TINTS[len(item) % len(_TINTS)])

    def _shelf(self, item: str) -> Block:
        add = (f"add:{item}", "add", f"Add {item} to cart")
        count = f", {self.cart[item]} in cart" if item in self.cart else ""
        return row(f"open:{item}", item, f"${self.prices[item]}{count}", self._lead(item), extra=add)

    def _product(self, item: str) -> Page:
        liked = item in self.favourites
        blocks = (
            banner(item, f"${self.prices[item]}", self.icons[item], _TINTS[len(item) % len(_TINTS)]),
            paragraph(f"{item}. Sent within two days. Free returns for a month.", indent=20),
            buttons(Choice(f"add:{item}", "Add to cart", "filled")),
        )
        said = "Remove from favourites" if liked else "Add to favourites"
        like = Tool(f"like:{item}", "star" if liked else "star_off", said)
        return Page("", blocks, up=True, tools=(like, *self._tools()))

    def _cart(self) -> Page:
        if not self.cart:
            return Page("Cart", (empty("cart", "Your cart is empty"),), up=True)
        total = sum(self.prices[item] * count for item, count in self.cart.items())
        blocks = [stepper(item, item, str(count), self._lead(item)) for item, count in self.cart.items()]
        blocks += [header("Total"), row("", "To pay", "Delivery is free", None, Trail("text", f"${total}"))]
        pay = buttons(Choice("checkout:", f"Place order, ${total}", "filled"))
        return Page("Cart", tuple(blocks), up=True, bottom=pay)

    def _orders(self) -> Page:
        blocks = tuple(
            row(f"ask:{item}", item, f"{count} ordered", self._lead(item))
            for item, count in self.orders.items()
        )
        shown = blocks or (empty("box", "No orders yet"),)
        return Page("Orders", shown, up=True, dialog=self.menu_dialog())

    def menu_dialog(self) -> Dialog | None:
        """Ask before an order is cancelled."""
        if self.menu is None:
            return None
        choices = (
            Choice("dismiss", "Keep", "tonal"),
            Choice(f"cancel:{self.menu[1]}", "Cancel order", "danger"),
        )
        return Dialog("Cancel this order?", self.menu[1], choices=choices)

    def on_open(self, item: str) -> None:
        """Open a product."""
        self.go("product", item)

    def on_add(self, item: str) -> None:
        """Put one into the cart."""
        self.cart[item] = self.cart.get(item, 0) + 1
        self.focus = None
        self.toast = "Added to cart"

    def on_more(self, item: str) -> None:
        """Raise the number in the cart."""
        self.cart[item] += 1

    def on_less(self, item: str) -> None:
        """Lower the number in the cart; the last one goes away."""
        self.cart[item] -= 1
        if not self.cart[item]:
            del self.cart[item]

    def on_cart(self, _: str) -> None:
        """Open the cart."""
        self.go("cart")

    def on_orders(self, _: str) -> None:
        """Open the orders."""
        self.go("orders")

    def on_like(self, item: str) -> None:
        """Mark or unmark a favourite."""
        self.favourites ^= {item}

    def on_checkout(self, _: str) -> None:
        """Turn the cart into orders, after a moment."""
        for item, count in self.cart.items():
            self.orders[item] = self.orders.get(item, 0) + count
        self.cart = {}
        self.routes = [("home",), ("thanks",)]
        self.busy = "Placing your order"

    def on_shelves(self, _: str) -> None:
        """Go back to the shelves."""
        self.routes = [("home",)]

    def on_ask(self, item: str) -> None:
        """Ask whether to cancel an order."""
        self.menu = ("ask", item)

    def on_cancel(self, item: str) -> None:
        """Cancel an order."""
        del self.orders[item]
        self.menu = None

    def submit(self) -> None:
        """Search for what was typed."""
        if self.focus == "search":
            self.query = self.draft("search").strip()
        self.focus = None

    def look(self, thing: Route) -> Intent | None:
        """Lead to the shelves, a product, the cart or the orders."""
        if self.route == thing and self.menu is None:
            return None
        if self.menu is not None or self.route != ("home",):
            return self.leave()
        if thing[0] == "product":
            return self._find(thing[1]) or tap(f"open:{thing[1]}", f"Open {thing[1]}")
        return tap(f"{thing[0]}:", f"Open the {thing[0]}")

    def guide(self, want: Sequence[Fact]) -> Intent:
        """Cancel wrong orders, then bring the cart to what is needed, then order; favourites last."""
        wrong = self.extra(want, "order")
        if wrong:
            return self._cancel(wrong[0][1])
        to_order = self.missing(want, "order")
        needed = {f[1]: int(f[2]) for f in (to_order or [f for f in want if f[0] == "cart"])}
        for item, count in needed.items():
            if self.cart.get(item, 0) < count:
                return self._put(item)
        for item, count in self.cart.items():
            if count > needed.get(item, 0):
                return self.look(("cart",)) or tap(f"less:{item}", f"Take one {item} out")
        if to_order:
            return self.look(("cart",)) or tap("checkout:", "Place the order")
        item = (self.missing(want, "favourite") or self.extra(want, "favourite"))[0][1]
        return self.look(("product", item)) or tap(f"like:{item}", f"Tap the star of {item}")

    def _put(self, item: str) -> Intent:
        if self.route in (("product", item), ("home",)):
            found = self._find(item) if self.route == ("home",) else None
            return found or tap(f"add:{item}", f"Add {item} to the cart")
        return self.look(("home",)) or self.leave()

    def _find(self, item: str) -> Intent | None:
        """Search for items far down the list; clear a search that hides the item."""
        first = item.split()[0]
        if self.query:
            hidden = self.query.lower() not in item.lower()
            return self._search("") if hidden else None
        far = list(self.prices).index(item) > 9
        return self._search(first) if far else None

    def _search(self, text: str) -> Intent:
        have = self.draft("search")
        if self.focus != "search":
            return tap("focus:search", "Tap the search field")
        if have and not text.startswith(have):
            return tap("clear:search", "Clear the search field")
        return self.fill("search", text, "search") or Intent("enter", "", "Press enter to search")

    def _cancel(self, item: str) -> Intent:
        if self.menu == ("ask", item):
            return tap(f"cancel:{item}", "Confirm that the order is cancelled")
        return self.look(("orders",)) or tap(f"ask:{item}", f"Tap the order {item}")
