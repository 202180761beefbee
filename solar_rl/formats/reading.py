"""Read dirty answers without guessing: JSON objects, numbers, points, and actions that may be impossible.

Everything here raises ParseError and nothing else. JSON is never completed: an answer cut off in the middle
could have gone on in many ways. A comma before a closing bracket means nothing, and is passed over.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from solar_rl.actions import Action
from solar_rl.errors import ActionError, ParseError

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)"
_PAIR = re.compile(rf"\s*[\[(]?\s*({NUMBER})\s*,\s*({NUMBER})\s*[\])]?\s*")
_FENCE = re.compile(r"\s*```\w*\s*")
_THINK = re.compile(r"<(think|thinking)>(.*?)</\1>", re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
_WIDE = str.maketrans("（），［］：", "(),[]:")
_SHOWN = 40


def first_object(text: str) -> dict[str, Any]:
    """Read the JSON object that starts at the first brace; what stands around it is ignored.

    Raises:
        ParseError: There is none, it is broken or cut off, or a key appears twice with different values.

    >>> first_object('So I tap. {"a": [1, 2]} Done.')
    {'a': [1, 2]}
    """
    start = text.find("{")
    if start < 0:
        raise ParseError("no JSON object")
    return _decode(text, start)[0]


def leading_object(text: str) -> tuple[dict[str, Any], int]:
    """Read the JSON object that a text begins with, after white space or the opening of a code fence.

    Returns:
        The object, and where it ends in the text.

    Raises:
        ParseError: As ``first_object``, or something else comes first.
    """
    fence = _FENCE.match(text)
    start = fence.end() if fence else len(text) - len(text.lstrip())
    if not text.startswith("{", start):
        raise ParseError("no JSON object")
    return _decode(text, start)


def rest_is_empty(text: str, end: int) -> bool:
    """Tell whether nothing but white space and the end of a code fence follows."""
    return text[end:].strip() in ("", "```")


def _decode(text: str, start: int) -> tuple[dict[str, Any], int]:
    try:
        value, end = _raw_decode(text, start)
    except ParseError:
        raise
    except (ValueError, RecursionError):
        raise ParseError("broken JSON") from None
    assert isinstance(value, dict), "raw_decode at a brace gives an object"
    return value, end


def _raw_decode(text: str, start: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except json.JSONDecodeError:
        # a blank instead of the comma, so that places in the text stay what they are
        plain = _TRAILING_COMMA.sub(lambda match: match[1] or " ", text[start:])
        return _DECODER.raw_decode(text[:start] + plain, start)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs) and any(found[key] != value for key, value in pairs):
        raise ParseError("a JSON key appears twice with different values")
    return found


def _no_constant(name: str) -> float:
    raise ParseError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


def member(data: Mapping[str, Any], key: str, owner: str) -> Any:
    """Return a value that must be there.

    Raises:
        ParseError: It is missing or null.
    """
    value = data.get(key)
    if value is None:
        raise ParseError(f"{owner} needs {key!r}")
    return value


def string(data: Mapping[str, Any], key: str, owner: str) -> str:
    """Return a string that must be there and can be stored as UTF-8.

    Raises:
        ParseError: It is missing, no string, or holds half a surrogate pair.
    """
    value = member(data, key, owner)
    if not isinstance(value, str):
        raise ParseError(f"{key!r} is not a string")
    if not storable(value):
        raise ParseError(f"{key!r} is not valid Unicode")
    return value


def storable(text: str) -> bool:
    """Tell whether a text is valid Unicode: a JSON escape can smuggle in half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def choice(data: Mapping[str, Any], key: str, choices: Mapping[str, str], owner: str) -> str:
    """Return what a word means, upper and lower case alike.

    Raises:
        ParseError: It is missing or not one of ``choices``.
    """
    word = string(data, key, owner)
    meaning = choices.get(word.strip().lower())
    if meaning is None:
        raise ParseError(f"{key!r} is {shown(word)}, expected one of {', '.join(choices)}")
    return meaning


def number(value: Any, what: str) -> float:
    """Return a finite number.

    Raises:
        ParseError: It is something else, a boolean too.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ParseError(f"{what} is not a number")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise ParseError(f"{what} is not a finite number")
    return found


def point(value: Any, what: str) -> tuple[float, float]:
    """Return a point written as [x, y] or as text such as "(x, y)".

    Raises:
        ParseError: It isn't exactly two numbers; the middle of a box would be a guess.

    >>> point("(120, 48)", "coordinate")
    (120.0, 48.0)
    """
    if isinstance(value, str):
        match = _PAIR.fullmatch(narrow(value))
        if not match:
            raise ParseError(f"{what!r} is not a point")
        return number(float(match[1]), what), number(float(match[2]), what)
    if not isinstance(value, list) or len(value) != 2:
        raise ParseError(f"{what!r} is not a point")
    return number(value[0], what), number(value[1], what)


def narrow(text: str) -> str:
    """Write full-width brackets, commas and colons as plain ones, one for one.

    >>> narrow("Action：click（1，2）")
    'Action:click(1,2)'
    """
    return text.translate(_WIDE)


def thought_of(data: Mapping[str, Any]) -> str | None:
    """Return what an object says under ``thought``; None where that is no text or an empty one."""
    thought = data.get("thought")
    return thought.strip() or None if isinstance(thought, str) and storable(thought) else None


def think_tag(text: str) -> str | None:
    """Return what stands in the first think tag; None without one, or where it is empty.

    >>> think_tag("<think> Tap it. </think>")
    'Tap it.'
    """
    match = _THINK.search(text)
    return (match and match[2].strip()) or None


def build(action_type: str, **fields: Any) -> Action:
    """Make the action that was read.

    Raises:
        ParseError: There can be no such action.
    """
    try:
        return Action(action_type, **fields)
    except ActionError as error:
        raise ParseError(error.message) from None


def shown(text: str) -> str:
    """Return a model's word quoted for a reason, cut to a readable length."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
