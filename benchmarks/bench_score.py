"""Time judging 94,000 steps x 8 candidates under protocol ``solar``, beside a plain Python loop of the same rule.

Usage: python benchmarks/bench_score.py [STEPS] [LOOP_ROWS]

The loop is the row-by-row oracle of the tests (tests/core/oracle.py), which must agree on every row that it
judges. Then the metrics of 94,000 verdicts with 1,000 bootstrap resamples of the episodes, beside a loop that
draws and sums episode by episode. Wall seconds, best of three for columns, one run for loops.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT), str(ROOT / "tests" / "core")]

import oracle  # noqa: E402
from generate import generate_labelled  # noqa: E402

from solar_rl.config import ValidityConfig  # noqa: E402
from solar_rl.evaluate.metrics import METRICS, by_episode, measure  # noqa: E402
from solar_rl.evaluate.verdicts import judge  # noqa: E402

EPISODES, CANDIDATES, RESAMPLES, LOOP_RESAMPLES = 15_000, 8, 1000, 20


def main() -> None:
    """Print a table of seconds and ratios."""
    steps, loop_rows = (int(x) for x in (sys.argv[1:3] + ["94000", "100000"][len(sys.argv) - 1 :]))
    rows = generate_labelled(EPISODES, CANDIDATES, 0, steps=steps)
    print(f"{steps:,} steps x {CANDIDATES} = {rows.height:,} candidates, {pl.thread_pool_size()} threads")
    columns, verdicts = best(lambda: judge(rows, "solar", ValidityConfig()))
    part = rows.head(loop_rows).to_dicts()
    loop, plain = timed(lambda: [oracle.score(row, ValidityConfig()) for row in part])
    valid = [row["valid"] for row in plain]
    assert [None if v is None else int(v) for v in valid] == verdicts["exact_match"].head(len(part)).to_list()
    report("judge solar", columns, loop * rows.height / len(part), f"loop over {len(part):,} rows, scaled")
    bootstrap(rows.hstack(verdicts))


def bootstrap(judged: pl.DataFrame) -> None:
    """Time metrics with intervals over one candidate a step."""
    first = judged.filter(pl.col("candidate_index") == 0, pl.col("dropped").is_null()).with_columns(
        whole=pl.lit(True)
    )
    columns, _ = best(lambda: measure(first, resamples=RESAMPLES, seed=0))
    sums = by_episode(first).to_dicts()
    loop, _ = timed(lambda: [resample(sums, random.Random(seed)) for seed in range(LOOP_RESAMPLES)])
    note = f"loop over {LOOP_RESAMPLES} resamples, scaled"
    report(f"metrics, {RESAMPLES:,} resamples", columns, loop * RESAMPLES / LOOP_RESAMPLES, note)


def resample(sums: list[dict[str, Any]], rng: random.Random) -> list[float]:
    """Draw as many episodes as there are and return every metric of the draw."""
    top, below = dict.fromkeys(METRICS, 0.0), dict.fromkeys(METRICS, 0.0)
    for _ in sums:
        episode = sums[rng.randrange(len(sums))]
        for name in METRICS:
            top[name] += episode[name]
            below[name] += episode[f"{name}_of"]
    return [top[name] / below[name] for name in METRICS]


def best(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the wall seconds of the best of three runs, and the result."""
    runs = [timed(work) for _ in range(3)]
    return min(seconds for seconds, _ in runs), runs[0][1]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the wall seconds that a call takes, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def report(what: str, columns: float, loop: float, note: str) -> None:
    """Print one line."""
    print(f"{what:<26}{columns:>8.2f} s   plain loop {loop:>8.1f} s   {loop / columns:>5.0f} x   ({note})")


if __name__ == "__main__":
    main()
