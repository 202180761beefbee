"""Plain lines: every value is there and of its kind, as in nearly every line of a file. They are decoded in C.

A builder states what a plain line holds as ``msgspec`` structs, and makes its episode in one pass without looking at
a value twice. Any other line, a broken one above all, is left to the reader of JSON objects, which says what is
wrong. A plain line gives the same episode on both ways (tests/builders/test_plain_lines.py).
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from solar_rl.errors import ActionError, RecordError

from .screen import FAR

Number = (
    Annotated[int, msgspec.Meta(gt=-int(FAR), lt=int(FAR))] | Annotated[float, msgspec.Meta(gt=-FAR, lt=FAR)]
)
"""A pixel of a point or an edge, as ``screen.number`` takes it."""
Pair = tuple[Number, Number]
"""x and y of a point."""
Edges = tuple[Number, Number, Number, Number]
"""Left, top, right and bottom of a box."""


class Odd(Exception):
    """A line isn't plain: the reader of JSON objects takes it."""


NOT_PLAIN = (Odd, msgspec.DecodeError, UnicodeDecodeError, RecordError, ActionError)
"""What tells that a line isn't plain."""


def plain_text(value: str | None) -> str:
    """Return a text that must be there and not blank.

    Raises:
        Odd: It isn't.
    """
    if value is None or not value.strip():
        raise Odd
    return value


def plain_id(value: int | str | None) -> str:
    """Return an episode's id, a whole number or a text.

    Raises:
        Odd: It is neither.
    """
    return str(value) if isinstance(value, int) else plain_text(value)
