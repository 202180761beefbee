"""Draw goals about things: notes and the shop."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..apps.notes import Notes
from ..apps.shop import Shop
from ..goals import Look, Part
from ..phone import Phone
from ..stock import ITEMS, LINES, PRODUCTS, TITLES
from .words import listed, pick


def notes_add(phone: Phone, rng: Random, size: int) -> Part | None:
    """Write a note."""
    title = rng.choice([t for t in TITLES if t not in phone.get(Notes).bodies])
    body = rng.choice(LINES)
    return Part(
        "notes.add", "notes", f"write a note '{title}' with the text '{body}'", (("note", title, body),)
    )


def notes_rewrite(phone: Phone, rng: Random, size: int) -> Part | None:
    """Replace a note's text."""
    bodies = phone.get(Notes).bodies
    title = rng.choice(sorted(bodies))
    body = rng.choice([line for line in LINES if line != bodies[title]])
    text = f"replace the text of the note '{title}' by '{body}'"
    return Part("notes.rewrite", "notes", text, (("note", title, body),), (("note", title, bodies[title]),))


def notes_delete(phone: Phone, rng: Random, size: int) -> Part | None:
    """Delete notes that have no checklist."""
    notes = phone.get(Notes)
    titles = pick(rng, sorted(set(notes.bodies) - set(notes.items) - notes.pinned), max(1, size // 2))
    text = f"delete the {'note' if len(titles) == 1 else 'notes'} {listed(titles)}"
    return Part("notes.delete", "notes", text, (), tuple(("note", t, notes.bodies[t]) for t in titles))


def notes_pin(phone: Phone, rng: Random, size: int) -> Part | None:
    """Pin a note."""
    notes = phone.get(Notes)
    title = rng.choice(sorted(set(notes.bodies) - notes.pinned))
    return Part("notes.pin", "notes", f"pin the note '{title}' to the top", (("pin", title),))


def notes_tick(phone: Phone, rng: Random, size: int) -> Part | None:
    """Tick items of a checklist."""
    lists = phone.get(Notes).items
    title = rng.choice(sorted(lists))
    items = pick(rng, [item for item, done in lists[title].items() if not done], size)
    if not items:
        return None
    text = f"tick {listed(items)} in the note '{title}'"
    return Part("notes.tick", "notes", text, tuple(("done", title, item) for item in items))


def notes_items(phone: Phone, rng: Random, size: int) -> Part | None:
    """Add items to a checklist, in a given order."""
    lists = phone.get(Notes).items
    title = rng.choice(sorted(lists))
    items = pick(rng, [item for item in ITEMS if item not in lists[title]], size)
    text = f"add {listed(items)} to the checklist of the note '{title}'"
    return Part("notes.items", "notes", text, tuple(("item", title, item) for item in items))


def notes_text(phone: Phone, rng: Random, size: int) -> Part | None:
    """Ask what a note says."""
    bodies = phone.get(Notes).bodies
    title = rng.choice(sorted(bodies))
    look = Look("notes", ("note", title))
    return Part(
        "notes.text", "notes", f"what does the note '{title}' say?", looks=(look,), answer=bodies[title]
    )


def _wares(phone: Phone, rng: Random, size: int) -> list[tuple[str, int]]:
    return [(item, rng.choice((1, 1, 1, 2))) for item in pick(rng, list(phone.get(Shop).prices), size)]


def _counted(wares: Sequence[tuple[str, int]]) -> str:
    return listed([f"{count} x {item}" for item, count in wares])


def shop_cart(phone: Phone, rng: Random, size: int) -> Part | None:
    """Fill the cart and leave it there."""
    wares = _wares(phone, rng, size)
    text = f"put {_counted(wares)} into the cart of the shop, without ordering"
    return Part("shop.cart", "shop", text, tuple(("cart", item, str(count)) for item, count in wares))


def shop_order(phone: Phone, rng: Random, size: int) -> Part | None:
    """Order things."""
    wares = _wares(phone, rng, size)
    adds = tuple(("order", item, str(count)) for item, count in wares)
    return Part("shop.order", "shop", f"order {_counted(wares)} in the shop", adds)


def shop_favourite(phone: Phone, rng: Random, size: int) -> Part | None:
    """Mark products as favourites."""
    items = pick(rng, list(phone.get(Shop).prices), max(1, size // 2))
    text = f"mark {listed(items)} as {'a favourite' if len(items) == 1 else 'favourites'} in the shop"
    return Part("shop.favourite", "shop", text, tuple(("favourite", item) for item in items))


def shop_price(phone: Phone, rng: Random, size: int) -> Part | None:
    """Ask for a price."""
    item, price = rng.choice(list(phone.get(Shop).prices.items()))
    look = Look("shop", ("product", item))
    return Part("shop.price", "shop", f"how much is {item} in the shop?", looks=(look,), answer=f"${price}")


def shop_sold_out(phone: Phone, rng: Random, size: int) -> Part | None:
    """Ask for something that the shop doesn't have."""
    prices = phone.get(Shop).prices
    item = rng.choice([name for name, _, _ in PRODUCTS if name not in prices])
    look = Look("shop", ("home",), f"open:{list(prices)[-1]}")
    return Part("shop.sold_out", "shop", f"order {item} in the shop", looks=(look,), infeasible=True)
