"""Bootstrap intervals of ratios of sums: episodes are drawn with replacement, for all groups at once.

Steps of an episode are not independent, so drawing steps would give intervals that are too narrow. One draw of
all episodes serves every group; within a group those of its episodes count that were drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
COVERAGE = 0.95
_CHUNK = 100  # resamples at a time: 100 x 15,000 episodes is 12 MB


class Sums(NamedTuple):
    """Numerators and denominators of one group.

    Args:
        episodes: (n,) which of all episodes the rows are.
        top: (n, metrics) numerators.
        below: (n, metrics) denominators.
    """

    episodes: npt.NDArray[np.int64]
    top: Floats
    below: Floats


class Interval(NamedTuple):
    """(metrics,) lower and upper ends; NaN where there is nothing to tell."""

    low: Floats
    high: Floats


def intervals(groups: Sequence[Sums], episodes: int, *, resamples: int, seed: int) -> list[Interval]:
    """Return 95 % percentile intervals of the ratios of each group.

    Args:
        groups: Sums within episodes.
        episodes: How many episodes there are, and are drawn each time.
        resamples: Number of bootstrap samples; 0: every interval is NaN.
        seed: Seed.

    >>> ones = Sums(np.arange(9), np.ones((9, 1)), np.ones((9, 1)))
    >>> [found] = intervals([ones], 9, resamples=10, seed=0)
    >>> float(found.low[0]), float(found.high[0])
    (1.0, 1.0)
    """
    if not resamples or not episodes:
        return [Interval(*np.full((2, group.top.shape[1]), np.nan)) for group in groups]
    ratios: list[list[Floats]] = [[] for _ in groups]
    for drawn in _draws(episodes, resamples, seed):
        for group, found in zip(groups, ratios, strict=True):
            times = drawn[:, group.episodes]
            found.append(ratio(times @ group.top, times @ group.below))
    return [_ends(np.concatenate(found)) for found in ratios]


def ratio(top: Floats, below: Floats) -> Floats:
    """Divide, NaN where the denominator is 0."""
    found: Floats = np.divide(top, below, out=np.full(np.shape(top), np.nan), where=below > 0)
    return found


def _draws(episodes: int, resamples: int, seed: int) -> Iterator[Floats]:
    """Yield (up to 100, episodes) numbers of times that each episode is drawn."""
    rng = np.random.default_rng(seed)
    for start in range(0, resamples, _CHUNK):
        rows = min(_CHUNK, resamples - start)
        drawn = rng.integers(episodes, size=(rows, episodes)) + episodes * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * episodes)
        yield counts.reshape(rows, episodes).astype(np.float64)


def _ends(ratios: Floats) -> Interval:
    """Return the ends for each column; resamples without a denominator are left out."""
    ends = np.full((2, ratios.shape[1]), np.nan)
    for metric, column in enumerate(ratios.T):
        known = column[~np.isnan(column)]
        if known.size:
            ends[:, metric] = np.quantile(known, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return Interval(*ends)
