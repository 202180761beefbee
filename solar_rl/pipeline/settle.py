"""Settle what hangs on all shards together, in the source's order: double ids, the limit, the share of rejects.

Ranks know their own shards alone; this walks over what they left as if one had read them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import polars as pl

from solar_rl.builder import Builder
from solar_rl.config import DatasetConfig
from solar_rl.errors import InputError
from solar_rl.pipeline.reading import Tally
from solar_rl.pipeline.units import Unit
from solar_rl.schema import SPLITS, Reject


@dataclass(frozen=True)
class Settled:
    """The episodes of a build, and its rejects.

    Args:
        units: Every unit, in the source's order.
        episodes: Columns unit (its number), episode_id and split, in the source's order.
        rejects: In the source's order.
    """

    units: tuple[Unit, ...]
    episodes: pl.DataFrame
    rejects: tuple[Reject, ...]

    @cached_property
    def episode_ids(self) -> list[str]:
        """Return the ids in the source's order."""
        return self.episodes["episode_id"].to_list()


class _Bad(NamedTuple):
    """A reject and its place: after how many episodes of the whole source, double ones included."""

    after: int
    reject: Reject


def settle(config: DatasetConfig, builder: Builder, units: Sequence[Unit], shards: Sequence[str]) -> Settled:
    """Decide which episodes are in, by the order of the source alone.

    Args:
        config: Its ``source.limit``.
        builder: Its ``max_reject_rate``.
        units: Of every shard, in order.
        shards: Names of the shards.

    Raises:
        CheckFailed: More records are broken than allowed.
    """
    every = _index(units)
    new = every["episode_id"].is_first_distinct()
    limit = config.source.limit
    limited = limit is not None and new.sum() >= limit
    end = int(new.arg_true()[limit - 1]) + 1 if limit is not None and limited else every.height
    bad = [each for each in _rejects(units) if each.after < end or not limited]
    double = every.head(end).filter(~new.head(end))
    bad += [
        _Bad(after, _double(episode_id, shards[units[unit].shard]))
        for after, episode_id, unit in double.select("at", "episode_id", "unit").iter_rows()
    ]
    bad.sort(key=lambda each: each.after)  # stable: a reject in a unit comes before the episode at its place
    _hold_to_rate(builder.source.max_reject_rate, new.head(end), bad)
    kept = every.head(end).filter(new.head(end)).drop("at")
    return Settled(tuple(units), kept, tuple(each.reject for each in bad))


def nothing_built(settled: Settled, config: DatasetConfig) -> InputError:
    """Say why there is no episode to build from."""
    if not settled.rejects:
        hint = "check source.path, source.splits and the builder's options"
        return InputError("the source gave no episode", where=f"builder {config.source.builder}", hint=hint)
    first = settled.rejects[0]
    return InputError(
        f"all {len(settled.rejects)} records are broken; the first: {first.record}: {first.message}",
        where=first.file,
    )


def _index(units: Sequence[Unit]) -> pl.DataFrame:
    numbers = [number for number, unit in enumerate(units) for _ in unit.episodes]
    rows = [row for unit in units for row in unit.episodes]
    columns = {
        "unit": pl.Series(numbers, dtype=pl.Int32),
        "episode_id": pl.Series([episode_id for episode_id, _ in rows], dtype=pl.String),
        "split": pl.Series([split for _, split in rows], dtype=pl.Enum(SPLITS)),
    }
    return pl.DataFrame(columns).with_row_index("at")


def _rejects(units: Sequence[Unit]) -> Iterator[_Bad]:
    start = 0
    for unit in units:
        yield from (_Bad(start + before, reject) for before, reject in unit.rejects)
        start += len(unit.episodes)


def _double(episode_id: str, shard: str) -> Reject:
    """Return what ``episodes.checked`` makes of an id that it has met before."""
    message = f"episode id {episode_id!r} was already read"
    return Reject(shard, f"episode {episode_id}", "duplicate_id", message, episode_id)


def _hold_to_rate(allowed: float, new: pl.Series, bad: Sequence[_Bad]) -> None:
    tally, good = Tally(allowed), new.cum_sum().to_numpy()
    for each in bad:
        tally.add_good((int(good[each.after - 1]) if each.after else 0) - tally.good)
        tally.add_bad(each.reject)
    tally.add_good((int(good[-1]) if len(good) else 0) - tally.good)
