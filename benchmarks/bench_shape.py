"""Time `solar-rl shape` as a user runs it, start, reading and writing included, on 752,000 candidates.

Usage: python benchmarks/bench_shape.py [FOLDER]. The folder is generated where it doesn't exist yet. Beside it,
in the same run: reading the columns that shaping needs and writing rewards and trajectories with
pyarrow alone. Goal: a median of 4 s and 1.5 GB on 2 cores.
"""

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from generate_dataset import finish_dataset, generate_frames, write_tables

RUNS = 5
GOAL_SECONDS, GOAL_MB = 4.0, 1500
COPY = """
import sys
from pathlib import Path
import pyarrow.parquet as pq
source, target = map(Path, sys.argv[1:])
for table in ("rewards", "trajectories"):
    for path in sorted((source / "data" / table).glob("*.parquet")):
        out = target / table / path.name
        out.parent.mkdir(parents=True, exist_ok=True)
        rows = pq.read_table(path)
        pq.write_table(rows, out, compression="zstd", compression_level=3, row_group_size=100_000)
"""


def timed(command: list[str], target: Path) -> float:
    """Run a command that writes ``target`` several times; return the median seconds of whole processes."""
    seconds = []
    for _ in range(RUNS):
        shutil.rmtree(target, ignore_errors=True)
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def main() -> int:
    """Print the two medians, their ratio and the peak memory; exit 1 when a goal is missed."""
    scratch = Path(tempfile.mkdtemp())
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else scratch / "generated"
    if not (folder / "manifest.json").exists():
        write_tables(folder, generate_frames())
        finish_dataset(folder)
    bare = timed([sys.executable, "-c", COPY, str(folder), str(scratch / "copy")], scratch / "copy")
    shape = [sys.executable, "-m", "solar_rl.cli", "shape", str(folder), "--out", str(scratch / "shaped")]
    ours = timed([*shape, "--shaping.alignment", "prefix_mean"], scratch / "shaped")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    print(f"solar-rl shape: {ours:.2f} s (median of {RUNS}), largest process {peak:.0f} MB")
    print(f"reading and writing rewards and trajectories with pyarrow alone: {bare:.2f} s")
    print(f"ratio: {ours / bare:.2f}")
    shutil.rmtree(scratch)
    return int(ours > GOAL_SECONDS or peak > GOAL_MB)


if __name__ == "__main__":
    sys.exit(main())
