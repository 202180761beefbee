"""Damage copies of a sample's files in many ways: a builder tells with Rejects and never falls over."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from solar_rl.builder import Builder, load_builder
from solar_rl.config import SourceConfig
from solar_rl.conformance.finding import Finding
from solar_rl.conformance.items import Reading
from solar_rl.errors import InputError
from solar_rl.schema import Episode, Reject

MAX_SAMPLE = 200 << 20
"""Bytes of the largest sample that is copied."""
_FILES_A_KIND, _FILES = 2, 8


def _flip(data: bytes) -> bytes:
    chance, changed = random.Random(0), bytearray(data)
    for _ in range(8):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _half(data: bytes) -> bytes:
    """Cut within a line: between two lines nobody could tell that something is missing."""
    end = len(data) // 2
    while end > 2 and b"\n" in data[end - 2 : end + 2]:
        end -= 1
    return data[:end]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut in half": _half,
    "cut by its last byte": lambda data: data[:-1],
    "with 8 bits flipped": _flip,
    "of noise": lambda data: random.Random(0).randbytes(min(len(data), 4096)),
    "of zeros": lambda data: bytes(min(len(data), 4096)),
}


def damaged_samples(builder: Builder, source: SourceConfig, reading: Reading) -> Iterator[Finding]:
    """Read copies of the sample with one file damaged at a time."""
    if not builder.needs_path:
        return
    name, lost_name = "damage_gives_rejects", "what_is_cut_off_is_told"
    # A sample that is a file may need what lies beside it, such as its screenshots.
    root = builder.path if builder.path.is_dir() else builder.path.parent
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    if size > MAX_SAMPLE:
        detail = f"{size / 1e6:,.0f} MB lie in {root}; a sample of its own below {MAX_SAMPLE / 1e6:,.0f} MB is needed"
        yield Finding(name, "skip", 0, detail)
        return
    faults, lost, tried = [], [], 0
    with TemporaryDirectory() as folder:
        copy = Path(folder, root.resolve().name or "sample")
        shutil.copytree(root, copy)
        path = copy if builder.path.is_dir() else copy / builder.path.name
        moved = source.model_copy(update={"path": str(path)})
        undamaged = _read(moved)
        for file in _chosen(copy, path):
            whole = file.read_bytes()
            for kind, damage in DAMAGES.items():
                file.write_bytes(damage(whole))
                what = f"{file.relative_to(copy)} {kind}"
                tried += 1
                outcome = _read(moved)
                if isinstance(outcome, str):
                    faults.append(f"{what}: {outcome}")
                elif kind == "cut in half" and outcome and _is_silent(outcome, undamaged):
                    lost.append(
                        f"{what}: {outcome.episodes} of {reading.episodes} episodes and no reject more"
                    )
            file.write_bytes(whole)
    yield Finding.of(name, faults, note=f"{tried} damaged copies read")
    yield Finding.of(lost_name, lost)


def _chosen(root: Path, path: Path) -> list[Path]:
    """Choose a few files of each kind, the sample itself first when it is a file."""
    chosen, kinds = [path] if path.is_file() else [], dict[str, int]()
    for file in sorted(
        each for each in root.rglob("*") if each.is_file() and each.stat().st_size and each != path
    ):
        kinds[file.suffix] = kinds.get(file.suffix, 0) + 1
        if kinds[file.suffix] <= _FILES_A_KIND:
            chosen.append(file)
    return chosen[:_FILES]


class _Found(NamedTuple):
    """What a copy of the sample gave: how many episodes, and its rejects."""

    episodes: int
    rejects: Counter[Reject]


def _read(source: SourceConfig) -> _Found | str | None:
    """Read a copy; None where the builder refuses the source, a text where it falls over."""
    try:
        builder = load_builder(source)
        shards = builder.shards()
    except InputError:
        return None
    except Exception as error:
        return f"setting up raises {type(error).__name__}: {error}; expected a ConfigError"
    episodes, rejects = 0, Counter[Reject]()
    try:
        for shard in shards:
            for item in builder.read(shard):
                episodes += isinstance(item, Episode)
                rejects.update([item] if isinstance(item, Reject) else [])
    except Exception as error:
        return f"read raises {type(error).__name__}: {error}; expected a Reject"
    return _Found(episodes, rejects)


def _is_silent(cut: _Found, whole: _Found | str | None) -> bool:
    """Tell whether episodes are lost and no reject is new: some that were there may be cut off as well."""
    return isinstance(whole, _Found) and cut.episodes < whole.episodes and not cut.rejects - whole.rejects
