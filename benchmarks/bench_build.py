"""Time the build system on this machine: workers, rebuilds, sizes. Every figure stands beside a bare counterpart.

Usage: python benchmarks/bench_build.py [workers|rebuild|scale|memory ...]   (default: all)

* ``workers``: a source of gzipped TFRecords with phone-sized screenshots (3.5 GB, 768 episodes in 24 shards: large enough
  that starting and closing a build don't decide), read and written by one worker and by two, each held to one
  thread of polars; goal 1.7. Beside it: two processes against one that only read the source.
* ``rebuild``: nothing changed (goal 2 s), new shaping, new words in the card.
* ``scale``: seconds, bytes and files of large builds, from the rate of a small one.
* ``memory``: score, reconstruct, shape and write the tables of 752,000 candidates and on ten times as many:
  seconds beside reading its columns and writing its tables with pyarrow alone (goal 2.0), and peak
  memory (goal 1.3 times). Needs about 6 GB of disk.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "builders")]

RUNS = 3
SHARDS, EPISODES_A_SHARD, STEPS = 4, 16, 6
MANY_SHARDS, MANY_EPISODES_A_SHARD = 24, 32
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


PEAK = """
# VmHWM, since ru_maxrss of a process begins with its parent's
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""
SETTLE = (
    """
import time
from pathlib import Path
from solar_rl.builder import load_builder
from solar_rl.config import DatasetConfig, SourceConfig
from solar_rl.pipeline.settle import settle
from solar_rl.pipeline.units import Unit
import sys
per_shard = int(sys.argv[1])
config = DatasetConfig(name="many", source=SourceConfig(builder="phone"))
rows = [tuple((f"episode-{k:05d}-{i:05d}", "train") for i in range(per_shard)) for k in range(1_000)]
units = [Unit(Path("unused"), k, 0, row, ()) for k, row in enumerate(rows)]
started = time.perf_counter()
found = settle(config, load_builder(config.source), units, [str(k) for k in range(1_000)])
assert found.episodes.height == 1_000 * per_shard
print(time.perf_counter() - started)
"""
    + PEAK
)
SCORE = (
    """
import sys
from pathlib import Path
from solar_rl.pipeline import derive
from solar_rl.pipeline.keys import derived_keys
from solar_rl.pipeline.reuse import Base, reuse_tables
plan = derive.plan(Path(sys.argv[1]), {"validity.preset": "lenient"}, Path(sys.argv[2]), None, "score")
reuse_tables(Base(plan.folder, plan.manifest), plan.config, derived_keys(plan.config, plan.manifest), plan.out)
"""
    + PEAK
)


def core_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of the processes that a call runs: it hangs little on what else this machine does."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    work()
    return used() - before


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


def write_source(folder: Path, shards: int = SHARDS, episodes_a_shard: int = EPISODES_A_SHARD) -> None:
    """Write a source like AndroidControl: gzipped TFRecords, every screenshot 1080x2400, 0.6 MB and its own."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as processes:
        jobs = [
            processes.submit(_write_shard, folder, shard, shards, episodes_a_shard) for shard in range(shards)
        ]
        for job in jobs:
            job.result()


def _write_shard(folder: Path, shard: int, shards: int, episodes: int) -> None:
    import numpy as np
    from android_control_writer import Recording, write_shard
    from bench_android_control import HEIGHT, WIDTH, crowded_tree, noisy_png

    noise = np.random.default_rng(0)
    pictures = [noisy_png(noise) for _ in range(8)]
    tree = crowded_tree(noise)
    records = []
    for number in range(shard * episodes, (shard + 1) * episodes):
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
    write_shard(folder / f"android_control-{shard:05d}-of-{shards:05d}", records)


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
    source = scratch / "large source"
    write_source(source, MANY_SHARDS, MANY_EPISODES_A_SHARD)
    megabytes = sum(path.stat().st_size for path in source.iterdir()) / 1e6
    episodes = MANY_SHARDS * MANY_EPISODES_A_SHARD
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
    peaks, ratios = [], []
    for name, folder in (("752,000", small), ("7,520,000", large)):
        sides = [
            (
                _score(folder, scratch / "scored"),
                (
                    _fresh(scratch / "copy", "-c", BARE, folder, scratch / "copy"),
                    core_seconds(
                        lambda folder=folder: _fresh(scratch / "copy", "-c", BARE, folder, scratch / "copy")
                    ),
                ),
            )
            for _ in range(RUNS)
        ]
        ours, cores, peak = (statistics.median(side[0][at] for side in sides) for at in range(3))
        bare, bare_cores = (statistics.median(side[1][at] for side in sides) for at in range(2))
        peaks.append(peak)
        ratios.append(min(ours / bare, cores / bare_cores))
        print(
            f"{name} candidates: score, reconstruct, shape {ours:.1f} s, pyarrow alone {bare:.1f} s: {ours / bare:.2f} x"
        )
        print(
            f"  core-seconds {cores:.1f} and {bare_cores:.1f}: {cores / bare_cores:.2f} x; peak memory {peak:.0f} MB"
        )
    print(f"peak memory: {peaks[1] / peaks[0]:.2f} x (goal {GOALS['memory']}); score goal {GOALS['score']} x")
    return ratios[0] <= GOALS["score"] and peaks[1] / peaks[0] <= GOALS["memory"]


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


def _score(folder: Path, target: Path) -> tuple[float, float, float]:
    """Score, reconstruct, shape and write a dataset's tables again.

    Returns:
        Seconds, core-seconds and peak memory in MB of the whole process.
    """
    shutil.rmtree(target, ignore_errors=True)
    started = time.perf_counter()
    told: list[str] = []

    def work() -> None:
        command = [sys.executable, "-c", SCORE, str(folder), str(target)]
        told.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    cores = core_seconds(work)
    return time.perf_counter() - started, cores, int(told[0]) / 1000


def bench_scale(scratch: Path) -> bool:
    """Print what large builds cost, from rates measured here: docs/scale.md quotes it."""
    from solar_rl import open_dataset
    from solar_rl.pipeline.tables import FILE_EPISODES, IMAGE_FILES, LARGEST_IMAGE_FILE, SMALLEST_IMAGE_FILE

    source, out = scratch / "source", scratch / "built"
    if not source.exists():
        write_source(source)
    half = median(lambda: core_seconds(lambda: build(source, out, 1, "--sampler.n", 8, "--limit", 16)))
    whole = median(lambda: core_seconds(lambda: build(source, out, 1, "--sampler.n", 8)))
    episodes = SHARDS * EPISODES_A_SHARD
    each = (whole - half) / (episodes - 16)
    files = open_dataset(out).manifest.files
    size = dict.fromkeys(("images", "candidates", "rewards", "trajectories", "steps", "episodes"), 0)
    for entry in files:
        if entry.path.startswith("data/") and (table := entry.path.split("/")[1]) in size:
            size[table] += entry.bytes
    size = {name: found / episodes for name, found in size.items()}
    print(
        f"16 episodes {half:.1f} core-seconds, {episodes} episodes {whole:.1f}: {each:.3f} an episode of {STEPS} steps, 8 candidates each"
    )
    print("bytes an episode: " + ", ".join(f"{name} {found:,.0f}" for name, found in size.items()))
    seconds, megabytes = settle_a_million()
    print(f"settling a million episodes: {seconds:.1f} s, {megabytes:.0f} MB")
    print(f"{'episodes':>12} {'1 core':>10} {'64 cores':>11} {'images':>10} {'the rest':>10} {'files':>8}")
    for count in (15_000, 1_000_000, 100_000_000):
        images, rest = size["images"] * count, sum(size.values()) * count - size["images"] * count
        each_file = min(LARGEST_IMAGE_FILE, max(SMALLEST_IMAGE_FILE, images // IMAGE_FILES))
        number = -(-count // FILE_EPISODES) * 5 + -(-images // each_file)
        hours = each * count / 3600
        print(
            f"{count:>12,} {hours:>8,.1f} h {hours / 64:>9,.1f} h {images / 1e9:>7,.0f} GB {rest / 1e9:>7,.1f} GB {number:>8,.0f}"
        )
    return True


def settle_a_million() -> tuple[float, float]:
    """Settle a million episodes of a thousand shards; return seconds and the memory that they took in MB."""

    def settled(per_shard: int) -> tuple[float, float]:
        done = subprocess.run(
            [sys.executable, "-c", SETTLE, str(per_shard)], check=True, capture_output=True, text=True
        )
        seconds, peak = done.stdout.split()
        return float(seconds), int(peak) / 1000

    (_, little), (seconds, much) = settled(1), settled(1_000)
    return seconds, much - little


def main() -> int:
    """Run the benchmarks that are named; exit 1 when a goal is missed."""
    benches = {
        "workers": bench_workers,
        "rebuild": bench_rebuild,
        "scale": bench_scale,
        "memory": bench_memory,
    }
    scratch = Path(tempfile.mkdtemp())
    try:
        met = [benches[name](scratch) for name in sys.argv[1:] or benches]
    finally:
        shutil.rmtree(scratch)
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
