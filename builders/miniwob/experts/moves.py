"""What an expert can want, and the small things that most experts do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..page import Element, Page


class Lost(Exception):
    """The expert doesn't know what to do on this page."""


@dataclass(frozen=True)
class Touch:
    """Click an element; it is scrolled to first where it can't be seen."""

    element: Element
    say: str


@dataclass(frozen=True)
class Type:
    """Type into the element that has the focus."""

    element: Element
    text: str

    @property
    def say(self) -> str:
        """Return the instruction."""
        return f"Type '{self.text}'"


@dataclass(frozen=True)
class Press:
    """Press one key."""

    key: str
    say: str


@dataclass(frozen=True)
class Wait:
    """Let the page finish what it is doing."""

    say: str = "Wait for the page"


Move = Touch | Type | Press | Wait


def quoted(page: Page) -> list[str]:
    """Return what stands in quotation marks in the goal."""
    return re.findall(r'"([^"]*)"', page.goal)


def asked(page: Page, pattern: str) -> tuple[str, ...]:
    """Return the groups of a pattern in the goal.

    Raises:
        Lost: The goal is worded otherwise.
    """
    found = re.search(pattern, page.goal)
    if found is None:
        raise Lost(f"the goal is worded otherwise than {pattern!r}: {page.goal}")
    return found.groups()


def first(found: list[Element], what: str) -> Element:
    """Return the first of some elements.

    Raises:
        Lost: There is none.
    """
    if not found:
        raise Lost(f"there is no {what}")
    return found[0]


def button(page: Page, text: str) -> Touch:
    """Click the button of that text."""
    return Touch(first(page.all(tag="button", text=text), f"button '{text}'"), f"Click the button '{text}'")


def submit(page: Page, id: str = "subbtn") -> Touch:
    """Click the button that hands the answer in."""
    found = by_id(page, id)
    return Touch(found, f"Click {found.text or id.replace('-', ' ')}")


def by_id(page: Page, id: str) -> Element:
    """Return the element of that id."""
    return first(page.all(id=id), f"element #{id}")


def fill(element: Element, text: str, name: str) -> Move | None:
    """Bring a text into a field: focus it, rub out what is wrong, type; None when it is there."""
    if element.value == text:
        return None
    if not element.focused:
        return Touch(element, f"Click {name}")
    if element.value:
        return Press("backspace", f"Rub out the last letter of {name}")
    return Type(element, text)
