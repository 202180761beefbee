"""Neutral cases in, verdicts out, one line of JSON each: what ``solar-rl judge`` does.

A case is one label and one answer in AndroidControl's words and in device pixels. Every line is checked before
the first verdict is printed: a wrong line stops the work, since a case that is left out, or judged as 0 because
nobody could read it, would be a wrong number later.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from solar_rl.actions import DIRECTIONS, STATUSES
from solar_rl.errors import InputError
from solar_rl.formats.reading import storable
from solar_rl.formats.resize import MAX_RATIO
from solar_rl.parsing import json_object
from solar_rl.protocols import NEUTRAL, VERDICT, get_protocol
from solar_rl.protocols.neutral import ACTIONS

REQUIRED = ("case_id", "screen_w", "screen_h", "expert", "candidate_bboxes", "prediction")
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "click": ("x", "y"),
    "long_press": ("x", "y"),
    "scroll": ("direction",),
    "input_text": ("text",),
    "open_app": ("app_name",),
    "status": ("goal_status",),
}
"""What an action takes; any other key of an answer is a foreign one."""
KNOWN = tuple(name for name in ACTIONS if name not in ("other", "navigate_recent"))
_NUMBERS = ("x", "y")
_TEXTS = ("direction", "text", "app_name", "goal_status")
_DECIMALS = 6


def judge_file(file: Path | None, protocol: str) -> Iterator[dict[str, Any]]:
    """Judge the cases of a file, or of stdin.

    Raises:
        InputError: See ``judge_lines``, or the file can't be read.
    """
    if file is None:
        return judge_lines(sys.stdin.buffer, protocol, name="stdin")
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(file)) from None
    return judge_lines(lines, protocol, name=str(file))


def judge_lines(lines: Iterable[bytes | str], protocol: str, *, name: str) -> Iterator[dict[str, Any]]:
    """Judge one case a line.

    Args:
        lines: JSON objects with the fields ``REQUIRED`` and, if it is known, ``single_bbox`` (default: the
            smallest candidate box with an area that holds the label). Other fields are ignored, empty
            lines too.
        protocol: Name of a protocol.
        name: Name of the file, for messages.

    Returns:
        case_id, type_match, exact_match, reward, dropped and the protocol's evidence where it has any, for
        each case in order. Figures are rounded to six decimals.

    Raises:
        InputError: No such protocol; no case; or a line is no whole case or repeats one: names the line.
    """
    judge = get_protocol(protocol)
    cases = [
        _case(json_object(line, where=f"{name}:{number}"), f"{name}:{number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if not cases:
        raise InputError("there is no case", where=name, hint="one JSON object a line")
    _check_unique(cases)
    frame = pl.DataFrame([neutral for _, _, neutral in cases], schema=NEUTRAL, orient="row")
    verdicts = judge.judge(frame).iter_rows(named=True)
    return (
        {"case_id": case_id} | _printable(row) for (case_id, _, _), row in zip(cases, verdicts, strict=True)
    )


def _case(row: Mapping[str, Any], where: str) -> tuple[str, str, dict[str, Any]]:
    """Return a case's id, its place, and its neutral row."""
    missing = [field for field in REQUIRED if field not in row]
    if missing:
        raise InputError(f"has no field {', '.join(missing)}", where=where, hint="docs/protocols.md")
    case_id = row["case_id"]
    if not isinstance(case_id, str) or not case_id or not storable(case_id):
        raise InputError(f"case_id is {case_id!r}, expected a text", where=where)
    width, height = _screen(row, where)
    expert = _action(row["expert"], "expert", where)
    _check_label(expert, width, height, where)
    answer = {} if row["prediction"] is None else _action(row["prediction"], "prediction", where)
    boxes = _boxes(row["candidate_bboxes"], where)
    neutral = {
        "screen_w": width,
        "screen_h": height,
        "boxes": boxes,
        "single_box": _single(row, expert, boxes, where),
        **_columns("expert", expert),
        **_columns("pred", answer),
        "pred_foreign": bool(
            set(answer) - {"action_type", *ARGUMENTS.get(answer.get("action_type", ""), ())}
        ),
        "pred_whole": all(isinstance(answer.get(axis, 0), int) for axis in _NUMBERS),
    }
    return case_id, where, neutral


def _screen(row: Mapping[str, Any], where: str) -> tuple[float, float]:
    sides = row["screen_w"], row["screen_h"]
    if not all(_is_number(side) and side > 0 and float(side).is_integer() for side in sides):
        found = f"screen_w x screen_h is {sides[0]!r} x {sides[1]!r}"
        raise InputError(f"{found}, expected two positive whole numbers of pixels", where=where)
    if max(sides) > MAX_RATIO * min(sides):
        raise InputError(f"a screen of {sides[0]} x {sides[1]} pixels is too narrow", where=where)
    return float(sides[0]), float(sides[1])


def _action(value: Any, who: str, where: str) -> dict[str, Any]:
    """Check the types of an action's values; what is missing from it is the protocol's business."""
    if not isinstance(value, dict) or "action_type" not in value:
        hint = "null stands for an answer that can't be read" if who == "prediction" else None
        raise InputError(f"{who} is no object with an action_type", where=where, hint=hint)
    if value["action_type"] not in KNOWN:
        known = ", ".join(KNOWN)
        raise InputError(f"{who} is the unknown action {value['action_type']!r}", where=where, hint=known)
    for key in _NUMBERS:
        if key in value and not _is_number(value[key]):
            raise InputError(f"{who} has {key} = {value[key]!r}, expected a number", where=where)
    for key in _TEXTS:
        if key in value and not (isinstance(value[key], str) and storable(value[key])):
            raise InputError(f"{who} has {key} = {value[key]!r}, expected a text", where=where)
    return value


def _check_label(expert: Mapping[str, Any], width: float, height: float, where: str) -> None:
    """Refuse a label that lacks something, has a word of its own, or lies beyond the screen."""
    kind = expert["action_type"]
    lacking = [key for key in ARGUMENTS.get(kind, ()) if key not in expert]
    if lacking:
        raise InputError(f"expert is {kind} without {', '.join(lacking)}", where=where)
    for key, words in (("direction", DIRECTIONS), ("goal_status", STATUSES)):
        if key in ARGUMENTS.get(kind, ()) and expert[key] not in words:
            raise InputError(f"expert has {key} = {expert[key]!r}, expected {', '.join(words)}", where=where)
    if "x" in ARGUMENTS.get(kind, ()) and not (0 <= expert["x"] <= width and 0 <= expert["y"] <= height):
        point, size = f"{expert['x']}, {expert['y']}", f"{width:.0f} x {height:.0f}"
        hint = "is screen_w x screen_h right?"
        raise InputError(f"the label at {point} lies beyond the screen of {size}", where=where, hint=hint)


def _boxes(value: Any, where: str) -> list[list[float]]:
    if not isinstance(value, list):
        raise InputError("candidate_bboxes is no list; no box is []", where=where)
    return [_box(box, "candidate_bboxes", where) for box in value]


def _box(value: Any, name: str, where: str) -> list[float]:
    if not isinstance(value, list) or len(value) != 4 or not all(map(_is_number, value)):
        raise InputError(f"{name} has {value!r}, expected [x1, y1, x2, y2] in pixels", where=where)
    return [float(corner) for corner in value]


def _single(
    row: Mapping[str, Any], expert: Mapping[str, Any], boxes: Sequence[list[float]], where: str
) -> list[float] | None:
    """Return the stated single box, or else the smallest candidate with an area that holds the label."""
    if "single_bbox" in row:
        return None if row["single_bbox"] is None else _box(row["single_bbox"], "single_bbox", where)
    if "x" not in ARGUMENTS.get(expert["action_type"], ()):
        return None
    holding = [
        box for box in boxes
        if box[0] < box[2] and box[1] < box[3]
        and box[0] <= expert["x"] <= box[2] and box[1] <= expert["y"] <= box[3]
    ]  # fmt: skip
    return min(holding, key=lambda box: (box[2] - box[0]) * (box[3] - box[1]), default=None)


def _columns(who: str, action: Mapping[str, Any]) -> dict[str, Any]:
    """Return an action's neutral columns; keys that it doesn't take are left out."""
    kind = action.get("action_type")
    own = {key: action[key] for key in ARGUMENTS.get(kind or "", ()) if key in action}
    return {
        f"{who}_type": kind,
        **{f"{who}_{axis}": float(own[axis]) if axis in own else None for axis in _NUMBERS},
        f"{who}_direction": own.get("direction"),
        f"{who}_text": own.get("app_name", own.get("text")),
        f"{who}_status": own.get("goal_status"),
    }


def _check_unique(cases: Sequence[tuple[str, str, dict[str, Any]]]) -> None:
    first: dict[str, str] = {}
    for case_id, where, _ in cases:
        if case_id in first:
            raise InputError(f"repeats case_id {case_id!r} of {first[case_id]}", where=where)
        first[case_id] = where


def _is_number(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # an int that no float can hold
        return False


def _printable(row: Mapping[str, Any]) -> dict[str, Any]:
    """Round figures, and leave out evidence that there is none of."""
    rounded = {
        name: round(value, _DECIMALS) if isinstance(value, float) else value for name, value in row.items()
    }
    return {name: value for name, value in rounded.items() if name in VERDICT or value is not None}
