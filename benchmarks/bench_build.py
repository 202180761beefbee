"""Time the build system on this machine: workers, rebuilds, sizes. Every figure stands beside a bare counterpart.

Usage: python benchmarks/bench_build.py [workers|rebuild|memory ...]   (default: all)

* ``workers``: a source of gzipped TFRecords with phone-sized screenshots, read and written by one worker and by two,
  each held to one thread of polars; goal 1.7. Beside it: two processes against one that only read the source.
* ``rebuild``: nothing changed (goal 2 s), new shaping, new words in the card.
* ``memory``: `solar-rl score` (score, reconstruct, shape, write) on 752,000 candidates and on ten times as many:
  seconds beside reading its columns and writing its tables with pyarrow alone (goal 2.0), and peak
  memory (goal 1.3 times). Needs about 6 GB of disk.
"""

from __future__ import annotations

import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "builders")]

RUNS = 3
SHARDS, EPISODES_A_SHARD, STEPS = 4, 16, 6
GOALS = {"workers": 1.7, "nothing": 2.0, "score": 2.0, "memory": 1.3}
READ_ONLY = """
import sys
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
builder = load_builder(SourceConfig(builder="android_control", path=sys.argv[1]))
for shard in builder.shards()[int(sys.argv[2])::int(sys.argv[3])]:
    for _ in builder.read(shard):
        pass
"""
BARE = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
source, target = map(Path, sys.argv[1:])
texts = {"completion", "token_ids", "sampling_logprobs", "sampler_id", "seed", "finish_reason", "history_dropped"}
for table in ("candidates", "steps", "episodes"):
    for path in sorted((source / "data" / table).glob("*.parquet")):
        names = [name for name in pq.read_schema(path).names if name not in texts]
        pq.read_table(path, columns=names)
for table in ("rewards", "trajectories"):
    for path in sorted((source / "data" / table).glob("*.parquet")):
        rows = pq.read_table(path)
        out = target / table / path.name
        out.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, out, compression="zstd", compression_level=3, row_group_size=100_000)
"""


def run(*words: object, threads: int | None = None) -> float:
    """Run Python with these words; return the seconds of the whole process."""
    environment = dict(os.environ)
    if threads is not None:
        environment |= dict.fromkeys(
            ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS"), str(threads)
        )
    started = time.perf_counter()
    subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True, env=environment)
    return time.perf_counter() - started


def solar(*words: object, threads: int | None = None) -> float:
    """Run the command line; return the seconds of the whole process."""
    return run("-m", "solar_rl.cli", *words, threads=threads)


def median(work: Callable[[], float], runs: int = RUNS) -> float:
    """Return the median of several runs."""
    return statistics.median(work() for _ in range(runs))


def write_source(folder: Path) -> None:
    """Write a source like AndroidControl: gzipped TFRecords, every screenshot 1080x2400, about 1 MB and its own."""
    import numpy as np
    from android_control_writer import Recording, write_shard
    from bench_android_control import HEIGHT, WIDTH, crowded_tree, noisy_png

    noise = np.random.default_rng(0)
    pictures = [noisy_png(noise) for _ in range(8)]
    tree = crowded_tree(noise)
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    for shard in range(SHARDS):
        records = []
        for _ in range(EPISODES_A_SHARD):
            screens = [numbered(pictures[at % 8], number * 100 + at) for at in range(STEPS + 1)]
            records.append(
                Recording(
                    number,
                    f"task {number}",
                    [{"action_type": "click", "x": 100 + at, "y": 200} for at in range(STEPS)],
                    screenshots=screens,
                    trees=[tree] * (STEPS + 1),
                    widths=[WIDTH] * (STEPS + 1),
                    heights=[HEIGHT] * (STEPS + 1),
                )
            )
            number += 1
        write_shard(folder / f"android_control-{shard:05d}-of-{SHARDS:05d}", records)


def numbered(png: bytes, number: int) -> bytes:
    """Put a text chunk into a PNG, so that no two are equal."""
    body = b"tEXt" + b"n\0%d" % number
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return png[:33] + chunk + png[33:]


def build(source: Path, out: Path, workers: int, *more: object) -> float:
    """Build the source and return the seconds."""
    shutil.rmtree(out, ignore_errors=True)
    words = ("build", "android_control", "--source.path", source, "--out", out, "--workers", workers)
    return solar(*words, "--sampler.n", 1, "--shard_episodes", 8, *more, threads=1)


def read_only(source: Path, processes: int) -> float:
    """Read the source and do nothing with it, in so many processes; return the seconds."""
    started = time.perf_counter()
    commands = [
        [sys.executable, "-c", READ_ONLY, str(source), str(k), str(processes)] for k in range(processes)
    ]
    running = [subprocess.Popen(command) for command in commands]
    assert not any(each.wait() for each in running)
    return time.perf_counter() - started


def bench_workers(scratch: Path) -> bool:
    """Print how much faster two workers are than one."""
    source = scratch / "source"
    write_source(source)
    megabytes = sum(path.stat().st_size for path in source.iterdir()) / 1e6
    episodes = SHARDS * EPISODES_A_SHARD
    pairs = [(build(source, scratch / "one", 1), build(source, scratch / "two", 2)) for _ in range(RUNS)]
    bare = [(read_only(source, 1), read_only(source, 2)) for _ in range(RUNS)]
    one, two = (statistics.median(side) for side in zip(*pairs, strict=True))
    alone, both = (statistics.median(side) for side in zip(*bare, strict=True))
    print(f"source: {megabytes:.0f} MB, {episodes} episodes, {episodes * STEPS} screenshots")
    print(
        f"build, 1 worker {one:.1f} s ({episodes / one:.1f} episodes/s), 2 workers {two:.1f} s: {one / two:.2f} x"
    )
    print(f"reading alone, 1 process {alone:.1f} s, 2 processes {both:.1f} s: {alone / both:.2f} x")
    same = all(
        path.read_bytes() == (scratch / "two" / path.relative_to(scratch / "one")).read_bytes()
        for path in (scratch / "one").rglob("*")
        if path.is_file()
    )
    print(f"files equal byte for byte: {same}; goal {GOALS['workers']} x")
    return same and one / two >= GOALS["workers"]


def bench_rebuild(scratch: Path) -> bool:
    """Print what a rebuild costs where nothing, the shaping or the words changed."""
    source, out = scratch / "source", scratch / "rebuilt"
    if not source.exists():
        write_source(source)
    straight = build(source, out, 1)
    words = ("build", "android_control", "--source.path", source, "--out", out, "--sampler.n", 1)
    nothing = median(lambda: solar(*words))
    rehashed = median(lambda: solar(*words, "--rehash"))
    shaped = solar(*words, "--shaping.alignment", "paper")
    told = solar(*words, "--shaping.alignment", "paper", "--description", "other words")
    bare = median(lambda: run("-c", "import polars, pyarrow.parquet"))
    print(f"straight build {straight:.1f} s; importing polars and pyarrow alone {bare:.2f} s")
    print(f"nothing changed {nothing:.2f} s (goal {GOALS['nothing']}), source hashed anew {rehashed:.2f} s")
    print(f"new shaping {shaped:.2f} s, new words in the card {told:.2f} s")
    return nothing < GOALS["nothing"]


def bench_memory(scratch: Path) -> bool:
    """Print seconds and peak memory of scoring 752,000 candidates and ten times as many."""
    from generate_dataset import generate_dataset

    small, large = scratch / "small", scratch / "large"
    generate_dataset(small)
    repeat(small, large, 10)
    rows = {}
    for name, folder in (("752,000", small), ("7,520,000", large)):
        bare = median(lambda folder=folder: _fresh(scratch / "copy", "-c", BARE, folder, scratch / "copy"))
        ours, peaks = [], []
        for _ in range(RUNS):
            seconds, peak = _score(folder, scratch / "scored")
            ours.append(seconds)
            peaks.append(peak)
        seconds, peak = statistics.median(ours), statistics.median(peaks)
        rows[name] = (seconds, bare, peak)
        print(
            f"{name} candidates: score {seconds:.1f} s, pyarrow alone {bare:.1f} s: {seconds / bare:.2f} x; peak {peak:.0f} MB"
        )
    (seconds, bare, little), (_, _, much) = rows.values()
    print(f"peak memory: {much / little:.2f} x (goal {GOALS['memory']}); score goal {GOALS['score']} x")
    return seconds / bare <= GOALS["score"] and much / little <= GOALS["memory"]


def repeat(small: Path, large: Path, times: int) -> None:
    """Write a dataset whose every split is ``times`` files, each the small one's rows under ids of its own."""
    import polars as pl
    from generate_dataset import finish_dataset

    from solar_rl.schema import SPLITS
    from solar_rl.store.parquet import TableWriter

    for table in ("episodes", "steps", "candidates", "rewards", "trajectories"):
        for split in SPLITS:
            rows = pl.read_parquet(small / "data" / table / f"{split}-*.parquet")
            for part in range(times):
                own = pl.format("{}-{}", pl.lit(f"{part:02d}"), "episode_id").alias("episode_id")
                with TableWriter(large, table, split, part=(part, times)) as writer:
                    writer.write(rows.with_columns(own))
    for table in ("images", "preview"):
        shutil.copytree(small / "data" / table, large / "data" / table)
    finish_dataset(large)


def _fresh(target: Path, *words: object) -> float:
    shutil.rmtree(target, ignore_errors=True)
    return run(*words)


def _score(folder: Path, target: Path) -> tuple[float, float]:
    """Score a dataset again; return seconds and the process's peak memory in MB."""
    shutil.rmtree(target, ignore_errors=True)
    started = time.perf_counter()
    words = ["-m", "solar_rl.cli", "score", str(folder), "--out", str(target), "--validity.preset", "lenient"]
    child = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    return time.perf_counter() - started, usage.ru_maxrss / 1000


def main() -> int:
    """Run the benchmarks that are named; exit 1 when a goal is missed."""
    benches = {"workers": bench_workers, "rebuild": bench_rebuild, "memory": bench_memory}
    scratch = Path(tempfile.mkdtemp())
    try:
        met = [benches[name](scratch) for name in sys.argv[1:] or benches]
    finally:
        shutil.rmtree(scratch)
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
