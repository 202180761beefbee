"""Read and sample the shards of one rank: requests flow across units, so that an engine never idles at an end.

Rank r of w owns the source shards r, r + w, ... Everything that hangs on more than one shard is left to
``settle``, so any number of ranks leaves the same units.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from solar_rl.builder import Builder
from solar_rl.config import DatasetConfig
from solar_rl.errors import InputError
from solar_rl.pipeline.reading import Tally, read_items
from solar_rl.pipeline.settle import settle
from solar_rl.pipeline.units import UnitStore
from solar_rl.sampling.base import Sampler
from solar_rl.sampling.drive import draw
from solar_rl.schema import Candidate, Episode, Reject

Progress = Callable[[int], None]
"""Called with the number of episodes that were just finished."""
Saw = Callable[[Episode, Sequence[Candidate]], None]
"""Called with each episode that was just sampled."""


@dataclass
class _Part:
    """A unit on its way: filled by the reader, then by the sampler."""

    shard: int
    index: int
    expected: int = 0
    rejects: list[tuple[int, Reject]] = field(default_factory=list)
    closed: bool = False
    last: bool = False
    episodes: list[Episode] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return self.closed and len(self.episodes) == self.expected

    @property
    def empty(self) -> bool:
        return not self.expected and not self.rejects


def run_rank(
    config: DatasetConfig,
    builder: Builder,
    make_sampler: Callable[[], Sampler],
    store: UnitStore,
    rank: int,
    world: int,
    progress: Progress,
    saw: Saw = lambda episode, candidates: None,
) -> None:
    """Finish every unit of a rank's shards; those that an earlier run finished are kept.

    The sampler is only set up when an episode is missing: models are costly to load.

    Raises:
        CheckFailed: More records are broken than ``source.max_reject_rate`` allows.
    """
    shards = range(rank, len(builder.shards()), world)
    _Rank(config, builder, store, shards, progress, alone=world == 1).run(make_sampler, saw)


class _Rank:
    def __init__(
        self,
        config: DatasetConfig,
        builder: Builder,
        store: UnitStore,
        shards: Sequence[int],
        progress: Progress,
        *,
        alone: bool,
    ) -> None:
        self._config, self._builder, self._store = config, builder, store
        self._shards, self._progress = shards, progress
        self._names = builder.shards()
        self._parts: deque[_Part] = deque()
        self._tally = Tally(builder.source.max_reject_rate) if alone else None
        self._ids: set[str] | None = set() if alone and config.source.limit is not None else None

    def run(self, make_sampler: Callable[[], Sampler], saw: Saw) -> None:
        episodes = self._missing_episodes()
        first = next(episodes, None)
        if first is not None:
            for episode, candidates in draw(self._config, make_sampler(), chain([first], episodes)):
                self._save_complete()
                self._parts[0].episodes.append(episode)
                self._parts[0].candidates += candidates
                self._save_complete()
                saw(episode, candidates)
                self._progress(1)
        self._save_complete()

    def _save_complete(self) -> None:
        while self._parts and self._parts[0].complete:
            part = self._parts.popleft()
            if not part.empty:
                self._store.save(part.shard, part.index, part.episodes, part.candidates, part.rejects)
            if part.last:
                self._store.finish_shard(part.shard, part.index + (not part.empty))

    def _missing_episodes(self) -> Iterator[Episode]:
        """Yield the episodes to be sampled; parts and shard ends are noted on the way."""
        for shard in self._shards:
            finished = self._store.finished_parts(shard)
            kept = self._store.parts(shard)
            self._progress(sum(len(unit.episodes) for unit in kept))
            if self._tally:
                self._tally.good += sum(len(unit.episodes) for unit in kept)
                self._tally.bad += sum(len(unit.rejects) for unit in kept)
            there = [episode_id for unit in kept for episode_id, _ in unit.episodes]
            if finished is None and kept and len(kept[-1].episodes) < self._store.size:
                self._store.finish_shard(shard, len(kept))  # only a shard's last unit is short
            elif finished is None:
                yield from self._read(shard, len(kept), there)
            if self._ids is not None:
                self._ids.update(there)

    def _read(self, shard: int, index: int, kept: list[str]) -> Iterator[Episode]:
        part = self._begin(shard, index)
        gate = _Gate(self._config.source.limit, self._known_before(shard), kept)
        for item in () if gate.full else read_items(self._config, self._builder, self._names[shard]):
            if gate.skips(item):
                continue
            if self._tally:  # a lone rank knows all that came before, and stops early
                self._tally.add(item)
            if isinstance(item, Reject):
                part.rejects.append((part.expected, item))
                continue
            if self._ids is not None:
                self._ids.add(item.episode_id)
            part.expected += 1
            part.closed = part.expected == self._store.size  # before the sampler gets the last of them
            yield item
            if part.closed:
                part = self._begin(shard, part.index + 1)
            if gate.full:
                break
        if gate.skipping:
            raise InputError(
                f"the builder gave fewer episodes than before: {len(kept)} were read",
                where=f"shard {self._names[shard]}",
                hint="a builder must give the same episodes every time; delete the folder's .build",
            )
        part.closed = part.last = True

    def _begin(self, shard: int, index: int) -> _Part:
        part = _Part(shard, index)
        self._parts.append(part)
        return part

    def _known_before(self, shard: int) -> Iterable[str]:
        """Return the ids of good episodes in the shards before this one, as far as they are known and matter."""
        if self._ids is not None:  # a lone rank has read them, though they may not be sampled yet
            return self._ids
        if self._config.source.limit is None or self._store.unfinished(shard):
            return ()
        return settle(self._config, self._builder, self._store.units(shard), self._names).episode_ids


class _Gate:
    """Skips what lies in finished units, and tells when ``source.limit`` is reached.

    Args:
        limit: Good episodes wanted.
        before: Good episodes of the shards before this one; those that aren't known yet make it read too
            much rather than too little.
        kept: Ids of the episodes that lie in finished units.
    """

    def __init__(self, limit: int | None, before: Iterable[str], kept: list[str]) -> None:
        self._limit = limit
        self._known = set(before)
        self._new = len(self._known)
        self._kept = deque(kept)

    @property
    def skipping(self) -> bool:
        """Tell whether the next good episode lies in a finished unit."""
        return bool(self._kept)

    @property
    def full(self) -> bool:
        """Tell whether the limit is reached."""
        return self._limit is not None and self._new >= self._limit

    def skips(self, item: Episode | Reject) -> bool:
        """Count an item and tell whether it lies in a finished unit."""
        if isinstance(item, Reject):
            return self.skipping
        self._new += item.episode_id not in self._known
        if not self._kept:
            return False
        if self._kept.popleft() != item.episode_id:
            raise InputError(
                f"the builder gave episode '{item.episode_id}' where it gave another one before",
                hint="a builder must give the same episodes every time; delete the folder's .build",
            )
        return True
