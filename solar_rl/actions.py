"""The canonical action: what every source is read into and every model's answer is parsed into.

Coordinates live in the unit square of the screen they belong to: (0, 0) is the top left corner,
(1, 1) the bottom right one. A scroll's ``direction`` is the direction the CONTENT moves into view
(down = show what is lower); the finger's path, where it is known, is ``x, y`` to ``x2, y2``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from math import inf, isfinite
from typing import NamedTuple

from solar_rl.errors import ActionError
from solar_rl.records import record

POINT_ACTIONS = ("click", "double_click", "right_click", "hover", "long_press")
ACTION_TYPES = (
    *POINT_ACTIONS,
    "scroll",
    "drag",
    "input_text",
    "open_app",
    "press",
    "wait",
    "finished",
)
VERBS = {"click": "tap", "long_press": "hold", "open_app": "open", "input_text": "type"}
"""What a short thought calls an action; the others keep their name."""
DIRECTIONS = ("up", "down", "left", "right")
BUTTONS = ("back", "home", "recent", "enter")
STATUSES = ("complete", "infeasible")

_OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
_REQUIRED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(POINT_ACTIONS, ("x", "y")),
    "scroll": ("direction",),
    "drag": ("x", "y", "x2", "y2"),
    "input_text": ("text",),
    "open_app": ("app_name",),
    "finished": ("status",),
}
_COORDINATES = ("x", "y", "x2", "y2")
_CHOICES = {"direction": DIRECTIONS, "button": BUTTONS, "status": STATUSES}


class Box(NamedTuple):
    """An axis-aligned box in the unit square, ``x1 <= x2`` and ``y1 <= y2``."""

    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def area(self) -> float:
        """Return the share of the screen that the box covers; 0 for a degenerate box."""
        x1, y1, x2, y2 = self
        return (x2 - x1) * (y2 - y1) if x2 > x1 and y2 > y1 else 0.0

    def contains(self, x: float, y: float) -> bool:
        """Tell whether the point lies in the box, edges included."""
        x1, y1, x2, y2 = self
        return x1 <= x <= x2 and y1 <= y <= y2


make_box: Callable[[tuple[float, float, float, float]], Box] = partial(tuple.__new__, Box)
"""Makes a box of its four edges in half the time of ``Box(...)``, for readers that make millions."""


@record(frozen=True, slots=True)
class Action:
    """One canonical action as flat fields, the same names as the columns of ``steps``.

    Args:
        action_type: One of ``ACTION_TYPES``.
        x: Point, or start of the path, as a share of the width. Outside [0, 1] = off-screen.
        y: The same down the height.
        x2: End of a drag, or of a scroll's finger path.
        y2: The same down the height.
        direction: Content direction of a scroll, one of ``DIRECTIONS``.
        text: Typed text, or the answer given by ``finished``.
        app_name: Name of the app that ``open_app`` launches.
        keys: Keys of a ``press`` that isn't one of ``BUTTONS``, such as ("ctrl", "c").
        button: System button of a ``press``, one of ``BUTTONS``.
        status: Outcome that ``finished`` declares, one of ``STATUSES``.

    Raises:
        ActionError: Unknown type, missing argument, value outside its choices, or a NaN.

    >>> Action("click", x=0.5, y=0.25).off_screen
    False
    >>> Action("scroll", direction="down").finger_direction
    'up'
    """

    action_type: str
    x: float | None = None
    y: float | None = None
    x2: float | None = None
    y2: float | None = None
    direction: str | None = None
    text: str | None = None
    app_name: str | None = None
    keys: tuple[str, ...] | None = None
    button: str | None = None
    status: str | None = None

    def __post_init__(self) -> None:
        # Written out, and told apart only where something is wrong: every action of a build passes here.
        kind, x, y = self.action_type, self.x, self.y
        if not (kind in POINT_ACTIONS and x is not None and y is not None):
            self._check_arguments()
        if (
            (self.direction is not None and self.direction not in DIRECTIONS)
            or (self.button is not None and self.button not in BUTTONS)
            or (self.status is not None and self.status not in STATUSES)
        ):
            raise self._bad_choice()
        if (
            (x is not None and not -inf < x < inf)
            or (y is not None and not -inf < y < inf)
            or (self.x2 is not None and not -inf < self.x2 < inf)
            or (self.y2 is not None and not -inf < self.y2 < inf)
        ):
            raise self._bad_number()

    def _check_arguments(self) -> None:
        if self.action_type not in ACTION_TYPES:
            raise ActionError(
                f"unknown action type {self.action_type!r}, expected one of {', '.join(ACTION_TYPES)}"
            )
        for name in _REQUIRED.get(self.action_type, ()):
            if getattr(self, name) is None:
                raise ActionError(f"{self.action_type} needs {name!r}, which is missing")
        if self.action_type == "press" and (self.button is None) == (not self.keys):
            raise ActionError("press needs either 'button' or 'keys'")

    def _bad_choice(self) -> ActionError:
        given = ((name, getattr(self, name), choices) for name, choices in _CHOICES.items())
        name, value, choices = next(one for one in given if one[1] is not None and one[1] not in one[2])
        return ActionError(f"{name} is {value!r}, expected one of {', '.join(choices)}")

    def _bad_number(self) -> ActionError:
        given = ((name, getattr(self, name)) for name in _COORDINATES)
        name, value = next(one for one in given if one[1] is not None and not isfinite(one[1]))
        return ActionError(f"{self.action_type} has {name} = {value}, expected a number")

    @property
    def off_screen(self) -> bool:
        """Tell whether any given coordinate lies outside the unit square."""
        return (
            (self.x is not None and not 0.0 <= self.x <= 1.0)
            or (self.y is not None and not 0.0 <= self.y <= 1.0)
            or (self.x2 is not None and not 0.0 <= self.x2 <= 1.0)
            or (self.y2 is not None and not 0.0 <= self.y2 <= 1.0)
        )

    @property
    def finger_direction(self) -> str | None:
        """Return the way the finger moves in a scroll: opposite to the content's direction."""
        return _OPPOSITE[self.direction] if self.direction else None

    def spoken(self, name: str | None = None) -> str:
        """Say the action as a short thought: a verb, and what it is about.

        A name follows a space, as it does in goals and on lists, so that a tokenizer writes it with the same tokens there.

        Args:
            name: What is touched, where the action touches something.

        >>> Action("long_press", x=0.5, y=0.25).spoken("12:10"), Action("press", button="back").spoken()
        ('hold 12:10', 'press back')
        """
        keys = "+".join(self.keys or ())
        words = (name, self.app_name, self.text, keys, self.button, self.direction, self.status)
        about = next((word for word in words if word), None)
        verb = VERBS.get(self.action_type, self.action_type)
        return f"{verb} {about}" if about else verb

    def describe(self) -> str:
        """Say the action in a few words, coordinates in percent of the screen.

        >>> Action("click", x=0.5, y=0.25).describe()
        'click at 50.0 %, 25.0 %'
        >>> Action("scroll", direction="down").describe()
        'scroll down'
        """
        details = (self.direction, self.button, "+".join(self.keys or ()), self.status)
        words = [self.action_type, *(word for word in details if word)]
        if self.x is not None and self.y is not None:
            words.append(f"at {100 * self.x:.1f} %, {100 * self.y:.1f} %")
        if self.x2 is not None and self.y2 is not None:
            words.append(f"to {100 * self.x2:.1f} %, {100 * self.y2:.1f} %")
        if self.app_name is not None or self.text is not None:
            words.append(f"'{self.app_name if self.app_name is not None else self.text}'")
        return " ".join(words)


ACTION_FIELDS = tuple(field.name for field in fields(Action))


def opposite(direction: str) -> str:
    """Return the opposite direction: turns a finger direction into a content direction and back."""
    return _OPPOSITE[direction]


def path_direction(x: float, y: float, x2: float, y2: float) -> str:
    """Return the direction of a finger path along its longer axis (ties go to the vertical one).

    >>> path_direction(0.5, 0.8, 0.5, 0.2)
    'up'
    """
    dx, dy = x2 - x, y2 - y
    if abs(dx) > abs(dy):
        return "right" if dx > 0 else "left"
    return "down" if dy > 0 else "up"
