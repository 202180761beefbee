"""Launcher: two pages of app icons, a dock, and the list of recent apps."""

from __future__ import annotations

from random import Random

from ..blocks import Block, Cell, Lead, empty, gap, grid, row
from ..screen import Page
from ..widgets import Rect, Widget
from .base import App, Fact


def _panel(time: str, day: str) -> Block:
    """Show the large clock and the date of the home page."""

    def build(box: Rect) -> Widget:
        return Widget(
            "group",
            box,
            children=(
                Widget("text", Rect(24, box.y1 + 26, 336, box.y1 + 84), time, style="display"),
                Widget("text", Rect(24, box.y1 + 84, 336, box.y1 + 108), day, style="hero_detail"),
            ),
        )

    return Block(126, build)


def _dots(page: int, pages: int) -> Block:
    return Block(
        20,
        lambda box: Widget(
            "indicator",
            Rect(140, box.y1 + 6, 220, box.y1 + 14),
            f"Page {page + 1} of {pages}",
            icon=f"{page}/{pages}",
            style="dots",
        ),
    )


class Launcher(App):
    """The home screen. It has no facts: nothing on it can be a goal."""

    name, title, icon, color = "launcher", "Home", "home", "#3b5b92"

    def fill_in(self, rng: Random) -> None:
        """Draw the wallpaper, the time and the date."""
        self.wallpaper = rng.randrange(4)
        self.time = f"{rng.randint(7, 21):02d}:{rng.randint(0, 59):02d}"
        self.first = 0
        self.apps: list[type[App]] = []
        self.day = ""
        self.recent: list[type[App]] = []

    @property
    def pages(self) -> int:
        """Return how many pages of icons there are; four icons stand in the dock."""
        return max(1, -(-(len(self.apps) - 4) // 3))

    def facts(self) -> frozenset[Fact]:
        """Return nothing."""
        return frozenset()

    def page(self) -> Page:
        """Return a page of icons, or the recent apps."""
        if self.route == ("recent",):
            rows = [
                row(f"launch:{a.name}", a.title, "Opened before", Lead("tinted", a.icon, a.color))
                for a in self.recent
            ]
            return Page(
                "Recent apps", tuple(rows) or (empty("nav_recent", "Nothing was opened yet"),), up=True
            )
        cells = [Cell(f"launch:{a.name}", a.title, a.icon, color=a.color) for a in self.apps]
        here = cells[4 + 3 * self.first : 7 + 3 * self.first]
        blocks = (
            _panel(self.time, self.day),
            gap(130),
            grid(here, 3, 104, "app"),
            gap(40),
            _dots(self.first, self.pages),
            gap(40),
            grid(cells[:4], 4, 104, "app"),
        )
        return Page(None, blocks, wallpaper=self.wallpaper, sideways=True)

    def swipe(self, direction: str) -> None:
        """Turn the page of icons."""
        if direction in ("left", "right"):
            self.first = min(max(self.first + (1 if direction == "right" else -1), 0), self.pages - 1)

    def holds(self, app: str) -> str | None:
        """Return which way an app's icon lies: "" on this page, left or right; see ``swipe``."""
        place = [a.name for a in self.apps].index(app) - 4
        if place < 0 or place // 3 == self.first:
            return ""
        return "right" if place // 3 > self.first else "left"
