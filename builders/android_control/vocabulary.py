"""AndroidControl's eight actions, in JSON and absolute pixels, read into canonical ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import orjson

from solar_rl.actions import DIRECTIONS, Action
from solar_rl.errors import RecordError

from .screen import Screen, number

Row = TypeVar("Row")
Made = TypeVar("Made")
Point = tuple[float, float]
"""x and y in pixels."""


class at_step:
    """Name the step in every RecordError that is raised within; a class, since a generator costs four times as much."""

    __slots__ = ("_index",)

    def __init__(self, index: int) -> None:
        self._index = index

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RecordError):
            where = f"step {self._index}"
            raise RecordError(error.reason, error.message, where=where, hint=error.hint) from error


def each_step(rows: Iterable[Row], read: Callable[[int, Row], Made]) -> list[Made]:
    """Read what is recorded of each step by its number, from 0.

    Raises:
        RecordError: What ``read`` raises, with the step.
    """
    index, made = 0, []
    try:
        for index, row in enumerate(rows):
            made.append(read(index, row))
    except RecordError as error:
        raise RecordError(error.reason, error.message, where=f"step {index}", hint=error.hint) from error
    return made


def read_json(data: str | bytes, what: str) -> dict[str, Any]:
    """Read one JSON object.

    Raises:
        RecordError: ``bad_json``: it is no JSON, or something other than an object.
    """
    try:
        value = _decoded(data)
    except (ValueError, RecursionError) as error:
        raise RecordError("bad_json", f"{what} is no JSON ({error})") from error
    if not isinstance(value, dict):
        raise RecordError("bad_json", f"{what} is {type(value).__name__}, expected a JSON object")
    return value


def _decoded(data: str | bytes) -> Any:
    # What orjson refuses, the standard library may take: NaN, and halves of surrogate pairs. The readers then
    # say where they stand. Otherwise it says what is wrong.
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def read_text(fields: Mapping[str, Any], name: str) -> str:
    """Return a text that is there and isn't blank, as it is: outer blanks are kept.

    Raises:
        RecordError: ``missing_field``, ``empty_text``, or ``bad_text`` (no string, or no valid Unicode).
    """
    text = read_optional_text(fields, name)
    if text is None:
        if fields.get(name) is None:
            raise RecordError("missing_field", f"{name} is missing")
        raise RecordError("empty_text", f"{name} is empty")
    return text


def read_optional_text(fields: Mapping[str, Any], name: str) -> str | None:
    """Return a text as it is, None when it is missing or blank.

    Raises:
        RecordError: ``bad_text``: no string, or half of a surrogate pair, which no file can hold.
    """
    return optional_text(fields.get(name), name)


def optional_text(value: Any, name: str) -> str | None:
    """Return a text as it is, None when it is missing or blank; see ``read_optional_text``."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise RecordError("bad_text", f"{name} is {value!r}, expected a text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise RecordError("bad_text", f"{name} is no valid Unicode ({error})") from error
    return value if value.strip() else None


def read_point(fields: Mapping[str, Any]) -> Point | None:
    """Return the pixels that an action names; None for an action without a point.

    Raises:
        RecordError: ``missing_field`` or ``bad_number``.
    """
    if fields.get("action_type") not in _POINTED:
        return None
    return number(fields.get("x"), "x"), number(fields.get("y"), "y")


def read_action(fields: Mapping[str, Any], point: Point | None, screen: Screen) -> Action:
    """Read one action of AndroidControl's vocabulary.

    Args:
        fields: The JSON object, such as ``{"action_type": "click", "x": 540, "y": 390}``.
        point: What ``read_point`` gives for it.
        screen: The screen that its pixels belong to.

    Raises:
        RecordError: ``unknown_action``; ``missing_field``, ``empty_text`` or ``bad_value`` for its arguments;
            ``off_screen``: the point lies outside a screen whose size is stated.
    """
    kind = fields.get("action_type")
    if point is not None:
        return point_action(str(kind), point[0], point[1], screen)
    if kind is None:
        raise RecordError("missing_field", "action_type is missing")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        known = ", ".join((*_POINTED, *_READERS))
        raise RecordError("unknown_action", f"unknown action {kind!r}, expected one of {known}")
    return read(fields)


def point_action(kind: str, x: float, y: float, screen: Screen) -> Action:
    """Make a click or long press from pixels.

    Raises:
        RecordError: ``off_screen``, unless the screen's size is only inferred.
    """
    if screen.origin == "stated" and not screen.holds(x, y):
        raise RecordError("off_screen", f"{kind} at ({x}, {y}) lies outside the {screen} screen")
    return Action(kind, x / screen.width, y / screen.height)


def _scroll(fields: Mapping[str, Any]) -> Action:
    return Action("scroll", direction=read_direction(fields))


def read_direction(fields: Mapping[str, Any]) -> str:
    """Return a scroll's direction, which is the content's in AndroidControl.

    Raises:
        RecordError: ``missing_field`` or ``bad_value``.
    """
    direction = fields.get("direction")
    if direction is None:
        raise RecordError("missing_field", "direction is missing")
    if direction not in DIRECTIONS:
        message = f"direction is {direction!r}, expected one of {', '.join(DIRECTIONS)}"
        raise RecordError("bad_value", message)
    return str(direction)


def _input_text(fields: Mapping[str, Any]) -> Action:
    return Action("input_text", text=read_text(fields, "text"))


def _open_app(fields: Mapping[str, Any]) -> Action:
    return Action("open_app", app_name=read_text(fields, "app_name"))


_POINTED = ("click", "long_press")
_READERS: dict[str, Callable[[Mapping[str, Any]], Action]] = {
    "scroll": _scroll,
    "input_text": _input_text,
    "open_app": _open_app,
    "navigate_home": lambda fields: Action("press", button="home"),
    "navigate_back": lambda fields: Action("press", button="back"),
    "wait": lambda fields: Action("wait"),
}
