"""What a check says: its name, whether it passed, how many things break it, and the first in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Check(NamedTuple):
    """One check: how many things break it, and the first of them in words."""

    name: str
    passed: bool
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks a check for
    detail: str = ""


def check(name: str, faults: Iterable[object]) -> Check:
    """Make a check that fails if there is any fault."""
    found = list(faults)
    return Check(name, not found, len(found), str(found[0]) if found else "")
