"""Clock: alarms with a picker for the time, and a timer."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..blocks import Block, Cell, Choice, Lead, Trail, buttons, empty, grid, header, readout, row
from ..screen import Dialog, Page, Tool
from ..stock import LABELS
from .base import App, Fact, Intent, Route, tap

HOURS = tuple(f"{hour:02d}" for hour in range(24))
MINUTES = tuple(f"{minute:02d}" for minute in range(0, 60, 5))
TIMERS = ("1", "3", "5", "10", "15", "20", "30", "45", "60")


class Clock(App):
    """Alarms and a timer."""

    name, title, icon, color = "clock", "Clock", "clock", "#6750a4"

    def fill_in(self, rng: Random) -> None:
        """Draw about a dozen alarms, at least two of them close to each other."""
        times = {f"{rng.choice(HOURS[5:23])}:{rng.choice(MINUTES)}" for _ in range(rng.randint(8, 11))}
        near = sorted(times)[0]
        times |= {f"{near[:2]}:{minute}" for minute in rng.sample(MINUTES, 2)}
        self.alarms = {time: rng.choice(("on", "off")) for time in sorted(times)}
        self.labels = {time: rng.choice(LABELS) for time in self.alarms}
        self.timer: str | None = None
        self.minutes = "5"

    def thin_out(self, rng: Random, most: int) -> None:
        """Keep at most so many alarms, on the hour."""
        hourly = {f"{time[:2]}:00": time for time in self.alarms}
        kept = sorted(rng.sample(sorted(hourly), min(most, len(hourly))))
        self.alarms, labels = {time: self.alarms[hourly[time]] for time in kept}, self.labels
        self.labels = {time: labels[hourly[time]] for time in kept}

    def facts(self) -> frozenset[Fact]:
        """Return ("alarm", time, on or off), and ("timer", minutes) while one runs."""
        alarms = {("alarm", time, state) for time, state in self.alarms.items()}
        return frozenset(alarms | ({("timer", self.timer)} if self.timer else set()))

    def page(self) -> Page:
        """Return the alarms, the timer or the picker."""
        if self.route[0] == "pick":
            return self._picker()
        tabs = (
            Cell("tab:home", "Alarms", "alarm", self.route == ("home",)),
            Cell("tab:timer", "Timer", "timer", self.route == ("timer",)),
        )
        if self.route == ("timer",):
            return Page("Timer", self._timer_blocks(), tabs=tabs)
        blocks = [
            row(
                f"flip:{time}",
                time,
                self.labels.get(time, "Alarm"),
                Lead("tinted", "alarm"),
                Trail("switch", on=state == "on"),
                hold=True,
            )
            for time, state in sorted(self.alarms.items())
        ]
        fab = Tool("new:", "add", "Add alarm")
        shown = tuple(blocks) or (empty("alarm", "No alarms"),)
        return Page("Alarms", shown, tabs=tabs, fab=fab, dialog=self.menu_dialog())

    def _timer_blocks(self) -> tuple[Block, ...]:
        left = f"{int(self.timer or self.minutes):02d}:00"
        state = "Running" if self.timer else "Ready"
        action = Choice("stop:", "Stop", "danger") if self.timer else Choice("start:", "Start", "filled")
        cells = [Cell(f"minutes:{m}", f"{m} min", chosen=m == self.minutes) for m in TIMERS]
        return (readout(left, state), header("Length"), grid(cells, 3, 52), buttons(action))

    def _picker(self) -> Page:
        hour, minute = self.draft("hour"), self.draft("minute")
        hours = [Cell(f"hour:{h}", h, chosen=h == hour) for h in HOURS]
        minutes = [Cell(f"minute:{m}", m, chosen=m == minute) for m in MINUTES]
        blocks = (
            readout(f"{hour}:{minute}", "New alarm"),
            header("Hour"),
            grid(hours, 6),
            header("Minute"),
            grid(minutes, 6),
        )
        return Page("Set alarm", blocks, up=True, tools=(Tool("save:", "check", "Save"),))

    def menu_dialog(self) -> Dialog | None:
        """Return the menu of an alarm."""
        if self.menu is None:
            return None
        time = self.menu[2]
        items = (
            Cell(f"menu_flip:{time}", "Turn on" if self.alarms[time] == "off" else "Turn off", "alarm"),
            Cell(f"delete:{time}", "Delete", "delete"),
        )
        return Dialog(f"Alarm {time}", items=items)

    def on_tab(self, name: str) -> None:
        """Switch the tab."""
        self.routes = [("home",)] if name == "home" else [("home",), (name,)]

    def on_flip(self, time: str) -> None:
        """Turn an alarm on or off."""
        self.alarms[time] = "off" if self.alarms[time] == "on" else "on"

    def on_menu_flip(self, time: str) -> None:
        """Do the same from the menu."""
        self.on_flip(time)
        self.menu = None

    def on_delete(self, time: str) -> None:
        """Delete an alarm."""
        del self.alarms[time]
        self.menu = None
        self.toast = f"Alarm {time} deleted"

    def on_new(self, _: str) -> None:
        """Open the picker at noon."""
        self.drafts = {"hour": "12", "minute": "00"}
        self.go("pick")

    def on_hour(self, hour: str) -> None:
        """Pick the hour."""
        self.drafts["hour"] = hour

    def on_minute(self, minute: str) -> None:
        """Pick the minute."""
        self.drafts["minute"] = minute

    def on_save(self, _: str) -> None:
        """Store the alarm, turned on."""
        time = f"{self.draft('hour')}:{self.draft('minute')}"
        self.alarms[time] = "on"
        self.back()
        self.toast = f"Alarm set for {time}"

    def on_minutes(self, minutes: str) -> None:
        """Pick the timer's length; a running timer goes on."""
        self.minutes = minutes

    def on_start(self, _: str) -> None:
        """Start the timer."""
        self.timer = self.minutes

    def on_stop(self, _: str) -> None:
        """Stop the timer."""
        self.timer = None

    def look(self, thing: Route) -> Intent | None:
        """Lead to the alarms or the timer."""
        if self.route == thing and self.menu is None:
            return None
        if self.menu is not None or self.route[0] == "pick":
            return self.leave()
        title = "Timer" if thing == ("timer",) else "Alarms"
        return tap(f"tab:{thing[0]}", f"Switch to {title}")

    def guide(self, want: Sequence[Fact]) -> Intent:
        """Set alarms first, then delete others, then the timer."""
        missing, extra = self.missing(want, "alarm"), self.extra(want, "alarm")
        if missing:
            return self._set(missing[0][1], missing[0][2])
        if extra:
            return self._delete(extra[0][1])
        at_timer = self.look(("timer",))
        if at_timer is not None:
            return at_timer
        if self.timer:
            return tap("stop:", "Stop the timer")
        minutes = self.missing(want, "timer")[0][1]
        if self.minutes != minutes:
            return tap(f"minutes:{minutes}", f"Choose {minutes} min")
        return tap("start:", "Start the timer")

    def _set(self, time: str, state: str) -> Intent:
        if time in self.alarms:
            said = f"Turn {state} the alarm at {time}"
            return self.look(("home",)) or tap(f"flip:{time}", said)
        if self.route != ("pick",):
            return self.look(("home",)) or tap("new:", "Add an alarm")
        hour, minute = time.split(":")
        if self.draft("hour") != hour:
            return tap(f"hour:{hour}", f"Choose {hour} hours")
        if self.draft("minute") != minute:
            return tap(f"minute:{minute}", f"Choose {minute} minutes")
        return tap("save:", "Save the alarm")

    def _delete(self, time: str) -> Intent:
        if self.menu is not None and self.menu[2] == time:
            return tap(f"delete:{time}", "Tap Delete")
        return self.look(("home",)) or Intent("hold", f"flip:{time}", f"Long press the alarm at {time}")
