"""What was detected on a screen of Android in the Wild: words and icons, with boxes but without a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from solar_rl.actions import Action, Box
from solar_rl.errors import RecordError

from .._touch import holding
from ..android_control.screen import FAR, Screen, number

BOX_RULE = "smallest"
"""What ``steps.box_rule`` says: the smallest box that holds the tap."""
_LONGEST_LABEL = 100


class Elements(NamedTuple):
    """The boxes that hold a tap, smallest first, in the unit square; and the screen as text."""

    boxes: tuple[Box, ...]
    text: str | None


def read_elements(
    positions: Sequence[Sequence[float]],
    texts: Sequence[str],
    kinds: Sequence[str],
    screen: Screen,
    action: Action,
    *,
    unit: bool,
) -> Elements:
    """Read what was detected on a screen; boxes are clipped to it, those of which nothing is left are ignored.

    Args:
        positions: ``[y, x, height, width]`` of each.
        texts: What each says, empty for an icon.
        kinds: TEXT, or the icon's name.
        screen: The screen in pixels.
        action: What was done on it.
        unit: Whether positions are shares of the screen, not pixels.

    Raises:
        RecordError: ``bad_box`` or ``bad_number``; ``lengths_mismatch``: lists of different lengths.
    """
    if not len(positions) == len(texts) == len(kinds):
        found = f"{len(positions)} positions, {len(texts)} texts and {len(kinds)} types of elements"
        raise RecordError("lengths_mismatch", f"{found}, expected the same number of each")
    whole = _check(positions) and not unit
    width, height = screen.width, screen.height
    across, down = (width, height) if unit else (1, 1)
    tap_x, tap_y = (-9.0 if action.x is None else action.x) * width, (action.y or 0) * height
    boxes, lines = [], dict[str, None]()
    # One loop without calls: a screen has dozens of elements, and this is most of a reader's time.
    for (y, x, tall, wide), text, kind in zip(positions, texts, kinds, strict=True):
        left, top, right, bottom = x * across, y * down, (x + wide) * across, (y + tall) * down
        left, right = (0 if left < 0 else left), (width if right > width else right)
        top, bottom = (0 if top < 0 else top), (height if bottom > height else bottom)
        if left >= right or top >= bottom:
            continue
        if left - 1 <= tap_x <= right + 1 and top - 1 <= tap_y <= bottom + 1:
            boxes.append(Box(left / width, top / height, right / width, bottom / height))
        label = " ".join(text.split())[: _LONGEST_LABEL + 1]
        if label:
            label = f' "{label}"' if len(label) <= _LONGEST_LABEL else f' "{label[:-1]}…"'
        elif kind == "TEXT":
            continue
        if not whole:
            left, top, right, bottom = round(left), round(top), round(right), round(bottom)
        lines[f"{kind}{label} [{left},{top},{right},{bottom}]"] = None
    return Elements(holding(boxes, action), "\n".join(lines) or None)


def _check(positions: Sequence[Sequence[float]]) -> bool:
    """Refuse what is no box; tell whether all numbers are whole ones."""
    whole = True
    for position in positions:
        if not isinstance(position, (list, tuple)) or len(position) != 4:
            raise RecordError("bad_box", f"an element's box is {position!r}, expected [y, x, height, width]")
        for value in position:
            kind = type(value)
            whole = whole and kind is int
            if kind not in (int, float) or not -FAR < value < FAR:  # spares a call for each good number
                number(value, "a number of an element's box")
    return whole
