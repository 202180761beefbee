"""Raw answers in, actions out, one line of JSON each: what ``solar-rl parse`` does.

Actions are said in AndroidControl's vocabulary (contract.md, section 4) or in canonical names. A line that
is no JSON, or lacks what its format needs, is the user's mistake and stops the work; an answer that can't be
read is a result like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from solar_rl.actions import ACTION_FIELDS, Action, path_direction
from solar_rl.errors import InputError, ParseError
from solar_rl.formats import get_format
from solar_rl.formats.base import Aside, Format, Frame
from solar_rl.formats.reading import storable
from solar_rl.formats.spaces import Resized

_NO_FRAME = Frame(1000, 1000)
"""Stands where a format's coordinates don't depend on the image."""
_BUTTON_TYPES = {
    "back": "navigate_back",
    "home": "navigate_home",
    "recent": "navigate_recent",
    "enter": "keyboard_enter",
}
_DECIMALS = 6


def parse_lines(
    lines: Iterable[bytes | str], format_name: str, *, canonical: bool = False
) -> Iterator[dict[str, Any]]:
    r"""Read one answer a line.

    Args:
        lines: JSON objects with ``raw`` and, where the format speaks pixels, ``resized_w`` and
            ``resized_h``. Other keys are ignored, empty lines too.
        format_name: Name of the output format.
        canonical: Use canonical names instead of AndroidControl's.

    Yields:
        The action with what stands beside it, or ``{"error": True, "reason": ...}``.

    Raises:
        ConfigError: No such format.
        InputError: A line is no JSON object or lacks what is needed; names the line.

    >>> next(parse_lines([r'{"raw": "actions:\nPRESS_BACK"}'], "os_atlas"))
    {'type': 'navigate_back'}
    """
    fmt = get_format(format_name)
    for number, line in enumerate(lines, start=1):
        if line.strip():
            row = json_object(line, where=f"line {number}")
            raw, frame = _question(row, fmt, where=f"line {number}")
            yield read_answer(fmt, raw, frame, canonical=canonical)


def json_object(line: bytes | str, *, where: str) -> dict[str, Any]:
    """Read one line as a JSON object.

    Raises:
        InputError: It is something else; NaN is no JSON.
    """
    try:
        row = json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is no JSON: {error}", where=where, hint="one JSON object a line") from None
    if not isinstance(row, dict):
        raise InputError(f"is no JSON object but {type(row).__name__}", where=where)
    return row


def stated_frame(row: Mapping[str, Any], *, where: str) -> Frame | None:
    """Return the resized size that a line states, None if it states none.

    Raises:
        InputError: One side alone, or a side that is no positive whole number.
    """
    width, height = row.get("resized_w"), row.get("resized_h")
    if width is None and height is None:
        return None
    if type(width) is not int or type(height) is not int or min(width, height) < 1:
        found = f"resized_w x resized_h is {width} x {height}"
        raise InputError(f"{found}, expected two positive whole numbers", where=where)
    return Frame(width, height)


def read_answer(fmt: Format, raw: str, frame: Frame, *, canonical: bool = False) -> dict[str, Any]:
    """Say one raw answer as a flat object; coordinates in the unit square, six decimals.

    Returns:
        ``type`` (canonical: ``action_type``) with the action's arguments, ``thought``, ``duration_ms``,
        ``finger_direction``, ``content_direction`` and ``direction_word`` where the answer has them; for an
        answer that can't be read ``error`` and ``reason``.
    """
    try:
        if not storable(raw):
            raise ParseError("'raw' is not valid Unicode")
        action = fmt.parse(raw, frame)
    except ParseError as error:
        return {"error": True, "reason": error.message}
    aside = fmt.aside(raw, action)
    said = canonical_words(action) if canonical else android_control_words(action, aside)
    lasts = None if aside.duration_ms is None else round(aside.duration_ms)
    beside = {"duration_ms": lasts, "thought": aside.thought}
    return said | {name: value for name, value in beside.items() if value is not None}


def canonical_words(action: Action) -> dict[str, Any]:
    """Return the fields of an action that are given, by their own names."""
    given = ((name, getattr(action, name)) for name in ACTION_FIELDS)
    return {name: _rounded(value) for name, value in given if value is not None}


def android_control_words(action: Action, aside: Aside) -> dict[str, Any]:
    """Say an action in AndroidControl's vocabulary and the few words that it lacks.

    ``status``, ``drag``, ``keyboard_enter`` and ``navigate_recent`` (ours) stand beside AndroidControl's types; what
    none of them can say (double_click, hover, other keys, ...) keeps its canonical type and arguments. A scroll
    says its direction as the answer told it.
    """
    said = canonical_words(action)
    kind = said.pop("action_type")
    if action.button in _BUTTON_TYPES:
        kind = _BUTTON_TYPES[said.pop("button")]
    if action.status is not None:
        kind, said["goal_status"] = "status", said.pop("status")
    if action.direction is not None:
        del said["direction"]
        said |= _directions(action, aside)
    if kind == "drag":
        said["finger_direction"] = path_direction(*(getattr(action, name) for name in ("x", "y", "x2", "y2")))
    return {"type": kind, **said}


def _directions(action: Action, aside: Aside) -> dict[str, Any]:
    if aside.direction == "word":
        return {"direction_word": action.direction}
    finger = {"finger_direction": action.finger_direction}
    return {"content_direction": action.direction, **finger} if aside.direction == "content" else finger


def _question(row: Mapping[str, Any], fmt: Format, *, where: str) -> tuple[str, Frame]:
    raw = row.get("raw")
    if not isinstance(raw, str):
        found = "is missing" if "raw" not in row else f"is {type(raw).__name__}, expected a string"
        raise InputError(f"'raw' {found}", where=where)
    if fmt.space is not Resized:
        return raw, _NO_FRAME
    frame = stated_frame(row, where=where)
    if frame is None:
        hint = "the size of the image as the model sees it"
        raise InputError(
            f"{fmt.name} speaks pixels and needs resized_w and resized_h", where=where, hint=hint
        )
    return raw, frame


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, _DECIMALS)
    return list(value) if isinstance(value, tuple) else value
