"""Scripted experts: one small function a task, from what is on the page now to the next move.

An expert reads the elements of the page and nothing else: no variables of the page, no memory. So it also
knows how to go on after somebody else's mistakes, as long as the page shows them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from solar_rl.actions import Action, Box

from ..page import Element, Page
from . import forms, mail, shops
from .moves import Lost, Move, Press, Touch, Type, Wait

Expert = Callable[[Page], Move]
EXPERTS: dict[str, Expert] = {
    "book-flight": shops.book_flight,
    "book-flight-nodelay": shops.book_flight,
    "buy-ticket": shops.buy_ticket,
    "choose-date": forms.choose_date,
    "choose-date-nodelay": forms.choose_date,
    "click-button": forms.click_button,
    "click-button-sequence": forms.click_button_sequence,
    "click-checkboxes": forms.checkboxes,
    "click-checkboxes-large": forms.checkboxes,
    "click-link": forms.click_link,
    "click-tab": forms.click_tab,
    "click-tab-2-hard": forms.find_in_tabs,
    "click-test": forms.click_only_button,
    "email-inbox": mail.inbox,
    "email-inbox-forward": mail.inbox,
    "email-inbox-star-reply": mail.inbox,
    "enter-password": forms.enter_password,
    "enter-text": forms.enter_text,
    "focus-text": forms.focus_text,
    "form-sequence": forms.form_with_slider,
    "form-sequence-3": forms.form_with_dropdown,
    "guess-number": forms.guess_number,
    "login-user": forms.login,
    "login-user-popup": forms.login,
    "order-food": shops.order_food,
    "phone-book": shops.phone_book,
    "search-engine": shops.search,
    "social-media-all": mail.social,
    "social-media-some": mail.social,
    "use-autocomplete": forms.autocomplete,
    "use-autocomplete-nodelay": forms.autocomplete,
}
"""Every task that can be demonstrated."""

__all__ = ["EXPERTS", "Demonstration", "Lost", "demonstrate"]

_ENOUGH = 0.5
"""An element is touched only when at least this share of its height can be seen."""
_SCREEN = Box(0.0, 0.0, 1.0, 1.0)


class Demonstration(NamedTuple):
    """One action of the expert with its low-level instruction and what it was aimed at."""

    action: Action
    instruction: str
    target_box: Box | None = None
    candidate_boxes: tuple[Box, ...] = ()
    name: str | None = None


def demonstrate(task: str, page: Page, *, listed: bool = False) -> Demonstration:
    """Return what the expert does now.

    Args:
        task: A key of ``EXPERTS``.
        page: What is there.
        listed: Whether it touches exactly the points that the page's list names, and scrolls the page's middle.

    Raises:
        Lost: It doesn't know.
    """
    move = EXPERTS[task](page)
    if isinstance(move, Wait):
        return Demonstration(Action("wait"), move.say)
    if isinstance(move, Press):
        return Demonstration(Action("press", keys=(move.key,)), move.say)
    if isinstance(move, Type):
        return Demonstration(Action("input_text", text=move.text), move.say, move.element.box)
    shown = _touch(page, move, listed)
    if not listed or shown.action.action_type != "scroll":
        return shown
    return shown._replace(action=Action("scroll", direction=shown.action.direction))


def _touch(page: Page, move: Touch, listed: bool) -> Demonstration:
    element = move.element
    around = next((e for e in element.above() if e.scroll), None)
    able = around is not None or page.scroll is not None
    if element.point is None or element.box is None:
        if not able:
            raise Lost(f"something covers [{element.ref}] {element.tag}: {move.say}")
        return _scroll_to(page, element, around, move.say)
    seen = (element.box.y2 - element.box.y1) / (element.whole.y2 - element.whole.y1)
    if seen < _ENOUGH and able:
        return _scroll_to(page, element, around, move.say)
    element = page.listed(element) if listed else element
    point = element.place if listed else element.point
    assert point is not None, "what can be touched has a point"
    x, y = (round(share, 4) for share in point)
    holding = [e.box for e in (element, *element.above()) if e.box and e.box.contains(x, y)]
    return Demonstration(Action("click", x=x, y=y), move.say, element.box, tuple(holding), element.named)


def _scroll_to(page: Page, element: Element, around: Element | None, say: str) -> Demonstration:
    frame = around.box if around is not None and around.box else _SCREEN
    down = element.whole.y1 + element.whole.y2 > frame.y1 + frame.y2
    direction = "down" if down else "up"
    x, y = round((frame.x1 + frame.x2) / 2, 4), round((frame.y1 + frame.y2) / 2, 4)
    action = Action("scroll", x=x, y=y, direction=direction)
    return Demonstration(
        action, f"Scroll {direction} until you can {say[0].lower()}{say[1:]}", frame, (frame,)
    )
