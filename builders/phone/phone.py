"""The phone itself: which app is in front, what covers it, and what each action does to it."""

from __future__ import annotations

from random import Random
from typing import NamedTuple, TypeVar

from solar_rl.actions import Action, opposite, path_direction

from .apps import APPS, App, Fact, Launcher
from .apps.agenda import Agenda
from .apps.settings import Settings
from .blocks import Choice
from .screen import Dialog, Look, Screen, Status, lay_out
from .widgets import HEIGHT, WIDTH, hit

SYSTEM_VERBS = ("popup", "nav", "launch", "up", "dismiss", "hide", "focus", "clear", "enter", "type", "erase")
"""Verbs of keys that the phone handles itself; no app may use them for its own."""

A = TypeVar("A", bound=App)

_SCROLL_SHARE = 0.65
"""How far a scroll without a path moves, as a share of the viewport."""
_HORIZON = 200
"""Pop-ups are drawn for this many actions in advance."""


class Popup(NamedTuple):
    """A box of the system that comes by itself: only its first button sends it away at once."""

    title: str
    text: str
    icon: str
    dismiss: str
    accept: str
    busy: str


POPUPS = (
    Popup("Enjoying your phone?", "Take a moment to rate it. It helps us a lot.", "star", "Not now", "Rate", "Opening the rating page"),
    Popup("System update", "Version 2 is ready to install. This takes a while.", "update", "Later", "Install", "Installing the update"),
    Popup("Save battery?", "Your phone could last longer today.", "battery", "No", "Details", "Checking the battery"),
    Popup("Storage almost full", "Free some space to keep things fast.", "storage", "Skip", "Clean up", "Looking for large files"),
    Popup("Stay up to date", "Allow notifications from your apps?", "bell", "No thanks", "Allow", "Turning on notifications"),
    Popup("Share your location?", "Apps near you would like to know where you are.", "location", "Deny", "Allow", "Finding your location"),
)  # fmt: skip


class Phone:
    """The whole device, made from a seed alone.

    Args:
        seed: Any text; equal texts give equal phones.
        popup_rate: Chance that an action is followed by a pop-up.
        moved: Whether widgets are moved about (margins, gaps, the side of the add button).
        things: Most alarms, people and notes that are on it; None for as many as were drawn.
    """

    def __init__(
        self, seed: str, *, popup_rate: float = 0.0, moved: bool = False, things: int | None = None
    ) -> None:
        rng = Random(seed)
        self.apps: dict[str, App] = {name: APPS[name](rng) for name in sorted(APPS)}
        if things is not None:
            some = Random(f"{seed} things")  # its own source: all else stays as it is without
            for app in self.apps.values():
                app.thin_out(some, things)
        self.launcher = Launcher(rng)
        self.launcher.apps = rng.sample([APPS[name] for name in sorted(APPS)], len(APPS))
        self.launcher.day = self.get(Agenda).today
        self.battery = rng.randint(21, 98)
        self.popups = _schedule(rng, popup_rate)
        self.patience = rng.randint(1, 2)
        self.look = _moved_look(rng) if moved else Look()
        self.front: App = self.launcher
        self.popup: Popup | None = None
        self.loading, self.loading_text, self.toast = 0, "", ""
        self.scrolls: dict[tuple[str, ...], int] = {}
        self.actions = 0
        self._screen: Screen | None = None

    def get(self, kind: type[A]) -> A:
        """Return the app of this class."""
        app = self.apps[kind.name]
        assert isinstance(app, kind)
        return app

    def facts(self) -> dict[str, frozenset[Fact]]:
        """Return the facts of every app."""
        return {name: app.facts() for name, app in self.apps.items()}

    @property
    def screen(self) -> Screen:
        """Return what can be seen now."""
        if self._screen is None:
            page = self.front.page()
            self._screen = lay_out(page, self._status(), self.look, self.scrolls.get(self._place(), 0))
        return self._screen

    def _place(self) -> tuple[str, ...]:
        return (self.front.name, *self.front.route)

    def _status(self) -> Status:
        on = [key for key, value in self.get(Settings).values.items() if value == "on"]
        shown = (("airplane", "Airplane mode"), ("bluetooth", "Bluetooth"), ("wifi", "Wi-Fi"))
        icons = tuple((key, said) for key, said in shown if key in on)
        popup = self.popup and Dialog(
            self.popup.title,
            self.popup.text,
            choices=(
                Choice("popup:dismiss", self.popup.dismiss, "tonal"),
                Choice("popup:accept", self.popup.accept, "filled"),
            ),
            icon=self.popup.icon,
        )
        return Status(
            self.launcher.time,
            self.battery,
            (*icons, ("signal", "Signal")),
            "dark" in on,
            self.front.color,
            self.front.focus is not None and self.front.menu is None,
            self.toast,
            popup,
            self.loading_text if self.loading else "",
        )

    def act(self, action: Action) -> None:
        """Do what an action does here; a senseless one does nothing but pass time."""
        self.toast = ""
        self.actions += 1
        was_loading = self.loading > 0
        if was_loading:
            self.loading -= 1
        if not was_loading or action.button == "home":
            self._do(action)
            if action.action_type in ("click", "input_text", "press"):
                self._reveal()
        self.toast, self.front.toast = self.front.toast or self.toast, ""
        if self.front.busy:
            self._load(self.front.busy)
            self.front.busy = ""
        if self.popup is None and not self.loading and self.actions in self.popups:
            self.popup = self.popups[self.actions]
        self._screen = None

    def _do(self, action: Action) -> None:
        kind = action.action_type
        if kind in ("click", "double_click", "right_click", "long_press"):
            self._touch(action.x or 0.0, action.y or 0.0, hold=kind == "long_press")
        elif kind == "scroll":
            self._scroll(str(action.direction), action)
        elif kind == "drag":
            path = (action.x or 0.0, action.y or 0.0, action.x2 or 0.0, action.y2 or 0.0)
            self._scroll(opposite(path_direction(*path)), action)
        elif kind == "input_text" and self.popup is None and self.front.focus is not None:
            self.front.drafts[self.front.focus] = self.front.draft(self.front.focus) + (action.text or "")
        elif kind == "open_app":
            self._open_named(action.app_name or "")
        elif kind == "press":
            self._press(action.button)

    def _touch(self, x: float, y: float, *, hold: bool) -> None:
        found = hit(self.screen.tree, x * WIDTH, y * HEIGHT)
        if found is None:
            return
        if hold and found.widget.hold:
            self.front.hold(found.widget.key)
        else:
            self._tap(found.widget.key)

    def _tap(self, key: str) -> None:
        verb, _, argument = key.partition(":")
        front = self.front
        if verb == "popup":
            self._answer(argument)
        elif verb == "nav":
            self._press(argument)
        elif verb == "launch":
            self.open(self.apps[argument])
        elif verb in ("up", "dismiss", "hide"):
            front.back()
        elif verb == "focus":
            front.focus = argument
        elif verb == "clear":
            front.drafts[argument] = ""
        elif verb == "enter":
            front.submit()
        elif verb in ("type", "erase"):
            have = front.draft(front.focus or "")
            front.drafts[front.focus or ""] = have + argument if verb == "type" else have[:-1]
        else:
            front.tap(key)

    def _reveal(self) -> None:
        """Scroll so that the keyboard doesn't cover the field it writes into."""
        self._screen = None
        screen = self.screen
        place = screen.places.get(f"focus:{self.front.focus}")
        if place is not None and self.front.menu is None:
            lowest = place[1] + 8 - screen.viewport.height
            highest = max(place[0] - 8, 0)
            self.scrolls[self._place()] = min(max(screen.scroll, lowest), highest, screen.max_scroll)

    def _answer(self, argument: str) -> None:
        if argument == "accept" and self.popup is not None:
            self._load(self.popup.busy)
        self.popup = None

    def _load(self, text: str) -> None:
        self.loading, self.loading_text = self.patience, text

    def _press(self, button: str | None) -> None:
        if button == "back":
            if self.popup is not None:
                self.popup = None
            elif not self.front.back():
                self._show(self.launcher)
        elif button == "enter":
            if self.popup is None and self.front.focus is not None:
                self.front.submit()
        elif button in ("home", "recent"):
            self.popup = None
            self.front.focus = None
            self._show(self.launcher)
            self.launcher.routes = [("home",)] if button == "home" else [("home",), ("recent",)]

    def _scroll(self, direction: str, action: Action) -> None:
        if self.popup is not None or self.front.menu is not None:
            return
        screen = self.screen
        if direction in ("left", "right"):
            self.front.swipe(direction)
            return
        length = round(screen.viewport.height * _SCROLL_SHARE)
        if action.y is not None and action.y2 is not None:
            length = round(abs(action.y2 - action.y) * HEIGHT)
        moved = screen.scroll + (length if direction == "down" else -length)
        self.scrolls[self._place()] = min(max(moved, 0), screen.max_scroll)

    def _open_named(self, name: str) -> None:
        wanted = name.casefold().strip()
        for app in self.apps.values():
            if wanted in (app.name, app.title.casefold()):
                self.open(app)
                return
        self.toast = f"No app named {name}"

    def open(self, app: App) -> None:
        """Bring an app to the front; a slow one shows a loading screen first."""
        self._show(app)
        recent = [a for a in self.launcher.recent if a is not type(app)]
        self.launcher.recent = [type(app), *recent]
        self.launcher.routes = [("home",)]
        if app.slow:
            self._load(f"Opening {app.title}")

    def _show(self, app: App) -> None:
        self.front.focus = self.front.menu = None
        self.front = app


def _schedule(rng: Random, rate: float) -> dict[int, Popup]:
    """Draw after which actions a pop-up comes, with some peace after each."""
    due: dict[int, Popup] = {}
    step = 1
    while step < _HORIZON:
        comes = rng.random() < rate
        if comes:
            due[step] = rng.choice(POPUPS)
        step += 4 if comes else 1
    return due


def _moved_look(rng: Random) -> Look:
    return Look(rng.randint(0, 8), rng.randint(0, 8), rng.randint(4, 28), rng.random() < 0.5)
