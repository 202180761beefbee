"""Coordinates on a family's grid: unit square to integers and back, and the finger's path of a scroll."""

from __future__ import annotations

import math
from collections.abc import Iterator

from solar_rl.actions import Action, path_direction
from solar_rl.errors import ActionError, ParseError
from solar_rl.formats.base import Frame

THOUSAND = Frame(1000, 1000)
"""The grid of the families that write 0..1000 whatever the screen."""

Path = tuple[float, float, float, float]
_UNIT_STEP = {"up": (0.0, -1.0), "down": (0.0, 1.0), "left": (-1.0, 0.0), "right": (1.0, 0.0)}
_SWIPE = 0.4


def to_grid(value: float, size: int) -> int:
    """Return the integer of a grid of ``size`` nearest to a unit coordinate, halves upward.

    >>> to_grid(0.5, 1092)
    546
    """
    return math.floor(value * size + 0.5)


def grid_point(action: Action, grid: Frame) -> tuple[int, int]:
    """Return the action's point on the grid.

    Raises:
        ActionError: The action has no point.
    """
    if action.x is None or action.y is None:
        raise ActionError(f"{action.action_type} has no point to write")
    return to_grid(action.x, grid.width), to_grid(action.y, grid.height)


def finger_path(action: Action, grid: Frame) -> tuple[int, int, int, int]:
    """Return a finger path on the grid that scrolls the way the action says.

    The recorded path is taken where it runs in the action's direction on the grid. Else one is drawn from
    the recorded start, and without one, or with too little room, through the middle of the screen. Ours.

    Raises:
        ActionError: The action is no scroll.

    >>> finger_path(Action("scroll", direction="down"), THOUSAND)
    (500, 700, 500, 300)
    """
    finger = action.finger_direction
    if finger is None:
        raise ActionError(f"{action.action_type} has no direction to draw")
    for path in _paths(action, finger):
        x, y, x2, y2 = on_grid(path, grid)
        if (x, y) != (x2, y2) and _direction((x, y, x2, y2), grid) == finger:
            return x, y, x2, y2
    raise ActionError(f"a grid of {grid.width}x{grid.height} is too small to draw a scroll on")


def on_grid(path: Path, grid: Frame) -> tuple[int, int, int, int]:
    """Return both ends of a path on the grid."""
    x, y, x2, y2 = path
    return (
        to_grid(x, grid.width),
        to_grid(y, grid.height),
        to_grid(x2, grid.width),
        to_grid(y2, grid.height),
    )


def finger_direction(path: Path) -> str:
    """Return the way a finger path in the unit square points.

    Raises:
        ParseError: It ends where it starts.
    """
    x, y, x2, y2 = path
    if (x, y) == (x2, y2):
        raise ParseError("swipe ends where it starts, so it has no direction")
    return path_direction(x, y, x2, y2)


def _direction(path: tuple[int, int, int, int], grid: Frame) -> str:
    x, y, x2, y2 = path
    return path_direction(x / grid.width, y / grid.height, x2 / grid.width, y2 / grid.height)


def _paths(action: Action, finger: str) -> Iterator[Path]:
    dx, dy = _UNIT_STEP[finger]
    x, y, x2, y2 = action.x, action.y, action.x2, action.y2
    if x is not None and y is not None:
        if x2 is not None and y2 is not None:
            yield x, y, x2, y2
        yield x, y, _clamp(x + dx * _SWIPE), _clamp(y + dy * _SWIPE)
    half = _SWIPE / 2
    yield 0.5 - dx * half, 0.5 - dy * half, 0.5 + dx * half, 0.5 + dy * half


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, value))
