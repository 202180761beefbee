"""Describe a screen as a tree of widgets: the one source of both the screenshot and the text.

Boxes are in dp on a screen of 360 x 720; ``scale`` turns dp into pixels when the screen is drawn. A
widget below a scrollable one is visible only inside it, so every question about what can be seen or hit
goes through ``visible``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from solar_rl.actions import Box

WIDTH, HEIGHT = 360, 720


class Rect(NamedTuple):
    """An axis-aligned box in dp, right and bottom edges excluded."""

    x1: int
    y1: int
    x2: int
    y2: int

    @property
    def width(self) -> int:
        """Return the width in dp."""
        return self.x2 - self.x1

    @property
    def height(self) -> int:
        """Return the height in dp."""
        return self.y2 - self.y1

    @property
    def empty(self) -> bool:
        """Tell whether nothing lies inside."""
        return self.x1 >= self.x2 or self.y1 >= self.y2

    def contains(self, x: float, y: float) -> bool:
        """Tell whether the point lies inside."""
        return self.x1 <= x < self.x2 and self.y1 <= y < self.y2

    def clip(self, other: Rect) -> Rect:
        """Return the part that lies inside ``other``; it may be empty."""
        return Rect(
            max(self.x1, other.x1), max(self.y1, other.y1), min(self.x2, other.x2), min(self.y2, other.y2)
        )

    def unit(self) -> Box:
        """Return the box in the unit square of the screen."""
        return Box(self.x1 / WIDTH, self.y1 / HEIGHT, self.x2 / WIDTH, self.y2 / HEIGHT)


SCREEN = Rect(0, 0, WIDTH, HEIGHT)


@dataclass(frozen=True, slots=True)
class Widget:
    """One node of the accessibility tree.

    Args:
        role: What it is: row, button, field, text, icon, switch, dialog, ...
        box: Where it lies, in dp, unclipped.
        text: What it says; for icons and switches the content description.
        key: What a tap on it means; empty = not clickable.
        icon: Name of its drawing.
        style: Variant of the look, read by the renderer only.
        color: Accent colour as #rrggbb, read by the renderer only.
        hold: Whether a long press means something.
        scrollable: Whether its content moves, "" or "vertical" or "horizontal".
        editable: Whether text can be typed into it.
        focused: Whether the keyboard writes into it.
        checked: State of a switch, checkbox, radio button or tab.
        modal: Whether it takes every touch while it is shown.
        children: Widgets inside it, the topmost last.
    """

    role: str
    box: Rect
    text: str = ""
    key: str = ""
    icon: str = ""
    style: str = ""
    color: str = ""
    hold: bool = False
    scrollable: str = ""
    editable: bool = False
    focused: bool = False
    checked: bool | None = None
    modal: bool = False
    children: tuple[Widget, ...] = ()

    @property
    def reacts(self) -> bool:
        """Tell whether touching it can do something."""
        return bool(self.key or self.scrollable)


class Seen(NamedTuple):
    """A widget with the part of it that is visible."""

    widget: Widget
    box: Rect
    depth: int


def visible(tree: Widget) -> list[Seen]:
    """List the widgets that can be seen and touched, the topmost last; a modal one hides the others."""
    overlays = [child for child in tree.children if child.modal]
    roots = (tree,) if not overlays else (overlays[-1], *(c for c in tree.children if c.role == "system"))
    return [seen for root in roots for seen in _walk(root, SCREEN, 0)]


def _walk(widget: Widget, clip: Rect, depth: int) -> Iterator[Seen]:
    box = widget.box.clip(clip)
    if box.empty:
        return
    yield Seen(widget, box, depth)
    inner = box if widget.scrollable else clip
    for child in widget.children:
        yield from _walk(child, inner, depth + 1)


def hit(tree: Widget, x: float, y: float) -> Seen | None:
    """Return the topmost clickable widget at a point in dp, None where there is none."""
    touched = [s for s in visible(tree) if s.widget.key and s.box.contains(x, y)]
    return touched[-1] if touched else None


def boxes_at(tree: Widget, x: float, y: float) -> tuple[Box, ...]:
    """List every box that holds the point and could be meant, containers included, the smallest first.

    Leaves that don't react, such as the label inside a row, belong to what holds them and are left out,
    as in a phone's own accessibility tree.
    """
    held = [s for s in visible(tree) if s.box.contains(x, y) and (s.widget.reacts or s.widget.children)]
    boxes = dict.fromkeys(s.box for s in held)
    return tuple(b.unit() for b in sorted(boxes, key=lambda b: b.width * b.height))


def find(tree: Widget, key: str) -> Seen | None:
    """Return the visible widget with this key, None when it can't be seen."""
    found = [s for s in visible(tree) if s.widget.key == key]
    return found[-1] if found else None


def screen_text(tree: Widget, scale: float = 1.0) -> str:
    """Write the visible widgets as indented lines: role, text, box in pixels, state.

    The keyboard is one line; its keys are where they are on every keyboard.
    """
    lines: list[str] = []
    hidden_below: int | None = None
    for seen in visible(tree):
        if hidden_below is not None and seen.depth > hidden_below:
            continue
        hidden_below = seen.depth if seen.widget.role == "keyboard" else None
        lines.append("  " * seen.depth + _line(seen, scale))
    return "\n".join(lines)


def _line(seen: Seen, scale: float) -> str:
    widget = seen.widget
    box = ",".join(str(round(side * scale)) for side in seen.box)
    flags = [
        name
        for name, on in (
            ("clickable", bool(widget.key)),
            ("long-clickable", widget.hold),
            (f"scrollable-{widget.scrollable}", bool(widget.scrollable)),
            ("editable", widget.editable),
            ("focused", widget.focused),
            ("checked", widget.checked is True),
            ("unchecked", widget.checked is False),
        )
        if on
    ]
    said = f' "{widget.text}"' if widget.text else ""
    return " ".join([f"{widget.role}{said} [{box}]", *flags])
