"""Time scoring and shaping on 752,000 generated candidates, and compare with plain Python.

Usage: python benchmarks/bench_core.py [EPISODES] [STEPS]

Prints seconds (best of three) and peak memory of each stage, each in a process of its own, and how much
faster the columns are than the row-by-row oracle of the tests on a part of the same candidates.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT), str(ROOT / "tests" / "core")]

from generate import generate_labelled, generate_scored  # noqa: E402

from solar_rl.advantage import credit  # noqa: E402
from solar_rl.config import AdvantageConfig, ShapingConfig, ValidityConfig  # noqa: E402
from solar_rl.shaping import Shaped, shape  # noqa: E402
from solar_rl.validity import score  # noqa: E402

ORACLE_EPISODES = 300
PLAIN = AdvantageConfig()


def main() -> None:
    """Run every stage and print a table."""
    episodes, steps = (int(x) for x in (sys.argv[1:3] + ["15000", "94000"][len(sys.argv) - 1 :]))
    print(
        f"{episodes:,} episodes, {steps:,} steps, {8 * steps:,} candidates, {pl.thread_pool_size()} threads"
    )
    print(f"{'stage':<24}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'before MB':>11}")
    with tempfile.TemporaryDirectory() as folder:
        in_process("--prepare", folder, str(episodes), str(steps))
        for stage in STAGES:
            wall, cpu, peak, before = json.loads(in_process("--stage", folder, stage))
            print(f"{stage:<24}{wall:>9.3f}{cpu:>9.3f}{peak:>9.0f}{before:>11.0f}")
    compare_with_oracle()


def in_process(*arguments: str) -> str:
    """Run this file in a process of its own, so that its memory is its own."""
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def prepare(folder: str, episodes: int, steps: int) -> None:
    """Write the input of every stage."""
    labelled = generate_labelled(episodes, 8, 0, steps=steps)
    scored = generate_scored(episodes, 8, 0, steps=steps)
    credited = join_trajectories(shape(scored, ShapingConfig(), PLAIN))
    for name, frame in (("labelled", labelled), ("scored", scored), ("credited", credited)):
        frame.write_ipc(Path(folder, name))


def run_stage(folder: str, stage: str) -> None:
    """Run one stage three times; print its best wall and CPU seconds, and peak memory after and before."""
    source, work = STAGES[stage]
    frame = pl.read_ipc(Path(folder, source))
    before = peak_mb()
    runs = [timed(work, frame)[:2] for _ in range(3)]
    print(json.dumps([*map(min, zip(*runs, strict=True)), peak_mb(), before]))


def timed(work: Callable, *arguments) -> tuple[float, float, object]:
    """Return the wall and CPU seconds that a call takes, and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work(*arguments)
    return time.perf_counter() - wall, time.process_time() - cpu, result


def peak_mb() -> float:
    """Return the peak resident memory of this process so far, in MB (Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def join_trajectories(shaped: Shaped) -> pl.DataFrame:
    """Return what ``credit`` reads."""
    key = ["episode_id", "candidate_index"]
    facts = shaped.trajectories.select(*key, "ref_len", "success", "trajectory_reward", "first_failure_step")
    return shaped.rewards.join(facts, on=key, how="left", maintain_order="left")


def shaper(alignment: str) -> Callable[[pl.DataFrame], Shaped]:
    """Return the shaping of one alignment."""
    return lambda frame: shape(frame, ShapingConfig(alignment=alignment), PLAIN)


STAGES = {
    "score": ("labelled", lambda frame: score(frame, ValidityConfig())),
    "shape off": ("scored", shaper("off")),
    "shape paper": ("scored", shaper("paper")),
    "shape prefix_mean": ("scored", shaper("prefix_mean")),
    "shape segments": ("scored", shaper("segments")),
    "credit step_local log": ("credited", lambda frame: credit(frame, "step_local", "log_success")),
    "credit ui_s1": ("credited", lambda frame: credit(frame, "ui_s1")),
}


def compare_with_oracle() -> None:
    """Print how much faster the columns are than plain Python, and that both agree."""
    import oracle

    frame = generate_labelled(ORACLE_EPISODES, 8, 1)
    rows = frame.to_dicts()
    config = ValidityConfig()
    slow, _, want = timed(lambda: [oracle.score(row, config)["raw_score"] for row in rows])
    fast, _, got = timed(score, frame, config)
    assert all(abs(a - b) < 1e-12 for a, b in zip(want, got["raw_score"], strict=True))
    print(
        f"{len(rows):,} candidates, score: plain Python {slow:.3f} s, columns {fast:.3f} s, {slow / fast:.0f} x"
    )
    frame = generate_scored(ORACLE_EPISODES, 8, 1)
    slow, _, (want, _) = timed(oracle.shape, frame.to_dicts(), ShapingConfig())
    fast, _, got = timed(shape, frame, ShapingConfig(), PLAIN)
    assert all(abs(row["reward"] - want[oracle.key(row)]["reward"]) < 1e-9 for row in got.rewards.to_dicts())
    print(
        f"{len(rows):,} candidates, shape: plain Python {slow:.3f} s, columns {fast:.3f} s, {slow / fast:.0f} x"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--prepare"]:
        prepare(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    elif sys.argv[1:2] == ["--stage"]:
        run_stage(*sys.argv[2:])
    else:
        main()
