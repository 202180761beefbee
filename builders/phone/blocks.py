"""The parts that screens are made of: rows, fields, buttons, bubbles, grids.

A ``Block`` knows its height and how to build its widget into a box, so that a list builds only what can
be seen. Keys say what a tap means: ``verb:argument``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .lettering import text_width, wrap
from .theme import TEXT_SIZES, avatar_color
from .widgets import Rect, Widget

MARGIN = 16


@dataclass(frozen=True, slots=True)
class Block:
    """A horizontal band of a screen.

    Args:
        height: In dp.
        build: Makes the widget for a given box.
        keys: Keys inside, so that a planner knows which way to scroll.
    """

    height: int
    build: Callable[[Rect], Widget]
    keys: tuple[str, ...] = ()


class Lead(NamedTuple):
    """What stands at the left of a row: an icon in a tinted circle, or an avatar with initials."""

    kind: str
    name: str
    color: str = ""


class Trail(NamedTuple):
    """What stands at the right of a row: switch, check, radio (state in on), icon or text (in name)."""

    kind: str
    name: str = ""
    on: bool = False


def gap(height: int) -> Block:
    """Leave empty space."""
    return Block(height, lambda box: Widget("space", box))


def header(text: str) -> Block:
    """Title a section."""
    return Block(
        36,
        lambda b: Widget("heading", Rect(b.x1 + 22, b.y1 + 8, b.x2, b.y2 - 4), text, style="label"),
    )


def row(
    key: str,
    title: str,
    detail: str = "",
    lead: Lead | None = None,
    trail: Trail | None = None,
    hold: bool = False,
    extra: tuple[str, str, str] | None = None,
) -> Block:
    """Show one item of a list.

    Args:
        key: What a tap means; empty for a row that only shows.
        title: First line.
        detail: Second line, muted.
        lead: Picture on the left.
        trail: State or hint on the right; a switch or box there belongs to the row's own tap.
        hold: Whether a long press opens a menu.
        extra: A small button of its own on the right: key, icon, description.
    """
    height = 68 if detail else 58

    def build(box: Rect) -> Widget:
        parts = [*_lead(lead, box), *_trail(trail, box), *_extra(extra, box)]
        left = box.x1 + MARGIN + (56 if lead else 8)
        right = min((p.box.x1 for p in parts if p.box.x1 > left), default=box.x2 - MARGIN + 8) - 8
        middle = (box.y1 + box.y2) // 2
        if detail:
            parts.append(Widget("text", Rect(left, middle - 23, right, middle + 1), title, style="body"))
            parts.append(Widget("text", Rect(left, middle + 1, right, middle + 21), detail, style="detail"))
        else:
            parts.append(Widget("text", Rect(left, middle - 12, right, middle + 12), title, style="body"))
        return Widget("row", box, title if key else "", key, hold=hold, style="row", children=tuple(parts))

    keys = tuple(k for k in (key, extra[0] if extra else "") if k)
    return Block(height, build, keys)


def _lead(lead: Lead | None, box: Rect) -> list[Widget]:
    if lead is None:
        return []
    middle = (box.y1 + box.y2) // 2
    circle = Rect(box.x1 + MARGIN, middle - 20, box.x1 + MARGIN + 40, middle + 20)
    if lead.kind == "avatar":
        initials = "".join(word[0] for word in lead.name.split()[:2]).upper()
        return [Widget("avatar", circle, initials, style="avatar", color=avatar_color(lead.name))]
    return [Widget("image", circle, icon=lead.name, style=lead.kind, color=lead.color)]


def _trail(trail: Trail | None, box: Rect) -> list[Widget]:
    if trail is None:
        return []
    middle, right = (box.y1 + box.y2) // 2, box.x2 - MARGIN
    if trail.kind == "text":
        width = round(text_width(trail.name, TEXT_SIZES["detail"])) + 4
        place = Rect(right - width, middle - 12, right, middle + 12)
        return [Widget("text", place, trail.name, style="trail")]
    if trail.kind == "icon":
        return [
            Widget("image", Rect(right - 20, middle - 10, right, middle + 10), icon=trail.name, style="muted")
        ]
    width, height = (48, 28) if trail.kind == "switch" else (22, 22)
    place = Rect(right - width, middle - height // 2, right, middle + height // 2)
    return [Widget(trail.kind, place, style=trail.kind, checked=trail.on)]


def _extra(extra: tuple[str, str, str] | None, box: Rect) -> list[Widget]:
    if extra is None:
        return []
    key, icon, said = extra
    middle, right = (box.y1 + box.y2) // 2, box.x2 - MARGIN + 6
    return [Widget("button", Rect(right - 44, middle - 22, right, middle + 22), said, key, icon, "icon")]


def paragraph(text: str, style: str = "body", indent: int = MARGIN) -> Block:
    """Show running text, wrapped."""
    size = TEXT_SIZES[style]
    lines = wrap(text, size, 360 - 2 * indent - 24)
    height = len(lines) * round(size * 1.45)
    return Block(
        height + 8,
        lambda b: Widget("text", Rect(b.x1 + indent, b.y1 + 4, b.x2 - indent, b.y2 - 4), text, style=style),
    )


def field(key: str, label: str, value: str, focused: bool, style: str = "field") -> Block:
    """Take text: a box with its label, and a button that clears it while it is focused.

    Args:
        key: Name of the text in the app's drafts.
        label: What belongs into it.
        value: What stands in it.
        focused: Whether the keyboard writes into it.
        style: field, area (at least three lines high) or search (a pill with a magnifying glass).
    """
    lines = max(3 if style == "area" else 1, len(wrap(value, TEXT_SIZES["body"], 360 - 4 * MARGIN - 40)))
    height = 44 + lines * 22

    def build(box: Rect) -> Widget:
        frame = Rect(box.x1 + MARGIN, box.y1 + 8, box.x2 - MARGIN, box.y2 - 4)
        clear = Rect(frame.x2 - 42, frame.y1 + 7, frame.x2 - 4, frame.y1 + 45)
        button = Widget("button", clear, f"Clear {label}", f"clear:{key}", "close", "quiet")
        parts = (button,) if focused and value else ()
        said = f"{label}: {value}" if value else label
        look = "search" if style == "search" else "field"
        return Widget(
            "field",
            frame,
            said,
            f"focus:{key}",
            style=look,
            editable=True,
            focused=focused,
            children=parts,
        )

    return Block(height, build, (f"focus:{key}", f"clear:{key}"))


class Choice(NamedTuple):
    """One button of a row of buttons."""

    key: str
    label: str
    style: str = "tonal"


def buttons(*choices: Choice) -> Block:
    """Show buttons side by side, of equal width; styles filled, tonal, outlined, danger."""

    def build(box: Rect) -> Widget:
        inner = Rect(box.x1 + MARGIN, box.y1 + 6, box.x2 - MARGIN, box.y2 - 6)
        width = (inner.width - 10 * (len(choices) - 1)) // len(choices)
        made = []
        for place, choice in enumerate(choices):
            left = inner.x1 + place * (width + 10)
            spot = Rect(left, inner.y1, left + width, inner.y2)
            made.append(Widget("button", spot, choice.label, choice.key, style=choice.style))
        return Widget("group", box, children=tuple(made))

    return Block(56, build, tuple(choice.key for choice in choices))


class Cell(NamedTuple):
    """One cell of a grid: text, or an icon with text below it."""

    key: str
    label: str
    icon: str = ""
    chosen: bool = False
    color: str = ""
    mark: bool = False


def grid(cells: Sequence[Cell], columns: int, height: int = 44, style: str = "chip") -> Block:
    """Show cells in rows of ``columns``; an empty label leaves a hole."""
    rows = -(-len(cells) // columns)

    def build(box: Rect) -> Widget:
        inner = Rect(box.x1 + 12, box.y1 + 4, box.x2 - 12, box.y2 - 4)
        made = []
        for index, cell in enumerate(cells):
            if not cell.label:
                continue
            line, column = divmod(index, columns)
            left = inner.x1 + inner.width * column // columns
            right = inner.x1 + inner.width * (column + 1) // columns
            top = inner.y1 + line * height
            spot = Rect(left + 3, top + 3, right - 3, top + height - 3)
            checked = cell.chosen if style in ("chip", "day") else None
            made.append(
                Widget(
                    style,
                    spot,
                    cell.label,
                    cell.key,
                    cell.icon,
                    "marked" if cell.mark else "",
                    cell.color,
                    checked=checked,
                )
            )
        return Widget("grid", box, children=tuple(made))

    return Block(rows * height + 8, build, tuple(cell.key for cell in cells if cell.key))


def stepper(key: str, label: str, value: str, lead: Lead | None = None) -> Block:
    """Change a value by steps: ``less:key`` and ``more:key`` around it."""

    def build(box: Rect) -> Widget:
        middle, right = (box.y1 + box.y2) // 2, box.x2 - MARGIN
        left = box.x1 + (MARGIN + 56 if lead else MARGIN)
        more = Rect(right - 40, middle - 20, right, middle + 20)
        less = Rect(right - 132, middle - 20, right - 92, middle + 20)
        return Widget(
            "group",
            box,
            style="row",
            children=(
                *_lead(lead, box),
                Widget("text", Rect(left, middle - 12, less.x1 - 6, middle + 12), label, style="body"),
                Widget("button", less, f"Less {label}", f"less:{key}", "minus", "round"),
                Widget("text", Rect(less.x2, middle - 12, more.x1, middle + 12), value, style="centred"),
                Widget("button", more, f"More {label}", f"more:{key}", "add", "round"),
            ),
        )

    return Block(64, build, (f"less:{key}", f"more:{key}"))


def bubble(text: str, mine: bool, time: str, key: str = "") -> Block:
    """Show one message, on the right when it is the user's own."""
    size = TEXT_SIZES["body"]
    lines = wrap(text, size, 220)
    width = max(48, round(max(text_width(line, size) for line in lines)) + 28)
    height = len(lines) * 22 + 16

    def build(box: Rect) -> Widget:
        left = box.x2 - MARGIN - width if mine else box.x1 + MARGIN
        spot = Rect(left, box.y1 + 4, left + width, box.y1 + 4 + height)
        style = "mine" if mine else "theirs"
        stamp = Rect(box.x1 + MARGIN, spot.y2 + 1, box.x2 - MARGIN, spot.y2 + 15)
        return Widget(
            "group",
            box,
            children=(
                Widget("bubble", spot, text, key, style=style, hold=bool(key)),
                Widget("text", stamp, time, style="stamp_mine" if mine else "stamp"),
            ),
        )

    return Block(height + 24, build, (key,) if key else ())


def banner(title: str, detail: str, icon: str, color: str = "") -> Block:
    """Open a page with a large card: picture, name, and a line below it."""

    def build(box: Rect) -> Widget:
        card = Rect(box.x1 + MARGIN, box.y1 + 6, box.x2 - MARGIN, box.y2 - 8)
        middle = (card.x1 + card.x2) // 2
        picture = Rect(middle - 36, card.y1 + 18, middle + 36, card.y1 + 90)
        if icon:
            image = Widget("image", picture, icon=icon, style="hero", color=color)
        else:
            initials = "".join(word[0] for word in title.split()[:2]).upper()
            image = Widget("avatar", picture, initials, style="avatar", color=avatar_color(title))
        return Widget(
            "card",
            card,
            style="card",
            children=(
                image,
                Widget(
                    "text",
                    Rect(card.x1 + 8, picture.y2 + 12, card.x2 - 8, picture.y2 + 44),
                    title,
                    style="hero",
                ),
                Widget(
                    "text",
                    Rect(card.x1 + 8, picture.y2 + 44, card.x2 - 8, picture.y2 + 66),
                    detail,
                    style="hero_detail",
                ),
            ),
        )

    return Block(184, build)


def readout(text: str, detail: str = "") -> Block:
    """Show a large value, such as a time."""

    def build(box: Rect) -> Widget:
        card = Rect(box.x1 + MARGIN, box.y1 + 6, box.x2 - MARGIN, box.y2 - 8)
        return Widget(
            "card",
            card,
            style="tonal_card",
            children=(
                Widget("text", Rect(card.x1, card.y1 + 14, card.x2, card.y1 + 70), text, style="display"),
                Widget(
                    "text", Rect(card.x1, card.y1 + 70, card.x2, card.y1 + 92), detail, style="hero_detail"
                ),
            ),
        )

    return Block(118, build)


def empty(icon: str, text: str) -> Block:
    """Say that a list has nothing in it."""

    def build(box: Rect) -> Widget:
        middle = (box.x1 + box.x2) // 2
        return Widget(
            "group",
            box,
            children=(
                Widget(
                    "image",
                    Rect(middle - 30, box.y1 + 60, middle + 30, box.y1 + 120),
                    icon=icon,
                    style="hero",
                ),
                Widget("text", Rect(box.x1, box.y1 + 132, box.x2, box.y1 + 156), text, style="hero_detail"),
            ),
        )

    return Block(180, build)
