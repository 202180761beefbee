"""Time the AndroidControl reader beside bare gunzip, framing and sha256 of the same file, and its memory.

A shard is generated: episodes of 2 to 8 steps, noisy PNG screenshots of about 1 MB, trees of 300 elements.
Both sides run in turn in one process on the same inflater, so the ratio doesn't hang on the machine. A
second shard of twice the size shows that memory doesn't grow. Goal: ratio at most 2.0.

    python benchmarks/bench_android_control.py [--megabytes 200] [--rounds 3] [--json]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "builders")]  # the tests' writer makes the shards

from android_control_writer import Recording, forest, frame, node, window  # noqa: E402

from builders.android_control.tfrecord import read_records  # noqa: E402
from solar_rl.builder import load_builder  # noqa: E402
from solar_rl.config import SourceConfig  # noqa: E402
from solar_rl.schema import Episode  # noqa: E402

WIDTH, HEIGHT = 1080, 2400
ELEMENTS = 300
GOAL_RATIO = 2.0


def noisy_pixels(random: np.random.Generator) -> np.ndarray:
    """Make 1080x2400 RGBA pixels: flat areas, a photo's noise in a third of it."""
    pixels = np.empty((HEIGHT, WIDTH, 4), np.uint8)
    pixels[:] = random.integers(0, 256, 4, np.uint8)
    pixels[: HEIGHT // 3, :, 0] += random.integers(0, 8, (HEIGHT // 3, WIDTH), np.uint8)
    return pixels


def noisy_png(random: np.random.Generator) -> bytes:
    """Make a PNG of such pixels and about 1 MB."""
    rows = np.zeros((HEIGHT, 1 + WIDTH * 4), np.uint8)
    rows[:, 1:] = noisy_pixels(random).reshape(HEIGHT, -1)
    header = WIDTH.to_bytes(4) + HEIGHT.to_bytes(4) + bytes([8, 6, 0, 0, 0])
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b""))
    framed = (len(d).to_bytes(4) + k + d + zlib.crc32(k + d).to_bytes(4) for k, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def crowded_tree(random: np.random.Generator) -> bytes:
    """Make a tree of 300 elements, a third of them invisible, as on a shop's page."""
    nodes = []
    for index in range(ELEMENTS):
        left, top = int(random.integers(0, WIDTH - 80)), int(random.integers(0, HEIGHT - 80))
        box = (left, top, left + int(random.integers(20, 400)), top + int(random.integers(20, 200)))
        text = f"Product {index} of the list" if index % 2 else ""
        nodes.append(node(box, unique_id=index, text=text, clickable=index % 3 == 0, visible=index % 3 != 1))
    return forest(window(nodes, layer=1))


def write(path: Path, megabytes: float, seed: int = 0, first: int = 0) -> int:
    """Write a shard of at least so many MB, ids from ``first`` on, and return its number of episodes."""
    random = np.random.default_rng(seed)
    screens = [noisy_png(random) for _ in range(24)]
    trees = [crowded_tree(random) for _ in range(24)]
    deflate, episodes, written = zlib.compressobj(1, zlib.DEFLATED, 31), 0, 0
    with path.open("wb") as file:
        while written < megabytes * 1_000_000:
            steps = int(random.integers(2, 9))
            points = random.integers(0, 1000, (steps, 2)).tolist()
            chosen = random.integers(0, 24, (2, steps + 1))
            recording = Recording(
                episode_id=first + episodes,
                actions=[{"action_type": "click", "x": x, "y": y} for x, y in points],
                screenshots=[screens[i] for i in chosen[0]],
                trees=[trees[i] for i in chosen[1]],
                widths=[WIDTH] * (steps + 1),
                heights=[HEIGHT] * (steps + 1),
            )
            written += file.write(deflate.compress(frame(recording.example())))
            episodes += 1
        file.write(deflate.flush())
    return episodes


def bare(path: Path) -> int:
    """Gunzip, cut into records, hash: what nobody can do without."""
    records = 0
    for record in read_records(path):
        assert isinstance(record, bytes)
        hashlib.sha256(record).digest()
        records += 1
    return records


def read(path: Path) -> int:
    """Read every episode and hash every screenshot, as a build does."""
    builder = load_builder(SourceConfig(builder="android_control", path=str(path)))
    episodes = 0
    for item in builder.read(path.name):
        assert isinstance(item, Episode)
        assert all(step.screenshot is not None and step.screenshot.sha256 for step in item.steps)
        episodes += 1
    return episodes


def timed(work: Callable[[Path], int], path: Path) -> float:
    """Return the seconds that one run takes."""
    start = time.perf_counter()
    work(path)
    return time.perf_counter() - start


def peak_megabytes(path: Path) -> float:
    """Return the peak memory of reading one shard in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--peak-of", path], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


def measure(megabytes: int, rounds: int) -> dict[str, float]:
    """Generate both shards, run both sides in turn and return the figures."""
    with tempfile.TemporaryDirectory() as folder:
        single, double = Path(folder, "android_control-00000-of-00001"), Path(folder, "twice.tfrecord.gz")
        episodes = write(single, megabytes)
        write(double, 2 * megabytes)
        assert bare(single) == read(single) == episodes  # also warms the file cache
        pairs = [(timed(bare, single), timed(read, single)) for _ in range(rounds)]
        return {
            "shard_mb": single.stat().st_size / 1e6,
            "episodes": episodes,
            "bare_s": median(pair[0] for pair in pairs),
            "reader_s": median(pair[1] for pair in pairs),
            "ratio": median(pair[1] / pair[0] for pair in pairs),
            "peak_mb": peak_megabytes(single),
            "peak_mb_of_twice_the_shard": peak_megabytes(double),
        }


def main() -> int:
    """Print the figures; exit 1 when the goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peak-of", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak_of:
        read(args.peak_of)
        # Not ru_maxrss: a child starts with its parent's. VmHWM is of this program alone (Linux).
        [line] = [t for t in Path("/proc/self/status").read_text().splitlines() if t.startswith("VmHWM")]
        print(int(line.split()[1]) / 1000)
        return 0
    figures = measure(args.megabytes, args.rounds)
    if args.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name:28} {value:10.2f}")
    return 0 if figures["ratio"] <= GOAL_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
