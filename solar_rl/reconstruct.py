"""String candidates of equal index into trajectories; find first failures, valid prefixes and segments.

Rows come sorted by (episode_id, step_index, candidate_index) and are walked here as arrays in the order
(episode, candidate, step), in which trajectories and their segments are runs of consecutive rows. Sums
over a run depend on that run alone, so shards and thread counts can't change a bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from solar_rl.errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
S = TypeVar("S", bound=np.generic)

KEY = ("episode_id", "step_index", "candidate_index")


@dataclass(frozen=True)
class Runs:
    """Consecutive rows that belong together: where each run starts, and the number of rows in all."""

    starts: Ints
    rows: int

    @classmethod
    def beginning(cls, first: Bools) -> Runs:
        """Make runs from a mask that is true at the first row of each.

        >>> Runs.beginning(np.array([True, False, True])).lengths
        array([2, 1])
        """
        return cls(np.flatnonzero(first), len(first))

    @cached_property
    def lengths(self) -> Ints:
        """Return the number of rows of each run."""
        return np.diff(self.starts, append=self.rows)

    def sum(self, values: Floats) -> Floats:
        """Add up each run."""
        return np.add.reduceat(values, self.starts) if self.rows else np.zeros(0)

    def count(self, mask: Bools) -> Ints:
        """Count the true rows of each run."""
        return np.add.reduceat(mask.astype(np.int64), self.starts) if self.rows else np.zeros(0, np.int64)

    def extremes(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest value of each run."""
        if not self.rows:
            return np.zeros(0), np.zeros(0)
        return np.minimum.reduceat(values, self.starts), np.maximum.reduceat(values, self.starts)

    def spread(self, per_run: NDArray[S]) -> NDArray[S]:
        """Repeat one value per run over the run's rows."""
        return np.repeat(per_run, self.lengths)


@dataclass(frozen=True)
class Trajectories:
    """Every candidate index that has a candidate at every step of its episode, strung together.

    Arrays of length R are in the order (episode, candidate, step); T is the number of trajectories.

    Args:
        table_rows: Number of rows of the table that the trajectories were made from.
        rows: (R,) row number in that table.
        runs: T runs over R rows.
        raw_score: (R,) float in [0, 1], 0 where unscored.
        scored: (R,) whether the step could be judged.
        breakdown: (R,) scored and not valid.
    """

    table_rows: int
    rows: Ints
    runs: Runs
    raw_score: Floats
    scored: Bools
    breakdown: Bools

    @cached_property
    def segment_index(self) -> Ints:
        """Return (R,) the number of earlier breakdowns in the trajectory."""
        earlier: Ints = np.cumsum(self.breakdown) - self.breakdown
        return earlier - np.repeat(earlier[self.runs.starts], self.runs.lengths)

    @cached_property
    def in_first(self) -> Bools:
        """Return (R,) whether the step belongs to the first segment: no breakdown came before it."""
        first: Bools = self.segment_index == 0
        return first

    @cached_property
    def segments(self) -> Runs:
        """Return the runs from after a breakdown up to and including the next."""
        first = np.zeros(self.runs.rows, np.bool_)
        first[self.runs.starts] = True
        first[1:] |= self.breakdown[:-1]
        return Runs.beginning(first)

    @cached_property
    def first_segments(self) -> Ints:
        """Return (T,) the number of each trajectory's first segment: its valid prefix and breakdown."""
        first: Ints = np.searchsorted(self.segments.starts, self.runs.starts)
        return first

    @cached_property
    def success(self) -> Bools:
        """Return (T,) whether no step failed."""
        none: Bools = self.runs.count(self.breakdown) == 0
        return none

    @cached_property
    def valid_prefix_len(self) -> Ints:
        """Return (T,) K: the steps before the first failure, unscored ones included."""
        lengths: Ints = self.segments.lengths[self.first_segments] - ~self.success
        return lengths

    @cached_property
    def first_failures(self) -> Ints:
        """Return the table rows of the first failures, one for each trajectory that failed."""
        failed: Ints = self.rows[(self.runs.starts + self.valid_prefix_len)[~self.success]]
        return failed

    def to_table(self, values: NDArray[Any]) -> Floats:
        """Put (R,) values back at their rows of the table; NaN at rows of no trajectory."""
        column = np.full(self.table_rows, np.nan)
        column[self.rows] = values
        return column


def divide(total: Floats, count: Ints | Floats) -> Floats:
    """Return total / count, NaN where the count isn't positive.

    >>> divide(np.array([1.0, 5.0]), np.array([4, 0]))
    array([0.25,  nan])
    """
    quotient: Floats = np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0)
    return quotient


def require_sorted(frame: pl.DataFrame) -> None:
    """Check that rows are sorted by key and that no key occurs twice.

    Raises:
        InputError: They aren't; names the first row out of order.
    """
    episode, step, candidate = (pl.col(name) for name in KEY)
    before = [column.shift(1) for column in (episode, step, candidate)]
    later_step = (step > before[1]) | ((step == before[1]) & (candidate > before[2]))
    in_order = (episode > before[0]) | ((episode == before[0]) & later_step)
    wrong = frame.select(pl.arg_where(~in_order.fill_null(True))).to_series()
    if len(wrong):
        key = dict(zip(KEY, frame.select(KEY).row(wrong[0]), strict=True))
        raise InputError(
            f"rows must be sorted by {', '.join(KEY)}, each key once",
            where=str(key),
            hint="sort the table first",
        )


def reconstruct(scored: pl.DataFrame) -> Trajectories:
    """String candidates of equal index into trajectories.

    An index that lacks a candidate at some recorded step (adaptive sampling) forms none. Steps beyond
    the recorded ones, where there are any, lengthen a trajectory.

    Args:
        scored: Rows sorted by key, with raw_score and valid (null where unscored) and ref_len, the number
            of recorded steps.

    Raises:
        InputError: Rows are out of order.

    Source: the paper, equal indices in recorded contexts; incomplete indices: ours.
    """
    require_sorted(scored)
    order, every = _paths(scored)
    ref_len = scored["ref_len"].to_numpy()
    recorded = scored["step_index"].to_numpy() < ref_len
    complete = every.count(recorded[order]) == ref_len[order[every.starts]]
    rows = order[np.repeat(complete, every.lengths)]
    lengths = every.lengths[complete]
    return Trajectories(
        table_rows=len(scored),
        rows=rows,
        runs=Runs(np.cumsum(lengths) - lengths, len(rows)),
        raw_score=scored["raw_score"].fill_null(0.0).to_numpy()[rows],
        scored=scored["raw_score"].is_not_null().to_numpy()[rows],
        breakdown=(~scored["valid"].fill_null(True)).to_numpy()[rows],
    )


def step_groups(frame: pl.DataFrame) -> Runs:
    """Return the runs of rows that answer the same step, of a table sorted by key."""
    first = frame.select(
        (pl.col("episode_id").ne_missing(pl.col("episode_id").shift(1)))
        | (pl.col("step_index").ne_missing(pl.col("step_index").shift(1)))
    )
    return Runs.beginning(first.to_series().to_numpy())


def _paths(scored: pl.DataFrame) -> tuple[Ints, Runs]:
    """Return the row numbers in the order (episode, candidate, step), and a run for each candidate index."""
    episode = scored["episode_id"].rle_id().to_numpy().astype(np.int64)
    step = scored["step_index"].to_numpy().astype(np.int64)
    candidate = scored["candidate_index"].to_numpy().astype(np.int64)
    path = episode * (candidate.max(initial=-1) + 1) + candidate
    order = np.argsort(path * (step.max(initial=-1) + 1) + step, kind="stable")
    return order, Runs.beginning(np.diff(path[order], prepend=-1) != 0)
