"""What was detected on a screen of Android in the Wild: words and icons, with boxes but without a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from solar_rl.actions import Box
from solar_rl.errors import RecordError

from .._touch import unit_box
from ..android_control.screen import Screen

BOX_RULE = "smallest"
"""What ``steps.box_rule`` says: the smallest box that holds the tap."""
_LONGEST_LABEL = 100


class Elements(NamedTuple):
    """The boxes of a screen in the unit square, and the screen as text."""

    boxes: tuple[Box, ...]
    text: str | None


def read_elements(
    positions: Sequence[Sequence[float]],
    texts: Sequence[str],
    kinds: Sequence[str],
    screen: Screen,
    *,
    unit: bool,
) -> Elements:
    """Read what was detected on a screen; boxes are clipped to it, those of which nothing is left are ignored.

    Args:
        positions: ``[y, x, height, width]`` of each.
        texts: What each says, empty for an icon.
        kinds: TEXT, or the icon's name.
        screen: The screen in pixels.
        unit: Whether positions are shares of the screen, not pixels.

    Raises:
        RecordError: ``bad_box`` or ``bad_number``; ``lengths_mismatch``: lists of different lengths.
    """
    if not len(positions) == len(texts) == len(kinds):
        found = f"{len(positions)} positions, {len(texts)} texts and {len(kinds)} types of elements"
        raise RecordError("lengths_mismatch", f"{found}, expected the same number of each")
    width, height = (1, 1) if unit else screen[:2]
    boxes, lines = [], dict[str, None]()
    for position, text, kind in zip(positions, texts, kinds, strict=True):
        box = _box(position, width, height)
        if box is not None:
            boxes.append(box)
            if kind != "TEXT" or text.strip():
                lines[_line(kind, text, box, screen)] = None
    return Elements(tuple(boxes), "\n".join(lines) or None)


def _box(position: Sequence[float], width: int, height: int) -> Box | None:
    if not isinstance(position, (list, tuple)) or len(position) != 4:
        raise RecordError("bad_box", f"an element's box is {position!r}, expected [y, x, height, width]")
    y, x, tall, wide = position
    try:
        return unit_box((x, y, x + wide, y + tall), width, height)
    except TypeError as error:
        raise RecordError("bad_number", f"an element's box is {position!r}, expected numbers") from error


def _line(kind: str, text: str, box: Box, screen: Screen) -> str:
    label = " ".join(text.split())
    if len(label) > _LONGEST_LABEL:
        label = label[:_LONGEST_LABEL] + "…"
    width, height = screen.width, screen.height
    place = f"[{box.x1 * width:.0f},{box.y1 * height:.0f},{box.x2 * width:.0f},{box.y2 * height:.0f}]"
    return f'{kind} "{label}" {place}' if label else f"{kind} {place}"
