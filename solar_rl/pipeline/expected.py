"""Tell how many episodes a source will give while it is still being read."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property

from solar_rl.pipeline.units import UnitStore

_REST = 20
"""Looking rests so many times as long as it took, and a second at least."""


class Expected:
    """What the shards that were read to their end hold, taken for all shards.

    Args:
        units: Where shards are marked as read.
        shards: How many there are.
        limit: Episodes after which reading stops, where that is set.
        about: Tells about how many episodes a shard holds before it is read; None: that can't be told.
    """

    def __init__(
        self,
        units: UnitStore,
        shards: int,
        limit: int | None,
        about: Callable[[int], int | None] = lambda shard: None,
    ) -> None:
        self._units, self._shards, self._limit, self._about = units, shards, limit, about
        self._unread = set(range(shards))
        self._held = 0
        self._rest_until = 0.0

    def episodes(self) -> int:
        """Return the number; 0: no shard was read to its end yet, and nothing tells what one holds."""
        began = time.monotonic()
        if began >= self._rest_until:
            for shard in [each for each in self._unread if self._units.finished_parts(each) is not None]:
                self._held += sum(len(unit.episodes) for unit in self._units.parts(shard))
                self._unread.remove(shard)
            self._rest_until = began + max(1.0, _REST * (time.monotonic() - began))
        read = self._shards - len(self._unread)
        found = round(self._held * self._shards / read) if read else self._at_first
        return found if self._limit is None else min(self._limit, found or self._limit)

    @cached_property
    def _at_first(self) -> int:
        """Return what the first shard looks like, taken for all."""
        first = self._about(0) if self._shards else None
        return (first or 0) * self._shards
