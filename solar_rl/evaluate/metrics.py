"""Metrics over verdicts, each with its bootstrap interval over episodes.

Every metric is a ratio of two sums over episodes: numerator and denominator are summed within each episode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from solar_rl.actions import POINT_ACTIONS
from solar_rl.evaluate.bootstrap import Interval, Sums, intervals, ratio

STEP_METRICS = ("type_match", "exact_match", "grounding", "reward")
EPISODE_METRICS = ("goal_progress", "task_sr")
METRICS = (*STEP_METRICS, *EPISODE_METRICS)
MEANINGS = {
    "type_match": "TM: right action type, of the judged steps",
    "exact_match": "EM, step SR: right type and right arguments, of the judged steps",
    "grounding": "GR: exact, of the point actions whose type is right",
    "reward": "mean training reward",
    "goal_progress": "steps before the first that is not exact / length, mean over episodes",
    "task_sr": "episodes in which every step is exact",
}


class Measured(NamedTuple):
    """Every metric, and the chosen ones for each value of a column.

    Args:
        metrics: metric, value, low, high (95 %), of (how many steps or episodes); value null where nothing
            was judged.
        by: For each column a table of its values with ``steps``, ``judged`` (steps with a verdict on the type)
            and for each metric its value, ``_low`` and ``_high``: the largest group first, an enumeration in
            its order.
    """

    metrics: pl.DataFrame
    by: dict[str, pl.DataFrame]


def by_episode(verdicts: pl.DataFrame, *groups: str) -> pl.DataFrame:
    """Sum what the metrics need within each episode.

    Args:
        verdicts: Sorted by key: episode_id, action_type, type_match, exact_match (0, 1 or null), reward and
            ``whole`` (false in an episode that lacks a prediction, which then has no episode metrics).
        groups: Columns whose values are kept apart within an episode.

    Returns:
        One row per group and episode with ``METRIC`` and ``METRIC_of``, numerator and denominator, ``steps`` and
        ``judged``.
    """
    exact, right_type = pl.col("exact_match"), pl.col("type_match") == 1
    grounded = exact.filter(right_type & pl.col("action_type").is_in(POINT_ACTIONS))
    known = exact.drop_nulls()
    counted = (known.len() > 0) & pl.col("whole").all()
    prefix = known.cum_prod().sum()
    sums = {
        "type_match": (pl.col("type_match").sum(), pl.col("type_match").count()),
        "exact_match": (exact.sum(), exact.count()),
        "grounding": (grounded.sum(), grounded.count()),
        "reward": (pl.col("reward").sum(), pl.col("reward").count()),
        "goal_progress": (pl.when(counted).then(prefix / known.len()).otherwise(0.0), counted),
        "task_sr": (counted & (known.min() == 1), counted),
    }
    return (
        verdicts.lazy()
        .group_by(*groups, "episode_id", maintain_order=True)
        .agg(
            pl.len().alias("steps"),
            pl.col("type_match").count().alias("judged"),
            *(top.cast(pl.Float64).alias(name) for name, (top, _) in sums.items()),
            *(below.cast(pl.Float64).alias(f"{name}_of") for name, (_, below) in sums.items()),
        )
        .collect(engine="in-memory")
    )


def measure(
    verdicts: pl.DataFrame,
    groups: Mapping[str, Sequence[str]] | None = None,
    *,
    resamples: int,
    seed: int,
) -> Measured:
    """Measure verdicts, and groups of them.

    Args:
        verdicts: See ``by_episode``.
        groups: Columns to break the figures down by, and the metrics of each.
        resamples: Bootstrap samples; 0 leaves the intervals null.
        seed: Seed of the resampling.
    """
    episodes = verdicts.select(pl.col("episode_id").unique(maintain_order=True)).with_row_index("episode")
    kept: dict[str, Sequence[str]] = {_ALL: METRICS, **(groups or {})}
    parts = [
        _Part(column, value, part, _sums(part, metrics))
        for column, metrics in kept.items()
        for (value,), part in _by_group(verdicts.with_columns(pl.lit("").alias(_ALL)), column, episodes)
    ]
    ends = intervals([part.sums for part in parts], episodes.height, resamples=resamples, seed=seed)
    found = list(zip(parts, ends, strict=True))
    overall = next(((part.sums, its) for part, its in found if part.column == _ALL), _NOTHING)
    by = {
        column: _group_table(verdicts, column, [one for one in found if one[0].column == column], metrics)
        for column, metrics in (groups or {}).items()
    }
    return Measured(_metrics_table(*overall), by)


_ALL = "__all__"


class _Part(NamedTuple):
    column: str
    value: object
    rows: pl.DataFrame
    sums: Sums


def _by_group(
    verdicts: pl.DataFrame, column: str, episodes: pl.DataFrame
) -> Iterator[tuple[tuple[object, ...], pl.DataFrame]]:
    rows = by_episode(verdicts, column).join(episodes, on="episode_id", how="left", maintain_order="left")
    yield from rows.partition_by(column, as_dict=True, maintain_order=True).items()


_NOTHING = (
    Sums(np.zeros(0, np.int64), np.zeros((0, len(METRICS))), np.zeros((0, len(METRICS)))),
    Interval(*np.full((2, len(METRICS)), np.nan)),
)


def _sums(part: pl.DataFrame, metrics: Sequence[str]) -> Sums:
    return Sums(
        part["episode"].to_numpy(),
        part.select(metrics).to_numpy(),
        part.select(f"{name}_of" for name in metrics).to_numpy(),
    )


def _metrics_table(sums: Sums, ends: Interval) -> pl.DataFrame:
    total = sums.below.sum(axis=0)
    columns = {"value": ratio(sums.top.sum(axis=0), total), "low": ends.low, "high": ends.high}
    table = pl.DataFrame({"metric": METRICS, **columns, "of": total.astype(np.int64)})
    return table.with_columns(pl.col("value", "low", "high").fill_nan(None))


def _group_table(
    verdicts: pl.DataFrame, column: str, groups: Sequence[tuple[_Part, Interval]], metrics: Sequence[str]
) -> pl.DataFrame:
    rows = []
    for part, ends in groups:
        row = {column: part.value, "steps": part.rows["steps"].sum(), "judged": part.rows["judged"].sum()}
        values = ratio(part.sums.top.sum(axis=0), part.sums.below.sum(axis=0))
        for i, name in enumerate(metrics):
            row |= {name: values[i], f"{name}_low": ends.low[i], f"{name}_high": ends.high[i]}
        rows.append(row)
    names = [f"{name}{end}" for name in metrics for end in ("", "_low", "_high")]
    counts = {"steps": pl.Int64(), "judged": pl.Int64()}
    table = pl.DataFrame(rows, schema={column: pl.String(), **counts, **dict.fromkeys(names, pl.Float64())})
    table = table.with_columns(pl.col(names).fill_nan(None))
    kind = verdicts.schema[column]
    if isinstance(kind, pl.Enum):
        return table.sort(pl.col(column).cast(kind))
    return table.sort("steps", column, descending=[True, False])
