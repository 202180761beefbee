"""Frozen records that are as cheap to make as plain ones: a build makes millions of steps and actions.

``record(frozen=True)`` is ``dataclass(frozen=True)`` to a type checker, which refuses to set a field. At
run time it leaves out the guard, because a dataclass that is frozen then sets each field through a call,
which makes an ``Action`` or a ``Step`` three times as expensive and was half of the time of reading
lines without screenshots (benchmarks/bench_sources.py). Equality, hash and ``replace`` are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from collections.abc import Callable
    from dataclasses import dataclass

    def record(*, frozen: bool, slots: bool = False) -> Callable[[type], type]:
        """Make a dataclass whose instances are hashed by their fields and, for a type checker, frozen."""
        return dataclass(unsafe_hash=frozen, slots=slots)


__all__ = ["record"]
