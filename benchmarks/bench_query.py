"""Time what the limits of ``solar-rl query`` cost, and how soon they stop what they must.

Usage: python benchmarks/bench_query.py [FOLDER]. The folder is generated where it doesn't exist yet.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from generate_dataset import generate_dataset

from solar_rl import query

QUESTION = "SELECT app, avg(reward) FROM rewards GROUP BY 1 ORDER BY 1"
BOMBS = {
    "cross join": "SELECT count(*) FROM rewards a, rewards b WHERE a.reward + b.reward > 1",
    "recursion": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
    "sort of a product": "SELECT a.reward FROM rewards a, rewards b ORDER BY hash(a.reward + b.reward) LIMIT 1e9",
    "one huge value": "SELECT range(3_000_000_000)",
    "uninterruptible": "SELECT length(regexp_replace(repeat('a', 500_000_000), 'a', 'b', 'g'))",
    "endless answer": "SELECT r.* FROM rewards r, range(1_000_000)",
}


def median_ms(run: Callable[[], object], times: int = 7) -> float:
    """Return the median of several runs, after one to warm up."""
    run()
    spans = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        spans.append(1e3 * (time.perf_counter() - started))
    return statistics.median(spans)


def main() -> int:
    """Print the cost of the limits and, for each bomb, when and how it was stopped."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "generated"
    if not (folder / "manifest.json").exists():
        generate_dataset(folder)
    with query.connect(folder, threads=2) as con:
        bare = median_ms(lambda: con.sql(QUESTION).pl())
        bounded = median_ms(lambda: query.select(con, QUESTION, timeout=60))
        streamed = median_ms(lambda: list(query.stream(con, QUESTION, timeout=60)))
    print(
        f"one question: DuckDB {bare:.1f} ms, with a limit of time {bounded:.1f} ms, streamed {streamed:.1f} ms"
    )
    opened = median_ms(lambda: query.connect(folder).close())
    print(f"open a locked connection: {opened:.1f} ms\n")
    print(f"{'--timeout 5 --memory 1GB':24} {'s':>6} {'peak MB':>8}  answer")
    wrong = 0
    for name, sql in BOMBS.items():
        command = [sys.executable, "-m", "solar_rl.cli", "query", str(folder), sql, "--timeout", "5"]
        command += ["--memory", "1GB", "--format", "csv", "--out", "/dev/null"]
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
        said = done.stderr.strip().splitlines()[-1] if done.stderr else ""
        wrong += done.returncode != 2
        span = time.perf_counter() - started
        print(f"{name:24} {span:6.1f} {peak:8,.0f}  exit {done.returncode}: {said[:70]}", flush=True)
    print("peak MB is that of the largest so far")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
