"""Experts for flights, tickets, food, search results and the phone book."""

from __future__ import annotations

import re
from collections import Counter

from ..page import Element, Page
from .forms import menu_items, pick_date
from .moves import Lost, Move, Touch, Wait, asked, by_id, fill, first, quoted, submit

_MENU = {
    "Caesar Salad": ("vegan", "gluten-free"),
    "Garlic bread": ("vegan",),
    "Spinach and goat cheese dip": ("dairy", "gluten-free"),
    "Chicken wings": ("meat",),
    "Tofu and Vegetable stone pot": ("vegan", "gluten-free"),
    "Spicy Thai Peanut Chicken": ("meat", "peanuts"),
    "Grilled Pork Tenderloin": ("meat", "gluten-free"),
    "Spaghetti and Meatballs": ("meat",),
    "Cheese wheel": ("dairy", "gluten-free"),
    "Chocolate cake": ("dairy",),
    "Ice cream sundae": ("dairy", "peanuts", "gluten-free"),
    "Coconut mango tart": ("vegan",),
}
"""The kinds of food, which the page shows as icons only."""


def book_flight(page: Page) -> Move:
    """Fill in the form, search, and book the cheapest or shortest flight."""
    how, start, end, date = asked(page, r"the (\w+) one-way flight from: (.*?) to: (.*?) on (\S+)\.")
    flights = page.all("flight")
    if flights:
        best = min(flights, key=lambda f: _price(page, f) if how == "cheapest" else _minutes(page, f))
        return Touch(first(page.all("flight-price", inside=best), "price"), f"Book the {how} flight")
    return (
        _airport(page, "flight-from", start)
        or _airport(page, "flight-to", end)
        or pick_date(page, date)
        or submit(page, "search")
    )


def _airport(page: Page, id: str, name: str) -> Move | None:
    field = by_id(page, id)
    if re.search(r"\(\w+\)$", str(field.value)) and name in str(field.value):
        return None
    exact = (f"{name} (", f"({name})")
    items = sorted(
        (item for item in menu_items(page) if name in item.text),
        key=lambda item: not (item.text.startswith(exact[0]) or item.text.endswith(exact[1])),
    )
    if items and field.value == name:
        return Touch(items[0], f"Choose '{items[0].text}'")
    return fill(field, name, f"the field {id.replace('flight-', '').title()}") or Wait("Wait for the list")


def _price(page: Page, ticket: Element) -> int:
    return int(re.findall(r"\$(\d+)", page.words(ticket))[0])


def _minutes(page: Page, ticket: Element) -> int:
    hours, minutes = re.findall(r"(\d+)h (\d+)m", page.words(ticket))[0]
    return 60 * int(hours) + int(minutes)


def buy_ticket(page: Page) -> Move:
    """Buy the ticket that is cheapest, dearest, shortest or longest."""
    [how] = asked(page, r"the ticket with the (.*)\.$")
    measure = _price if "cost" in how else _minutes
    sign = -1 if how.startswith(("most", "longest")) else 1
    best = min(page.all("flight"), key=lambda ticket: sign * measure(page, ticket))
    return Touch(first(page.all("buy-ticket", inside=best), "ticket"), f"Buy the ticket with the {how}")


def order_food(page: Page) -> Move:
    """Order what is named, or so many items of a kind."""
    wanted = _order(page)
    for item in page.all("food-item"):
        name = first(page.all("item-name", inside=item), "name").text.strip()
        shown = "".join(e.text for e in page.all("quantity", inside=item)).strip()
        missing = wanted[name] - int(shown or 0)
        if missing:
            sign = "add" if missing > 0 else "remove"
            return Touch(first(page.all(sign, inside=item), sign), f"{sign.capitalize()} one {name}")
    return Touch(first(page.all(tag="button", text="Order!"), "Order!"), "Click Order!")


def _order(page: Page) -> Counter[str]:
    if "items that are" not in page.goal:
        names = page.goal.partition(":")[2].split(",")
        return Counter(name.strip() for name in names)
    count, kind = asked(page, r"Order (\d+) items that are (\S+)")
    fitting = [name for name, kinds in _MENU.items() if kind in kinds]
    return Counter(fitting[i % len(fitting)] for i in range(int(count)))


def search(page: Page) -> Move:
    """Search for a word and click the n-th result."""
    place = int(asked(page, r"the (\d)(?:st|nd|rd|th) search result")[0]) - 1
    titles = page.all("search-title")
    if not titles:
        return fill(by_id(page, "search-text"), quoted(page)[0], "the search field") or submit(page, "search")
    number = str(place // 3 + 1)
    if page.words(first(page.all("active"), "open page")) == number:
        return Touch(titles[place % 3], f"Click result {place + 1}")
    return Touch(first(page.all("page-link", text=number), f"page {number}"), f"Go to page {number}")


def phone_book(page: Page) -> Move:
    """Go through the contacts to one of that name and click what is asked for."""
    name, what = asked(page, r"Find (\S+) in the contact book and click on their (phone|email|address)")
    if page.all("name", text=name):
        return Touch(first(page.all(what, tag="a"), what), f"Click the {what} of {name}")
    further = page.all(tag="a", text=">")
    if not further:
        raise Lost(f"no contact is named {name}")
    return Touch(further[0], "Go to the next contact")
