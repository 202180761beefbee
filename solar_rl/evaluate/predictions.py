"""Read predictions: one line of JSON a step, as a canonical action or as the raw answer of a model.

    {"episode_id": "54", "step_index": 0, "action_type": "click", "x": 0.5, "y": 0.25}
    {"episode_id": "54", "step_index": 1, "parse_error": "cut off"}
    {"episode_id": "54", "step_index": 0, "raw": "Action: wait()"}

A line that is no such thing is the user's mistake and is named; it never counts as a wrong answer. An answer
that can't be read is one: raw text that doesn't parse, or a stated ``parse_error``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import polars as pl

from solar_rl.actions import ACTION_FIELDS, Action
from solar_rl.columns import candidates_frame
from solar_rl.errors import ActionError, InputError
from solar_rl.formats import get_format, parse_completion
from solar_rl.formats.base import Frame
from solar_rl.parsing import json_object, stated_frame
from solar_rl.schema import Candidate

LEVELS = ("high", "low")
Key = tuple[str, int]
Row = Mapping[str, Any]
FrameOf = Callable[[Key], Frame | None]
"""Tells what a model's pixels of a step are divided by; None for a step that isn't in the data."""
DISTORTION = 1.6
"""A stated size whose aspect ratio differs more from the screen's is a mistake; smart_resize rounds far less."""
_NUMBERS = ("x", "y", "x2", "y2")
_WORDS = ("action_type", "direction", "text", "app_name", "button", "status")


def read_predictions(
    lines: Iterable[bytes | str], *, where: str, format_name: str | None = None, frame_of: FrameOf
) -> pl.DataFrame:
    """Read a file of predictions.

    Args:
        lines: JSON objects with ``episode_id``, ``step_index``, optionally ``level``, and either the fields
            of a canonical action, ``parse_error``, or ``raw``. Empty lines and other keys are ignored.
        where: Name of the file, for errors.
        format_name: Output format of ``raw``; without it lines hold canonical actions.
        frame_of: The frame of a step, for lines that don't state ``resized_w`` and ``resized_h``.

    Returns:
        Rows of table ``candidates`` (candidate_index 0) and ``level`` (null where not stated), sorted by key.

    Raises:
        InputError: A line is broken, lacks something, or answers a step again; names file and line.
    """
    if format_name is not None:
        get_format(format_name)
    found: dict[tuple[Key, str | None], Candidate] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{where}:{number}"
        row = json_object(line, where=place)
        key, level = _key(row, place), _level(row, place)
        if (key, level) in found:
            raise InputError(f"step {key[1]} of episode {key[0]} is answered twice", where=place)
        found[key, level] = _answer(row, key, format_name, frame_of, place)
    if not found:
        raise InputError("holds no predictions", where=where)
    return _frame(found)


def _frame(found: Mapping[tuple[Key, str | None], Candidate]) -> pl.DataFrame:
    levels = dict.fromkeys(level for _, level in found)
    parts = [
        candidates_frame(each for (_, its), each in found.items() if its == level).with_columns(
            level=pl.lit(level, pl.String)
        )
        for level in levels
    ]
    return pl.concat(parts)


def _answer(row: Row, key: Key, format_name: str | None, frame_of: FrameOf, where: str) -> Candidate:
    """Make the candidate that a line describes."""
    if row.get("parse_error") is not None:
        return _candidate(key, str(row.get("raw") or ""), None, str(row["parse_error"]))
    if format_name is None:
        return _candidate(key, "", _action(row, where), None)
    raw = row.get("raw")
    if not isinstance(raw, str):
        hint = 'an answer that never came is {"parse_error": "no answer"}'
        raise InputError("'raw' is missing or no string", where=where, hint=hint)
    known, stated = frame_of(key), stated_frame(row, where=where)
    if known is None:
        raise InputError(f"the data have no step {key[1]} of episode {key[0]}", where=where)
    if stated is not None and not 1 / DISTORTION < _aspect(stated) / _aspect(known) < DISTORTION:
        found = f"resized_w x resized_h is {stated.width} x {stated.height}"
        expected = f"the step's image is about {known.width} x {known.height}"
        raise InputError(f"{found}, but {expected}", where=where, hint="are width and height exchanged?")
    return _candidate(key, raw, *parse_completion(format_name, raw, stated or known))


def _aspect(frame: Frame) -> float:
    return frame.width / frame.height


def _candidate(key: Key, raw: str, action: Action | None, parse_error: str | None) -> Candidate:
    return Candidate(*key, 0, raw, "predictions", 0, action, parse_error)


def _key(row: Row, where: str) -> Key:
    for name in ("episode_id", "step_index"):
        if row.get(name) is None:
            raise InputError(f"{name!r} is missing", where=where, hint="every line names its step")
    episode, step = row["episode_id"], row["step_index"]
    if isinstance(episode, bool) or not isinstance(episode, (str, int)):
        raise InputError("'episode_id' is no string or whole number", where=where)
    if type(step) is not int or not 0 <= step < 2**31:
        raise InputError("'step_index' is no whole number from 0", where=where)
    return str(episode), step


def _level(row: Row, where: str) -> str | None:
    level = row.get("level")
    if level is not None and level not in LEVELS:
        raise InputError(f"'level' is {level!r}, expected high or low", where=where)
    return level


def _action(row: Row, where: str) -> Action:
    hint = 'an answer that was no action is {"parse_error": "the reason"}'
    if row.get("action_type") is None:
        raise InputError("'action_type' is missing", where=where, hint=f"{hint}; raw answers need --format")
    given = {name: row[name] for name in ACTION_FIELDS if row.get(name) is not None}
    for name in _NUMBERS:
        if name in given and (isinstance(given[name], bool) or not isinstance(given[name], (int, float))):
            raise InputError(f"{name!r} is no number", where=where)
    for name in _WORDS:
        if name in given and not isinstance(given[name], str):
            raise InputError(f"{name!r} is no string", where=where)
    try:
        return Action(**(given | _keys(given, where) | {n: float(given[n]) for n in _NUMBERS if n in given}))
    except (ActionError, OverflowError) as error:
        raise InputError(str(error), where=where, hint=hint) from None


def _keys(given: Row, where: str) -> dict[str, tuple[str, ...]]:
    keys = given.get("keys")
    if keys is None:
        return {}
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise InputError("'keys' is no list of strings", where=where)
    return {"keys": tuple(keys)}
