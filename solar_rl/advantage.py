"""Compare rewards within their group: the dataset's advantage, and the credits that recipes choose from.

A group's advantages are its values minus their mean; a group of one, or of equal values, teaches nothing
and gets 0. Step groups hold the candidates in play at one step, trajectory groups the N trajectories of
an episode.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from solar_rl.errors import ConfigError
from solar_rl.reconstruct import Bools, Floats, Ints, Runs, Trajectories, divide, reconstruct, step_groups

CREDITS = ("solar", "atomic", "step_local", "sparse", "sparse_rtraj", "ui_s1")
WEIGHTS = ("none", "std", "log_success")
STEP_CREDITS = ("solar", "atomic", "step_local")
ADAPTIVE_CREDITS = ("step_local", "atomic")
"""Credits that need no whole trajectories, which adaptive sampling doesn't give (method.md, section 4b)."""
"""Credits whose groups are the candidates of one step, so that a share of valid ones weighs the step."""

NO_SPREAD = 1e-12
"""A group whose values differ by no more than this is equal up to rounding. Ours."""
UI_S1_DISCOUNT = 0.5
"""Discount of UI-S1's return. Source: method.md, section 5, after UI-S1's script."""


@dataclass(frozen=True)
class Compared:
    """Values compared within their groups.

    Args:
        groups: Runs of rows; n rows in all.
        values: (n,) float, NaN where a row is not in play.
    """

    groups: Runs
    values: Floats

    @cached_property
    def in_play(self) -> Bools:
        """Return (n,) whether the row is compared at all."""
        return ~np.isnan(self.values)

    @cached_property
    def size(self) -> Floats:
        """Return (n,) the number of rows in play in the row's group."""
        return self.groups.spread(self.groups.count(self.in_play).astype(np.float64))

    @cached_property
    def flat(self) -> Bools:
        """Return (n,) whether the row's group has no spread, as a group of one has none."""
        low, _ = self.groups.extremes(np.where(self.in_play, self.values, np.inf))
        _, high = self.groups.extremes(np.where(self.in_play, self.values, -np.inf))
        return self.groups.spread(high - low <= NO_SPREAD)

    @cached_property
    def advantage(self) -> Floats:
        """Return (n,) value minus the group's mean, 0 in a flat group, NaN where not in play."""
        centred = self.values - self.mean(self.values)
        return np.where(self.in_play & self.flat, 0.0, centred)

    @cached_property
    def std(self) -> Floats:
        """Return (n,) the group's sample standard deviation, NaN for fewer than two rows."""
        squares = self.groups.sum(np.where(self.in_play, self.advantage**2, 0.0))
        return np.sqrt(divide(self.groups.spread(squares), self.size - 1.0))

    def mean(self, values: Floats) -> Floats:
        """Return (n,) the mean over the group's rows in play, NaN where there are none."""
        return divide(self.groups.spread(self.groups.sum(np.where(self.in_play, values, 0.0))), self.size)

    def scaled(self) -> Floats:
        """Return (n,) advantages divided by the group's standard deviation, 0 in a flat group."""
        return np.where(self.flat, self.advantage, divide(self.advantage, self.std))


def compare(groups: Runs, values: Floats) -> Compared:
    """Compare values within runs of rows.

    >>> compare(Runs.beginning(np.array([True, False, True])), np.array([1.0, 0.0, 5.0])).advantage
    array([ 0.5, -0.5,  0. ])
    """
    return Compared(groups, values)


def credit(
    rewards: pl.DataFrame, credit: str, weight: str = "none", *, weight_floor: float | None = None
) -> pl.DataFrame:
    """Give each candidate the reward and the advantage that a training recipe asks for.

    Args:
        rewards: Rows of whole episodes sorted by key: the columns of ``rewards`` with ref_len, and
            success and trajectory_reward of the row's trajectory (null where its index forms none).
        credit: solar (the dataset's own columns), atomic, step_local, sparse, sparse_rtraj or ui_s1.
        weight: none; std divides by the group's standard deviation; log_success divides by p, the share
            of valid candidates in play at the step, so that the step counts as in log P(success).
        weight_floor: Smallest p that log_success divides by (default: 1 / the step's candidates).

    Returns:
        The same rows with credit_reward, credit_advantage (null = not in play, 0 = its group teaches
        nothing), credit_weight (the factor that the weight has put into the advantage, null where
        nothing is learned) and dropped_reason.

    Raises:
        ConfigError: Unknown credit or weight, or log_success with a credit that has no step groups.
        InputError: Rows are out of order.

    Source: method.md, sections 4b and 5; ``sparse`` is the paper's baseline, ``ui_s1`` follows UI-S1.
    """
    require_credit(credit, weight, weight_floor)
    if credit in STEP_CREDITS:
        credited = _credit_steps(rewards, credit, weight, weight_floor)
    elif credit == "ui_s1":
        credited = _credit_ui_s1(rewards)
    else:
        credited = _credit_trajectories(rewards, credit, weight)
    learned = ~np.isnan(credited.advantage) & ~credited.flat
    columns = {
        "credit_reward": credited.reward,
        "credit_advantage": credited.advantage,
        "credit_weight": np.where(learned, credited.weight, np.nan),
    }
    frame = rewards.with_columns(
        *(pl.Series(name, values, nan_to_null=True) for name, values in columns.items()),
        pl.Series("_alone", credited.alone),
        pl.Series("_flat", credited.flat),
    )
    return frame.select(*rewards.columns, *columns, _dropped_reason().alias("dropped_reason"))


class _Credited(NamedTuple):
    """One value per row of the table (n,): NaN where it is not in play."""

    reward: Floats
    advantage: Floats
    weight: Floats
    alone: Bools
    flat: Bools


def require_credit(credit: str, weight: str, floor: float | None = None, *, adaptive: bool = False) -> None:
    """Make sure that a credit, a weight and a way of sampling go together; no candidate is needed for that.

    Args:
        credit: One of ``CREDITS``.
        weight: One of ``WEIGHTS``.
        floor: Smallest share of valid candidates that log_success divides by.
        adaptive: Whether candidates are sampled adaptively.

    Raises:
        ConfigError: They don't.
    """
    for key, value, known in (("credit", credit, CREDITS), ("advantage_weight", weight, WEIGHTS)):
        if value not in known:
            raise ConfigError(f"{key} is {value!r}, expected one of {', '.join(known)}")
    if weight == "log_success" and credit not in STEP_CREDITS:
        raise ConfigError(
            f"advantage_weight: log_success needs groups of one step, but those of credit: {credit} "
            "span a trajectory",
            hint=f"use credit: {', '.join(STEP_CREDITS)}, or advantage_weight: none or std",
        )
    if floor is not None and not 0 < floor <= 1:
        raise ConfigError(f"weight_floor is {floor}, expected a share above 0 and at most 1")
    if adaptive and credit not in ADAPTIVE_CREDITS:
        raise ConfigError(
            f"credit: {credit} needs whole trajectories, and adaptive sampling leaves groups of one candidate",
            hint=f"use credit: {' or '.join(ADAPTIVE_CREDITS)}",
        )


def _credit_steps(rewards: pl.DataFrame, credit: str, weight: str, floor: float | None) -> _Credited:
    """Credit each step by itself: its candidates in play are the group."""
    parsed = pl.col("pred_action_type").is_not_null().cast(pl.Float64)
    value = {
        "solar": pl.col("reward"),
        "atomic": 0.1 * parsed + 0.9 * pl.col("raw_score"),
        "step_local": pl.col("raw_score"),
    }[credit]
    step = compare(step_groups(rewards), _floats(rewards, value))
    weights = np.ones(len(rewards))
    if weight == "std":
        weights = divide(weights, step.std)
    elif weight == "log_success":
        share = step.mean(_floats(rewards, pl.col("valid").cast(pl.Float64)))
        lowest = 1.0 / step.groups.spread(step.groups.lengths) if floor is None else floor
        weights = 1.0 / np.maximum(share, lowest)
    stored = credit == "solar" and weight != "std"
    centred = _floats(rewards, pl.col("advantage")) if stored else step.advantage
    advantage = np.where(step.in_play & step.flat, 0.0, centred * weights)
    return _Credited(step.values, advantage, weights, step.size == 1, step.flat)


def _credit_trajectories(rewards: pl.DataFrame, credit: str, weight: str) -> _Credited:
    """Credit every kept step up to the first failure with its trajectory's value."""
    paths = reconstruct(rewards)
    value = pl.col("trajectory_reward") if credit == "sparse_rtraj" else pl.col("success").cast(pl.Float64)
    judged = pl.when(pl.col("trajectory_reward").is_not_null()).then(value)
    whole = _compare_trajectories(rewards, paths, _floats(rewards, judged)[_first_rows(paths)])
    ones = np.ones(len(whole.values))
    std = weight == "std"
    return _Credited(
        reward=_on_kept(paths, whole.values),
        advantage=_on_kept(paths, whole.scaled() if std else whole.advantage),
        weight=_on_kept(paths, divide(ones, whole.std) if std else ones),
        alone=_on_kept(paths, whole.size == 1) == 1,
        flat=_on_kept(paths, whole.flat) == 1,
    )


def _credit_ui_s1(rewards: pl.DataFrame) -> _Credited:
    """Credit as UI-S1 does: a discounted return within the step, and a mean over the trajectory.

    An unscored step adds nothing to either, and time passes. Source: that sentence is ours.
    """
    paths = reconstruct(rewards)
    parsed = pl.col("pred_action_type").is_not_null()
    same_type = (pl.col("pred_action_type") == pl.col("action_type")).fill_null(False)
    quality = 0.1 * parsed + 0.4 * same_type + 0.5 * pl.col("valid").fill_null(False)
    quality_at = np.where(_kept(paths), _floats(rewards, quality)[paths.rows], 0.0)
    returns = paths.to_table(np.where(_kept(paths), _discounted(quality_at, paths.runs), np.nan))
    step = compare(step_groups(rewards), returns)
    ref_len = _floats(rewards, pl.col("ref_len"))[_first_rows(paths)]
    any_kept = paths.runs.count(_kept(paths)) > 0
    whole = _compare_trajectories(
        rewards, paths, np.where(any_kept, paths.runs.sum(quality_at) / ref_len, np.nan)
    )
    return _Credited(
        reward=returns,
        advantage=step.scaled() + _on_kept(paths, whole.scaled()),
        weight=np.ones(len(rewards)),
        alone=(step.size == 1) & (_on_kept(paths, whole.size) == 1),
        flat=step.flat & (_on_kept(paths, whole.flat) == 1),
    )


def _discounted(values: Floats, runs: Runs) -> Floats:
    """Return G_t = value_t + UI_S1_DISCOUNT * G_(t+1) within each run."""
    returns = values.copy()
    for t in range(int(runs.lengths.max(initial=0)) - 2, -1, -1):
        at = runs.starts[runs.lengths > t + 1] + t
        returns[at] += UI_S1_DISCOUNT * returns[at + 1]
    return returns


def _kept(paths: Trajectories) -> Bools:
    return paths.scored & paths.in_first


def _first_rows(paths: Trajectories) -> Ints:
    return paths.rows[paths.runs.starts]


def _compare_trajectories(rewards: pl.DataFrame, paths: Trajectories, values: Floats) -> Compared:
    """Compare one value per trajectory among the trajectories of its episode."""
    episode = rewards["episode_id"].rle_id().to_numpy()[_first_rows(paths)].astype(np.int64)
    return compare(Runs.beginning(np.diff(episode, prepend=-1) != 0), values)


def _on_kept(paths: Trajectories, per_trajectory: NDArray[Any]) -> Floats:
    """Spread one value per trajectory over the rows of its kept steps; NaN elsewhere."""
    return paths.to_table(np.where(_kept(paths), paths.runs.spread(per_trajectory), np.nan))


def _floats(frame: pl.DataFrame, value: pl.Expr) -> Floats:
    return frame.select(value.cast(pl.Float64).fill_null(float("nan"))).to_series().to_numpy()


def _dropped_reason() -> pl.Expr:
    out = pl.col("credit_advantage").is_null()
    return (
        pl.when(pl.col("raw_score").is_null())
        .then(pl.lit("unscored"))
        .when(out & pl.col("success").is_null())
        .then(pl.lit("no trajectory"))
        .when(out)
        .then(pl.lit("after the breakdown"))
        .when(pl.col("_alone"))
        .then(pl.lit("one candidate"))
        .when(pl.col("_flat"))
        .then(pl.lit("no spread"))
    )
