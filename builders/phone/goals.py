"""What a goal is: facts to make true or untrue, things to look at, an answer to give.

Success is a question about the phone's state, never about the path: the facts of every app must be
exactly the initial ones with the goal's changes made. An extra change anywhere is a failure.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import NamedTuple

from solar_rl.actions import Action

from .apps import Fact, Route
from .phone import Phone
from .widgets import find


class Look(NamedTuple):
    """Something the user must have seen: a page of an app, and on it the widget with this key."""

    app: str
    route: Route
    key: str = ""


@dataclass(frozen=True)
class Part:
    """One thing to do in one app.

    Args:
        template: Name of the template it was drawn from.
        app: The app it happens in.
        text: What to do, as an imperative without a full stop.
        adds: Facts to make true, in the order they are asked for.
        removes: Facts to make untrue.
        looks: What must be seen.
        answer: What a question asks for.
        infeasible: Whether it can't be done on this phone.
    """

    template: str
    app: str
    text: str
    adds: tuple[Fact, ...] = ()
    removes: tuple[Fact, ...] = ()
    looks: tuple[Look, ...] = ()
    answer: str | None = None
    infeasible: bool = False


@dataclass(frozen=True)
class Goal:
    """One or more parts, asked for in one text."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Return what the user asks for."""
        if len(self.parts) == 1:
            return _sentence(self.parts[0].text)
        last = len(self.parts) - 1
        said = []
        for place, part in enumerate(self.parts):
            order = "First" if place == 0 else "Finally" if place == last > 1 else "Then"
            said.append(f"{order}, tell me: {part.text}" if part.answer else f"{order} {part.text}.")
        return " ".join(said)

    @property
    def status(self) -> str:
        """Return what ``finished`` must declare."""
        return "infeasible" if any(part.infeasible for part in self.parts) else "complete"

    @property
    def answer(self) -> str | None:
        """Return the text that ``finished`` must carry, None when nothing was asked."""
        return next((part.answer for part in self.parts if part.answer is not None), None)

    @property
    def templates(self) -> tuple[str, ...]:
        """Return the names of the templates, in order."""
        return tuple(part.template for part in self.parts)

    @property
    def apps(self) -> tuple[str, ...]:
        """Return the apps in the order they are needed, each once."""
        return tuple(dict.fromkeys(part.app for part in self.parts))

    @property
    def looks(self) -> tuple[Look, ...]:
        """Return everything that must be seen."""
        return tuple(look for part in self.parts for look in part.looks)


def _sentence(text: str) -> str:
    mark = "" if text.endswith("?") else "."
    return text[0].upper() + text[1:] + mark


class Task:
    """A goal on a phone: what must be true at the end, and how far it is.

    Args:
        phone: The phone in its initial state.
        goal: What is asked for.
    """

    def __init__(self, phone: Phone, goal: Goal) -> None:
        self.goal = goal
        self.seen: set[Look] = set()
        facts = phone.facts()
        self.want: dict[str, tuple[Fact, ...]] = {}
        self.changes: list[tuple[str, Fact, bool]] = []
        for app, start in facts.items():
            parts = [part for part in goal.parts if part.app == app]
            adds = [fact for part in parts for fact in part.adds]
            removes = {fact for part in parts for fact in part.removes}
            kept = sorted(start - removes - set(adds))
            self.want[app] = (*kept, *dict.fromkeys(adds))
            self.changes += [(app, fact, True) for fact in adds if fact not in start]
            self.changes += [(app, fact, False) for fact in sorted(removes & start)]

    def watch(self, phone: Phone) -> None:
        """Take note of what can be seen now."""
        if phone.popup is None and not phone.loading:
            self.seen |= {look for look in self.goal.looks if shows(phone, look)}

    def reached(self, phone: Phone) -> bool:
        """Tell whether the facts are exactly the wanted ones."""
        return all(facts == frozenset(self.want[app]) for app, facts in phone.facts().items())

    def success(self, phone: Phone, last: Action | None) -> bool:
        """Tell whether the goal is reached and declared as such, with the right answer if one is asked for."""
        if last is None or last.action_type != "finished" or last.status != self.goal.status:
            return False
        if self.goal.answer is not None and _plain(last.text or "") != _plain(self.goal.answer):
            return False
        return self.reached(phone)

    def progress(self, phone: Phone) -> float:
        """Return the share of changes made and things seen, in [0, 1]; 0 where nothing needs to be done."""
        facts = phone.facts()
        made = [(fact in facts[app]) == wanted for app, fact, wanted in self.changes]
        made += [look in self.seen for look in self.goal.looks]
        return sum(made) / len(made) if made else 0.0


def shows(phone: Phone, look: Look) -> bool:
    """Tell whether the page and the widget of a look are on the screen."""
    app = phone.apps[look.app]
    if phone.front is not app or app.look(look.route) is not None:
        return False
    return not look.key or find(phone.screen.tree, look.key) is not None


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".")
