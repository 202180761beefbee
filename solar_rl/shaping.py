"""Shape rewards: a base reward per step, and a gap that aligns them with the trajectory's return.

All modes share one picture. A trajectory falls into segments, each ended by a breakdown, and

    R_g = score_weight * mean(s over g) + progress_weight * min(1, K_g / N_ref) + success_weight * success

is the return of segment g, with K_g its steps before the breakdown and success the whole trajectory's.
R_traj is the first segment's. The truncated modes keep the first segment; ``segments`` keeps them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import polars as pl

from solar_rl.advantage import compare
from solar_rl.columns import polars_schema
from solar_rl.config import AdvantageConfig, ShapingConfig
from solar_rl.reconstruct import Bools, Floats, Ints, Runs, Trajectories, divide, reconstruct, step_groups
from solar_rl.schema import POSITIONS


class Shaped(NamedTuple):
    """The tables ``rewards`` and ``trajectories``, in the schema's column order, sorted by key."""

    rewards: pl.DataFrame
    trajectories: pl.DataFrame


def shape(scored: pl.DataFrame, shaping: ShapingConfig, advantage: AdvantageConfig) -> Shaped:
    """Shape the rewards of scored candidates and compare them within their steps.

    Args:
        scored: Rows sorted by key, with episode_id, step_index, candidate_index, app, action_type,
            pred_action_type, ref_len and the columns ``SCORE_COLUMNS``.
        shaping: Alignment, suffix, normalisation and the weights of R_traj.
        advantage: Whether advantages are divided by the group's spread.

    Returns:
        One reward row per candidate, and one trajectory row per index with a candidate at every step.

    Raises:
        InputError: Rows are out of order.

    Source: method.md, section 3: base and gap of `paper` are the paper's, all else is ours.
    """
    paths = reconstruct(scored)
    returns = _Returns(paths, scored["ref_len"].to_numpy()[paths.rows].astype(np.float64), shaping)
    aligned = _align_segments(returns) if shaping.alignment == "segments" else _align_first(returns)
    reward = aligned.base + aligned.gap_share
    return Shaped(
        _rewards(scored, returns, aligned, reward, advantage),
        _trajectories(scored, returns, aligned, reward),
    )


def trajectory_rewards(scored: pl.DataFrame, shaping: ShapingConfig) -> Floats:
    """Return (P,) R_traj of each trajectory, in the order of episode and candidate; NaN without a scored step.

    Args:
        scored: Rows sorted by key, with the columns that ``reconstruct`` reads.
        shaping: The weights of R_traj.
    """
    paths = reconstruct(scored)
    returns = _Returns(paths, scored["ref_len"].to_numpy()[paths.rows].astype(np.float64), shaping)
    return returns.segment_return[paths.first_segments]


@dataclass(frozen=True)
class _Returns:
    """Sums over the segments, and what they return: the quantities that every alignment is made of."""

    paths: Trajectories
    ref_len: Floats  # (R,)
    config: ShapingConfig

    @cached_property
    def valid(self) -> Bools:
        return self.paths.scored & ~self.paths.breakdown

    @cached_property
    def base(self) -> Floats:
        """Return (R,) s for a valid step, -(1 - s) for an invalid one; s - 1 never makes a minus zero."""
        score = self.paths.raw_score
        return np.where(self.valid, score, score - 1.0)

    @cached_property
    def n_scored(self) -> Ints:
        return self.paths.segments.count(self.paths.scored)

    @cached_property
    def n_valid(self) -> Ints:
        return self.paths.segments.count(self.valid)

    @cached_property
    def valid_sum(self) -> Floats:
        return self.paths.segments.sum(np.where(self.valid, self.base, 0.0))

    @cached_property
    def broken(self) -> Floats:
        """Return the base of each segment's breakdown, 0 without one."""
        return self.paths.segments.sum(np.where(self.paths.breakdown, self.base, 0.0))

    @cached_property
    def mean_score(self) -> Floats:
        """Return the mean s over each segment's scored steps, NaN without any."""
        return divide(self.paths.segments.sum(self.paths.raw_score), self.n_scored)

    @cached_property
    def segment_return(self) -> Floats:
        """Return R_g of each segment, NaN without a scored step."""
        segments, weights = self.paths.segments, self.config
        before = segments.lengths - segments.count(self.paths.breakdown)
        progress = np.minimum(1.0, before / self.ref_len[segments.starts])
        success = np.repeat(self.paths.success, self.of_trajectory.lengths)
        return (
            weights.score_weight * self.mean_score
            + weights.progress_weight * progress
            + weights.success_weight * success
        )

    @cached_property
    def of_trajectory(self) -> Runs:
        """Return the segments of each trajectory, as runs over all segments."""
        return Runs(self.paths.first_segments, len(self.paths.segments.starts))


class _Aligned(NamedTuple):
    """Shaped steps (R,) and their targets (T,).

    Args:
        base: Base rewards.
        gap_share: What valid steps get on top.
        kept: Whether the step belongs to what is aligned; the others come after the breakdown.
        in_play: Whether the step has a reward.
        target: What the rewards must sum to, NaN where no step could be judged.
        carried: Whether the trajectory has a valid step that carries the gap.
    """

    base: Floats
    gap_share: Floats
    kept: Bools
    in_play: Bools
    target: Floats
    carried: Bools


def _align_segments(returns: _Returns) -> _Aligned:
    """Align each segment: the mean reward of its valid steps is its R_g."""
    paths, segments = returns.paths, returns.paths.segments
    gap = returns.segment_return - divide(returns.valid_sum, returns.n_valid)
    target = _times(returns.n_valid, returns.segment_return) + returns.broken
    return _Aligned(
        base=returns.base,
        gap_share=np.where(returns.valid, np.repeat(gap, segments.lengths), 0.0),
        kept=np.ones(len(paths.rows), np.bool_),
        in_play=paths.scored,
        target=_or_null(returns.of_trajectory.sum(target), returns),
        carried=returns.of_trajectory.count(returns.n_valid > 0) > 0,
    )


def _align_first(returns: _Returns) -> _Aligned:
    """Align the first segment alone: modes off, paper and prefix_mean."""
    paths, first, mode = returns.paths, returns.paths.first_segments, returns.config.alignment
    kept = paths.in_first
    after, penalise = paths.scored & ~kept, returns.config.suffix == "penalise"
    suffix = np.where(after & paths.breakdown, returns.base, 0.0) if penalise else np.zeros(len(kept))
    base = np.where(kept, _normalised(returns), suffix)
    prefix = paths.runs.sum(np.where(kept & returns.valid, base, 0.0))
    broken = paths.runs.sum(np.where(kept & paths.breakdown, base, 0.0))
    n_valid, trajectory_return = returns.n_valid[first], returns.segment_return[first]
    target = {
        "off": prefix + broken,
        "paper": trajectory_return,
        "prefix_mean": _times(n_valid, trajectory_return) + broken,
    }[mode]
    share = np.zeros(len(first)) if mode == "off" else divide(target - prefix - broken, n_valid)
    return _Aligned(
        base=base,
        gap_share=np.where(kept & returns.valid, np.repeat(share, paths.runs.lengths), 0.0),
        kept=kept,
        in_play=paths.scored & (kept | penalise),
        target=_or_null(target + paths.runs.sum(suffix), returns),
        carried=n_valid > 0,
    )


def _normalised(returns: _Returns) -> Floats:
    """Return the bases, under unit_mass divided by their prefix's sum and the breakdown's by its size."""
    if returns.config.normalisation == "none":
        return returns.base
    segments = returns.paths.segments
    mass = np.where(
        returns.valid, *(np.repeat(x, segments.lengths) for x in (returns.valid_sum, -returns.broken))
    )
    return np.divide(returns.base, mass, out=np.zeros_like(mass), where=mass > 0)


def _rewards(
    scored: pl.DataFrame, returns: _Returns, aligned: _Aligned, reward: Floats, config: AdvantageConfig
) -> pl.DataFrame:
    """Put the shaped steps back into the rows of the table; null where a row is not in play."""
    paths = returns.paths
    in_play = {"base_reward": aligned.base, "gap_share": aligned.gap_share, "reward": reward}
    columns = {
        name: paths.to_table(np.where(aligned.in_play, values, np.nan)) for name, values in in_play.items()
    }
    compared = compare(step_groups(scored), columns["reward"])
    advantage = compared.scaled() if config.scale == "std" else compared.advantage
    place = np.where(aligned.kept, paths.breakdown, POSITIONS.index("after"))
    place_at, segment_at = (
        pl.Series(paths.to_table(values), nan_to_null=True).cast(pl.Int32)
        for values in (place, paths.segment_index)
    )
    frame = scored.with_columns(
        pl.Series("position", POSITIONS).gather(place_at),
        segment_at.alias("segment_index"),
        *(pl.Series(name, values, nan_to_null=True) for name, values in columns.items()),
        pl.Series("advantage", advantage, nan_to_null=True),
    )
    return frame.select(pl.col(name).cast(dtype) for name, dtype in polars_schema("rewards").items())


def _trajectories(scored: pl.DataFrame, returns: _Returns, aligned: _Aligned, reward: Floats) -> pl.DataFrame:
    """Make one row per trajectory; what describes a failure is null on success."""
    paths, first = returns.paths, returns.paths.first_segments
    at_failure = scored.select(
        first_failure_step="step_index",
        failure_action_type="action_type",
        failure_app="app",
        failure_reason="failure_reason",
    )[pl.Series(paths.first_failures)]
    which = np.where(paths.success, -1, np.cumsum(~paths.success) - 1)
    failure = at_failure.select(pl.all().gather(_null_below_zero(which)))
    alignment = np.where(
        aligned.carried, "off" if returns.config.alignment == "off" else "aligned", "no_prefix"
    )
    numbers = {
        "mean_raw_score": returns.mean_score[first],
        "trajectory_reward": returns.segment_return[first],
        "target_reward": aligned.target,
        "reward_sum": paths.runs.sum(np.where(aligned.in_play, reward, 0.0)),
    }
    columns = [
        pl.Series("valid_prefix_len", paths.valid_prefix_len),
        pl.Series("success", paths.success),
        pl.Series("alignment", alignment),
        *(pl.Series(name, values, nan_to_null=True) for name, values in numbers.items()),
    ]
    keys = scored.select("episode_id", "candidate_index", "ref_len")[paths.rows[paths.runs.starts]]
    frame = keys.with_columns(*columns, *failure)
    return frame.select(pl.col(name).cast(dtype) for name, dtype in polars_schema("trajectories").items())


def _null_below_zero(index: Ints) -> pl.Series:
    series = pl.Series(index)
    return series.set(series < 0, None)


def _times(count: Ints, value: Floats) -> Floats:
    """Return count * value, 0 where nothing was counted, whatever the value."""
    product: Floats = np.where(count > 0, count * value, 0.0)
    return product


def _or_null(target: Floats, returns: _Returns) -> Floats:
    """Return the target, NaN for a trajectory that no step of could be judged."""
    judged = returns.of_trajectory.count(returns.n_scored > 0) > 0
    floats: Floats = np.where(judged, target, np.nan)
    return floats
