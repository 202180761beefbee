"""Calendar: a month as a grid, the events of the chosen day below it, and an editor."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from random import Random

from ..blocks import Block, Cell, Choice, Lead, field, grid, header, row
from ..screen import Dialog, Page, Tool
from ..stock import EVENTS
from .base import App, Fact, Intent, Route, tap

YEAR = 2027
MONTHS = tuple(calendar.month_name)[1:]
TIMES = tuple(f"{hour:02d}:00" for hour in range(8, 20))


class Agenda(App):
    """The calendar of one year."""

    name, title, icon, color = "calendar", "Calendar", "calendar", "#b3261e"

    def fill_in(self, rng: Random) -> None:
        """Draw today and a dozen events around it."""
        self.month = rng.randint(2, 11)
        self.day = rng.randint(1, 28)
        self.today = self._name(self.month, self.day)
        self.events: set[Fact] = set()
        for title in rng.sample(EVENTS, 12):
            month = self.month + rng.choice((0, 0, 0, 1, -1))
            self.events.add((self._name(month, rng.randint(1, 28)), rng.choice(TIMES), title))

    @staticmethod
    def _name(month: int, day: int) -> str:
        return f"{MONTHS[month - 1]} {day}"

    @property
    def chosen(self) -> str:
        """Return the chosen day, such as May 14."""
        return self._name(self.month, self.day)

    def facts(self) -> frozenset[Fact]:
        """Return ("event", day, time, title)."""
        return frozenset(("event", *event) for event in self.events)

    def page(self) -> Page:
        """Return the month or the editor."""
        if self.route[0] == "new":
            return self._editor()
        events = sorted(e for e in self.events if e[0] == self.chosen)
        rows = [row(f"open:{time}|{title}", title, time, Lead("tinted", "bell")) for _, time, title in events]
        blocks = (self._grid(), header(self.chosen), *(rows or [row("", "Nothing planned")]))
        tools = (Tool("month:-1", "previous", "Previous month"), Tool("month:1", "forward", "Next month"))
        title = f"{MONTHS[self.month - 1]} {YEAR}"
        return Page(
            title, blocks, tools=tools, fab=Tool("new:", "add", "New event"), dialog=self.menu_dialog()
        )

    def _grid(self) -> Block:
        first, days = calendar.monthrange(YEAR, self.month)
        busy = {event[0] for event in self.events}
        cells = [Cell("", name) for name in ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")]
        cells += [Cell("", "")] * first
        for day in range(1, days + 1):
            mark = self._name(self.month, day) in busy
            cells.append(Cell(f"day:{day}", str(day), chosen=day == self.day, mark=mark))
        return grid(cells, 7, 44, "day")

    def _editor(self) -> Page:
        times = [Cell(f"time:{time}", time, chosen=time == self.draft("time")) for time in TIMES]
        blocks = (
            field("title", "Title", self.draft("title"), self.focus == "title"),
            header("Starts at"),
            grid(times, 4),
        )
        return Page(f"Event on {self.chosen}", blocks, up=True, tools=(Tool("save:", "check", "Save"),))

    def menu_dialog(self) -> Dialog | None:
        """Show an event, with a way to delete it."""
        if self.menu is None:
            return None
        time, _, title = self.menu[1].partition("|")
        choices = (Choice("dismiss", "Close", "tonal"), Choice(f"delete:{self.menu[1]}", "Delete", "danger"))
        return Dialog(title, f"{self.chosen}, {time}", choices=choices, icon="calendar")

    def on_month(self, by: str) -> None:
        """Turn the page; the year has an end."""
        self.month = min(max(self.month + int(by), 1), 12)
        self.day = min(self.day, calendar.monthrange(YEAR, self.month)[1])

    def swipe(self, direction: str) -> None:
        """Turn the page by a scroll to the side."""
        if self.route == ("home",) and direction in ("left", "right"):
            self.on_month("1" if direction == "right" else "-1")

    def on_day(self, day: str) -> None:
        """Choose a day."""
        self.day = int(day)

    def on_open(self, event: str) -> None:
        """Show an event."""
        self.menu = ("open", event)

    def on_delete(self, event: str) -> None:
        """Delete an event."""
        time, _, title = event.partition("|")
        self.events.discard((self.chosen, time, title))
        self.menu = None
        self.toast = "Event deleted"

    def on_new(self, _: str) -> None:
        """Open the editor for the chosen day."""
        self.drafts = {"time": "09:00"}
        self.go("new")

    def on_time(self, time: str) -> None:
        """Choose when the event starts."""
        self.drafts["time"] = time
        self.focus = None

    def on_save(self, _: str) -> None:
        """Store the event."""
        title = self.draft("title").strip()
        if not title:
            self.toast = "Enter a title"
            return
        self.events.add((self.chosen, self.draft("time"), title))
        self.routes, self.focus = [("home",)], None
        self.toast = "Event saved"

    def look(self, thing: Route) -> Intent | None:
        """Lead to a day, given as ("day", its name)."""
        if self.route != ("home",) or self.menu is not None:
            return self.leave()
        month, day = thing[1].split()
        ahead = MONTHS.index(month) + 1 - self.month
        if ahead:
            way, by = ("next", 1) if ahead > 0 else ("previous", -1)
            return tap(f"month:{by}", f"Go to the {way} month")
        return None if self.day == int(day) else tap(f"day:{day}", f"Tap {thing[1]}")

    def guide(self, want: Sequence[Fact]) -> Intent:
        """Enter what is missing, then delete what is too much."""
        missing = self.missing(want)
        if missing:
            return self._enter(*missing[0][1:])
        _, day, time, title = self.extra(want)[0]
        event = f"{time}|{title}"
        if self.menu == ("open", event) and self.chosen == day:
            return tap(f"delete:{event}", "Tap Delete")
        return self.look(("day", day)) or tap(f"open:{event}", f"Tap the event {title}")

    def _enter(self, day: str, time: str, title: str) -> Intent:
        if self.route != ("new",) or self.chosen != day:
            return self.look(("day", day)) or tap("new:", "Add an event")
        written = self.fill("title", title, "Title")
        if written is not None:
            return written
        if self.draft("time") != time:
            return tap(f"time:{time}", f"Choose {time}")
        return tap("save:", "Save the event")
