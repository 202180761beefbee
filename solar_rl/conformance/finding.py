"""What a check finds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, Self


class Finding(NamedTuple):
    """One check of a builder.

    Args:
        name: What is asked, as a claim.
        verdict: warn: it works, but something should be looked at. skip: it could not be tried.
        faults: How many things break the claim.
        detail: The first of them, or what there is to know.
    """

    name: str
    verdict: Literal["ok", "warn", "fail", "skip"]
    faults: int = 0
    detail: str = ""

    @classmethod
    def of(cls, name: str, faults: Iterable[object], *, only_warn: bool = False, note: str = "") -> Self:
        """Make a finding that fails, or warns, if there is any fault."""
        found = list(faults)
        verdict: Literal["ok", "warn", "fail"] = "ok" if not found else "warn" if only_warn else "fail"
        return cls(name, verdict, len(found), str(found[0]) if found else note)
