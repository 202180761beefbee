"""Time every protocol on 94,000 steps x 8 generated candidates, and against a plain Python loop of the same rule.

Usage: python benchmarks/bench_protocols.py [STEPS] [PROTOCOL ...]

Prints for each protocol the wall and CPU seconds of one call on neutral rows, the same for canonical rows
(what ``solar-rl evaluate`` calls; for the peers this includes saying them in neutral words), and how much faster
the columns are than the row-by-row loops of the tests, which run on a part of the rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path += [
    str(ROOT),
    str(ROOT / "benchmarks"),
    str(ROOT / "tests" / "core"),
    str(ROOT / "tests" / "protocols"),
]

import oracle  # noqa: E402
from generate import generate_labelled  # noqa: E402
from loops_r1 import LOOPS  # noqa: E402

from solar_rl.config import ValidityConfig  # noqa: E402
from solar_rl.protocols import PROTOCOLS, neutral_frame  # noqa: E402

STEPS, CANDIDATES, LOOPED = 94_000, 8, 20_000
SCREEN = {"screen_width": 1080, "screen_height": 2400}


def main() -> None:
    """Run every protocol and print a table."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    names = sys.argv[2:] or list(PROTOCOLS)
    labelled = generate_labelled(steps * 15 // 94, CANDIDATES, 0, steps=steps)
    canonical = labelled.with_columns(
        pl.Series(name, [side] * labelled.height) for name, side in SCREEN.items()
    )
    neutral, *said = timed(neutral_frame, canonical)
    print(f"{steps:,} steps, {canonical.height:,} candidates, {pl.thread_pool_size()} threads")
    print(f"in neutral words: {said[0]:.2f} s wall, {said[1]:.2f} s CPU")
    print(f"{'protocol':<22}{'wall s':>9}{'CPU s':>9}{'canonical s':>13}{'loop s':>9}{'ratio':>8}")
    for name in names:
        verdicts, wall, cpu = timed(PROTOCOLS[name].judge, neutral)
        ours, whole, _ = timed(PROTOCOLS[name].judge_canonical, canonical)
        if name == "solar":  # its own rows are the canonical ones: neutral words have no drag
            verdicts, wall = ours, whole
        slow = loop_seconds(name, canonical, neutral, verdicts)
        print(f"{name:<22}{wall:>9.2f}{cpu:>9.2f}{whole:>13.2f}{slow:>9.1f}{slow / wall:>8.0f}")


def loop_seconds(name: str, canonical: pl.DataFrame, neutral: pl.DataFrame, verdicts: pl.DataFrame) -> float:
    """Time the loop on a part of the rows, check its exact matches, and scale its time to all of them."""
    part = min(LOOPED, neutral.height)
    if name == "solar":
        config, rows = ValidityConfig(), canonical.head(part).to_dicts()
        looped, _, seconds = timed(lambda: [oracle.score(row, config) for row in rows])
        exact = [verdict["valid"] for verdict in looped]
    else:
        rows, loop = neutral.head(part).to_dicts(), LOOPS[name]
        looped, _, seconds = timed(lambda: [loop(row) for row in rows])
        exact = [verdict.get("exact_match") for verdict in looped]
    assert exact == verdicts["exact_match"].head(part).to_list(), name
    return seconds * neutral.height / part


def timed(work: Callable, *arguments) -> tuple:
    """Return the result of a call, and its wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work(*arguments)
    return result, time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    main()
