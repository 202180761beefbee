"""Time every named statistic, and reading, on the generated dataset of 752,000 candidates.

Usage: python benchmarks/bench_stats.py [FOLDER]. The folder is generated where it doesn't exist yet. Goal: each
statistic within 100 ms, median of 5, on 2 cores.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from generate_dataset import finish_dataset, generate_frames, write_tables

from solar_rl import query, stats
from solar_rl.validate import validate

GOAL_MS = 100


def median_ms(run: Callable[[], object], times: int = 5) -> tuple[float, float]:
    """Run once to warm up, then several times; return the median in ms, and that of processor time a core."""
    run()
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        walls.append(1e3 * (time.perf_counter() - wall))
        cpus.append(1e3 * (time.process_time() - cpu))
    return statistics.median(walls), statistics.median(cpus) / 2


def _load_seconds(folder: Path, table: str) -> float:
    """Return the seconds of a first ``load_dataset``, nothing cached."""
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    with tempfile.TemporaryDirectory() as cache:
        started = time.perf_counter()
        load_dataset(str(folder), table, cache_dir=cache)
        return time.perf_counter() - started


def main() -> int:
    """Print one line per statistic; exit 1 when one is above the goal."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "generated"
    if not (folder / "manifest.json").exists():
        frames = generate_frames()
        started = time.perf_counter()
        write_tables(folder, frames)
        print(f"{'write all tables':16} {time.perf_counter() - started:8.2f} s")
        finish_dataset(folder)
    late = []
    with query.connect(folder, threads=2) as con:
        rows = con.sql("SELECT count(*) FROM rewards").fetchall()[0][0]
        print(
            f"{rows:,} candidates, 2 threads\n{'statistic':16} {'median ms':>9} {'processor ms a core':>20}"
        )
        for name in (*stats.NAMES, "headline"):
            run = (
                (lambda: stats.headline(con))
                if name == "headline"
                else (lambda n=name: stats.compute(con, n))
            )
            wall, cpu = median_ms(run)
            late += [name] if name in stats.NAMES and wall > GOAL_MS else []
            print(f"{name:16} {wall:9.1f} {cpu:20.1f}")
    for table in ("rewards", "trajectories"):
        print(f"load_dataset {table}: {_load_seconds(folder, table):.2f} s")
    started = time.perf_counter()
    checks = validate(folder)
    failed = [check.name for check in checks if not check.passed]
    print(
        f"{'validate':16} {time.perf_counter() - started:8.2f} s, {len(checks)} checks, failed: {failed or 'none'}"
    )
    print(f"above {GOAL_MS} ms: {', '.join(late) or 'none'}")
    return 1 if late or failed else 0


if __name__ == "__main__":
    sys.exit(main())
