"""Settings: switches, choices and levels on a home page and three pages below it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from ..blocks import Block, Cell, Choice, Lead, Trail, banner, header, row, stepper
from ..screen import Dialog, Page
from ..stock import LANGUAGES, SIZES, SOUNDS
from .base import App, Fact, Intent, tap


class Setting(NamedTuple):
    """One setting: where it lives, and which values it takes; none = a switch, a range = a level."""

    key: str
    label: str
    icon: str
    color: str
    page: str
    values: tuple[str, ...] = ("off", "on")

    @property
    def kind(self) -> str:
        """Return switch, level or choice."""
        if self.values == ("off", "on"):
            return "switch"
        return "level" if self.values[0].endswith("%") else "choice"


LEVELS = tuple(f"{step * 10}%" for step in range(11))
SETTINGS = (
    Setting("wifi", "Wi-Fi", "wifi", "#1a73e8", "network"),
    Setting("hotspot", "Wi-Fi hotspot", "wifi", "#00838f", "network"),
    Setting("bluetooth", "Bluetooth", "bluetooth", "#3f51b5", "network"),
    Setting("airplane", "Airplane mode", "airplane", "#d9480f", "network"),
    Setting("data_saver", "Data saver", "storage", "#2e7d32", "network"),
    Setting("dark", "Dark theme", "moon", "#5e35b1", "display"),
    Setting("night_light", "Night light", "sun", "#ef6c00", "display"),
    Setting("auto_rotate", "Auto-rotate", "update", "#00838f", "display"),
    Setting("brightness", "Brightness", "sun", "#f2a600", "display", LEVELS),
    Setting("text_size", "Text size", "text", "#6d4c41", "display", tuple(SIZES)),
    Setting("vibrate", "Vibrate for calls", "bell", "#c2185b", "sound"),
    Setting("touch_sounds", "Touch sounds", "volume", "#00796b", "sound"),
    Setting("media_volume", "Media volume", "music", "#3f51b5", "sound", LEVELS),
    Setting("ring_volume", "Ring volume", "bell", "#c5221f", "sound", LEVELS),
    Setting("ringtone", "Ringtone", "music", "#7b3fb5", "sound", tuple(SOUNDS)),
    Setting("disturb", "Do not disturb", "minus", "#ba1a1a", "home"),
    Setting("battery_saver", "Battery saver", "battery", "#2e7d32", "home"),
    Setting("location", "Location", "location", "#1a73e8", "home"),
    Setting("screen_lock", "Screen lock", "lock", "#5c606b", "home"),
    Setting("backup", "Backup", "update", "#6750a4", "home"),
    Setting("language", "Language", "globe", "#00838f", "home", tuple(LANGUAGES)),
)
BY_KEY = {setting.key: setting for setting in SETTINGS}
PAGES = {
    "network": ("Network & internet", "Wi-Fi, Bluetooth, airplane mode", "wifi", "#1a73e8"),
    "display": ("Display", "Theme, brightness, text size", "sun", "#f2a600"),
    "sound": ("Sound", "Volume, ringtone, vibration", "volume", "#c2185b"),
    "about": ("About phone", "Model, version, serial number", "info", "#5c606b"),
}


class Settings(App):
    """The settings of the phone; dark theme and the status icons follow them."""

    name, title, icon, color = "settings", "Settings", "settings", "#56606f"

    def fill_in(self, rng: Random) -> None:
        """Draw a value for every setting, and what the about page says."""
        self.values = {s.key: rng.choice(s.values) for s in SETTINGS}
        self.values["dark"] = "on" if rng.random() < 0.25 else "off"
        self.values["airplane"] = "off"
        self.about = {
            "Model": f"Heron {rng.randint(3, 9)}",
            "Version": f"{rng.randint(11, 16)}.{rng.randint(0, 4)}",
            "Serial number": f"HR{rng.randint(10000, 99999)}",
            "Storage used": f"{rng.randint(20, 120)} GB",
        }

    def facts(self) -> frozenset[Fact]:
        """Return one fact a setting."""
        return frozenset(("setting", key, value) for key, value in self.values.items())

    def page(self) -> Page:
        """Return the home page, a page of settings, or the about page."""
        name = self.route[0]
        if name == "about":
            rows = [row("", label, value) for label, value in self.about.items()]
            return Page(
                "About phone", (banner(self.about["Model"], "Simulated phone", "device"), *rows), up=True
            )
        blocks = [self._block(s) for s in SETTINGS if s.page == name]
        if name == "home":
            links = [
                row(f"open:{page}", title, detail, Lead("tinted", icon, color))
                for page, (title, detail, icon, color) in PAGES.items()
            ]
            blocks = [*links[:3], header("General"), *blocks, links[3]]
            return Page("Settings", tuple(blocks), dialog=self.menu_dialog())
        return Page(PAGES[name][0], tuple(blocks), up=True, dialog=self.menu_dialog())

    def _block(self, setting: Setting) -> Block:
        lead = Lead("tinted", setting.icon, setting.color)
        value = self.values[setting.key]
        if setting.kind == "switch":
            return row(f"flip:{setting.key}", setting.label, "", lead, Trail("switch", on=value == "on"))
        if setting.kind == "level":
            return stepper(setting.key, setting.label, value, lead)
        return row(f"choose:{setting.key}", setting.label, value, lead)

    def menu_dialog(self) -> Dialog | None:
        """Return the list of values to choose from."""
        if self.menu is None:
            return None
        setting = BY_KEY[self.menu[1]]
        items = tuple(
            Cell(f"set:{value}", value, chosen=value == self.values[setting.key], mark=True)
            for value in setting.values
        )
        return Dialog(setting.label, items=items, choices=(Choice("dismiss", "Cancel", "text"),))

    def on_open(self, page: str) -> None:
        """Open a page of settings."""
        self.go(page)

    def on_flip(self, key: str) -> None:
        """Turn a switch."""
        self.values[key] = "off" if self.values[key] == "on" else "on"

    def on_choose(self, key: str) -> None:
        """Ask which value."""
        self.menu = ("choose", key)

    def on_set(self, value: str) -> None:
        """Take the chosen value."""
        if self.menu is not None:
            self.values[self.menu[1]] = value
            self.menu = None

    def on_more(self, key: str) -> None:
        """Raise a level."""
        self._step(key, 1)

    def on_less(self, key: str) -> None:
        """Lower a level."""
        self._step(key, -1)

    def _step(self, key: str, by: int) -> None:
        place = LEVELS.index(self.values[key]) + by
        self.values[key] = LEVELS[min(max(place, 0), len(LEVELS) - 1)]

    def look(self, thing: tuple[str, ...]) -> Intent | None:
        """Lead to a page."""
        if self.route == thing:
            return None
        if self.menu is not None or self.route != ("home",):
            return self.leave()
        return tap(f"open:{thing[0]}", f"Open {PAGES[thing[0]][0]}")

    def guide(self, want: Sequence[Fact]) -> Intent:
        """Go to the page of the first setting that differs, and change it there."""
        _, key, value = self.missing(want)[0]
        setting = BY_KEY[key]
        if self.menu is not None:
            if self.menu == ("choose", key):
                return tap(f"set:{value}", f"Choose {value}")
            return self.leave()
        if self.route != (setting.page,):
            return self.look((setting.page,)) or self.leave()
        if setting.kind == "switch":
            return tap(f"flip:{key}", f"Turn {value} {setting.label}")
        if setting.kind == "choice":
            return tap(f"choose:{key}", f"Tap {setting.label}")
        up = LEVELS.index(value) > LEVELS.index(self.values[key])
        return tap(f"{'more' if up else 'less'}:{key}", f"{'Raise' if up else 'Lower'} {setting.label}")
