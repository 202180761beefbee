"""Turn finished runs into figures: means over seeds, paired differences, intervals, collapse, probes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from solar_rl.lab.folder import Folder
from solar_rl.lab.plan import Plan

Run = Mapping[str, Any]
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""97.5 % points of Student's t for 1, 2, ... degrees of freedom."""
RESAMPLES = 2000


class Mean(NamedTuple):
    """A mean with the ends of its 95 % interval; NaN where there is nothing to tell."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Tell whether the interval lies on one side of 0."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        if np.isnan(self.value):
            return ""
        if np.isnan(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def finished(plan: Plan, folder: Folder) -> dict[str, list[Run]]:
    """Return the finished runs of each arm, in the order of the seeds."""
    from solar_rl.lab.folder import read_json

    found: dict[str, list[Run]] = {arm: [] for arm in plan.arms}
    for arm, seed in plan.runs:
        result = read_json(folder.result(arm, seed))
        if result is not None:
            found[arm].append(result)
    return found


def mean_t(values: Sequence[float]) -> Mean:
    """Return the mean of a value a seed with Student's interval.

    >>> mean_t([0.0, 1.0, 2.0]).value
    1.0
    """
    known = np.array([value for value in values if value is not None and not np.isnan(value)], dtype=float)
    if not len(known):
        return Mean(*[float("nan")] * 3)
    mean = float(known.mean())
    if len(known) == 1:
        return Mean(mean, float("nan"), float("nan"))
    freedom = len(known) - 1
    point = _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.96 + 2.5 / freedom
    half = point * float(known.std(ddof=1)) / len(known) ** 0.5
    return Mean(mean, mean - half, mean + half)


def last(run: Run, name: str, bucket: str | None = None) -> float:
    """Return a figure on recorded steps at a run's end."""
    end = run["curve"][-1]
    if bucket is None:
        return float(end[name])
    found = end["by_bucket"].get(bucket)
    return float("nan") if found is None else float(found[name])


def episode_values(run: Run, name: str, task: str | None) -> dict[tuple[str, int], float]:
    """Return a figure of each closed-loop episode of a run, by task and seed."""
    return {
        (one["task"], one["seed"]): float(one[name])
        for one in run["closed_loop"]
        if task in (None, one["task"]) and one[name] is not None
    }


def closed_loop(runs: Sequence[Run], name: str, task: str | None = None) -> Mean:
    """Return the mean of a closed-loop figure, its interval by drawing seeds and episodes."""
    tables = [episode_values(run, name, task) for run in runs]
    return _two_way(tables) if tables else Mean(*[float("nan")] * 3)


def paired_closed_loop(
    runs: Sequence[Run], others: Sequence[Run], name: str, task: str | None = None
) -> Mean:
    """Return the mean difference of a closed-loop figure over the seeds that both arms have.

    The interval comes from drawing seeds and, independently, episodes, which are the same for both arms.
    """
    tables = []
    for run, other in pairs(runs, others):
        ours, theirs = episode_values(run, name, task), episode_values(other, name, task)
        tables.append({key: ours[key] - theirs[key] for key in ours.keys() & theirs.keys()})
    return _two_way(tables) if tables else Mean(*[float("nan")] * 3)


def paired(runs: Sequence[Run], others: Sequence[Run], value: Callable[[Run], float]) -> Mean:
    """Return the mean difference of a figure over the seeds that both arms have, with Student's interval."""
    return mean_t([value(run) - value(other) for run, other in pairs(runs, others)])


def pairs(runs: Sequence[Run], others: Sequence[Run]) -> Iterable[tuple[Run, Run]]:
    """Yield the runs of two arms that have the same seed."""
    by_seed = {other["seed"]: other for other in others}
    return ((run, by_seed[run["seed"]]) for run in runs if run["seed"] in by_seed)


def _two_way(tables: Sequence[Mapping[tuple[str, int], float]]) -> Mean:
    """Bootstrap over rows (seeds) and columns (episodes) of a table at once."""
    keys = sorted(set.intersection(*(set(table) for table in tables)))
    if not keys:
        return Mean(*[float("nan")] * 3)
    values: npt.NDArray[np.float64] = np.array([[table[key] for key in keys] for table in tables])
    rng = np.random.default_rng(0)
    row, column = (
        rng.multinomial(count, [1 / count] * count, size=RESAMPLES) / count for count in values.shape
    )
    drawn = ((row @ values) * column).sum(axis=1)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Mean(float(values.mean()), float(low), float(high))


class Collapse(NamedTuple):
    """How an arm's runs went on the way.

    Args:
        best_at: Updates until the best checkpoint, mean over seeds.
        drop: Step accuracy of the best checkpoint less that of the last, mean over seeds.
        below_start: Runs that end below the start policy.
        runs: How many runs.
    """

    best_at: float
    drop: float
    below_start: int
    runs: int


def collapse(runs: Sequence[Run], start: float) -> Collapse:
    """Say when an arm's runs were best, and how far they fell from there.

    Args:
        runs: At least one.
        start: Step accuracy of the start policy.
    """
    best_at, drops, below = [], [], 0
    for run in runs:
        curve = [(0, start), *((point["updates"], point["step_accuracy"]) for point in run["curve"])]
        at, best = max(curve, key=lambda point: (point[1], -point[0]))
        best_at.append(at)
        drops.append(best - curve[-1][1])
        below += curve[-1][1] < start
    return Collapse(float(np.mean(best_at)), float(np.mean(drops)), below, len(runs))


def rank_correlation(pairs_of: Sequence[tuple[float, float]]) -> float:
    """Return Spearman's rank correlation, ties at their mean rank; NaN where one side is constant.

    >>> rank_correlation([(1, 10), (2, 20), (3, 15)])
    0.5
    """
    if len(pairs_of) < 3:
        return float("nan")
    first, second = (_ranks([pair[side] for pair in pairs_of]) for side in (0, 1))
    if first.std() == 0 or second.std() == 0:
        return float("nan")
    return round(float(np.corrcoef(first, second)[0, 1]), 12)


def _ranks(values: Sequence[float]) -> npt.NDArray[np.float64]:
    array = np.array(values, dtype=float)
    return np.array([(array < value).sum() + ((array == value).sum() + 1) / 2 for value in array])


def press_back(point: Mapping[str, Any]) -> float:
    """Return the precision of presses of back at a checkpoint; NaN where none was answered."""
    counts = point["press_back"]
    return counts["right"] / counts["predicted"] if counts["predicted"] else float("nan")
