"""Experts for buttons, fields, sliders, lists, checkboxes, tabs and dates."""

from __future__ import annotations

import re

from ..page import Element, Page
from .moves import Lost, Move, Press, Touch, Wait, asked, button, by_id, fill, first, quoted, submit

_MONTHS = (
    "January February March April May June July August September October November December".split()  # noqa: SIM905
)


def click_button(page: Page) -> Move:
    """Click the button that is named."""
    return button(page, quoted(page)[0])


def click_only_button(page: Page) -> Move:
    """Click the one button there is."""
    return Touch(first(page.all(tag="button"), "button"), "Click the button")


def click_button_sequence(page: Page) -> Move:
    """Click button one, then button two."""
    return submit(page, "subbtn2" if by_id(page, "subbtn").focused else "subbtn")


def click_link(page: Page) -> Move:
    """Click the link that is named."""
    [text] = quoted(page)
    return Touch(first(page.all("alink", text=text), f"link '{text}'"), f"Click the link '{text}'")


def focus_text(page: Page) -> Move:
    """Put the cursor into the field."""
    return Touch(first(page.all(tag="input_text"), "field"), "Click the field")


def enter_text(page: Page) -> Move:
    """Type a text and submit it."""
    return fill(by_id(page, "tt"), quoted(page)[0], "the field") or submit(page)


def enter_password(page: Page) -> Move:
    """Type a password twice and submit it."""
    [password] = quoted(page)
    return (
        fill(by_id(page, "password"), password, "the password field")
        or fill(by_id(page, "verify"), password, "the second password field")
        or submit(page)
    )


def login(page: Page) -> Move:
    """Type name and password and log in; cancel the pop-up that may come between."""
    popup = page.all(id="popup-cancel")
    if popup:
        return Touch(popup[0], "Dismiss the pop-up with Cancel")
    user, password = quoted(page)
    return (
        fill(by_id(page, "username"), user, "the username field")
        or fill(by_id(page, "password"), password, "the password field")
        or submit(page)
    )


def checkboxes(page: Page) -> Move:
    """Check exactly the boxes that are named, then submit."""
    [names] = asked(page, r"Select (.*) and click Submit")
    wanted = set() if names == "nothing" else set(names.split(", "))
    for label in page.all(tag="label"):
        name = page.words(label).strip()
        box = first(page.all(tag="input_checkbox", inside=label), f"checkbox '{name}'")
        if box.value != (name in wanted):
            return Touch(box, f"{'Uncheck' if box.value else 'Check'} '{name}'")
    return submit(page)


def click_tab(page: Page) -> Move:
    """Open the tab that is named."""
    [name] = asked(page, r"Click on (Tab #\d+)")
    return Touch(first(page.all(tag="a", text=name), name), f"Open {name}")


def find_in_tabs(page: Page) -> Move:
    """Go through the tabs until the link is there, and click it."""
    [text] = quoted(page)
    links = page.all("alink", text=text)
    if links:
        return Touch(links[0], f"Click the link '{text}'")
    current = first(page.all("ui-tabs-active"), "open tab")
    tabs = page.all("ui-tabs-anchor")
    place = next(i for i, tab in enumerate(tabs) if tab.parent is current)
    if place + 1 == len(tabs):
        raise Lost(f"no tab holds the link '{text}'")
    return Touch(tabs[place + 1], f"Open tab {tabs[place + 1].text}")


def form_with_slider(page: Page) -> Move:
    """Move the slider to a number, check one box, submit."""
    number, which = asked(page, r"Select (-?\d+) with the slider, click the (\d)")
    missing = int(number) - int(by_id(page, "val").text)
    handle = first(page.all("ui-slider-handle"), "slider")
    if missing and not handle.focused:
        return Touch(handle, "Click the slider's handle")
    if missing:
        return Press("right" if missing > 0 else "left", f"Move the slider towards {number}")
    for box in page.all(tag="input_checkbox"):
        if box.value != (box.id == f"checkbox-{which}"):
            return Touch(box, f"{'Uncheck' if box.value else 'Check'} {box.id.replace('-', ' ')}")
    return submit(page)


def form_with_dropdown(page: Page) -> Move:
    """Choose from the dropdown, then click the button that is named."""
    [choice] = asked(page, r"Choose (.*) from the dropdown")
    shown = first([e for e in page.all("label") if e.tag != "label"], "dropdown")
    if shown.text == choice:
        return button(page, quoted(page)[0])
    options = page.all(tag="li", text=choice)
    if options:
        return Touch(options[0], f"Choose '{choice}'")
    return Touch(shown, "Open the dropdown")


def guess_number(page: Page) -> Move:
    """Halve what is left: the last answer on the page tells how far the halving has come."""
    field = by_id(page, "tt")
    feedback = " ".join(page.words(e) for e in page.all(inside=by_id(page, "feedback")))
    told = re.search(r"(lower|higher) than (\d)", feedback)
    guess = _next_guess(*told.groups()) if told else _middle(0, 9)
    return fill(field, str(guess), "the field") or submit(page)


def _middle(low: int, high: int) -> int:
    return (low + high) // 2


def _next_guess(side: str, last: str) -> int:
    low, high, guess = 0, 9, int(last)
    while low < high and _middle(low, high) != guess:
        low, high = (
            (low, _middle(low, high) - 1) if guess < _middle(low, high) else (_middle(low, high) + 1, high)
        )
    return _middle(low, guess - 1) if side == "lower" else _middle(guess + 1, high)


def autocomplete(page: Page) -> Move:
    """Type the beginning, choose the item that fits, submit."""
    start, *ends = quoted(page)
    end = ends[0] if ends else ""
    fitting = [e for e in menu_items(page) if e.text.startswith(start) and e.text.endswith(end)]
    if fitting:
        return Touch(fitting[0], f"Choose '{fitting[0].text}'")
    value = str(by_id(page, "tags").value)
    if value.startswith(start) and value.endswith(end) and value != start:
        return submit(page)
    return fill(by_id(page, "tags"), start, "the field") or Wait("Wait for the list")


def menu_items(page: Page) -> list[Element]:
    """Return the items of an open list of suggestions."""
    items = page.all("ui-menu-item-wrapper") or page.all("ui-menu-item")
    return [item for item in items if item.text]


def choose_date(page: Page) -> Move:
    """Pick a date in the calendar and submit it."""
    [date] = asked(page, r"(\d\d/\d\d/\d{4})")
    return pick_date(page, date) or submit(page)


def pick_date(page: Page, date: str) -> Move | None:
    """Go to the month in the calendar and click the day; None when the date is in the field."""
    field = by_id(page, "datepicker")
    if field.value == date:
        return None
    shown = page.all("ui-datepicker-month")
    if not shown:
        return Touch(field, "Open the calendar")
    month, day, _ = (int(part) for part in date.split("/"))
    ahead = month - (_MONTHS.index(shown[0].text) + 1)
    if ahead:
        way = "next" if ahead > 0 else "prev"
        arrow = first(page.all(f"ui-datepicker-{way}"), f"arrow to the {way} month")
        return Touch(arrow, f"Go to the {'next' if ahead > 0 else 'previous'} month")
    return Touch(
        first(page.all("ui-state-default", tag="a", text=str(day)), f"day {day}"), f"Click day {day}"
    )
