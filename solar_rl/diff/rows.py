"""A row of a comparison: what is compared, its two values, and their difference where they are numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]


def pair(a: Any, b: Any, **key: Any) -> Row:
    """Make a row.

    >>> pair(0.5, 0.75, action_type="click")
    {'action_type': 'click', 'a': 0.5, 'b': 0.75, 'change': 0.25}
    """
    return {**key, "a": a, "b": b, "change": _change(a, b)}


def pairs(name: str, a: Mapping[Any, Any], b: Mapping[Any, Any], missing: Any = None) -> list[Row]:
    """Make a row for each key of two mappings, the first one's keys first."""
    return [pair(a.get(key, missing), b.get(key, missing), **{name: key}) for key in merged(a, b)]


def merged(*keys: Iterable[Any]) -> list[Any]:
    """Return every key once, in the order met."""
    return list(dict.fromkeys(key for some in keys for key in some))


def differs(row: Row) -> bool:
    """Tell whether the two values of a row differ."""
    return bool(row["a"] != row["b"])


def _change(a: Any, b: Any) -> Any:
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (a, b))
    return b - a if numbers else None
