"""What was detected on a screen of Android in the Wild: words and icons, with boxes but without a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from solar_rl.actions import Box
from solar_rl.errors import RecordError

from ..android_control.screen import Screen, number

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
    boxes, lines = [], []
    for position, text, kind in zip(positions, texts, kinds, strict=True):
        box = _box(position, screen, unit=unit)
        if box is not None:
            boxes.append(box)
            lines.append(_line(kind, text, box, screen))
    written = dict.fromkeys(line for line in lines if line)
    return Elements(tuple(boxes), "\n".join(written) or None)


def _box(position: Sequence[float], screen: Screen, *, unit: bool) -> Box | None:
    if not isinstance(position, (list, tuple)) or len(position) != 4:
        raise RecordError("bad_box", f"an element's box is {position!r}, expected [y, x, height, width]")
    y, x, height, width = (number(value, "a number of an element's box") for value in position)
    if unit:
        y, x, height, width = (
            y * screen.height,
            x * screen.width,
            height * screen.height,
            width * screen.width,
        )
    return screen.box(x, y, x + width, y + height)


def _line(kind: str, text: str, box: Box, screen: Screen) -> str | None:
    label = " ".join(text.split())
    if not label and kind == "TEXT":
        return None
    if len(label) > _LONGEST_LABEL:
        label = label[:_LONGEST_LABEL] + "…"
    edges = (box.x1 * screen.width, box.y1 * screen.height, box.x2 * screen.width, box.y2 * screen.height)
    place = ",".join(str(round(edge)) for edge in edges)
    return f'{kind} "{label}" [{place}]' if label else f"{kind} [{place}]"
