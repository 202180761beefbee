"""Gestures and boxes in the unit square, as several phone data sets write them: two points, or a finger's path."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from solar_rl.actions import Action, Box, opposite, path_direction
from solar_rl.errors import RecordError

from .android_control.screen import FAR, number

Point = tuple[float, float]
"""x and y in the unit square."""
TAP_DISTANCE = 0.04
"""Two points this close are a tap, farther ones a swipe. Source: Android in the Wild's is_tap_action."""


def read_pair(value: Any, what: str) -> tuple[float, float]:
    """Return two numbers in the order in which they are written.

    Raises:
        RecordError: ``missing_field`` or ``bad_number``.
    """
    if value is None:
        raise RecordError("missing_field", f"{what} is missing")
    if not isinstance(value, list) or len(value) != 2:
        raise RecordError("bad_number", f"{what} is {value!r}, expected two numbers")
    return number(value[0], what), number(value[1], what)


def point_action(kind: str, point: Point) -> Action:
    """Make a click or a long press.

    Raises:
        RecordError: ``off_screen``.
    """
    return Action(kind, *_on_screen(kind, point))


def swipe(start: Point, end: Point) -> Action:
    """Make a scroll from the finger's path; the content moves the other way, which is its direction.

    Raises:
        RecordError: ``off_screen``, or ``bad_value`` for a path without a length, which has no direction.
    """
    (x, y), (x2, y2) = _on_screen("scroll", start), _on_screen("scroll", end)
    if (x, y) == (x2, y2):
        raise RecordError("bad_value", f"the swipe begins and ends at ({x}, {y})")
    return Action("scroll", x, y, x2, y2, direction=opposite(path_direction(x, y, x2, y2)))


def dual_point(touch: Point, lift: Point) -> Action:
    """Make a click where the finger went down, or a scroll when it came up farther away than a tap does.

    Raises:
        RecordError: ``off_screen``.
    """
    if math.dist(touch, lift) <= TAP_DISTANCE:
        return point_action("click", touch)
    return swipe(touch, lift)


def _on_screen(kind: str, point: Point) -> Point:
    if not all(0 <= value <= 1 for value in point):
        raise RecordError("off_screen", f"{kind} at {point} lies outside the screen (the unit square)")
    return point


def holding(boxes: Iterable[Box], action: Action) -> tuple[Box, ...]:
    """Return the boxes that hold a click or long press, the smallest first; none for other actions."""
    if action.action_type not in ("click", "long_press") or action.x is None or action.y is None:
        return ()
    x, y = action.x, action.y
    held = dict.fromkeys(box for box in boxes if box.contains(x, y))
    return tuple(sorted(held, key=lambda box: box.area))


def unit_box(edges: Sequence[Any], width: float, height: float) -> Box | None:
    """Return the part of a box that lies on the screen; None when nothing of it does.

    Args:
        edges: Left, top, right and bottom.
        width: What the edges count across the screen: its pixels, or 1.
        height: The same down the height.

    Raises:
        RecordError: ``bad_number`` or ``missing_field``.
    """
    for edge in edges:
        if type(edge) not in (int, float) or not -FAR < edge < FAR:  # spares a call for each good number
            number(edge, "an edge of a box")
    left, top, right, bottom = edges
    x1, y1 = max(left / width, 0.0), max(top / height, 0.0)
    x2, y2 = min(right / width, 1.0), min(bottom / height, 1.0)
    return Box(x1, y1, x2, y2) if x1 < x2 and y1 < y2 else None
