"""Time every reader beside the bare decoding of its container, with its memory, and two workers beside one.

Bare means: gunzip and frames, JSON (the standard library's ``json.loads`` on each line or file), parquet, or a file of one
protocol buffer (AndroidWorld's forests) decoded, and all of it read and hashed (SHA-256). The reader's side is all that a build does before it samples: ``Builder.read``, the checks
of ``solar_rl.episodes.checked``, and the hash of each screenshot. Both sides run in turn in one process on the same files:
generated ones, or with ``--folder`` those that are there. Goals: a ratio of at most 2.0, at most 500 MB of memory
whatever the size, and two workers at least 1.7 times as fast as one on a source of several shards.

    python benchmarks/bench_sources.py [NAME ...] [--megabytes 40] [--rounds 5] [--json]
    python benchmarks/bench_sources.py NAME --folder /where/it/lies

Sources without screens are nothing but text, so that making Python objects costs more than decoding; what that alone takes
is printed beside them. Seconds are the processor's, so that the ratio holds on a busy machine; the two workers are timed by the clock, and
on a machine with less than two idle cores that figure says nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from source_files import BUILDERS, SOURCES

from builders.android_control.messages import parse_forest
from builders.android_control.tfrecord import is_tfrecord, read_records
from solar_rl.actions import Action, Box
from solar_rl.builder import Builder, load_builder
from solar_rl.config import SourceConfig
from solar_rl.episodes import checked
from solar_rl.schema import Episode, Reject, Step

GOAL_RATIO, GOAL_MB, GOAL_WORKERS = 2.0, 500, 1.7
TIMES_LARGER = 10
_TEXT = ("android_control_jsonl", "ui_s1", "jsonl_text")
"""Sources without screens: a tenth of the size is as many episodes and more."""
_EPISODE, _STEP, _ACTION = (attrgetter(*(f.name for f in fields(kind))) for kind in (Episode, Step, Action))
_UNREAD = "_neg_"
"""Part of the names of files that no reader opens: ScreenAgent's made-up wrong turns."""


def bare(folder: Path) -> int:
    """Decode and hash every file; what nobody can do without. Returns the bytes hashed."""
    hashed = 0
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and _UNREAD not in path.name):
        if file.suffix == ".json":
            data = file.read_bytes()
            json.loads(data)
            hashed += _hash(data)
        elif file.suffix == ".jsonl":
            with file.open("rb") as lines:
                for line in lines:
                    json.loads(line)
                    hashed += _hash(line)
        elif file.suffix == ".parquet":
            hashed += _bare_parquet(file)
        elif file.suffix == ".pb":
            data = file.read_bytes()
            parse_forest(data)
            hashed += _hash(data)
        elif file.suffix in (".png", ".jpg"):
            hashed += _hash(file.read_bytes())
        elif is_tfrecord(file):
            hashed += sum(_hash(record) for record in read_records(file) if isinstance(record, bytes))
    return hashed


def _hash(data: bytes) -> int:
    hashlib.sha256(data).digest()
    return len(data)


def _bare_parquet(file: Path) -> int:
    import pyarrow.parquet as pq

    hashed = 0
    for batch in pq.ParquetFile(file).iter_batches(batch_size=8):
        for row in batch.to_pylist():
            hashed += sum(_hash(value["bytes"]) for value in row.values() if isinstance(value, dict))
    return hashed


def read(builder: Builder, shards: list[str]) -> int:
    """Read and check every episode and hash every screenshot, as a build does. Returns the number of steps."""
    steps = rejects = 0
    for shard in shards:
        for item in checked(builder.read(shard), file=shard, seen=set()):
            if isinstance(item, Reject):
                rejects += 1
                continue
            steps += item.ref_len
            for step in item.steps:
                assert step.screenshot is None or step.screenshot.sha256
    assert rejects <= steps / 20, "nearly all of the files can be read"
    return steps


def least(builder: Builder, folder: Path) -> float:
    """Return the processor's seconds for what no reader of lines can do without in Python.

    That is decoding them with the fastest decoder there is, and making the records that were read once more from
    values that lie ready: no value is looked at.
    """
    lines = [line for file in builder.source_files() for line in file.read_bytes().splitlines()]
    episodes = [e for shard in builder.shards() for e in builder.read(shard) if isinstance(e, Episode)]
    values = [
        (_EPISODE(e), [(_STEP(s), _ACTION(s.action), s.candidate_boxes) for s in e.steps]) for e in episodes
    ]
    start = time.process_time()
    for line in lines:
        orjson.loads(line)
    for episode, steps in values:
        for step, action, boxes in steps:
            Action(*action), Step(*step), [Box(*box) for box in boxes]
        Episode(*episode)
    return time.process_time() - start


def open_source(name: str, folder: Path) -> Builder:
    """Set the builder up on the files of a folder."""
    return load_builder(SourceConfig(builder=BUILDERS.get(name, name), path=str(folder)))


def measure_ratio(name: str, folder: Path, rounds: int) -> dict[str, Any]:
    """Time both sides in turn and return the ratio."""
    builder = open_source(name, folder)
    steps, pairs = 0, []
    bare(folder)
    for _ in range(rounds):
        start = time.process_time()
        bare(folder)
        between = time.process_time()
        steps = read(builder, builder.shards())
        pairs.append((between - start, time.process_time() - between))
    bare_s = median(pair[0] for pair in pairs)
    floor = {"least": median(least(builder, folder) for _ in range(rounds)) / bare_s} if name in _TEXT else {}
    return {
        **floor,
        "megabytes": sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / 1e6,
        "steps": steps,
        "shards": len(builder.shards()),
        "bare_s": bare_s,
        "reader_s": median(pair[1] for pair in pairs),
        "ratio": median(pair[1] / pair[0] for pair in pairs),
    }


def _child(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


def peak_megabytes(name: str, folder: Path) -> float:
    """Return the peak memory of reading a source in a process of its own."""
    out, _ = _child("--peak-of", name, folder).communicate()
    return float(out)


def _print_peak(name: str, folder: Path) -> None:
    builder = open_source(name, folder)
    read(builder, builder.shards())
    # Not ru_maxrss: a child starts with its parent's. VmHWM is of this program alone (Linux).
    [line] = [t for t in Path("/proc/self/status").read_text().splitlines() if t.startswith("VmHWM")]
    print(int(line.split()[1]) / 1000)


def measure_workers(name: str, folder: Path, rounds: int) -> dict[str, float]:
    """Time one process that reads every shard beside two that read half of them each."""
    found: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(rounds):
        for workers in found:
            ready = [_child("--part", name, folder, part, workers) for part in range(workers)]
            for child in ready:
                assert child.stdout and child.stdout.readline() == "ready\n"
            start = time.perf_counter()
            for child in ready:
                assert child.stdin
                child.stdin.write("go\n")
                child.stdin.flush()
            for child in ready:
                child.communicate()
            found[workers].append(time.perf_counter() - start)
    one, two = (min(seconds) for seconds in found.values())
    return {"one_s": one, "two_s": two, "times_as_fast": one / two}


def _read_part(name: str, folder: Path, part: int, parts: int) -> None:
    builder = open_source(name, folder)
    print("ready", flush=True)
    sys.stdin.readline()
    read(builder, builder.shards()[part::parts])


def measure(name: str, megabytes: float, rounds: int, given: Path | None = None) -> dict[str, Any]:
    """Generate both sizes of a source, unless a folder is given, and return its figures."""
    if given is not None:
        peak = peak_megabytes(name, given)
        return measure_ratio(name, given, rounds) | {"peak_mb": peak, "peak_mb_of_ten_times": peak}
    size = megabytes / 10 if name in _TEXT else megabytes
    with tempfile.TemporaryDirectory() as scratch:
        small, large = Path(scratch, "small"), Path(scratch, "large")
        for folder, times in ((small, 1), (large, TIMES_LARGER)):
            folder.mkdir()
            SOURCES[name](folder, size * times)
        figures = measure_ratio(name, small, rounds)
        figures |= {
            "peak_mb": peak_megabytes(name, small),
            "peak_mb_of_ten_times": peak_megabytes(name, large),
        }
        if name == "android_control":
            figures |= measure_workers(name, large, max(2, rounds // 2))
    return figures


def main() -> int:
    """Print a line a source; exit 1 when a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"sources (default: {', '.join(SOURCES)})")
    parser.add_argument("--megabytes", type=float, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--folder", type=Path, help="files of one source that are there, in place of generated ones"
    )
    parser.add_argument("--peak-of", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--part", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak_of:
        _print_peak(args.peak_of[0], Path(args.peak_of[1]))
        return 0
    if args.part:
        _read_part(args.part[0], Path(args.part[1]), int(args.part[2]), int(args.part[3]))
        return 0
    missed = []
    print(
        f"{'source':22} {'MB':>6} {'steps':>7} {'bare s':>8} {'reader s':>8} {'ratio':>6} {'peak MB':>8} {'ten times':>9}",
        file=sys.stderr,
    )
    results = {}
    for name in args.names or SOURCES:
        found = results[name] = measure(name, args.megabytes, args.rounds, args.folder)
        line = f"{name:22} {found['megabytes']:6.0f} {found['steps']:7,} {found['bare_s']:8.3f} {found['reader_s']:8.3f}"
        line += f" {found['ratio']:6.2f} {found['peak_mb']:8.0f} {found['peak_mb_of_ten_times']:9.0f}"
        if "least" in found:
            line += f"   decoding with orjson and making the records alone {found['least']:.2f}"
        if "times_as_fast" in found:
            line += f"   2 workers {found['times_as_fast']:.2f} times as fast"
        print(line, file=sys.stderr if args.json else sys.stdout, flush=True)
        missed += [name] if found["ratio"] > GOAL_RATIO or found["peak_mb_of_ten_times"] > GOAL_MB else []
        missed += [f"{name}, workers"] if found.get("times_as_fast", GOAL_WORKERS) < GOAL_WORKERS else []
    if args.json:
        print(json.dumps(results))
    print(f"goals missed: {', '.join(missed) or 'none'}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
