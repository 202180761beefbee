"""Turn played episodes into rates: over all, by task and by length, with intervals over episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from solar_rl.closed_loop.playing import Played
from solar_rl.evaluate.bootstrap import Interval, Sums, intervals
from solar_rl.schema import LENGTH_BUCKETS

ENDS = ("environment", "finished", "max_steps")
OVERALL = "all"
"""Name of the row over all tasks."""


@dataclass(frozen=True)
class Rate:
    """How a set of episodes went. ``low`` and ``high`` are ends of 95 % bootstrap intervals over episodes.

    Args:
        task: Which task or length, or ``all``.
        episodes: How many.
        success: Share that succeeded.
        low: Lower end of its interval.
        high: Upper end.
        progress: Mean share of the goal that was reached; None where nobody can tell.
        steps: Mean number of answers.
        invalid: Share of answers that couldn't be read.
        progress_low: Lower end of the interval of ``progress``.
        progress_high: Upper end.
        wrong: Share of answers that brought the goal no closer; None where it wasn't measured, as below.
        recovered: Share of those after which the goal came closer than before; None where there is none.
        recovered_low: Lower end of its interval.
        recovered_high: Upper end.
        success_after_wrong: Share that succeeded, of the episodes with a wrong answer.
    """

    task: str
    episodes: int
    success: float
    low: float
    high: float
    progress: float | None
    steps: float
    invalid: float
    progress_low: float | None = None
    progress_high: float | None = None
    wrong: float | None = None
    recovered: float | None = None
    recovered_low: float | None = None
    recovered_high: float | None = None
    success_after_wrong: float | None = None


@dataclass(frozen=True)
class SuiteResult:
    """A suite that was played: the rate over all episodes, that of each task, and every episode.

    ``lengths`` are rates by the length of the expert's way, where it is known, under ``bucket_rule``.
    """

    overall: Rate
    tasks: tuple[Rate, ...]
    episodes: tuple[Played, ...]
    lengths: tuple[Rate, ...] = ()
    bucket_rule: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)


def summarise(
    played: Sequence[Played], *, resamples: int = 1000, seed: int = 0, bucket_rule: str | None = None
) -> SuiteResult:
    """Turn played episodes into rates with intervals.

    Args:
        played: At least one episode.
        resamples: Bootstrap samples.
        seed: Seed of the bootstrap.
        bucket_rule: Rule of the length buckets (default: none are made).
    """
    groups: dict[tuple[str, str], list[int]] = {("", OVERALL): list(range(len(played)))}
    for index, episode in enumerate(played):
        groups.setdefault(("task", episode.task), []).append(index)
    lengths = LENGTH_BUCKETS[bucket_rule] if bucket_rule else ()
    for longest, name in lengths:
        taken = {place for (kind, _), places in groups.items() if kind == "length" for place in places}
        within = [
            index
            for index, episode in enumerate(played)
            if index not in taken
            and episode.ref_len is not None
            and (longest is None or episode.ref_len <= longest)
        ]
        if within:
            groups["length", name] = within
    sums = [_sums([played[i] for i in places], places) for places in groups.values()]
    ends = intervals(sums, len(played), resamples=resamples, seed=seed)
    rates = {
        (kind, name): _rate(name, [played[i] for i in places], end)
        for ((kind, name), places), end in zip(groups.items(), ends, strict=True)
    }
    by = {kind: tuple(rate for (its, _), rate in rates.items() if its == kind) for kind in ("task", "length")}
    return SuiteResult(rates["", OVERALL], by["task"], tuple(played), by["length"], bucket_rule)


def _sums(played: Sequence[Played], places: Sequence[int]) -> Sums:
    """Sum success, progress and recovery by episode."""
    top = [[float(e.success), e.progress or 0.0, float(e.recovered or 0)] for e in played]
    below = [[1.0, float(e.progress is not None), float(e.wrong or 0)] for e in played]
    return Sums(np.array(places, dtype=np.int64), np.array(top), np.array(below))


def _rate(task: str, played: Sequence[Played], ends: Interval) -> Rate:
    count, answers = len(played), sum(episode.steps for episode in played)
    reached = [episode.progress for episode in played if episode.progress is not None]
    measured = [episode for episode in played if episode.wrong is not None]
    wrong = sum(episode.wrong or 0 for episode in measured)
    after = [episode.success for episode in measured if episode.wrong]
    low, high = ([_known(value) for value in side] for side in ends)
    return Rate(
        task,
        count,
        sum(episode.success for episode in played) / count,
        float(ends.low[0]),
        float(ends.high[0]),
        _share(sum(reached), len(reached)),
        answers / count,
        _share(sum(episode.invalid for episode in played), answers) or 0.0,
        low[1],
        high[1],
        _share(wrong, sum(episode.steps for episode in measured)),
        _share(sum(episode.recovered or 0 for episode in measured), wrong),
        low[2],
        high[2],
        _share(sum(after), len(after)),
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _share(top: float, below: float) -> float | None:
    return top / below if below else None
