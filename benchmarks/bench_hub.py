"""Time reading a dataset of 752,000 candidates from a Hub on the loopback: statistics, SQL, load_dataset.

Usage: python benchmarks/bench_hub.py [FOLDER]. The folder is generated where it doesn't exist yet. Goals, on 2 cores: each
named statistic under 1 s with a warm cache (the tag looked up on the Hub, the snapshot checked, the query
run), and ``load_dataset`` of candidates within 1.2 times the time of a plain parquet of the same columns.
Cold is the first time: the download of the tables that the statistic names is in it. The loopback Hub is the
tests'; a real one adds its distance. Not measured here: huggingface.co.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests/hub")]
from loopback_hub import TOKEN, Hub  # noqa: E402

REPO, TAG, GOAL_S, GOAL_RATIO = "owner/generated", "v1.0.0", 1.0, 1.2


def seconds(run: Callable[[], object]) -> float:
    """Return the seconds of one run."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def median(run: Callable[[], object], times: int = 5) -> float:
    """Return the median seconds of several runs."""
    return statistics.median(seconds(run) for _ in range(times))


def ask(name: str) -> None:
    """Answer one statistic from the Hub, beginning with the name of the dataset."""
    import solar_rl
    from solar_rl import stats

    with solar_rl.open_dataset(REPO, revision=TAG).connect(threads=2) as con:
        stats.compute(con, name)


def statistics_table() -> list[str]:
    """Print cold and warm seconds of each statistic; return those above the goal."""
    from huggingface_hub import constants

    from solar_rl import query, stats

    query.preload()
    late = []
    load = f"{os.getloadavg()[0]:.1f}"
    print(
        f"load of the machine {load}\n{'statistic':16} {'cold s':>8} {'warm s':>8} {'warm processor s':>17}"
    )
    for name in stats.NAMES:
        with tempfile.TemporaryDirectory() as cache:
            constants.HF_HUB_CACHE = cache
            cold = seconds(lambda n=name: ask(n))
            spent = time.process_time()
            warm = median(lambda n=name: ask(n))
            spent = (time.process_time() - spent) / 5
        late += [name] if warm > GOAL_S else []
        print(f"{name:16} {cold:8.2f} {warm:8.2f} {spent:17.2f}", flush=True)
    return late


def ways_to_query() -> None:
    """Print one question over a local snapshot and over DuckDB with the Hub as a filesystem, side by side."""
    import duckdb
    from huggingface_hub import HfFileSystem, constants

    import solar_rl

    ask_sql = "SELECT failure_reason, count(*) FROM {} GROUP BY 1"

    def remote() -> None:
        con = duckdb.connect(config={"threads": 2})
        con.register_filesystem(HfFileSystem(skip_instance_cache=True))
        con.sql(ask_sql.format(f"'hf://datasets/{REPO}@{TAG}/data/rewards/*.parquet'")).fetchall()

    def snapshot() -> None:
        solar_rl.open_dataset(REPO, revision=TAG).sql(ask_sql.format("rewards"))

    print(f"\n{'one question on rewards':34} {'first s':>8} {'again s':>8}")
    with tempfile.TemporaryDirectory() as cache:
        constants.HF_HUB_CACHE = cache
        print(f"{'local snapshot (what we do)':34} {seconds(snapshot):8.2f} {median(snapshot):8.2f}")
    print(f"{'registered filesystem, hf://':34} {seconds(remote):8.2f} {median(remote):8.2f}")


def _load(*arguments: str, environment: dict[str, str]) -> float:
    """Return the seconds of a first ``load_dataset`` in a process of its own, the import left out."""
    code = (
        "import sys, time; from datasets import load_dataset, disable_progress_bars; disable_progress_bars();"
        "import tempfile; cache = tempfile.mkdtemp(); started = time.perf_counter();"
        f"rows = load_dataset({', '.join(arguments)}, cache_dir=cache);"
        "print(time.perf_counter() - started, sum(len(r) for r in rows.values()));"
        "import shutil; shutil.rmtree(cache)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[0])


def _write_plain(folder: Path, to: Path) -> None:
    """Write the same columns as one would without this project: pyarrow's defaults, one file a split."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for split in ("train", "validation", "test"):
        files = sorted((folder / "data/candidates").glob(f"{split}-*.parquet"))
        if files:
            rows = pa.concat_tables(pq.read_table(path) for path in files)
            pq.write_table(rows.replace_schema_metadata(None), to / f"{split}.parquet")


def loading(folder: Path) -> float:
    """Print ``load_dataset`` of candidates and of a plain parquet of them; return the ratio of the medians."""
    with tempfile.TemporaryDirectory() as temporary:
        plain = Path(temporary)
        _write_plain(folder, plain)
        files = {p.stem: str(p) for p in sorted(plain.glob("*.parquet"))}
        ours, theirs = [], []
        for _ in range(3):  # in turn, so that a busy moment meets both
            ours.append(_load(repr(str(folder)), "'candidates'", environment={}))
            theirs.append(_load("'parquet'", f"data_files={files!r}", environment={}))
        hub = _load(repr(REPO), "'candidates'", f"revision={TAG!r}", environment={"HF_HOME": temporary})
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"\n{'load_dataset of candidates':34} {'median s':>8}")
    print(f"{'our folder':34} {statistics.median(ours):8.2f}")
    print(f"{'plain parquet, the same columns':34} {statistics.median(theirs):8.2f}  ratio {ratio:.2f}")
    print(f"{'from the loopback Hub, cold':34} {hub:8.2f}")
    return ratio


def main() -> int:
    """Publish to a loopback Hub, read back, and print; exit 1 when a goal is missed."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "generated"
    if not (folder / "manifest.json").exists():
        from generate_dataset import generate_dataset

        generate_dataset(folder)
    with Hub() as hub, tempfile.TemporaryDirectory() as home:
        os.environ |= {  # before anything of Hugging Face is imported
            "HF_ENDPOINT": hub.url,
            "HF_TOKEN": TOKEN,
            "HF_HOME": home,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        }
        from solar_rl.store.hub import dataset_release, publish_release

        release = dataset_release(folder)
        size = sum(entry.bytes for entry in release.files) / 1e6
        first = seconds(lambda: publish_release(release, REPO))
        again = seconds(lambda: publish_release(release, REPO))
        print(f"publish {size:,.0f} MB in {len(release.files)} files: {first:.1f} s, again {again:.1f} s\n")
        late = statistics_table()
        ways_to_query()
        ratio = loading(folder)
    print(
        f"\nabove {GOAL_S:g} s warm: {', '.join(late) or 'none'}; load_dataset ratio {ratio:.2f} (goal {GOAL_RATIO})"
    )
    return 1 if late or ratio > GOAL_RATIO else 0


if __name__ == "__main__":
    sys.exit(main())
