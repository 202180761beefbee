"""What an app is: a small state machine that shows pages, reacts to keys, and states its facts.

The state that matters is a set of *facts*, tuples of strings such as ("alarm", "07:30", "on"). A goal
is a list of facts to make true; ``guide`` says what to touch next to get there from any state, so the
expert is a planner and no recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import ClassVar, NamedTuple

from ..screen import Dialog, Page

Fact = tuple[str, ...]
Route = tuple[str, ...]


class Intent(NamedTuple):
    """What the expert means to do next, before it becomes an action on the screen.

    Args:
        kind: tap, hold, type, enter or back.
        key: The widget that is meant (tap, hold).
        say: The low-level instruction.
        text: What is typed.
    """

    kind: str
    key: str
    say: str
    text: str = ""


def tap(key: str, say: str) -> Intent:
    """Mean a tap on the widget with this key."""
    return Intent("tap", key, say)


class App:
    """Base of the apps.

    Args:
        rng: Seeded source of the initial data.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    icon: ClassVar[str]
    color: ClassVar[str]
    slow: ClassVar[bool] = False
    """Whether it shows a loading screen when it is opened."""

    def __init__(self, rng: Random) -> None:
        self.routes: list[Route] = [("home",)]
        self.drafts: dict[str, str] = {}
        self.focus: str | None = None
        self.menu: Route | None = None
        self.toast = ""
        self.busy = ""
        self.fill_in(rng)

    def fill_in(self, rng: Random) -> None:
        """Draw the initial data."""
        raise NotImplementedError

    def thin_out(self, rng: Random, most: int) -> None:
        """Keep at most so many of the things that fill its list, of which each has a first word of its own."""

    def page(self) -> Page:
        """Return the page of the present route."""
        raise NotImplementedError

    def facts(self) -> frozenset[Fact]:
        """Return everything about this app that a goal can be about."""
        raise NotImplementedError

    def guide(self, want: Sequence[Fact]) -> Intent:
        """Return the next intent towards exactly these facts; called only while they differ."""
        raise NotImplementedError

    def look(self, thing: Route) -> Intent | None:
        """Return the next intent towards a page, None once it is shown."""
        return None if self.route == thing else self.leave()

    @property
    def route(self) -> Route:
        """Return where in the app the user is."""
        return self.routes[-1]

    def go(self, *route: str) -> None:
        """Open a page on top of the present one."""
        self.routes.append(route)
        self.focus, self.menu = None, None

    def back(self) -> bool:
        """Close what is on top; False when there was nothing to close but the app."""
        if self.menu is not None or self.focus is not None:
            self.menu, self.focus = None, None
        elif len(self.routes) > 1:
            self.routes.pop()
        else:
            return False
        return True

    def tap(self, key: str) -> None:
        """React to a key of the present page: ``verb:argument`` calls ``on_verb(argument)``."""
        verb, _, argument = key.partition(":")
        getattr(self, f"on_{verb}")(argument)

    def hold(self, key: str) -> None:
        """React to a long press: opens the menu of what was pressed."""
        verb, _, argument = key.partition(":")
        self.menu = ("menu", verb, argument)

    def submit(self) -> None:
        """React to the enter key: closes the keyboard."""
        self.focus = None

    def swipe(self, direction: str) -> None:
        """React to a scroll that moves no list."""

    def draft(self, key: str) -> str:
        """Return what stands in a text field."""
        return self.drafts.get(key, "")

    def fill(self, key: str, text: str, label: str) -> Intent | None:
        """Return the next intent that makes a field hold this text, None once it does."""
        have = self.draft(key)
        if have == text:
            return None
        if self.focus != key:
            return tap(f"focus:{key}", f"Tap the {label} field")
        if have and not text.startswith(have):
            return tap(f"clear:{key}", f"Clear the {label} field")
        return Intent("type", key, f"Type '{text[len(have) :]}' into the {label} field", text[len(have) :])

    def leave(self) -> Intent:
        """Mean to go back one page."""
        return Intent("back", "", "Go back")

    def missing(self, want: Sequence[Fact], kind: str = "") -> list[Fact]:
        """List wanted facts that aren't true yet, in the goal's order."""
        facts = self.facts()
        return [f for f in want if f not in facts and (not kind or f[0] == kind)]

    def extra(self, want: Sequence[Fact], kind: str = "") -> list[Fact]:
        """List true facts that aren't wanted, in sorted order."""
        return sorted(f for f in self.facts() - set(want) if not kind or f[0] == kind)

    def menu_dialog(self) -> Dialog | None:
        """Return the open menu or question as a dialog, None when there is none."""
        return None
