"""Pixels of a screen and the unit square: sizes, points and boxes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, NamedTuple

from solar_rl.actions import Box, make_box
from solar_rl.errors import RecordError

LISTED = "smallest_listed"
"""What ``steps.box_rule`` calls a target that is the smallest of the boxes which the source lists."""
FAR = 1e9
"""No pixel lies as far as this."""


class Screen(NamedTuple):
    """Size of a screen in pixels, and where it comes from (stated, assumed or inferred)."""

    width: int
    height: int
    origin: str = "stated"

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"

    def holds(self, x: float, y: float) -> bool:
        """Tell whether the point lies on the screen, edges included."""
        return 0 <= x <= self.width and 0 <= y <= self.height

    def box(self, left: float, top: float, right: float, bottom: float) -> Box | None:
        """Return the part of a pixel box that lies on the screen; None when nothing of it does."""
        width, height, _ = self
        if not (0 <= left < right <= width and 0 <= top < bottom <= height):
            left, right = max(left, 0), min(right, width)
            top, bottom = max(top, 0), min(bottom, height)
            if left >= right or top >= bottom:
                return None
        return make_box((left / width, top / height, right / width, bottom / height))


USUAL = Screen(1080, 2400, "inferred")
LARGE = Screen(1440, 3120, "inferred")


def infer_screen(points: Iterable[tuple[float, float]]) -> Screen:
    """Return the screen that an episode without a stated size was recorded on.

    Args:
        points: Every point of the episode's actions, in pixels.

    Returns:
        1080x2400, or 1440x3120 as soon as one point lies beyond it.

    Source: ours, because AndroidControl's test split has points up to (1367, 2952) in 21 episodes and
    its swipes are centred on either 540 or 720.
    """
    width, height, _ = USUAL
    for x, y in points:
        if x > width or y > height:
            return LARGE
    return USUAL


def number(value: Any, name: str) -> float:
    """Return a finite number as it is.

    Raises:
        RecordError: ``missing_field`` when there is none, ``bad_number`` when it is text, NaN, infinite or
            beyond any screen.
    """
    kind = type(value)
    if (kind is int or kind is float) and -FAR < value < FAR:
        return value  # type: ignore[no-any-return]
    if value is None:
        raise RecordError("missing_field", f"{name} is missing")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < FAR:
        raise RecordError("bad_number", f"{name} is {value!r}, expected a number")
    return value


def read_boxes(value: Any, screen: Screen) -> tuple[Box, ...]:
    """Read candidate boxes given as one flat box or a list of boxes in pixels.

    Boxes are clipped to the screen; those of which nothing is left are ignored.

    Raises:
        RecordError: ``bad_box``: it is no list of four numbers each.
    """
    if value is None or value == []:
        return ()
    rows = value if isinstance(value, list) and isinstance(value[0], list) else [value]
    for row in rows:
        if not isinstance(row, list) or len(row) != 4:
            raise RecordError("bad_box", f"a candidate box is {row!r}, expected [left, top, right, bottom]")
        for edge in row:
            number(edge, "an edge of a candidate box")
    return place_boxes(rows, screen)[0]


def place_boxes(
    rows: Iterable[Sequence[float]], screen: Screen, x: float | None = None, y: float | None = None
) -> tuple[tuple[Box, ...], Box | None]:
    """Clip pixel boxes to the screen, and find the smallest that holds a point of the unit square.

    Args:
        rows: Left, top, right and bottom of each.
        screen: The screen; a box of which nothing lies on it is left out.
        x: The point, if there is one.
        y: The same down the height.

    Returns:
        The boxes in the unit square, and the smallest that holds the point.
    """
    width, height = screen.width, screen.height  # twice as fast as unpacking a named tuple
    boxes: list[Box] = []
    smallest, least = None, inf
    if x is None or y is None:
        x = y = inf  # no box holds it
    for left, top, right, bottom in rows:
        if not (0 <= left < right <= width and 0 <= top < bottom <= height):
            left, right = max(left, 0), min(right, width)
            top, bottom = max(top, 0), min(bottom, height)
            if left >= right or top >= bottom:
                continue
        edges = x1, y1, x2, y2 = left / width, top / height, right / width, bottom / height
        box = make_box(edges)
        boxes.append(box)
        if x1 <= x <= x2 and y1 <= y <= y2 and (area := (x2 - x1) * (y2 - y1)) < least:
            smallest, least = box, area
    return tuple(boxes), smallest


def smallest_holding(boxes: Sequence[Box], x: float | None, y: float | None) -> Box | None:
    """Return the smallest box that holds the point of the unit square, if there is one."""
    if x is None or y is None:
        return None
    smallest, least = None, inf
    for box in boxes:
        x1, y1, x2, y2 = box
        if x1 <= x <= x2 and y1 <= y <= y2 and (area := (x2 - x1) * (y2 - y1)) < least:
            smallest, least = box, area
    return smallest
