"""Metrics over verdicts, each with its bootstrap interval over episodes.

Every metric is a ratio of two sums over episodes: numerator and denominator are summed within each episode,
then episodes are drawn with replacement. Steps of an episode are not independent, so drawing steps would
give intervals that are too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from solar_rl.actions import POINT_ACTIONS

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
COVERAGE = 0.95
_CHUNK = 100  # resamples at a time: 100 x 15,000 episodes is 12 MB
Floats = npt.NDArray[np.float64]


def by_episode(verdicts: pl.DataFrame) -> pl.DataFrame:
    """Sum what the metrics need within each episode.

    Args:
        verdicts: Sorted by key: episode_id, action_type, type_match, exact_match (0, 1 or null), reward and
            ``whole`` (false in an episode that lacks a prediction, which then has no episode metrics).

    Returns:
        One row per episode with ``METRIC`` and ``METRIC_of``, numerator and denominator.
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
        .group_by("episode_id", maintain_order=True)
        .agg(
            *(top.cast(pl.Float64).alias(name) for name, (top, _) in sums.items()),
            *(below.cast(pl.Float64).alias(f"{name}_of") for name, (_, below) in sums.items()),
        )
        .collect(engine="in-memory")
    )


def measure(verdicts: pl.DataFrame, *, resamples: int, seed: int) -> pl.DataFrame:
    """Return every metric with its interval.

    Args:
        verdicts: See ``by_episode``.
        resamples: Bootstrap samples; 0 leaves the intervals null.
        seed: Seed of the resampling.

    Returns:
        metric, value, low, high (95 %, percentile), of (how many steps or episodes); value null where
        nothing was judged.
    """
    sums = by_episode(verdicts)
    top = sums.select(METRICS).to_numpy()
    below = sums.select(f"{name}_of" for name in METRICS).to_numpy()
    total = below.sum(axis=0)
    low, high = interval(top, below, resamples=resamples, seed=seed)
    return pl.DataFrame(
        {
            "metric": METRICS,
            "value": _ratio(top.sum(axis=0), total),
            "low": low,
            "high": high,
            "of": total.astype(np.int64),
        }
    ).with_columns(pl.col("value", "low", "high").fill_nan(None))


def measure_groups(
    verdicts: pl.DataFrame, column: str, metrics: Sequence[str], *, resamples: int, seed: int
) -> pl.DataFrame:
    """Return metrics for each value of a column: the largest group first, an enumeration in its order.

    Returns:
        The column, ``steps``, ``judged`` (steps with a verdict on the type), and for each metric its value, ``_low`` and ``_high``.
    """
    rows = []
    for (value,), group in verdicts.partition_by(column, as_dict=True, maintain_order=True).items():
        found = {row["metric"]: row for row in measure(group, resamples=resamples, seed=seed).to_dicts()}
        row = {column: value, "steps": group.height, "judged": group["type_match"].count()}
        for name in metrics:
            row |= {name: found[name]["value"], f"{name}_low": found[name]["low"]}
            row |= {f"{name}_high": found[name]["high"]}
        rows.append(row)
    table = pl.DataFrame(rows, schema=_group_schema(column, metrics))
    kind = verdicts.schema[column]
    if isinstance(kind, pl.Enum):
        return table.sort(pl.col(column).cast(kind))
    return table.sort("steps", column, descending=[True, False])


def _group_schema(column: str, metrics: Sequence[str]) -> dict[str, pl.DataType]:
    ends = [f"{name}{end}" for name in metrics for end in ("", "_low", "_high")]
    counts = {"steps": pl.Int64(), "judged": pl.Int64()}
    return {column: pl.String(), **counts, **dict.fromkeys(ends, pl.Float64())}


def interval(top: Floats, below: Floats, *, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Return the bootstrap interval of ratios of sums.

    Args:
        top: (episodes, metrics) numerators.
        below: (episodes, metrics) denominators.
        resamples: Number of bootstrap samples.
        seed: Seed.

    Returns:
        (metrics,) lower and upper ends; NaN where a ratio has no denominator.

    >>> low, high = interval(np.ones((9, 1)), np.ones((9, 1)), resamples=10, seed=0)
    >>> float(low[0]), float(high[0])
    (1.0, 1.0)
    """
    episodes, metrics = top.shape
    if not resamples or not episodes:
        nothing = np.full(metrics, np.nan)
        return nothing, nothing
    rng = np.random.default_rng(seed)
    chances = np.full(episodes, 1 / episodes)
    ratios = []
    for start in range(0, resamples, _CHUNK):
        drawn = rng.multinomial(episodes, chances, size=min(_CHUNK, resamples - start)).astype(np.float64)
        ratios.append(_ratio(drawn @ top, drawn @ below))
    every = np.concatenate(ratios)
    ends = np.full((2, metrics), np.nan)
    for metric in range(metrics):
        known = every[~np.isnan(every[:, metric]), metric]
        if known.size:
            ends[:, metric] = np.quantile(known, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return ends[0], ends[1]


def _ratio(top: Floats, below: Floats) -> Floats:
    ratio: Floats = np.divide(top, below, out=np.full(np.shape(top), np.nan), where=below > 0)
    return ratio
