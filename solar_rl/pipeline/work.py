"""Keep a build's unfinished work where a killed run can find it again.

``OUT/.build/KEY/`` holds one folder per finished unit (a handful of episodes with their candidates and
scores) and every screenshot once, by content hash. Everything lands by write-to-temporary, fsync and
rename; a unit's marker comes last, so a unit is whole or absent.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from solar_rl.errors import InputError
from solar_rl.schema import TABLES, Reject, Screenshot

WORK = ".build"
_MARKER = "done.json"
_FILES = {"README.md", "manifest.json", "views.sql", "report.html", "rejects.jsonl"}


@dataclass(frozen=True)
class Unit:
    """One finished unit: its folder, its episodes and what its source shard rejected on the way."""

    folder: Path
    episode_ids: tuple[str, ...]
    rejects: tuple[Reject, ...]

    def scan(self, table: str) -> pl.LazyFrame:
        """Return one of the unit's tables as a lazy frame."""
        return pl.scan_parquet(self.folder / f"{table}.parquet")


class Work:
    """The work folder of one build.

    Args:
        out: Folder of the dataset that is being built.
        key: Identity of the build; work under another key is never reused.
    """

    def __init__(self, out: Path, key: str) -> None:
        self.root = out / WORK / key[:16]
        self.images = self.root / "images"
        self.images.mkdir(parents=True, exist_ok=True)

    def find_unit(self, index: int, episode_ids: Iterable[str], rejects: Iterable[Reject]) -> Unit | None:
        """Return the finished unit of that index if it holds exactly these episodes and rejects."""
        folder = self._unit_folder(index)
        marker = folder / _MARKER
        if not marker.exists():
            return None
        unit = Unit(folder, tuple(episode_ids), tuple(rejects))
        return unit if orjson.loads(marker.read_bytes()) == _marker(unit) else None

    def save_unit(
        self,
        index: int,
        episode_ids: Iterable[str],
        rejects: Iterable[Reject],
        tables: dict[str, pl.DataFrame],
        screenshots: Iterable[Screenshot],
    ) -> Unit:
        """Write a unit's images and tables, and its marker last."""
        for screenshot in screenshots:
            self._save_image(screenshot)
        folder = self._unit_folder(index)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name, frame in tables.items():
            frame.write_parquet(folder / f"{name}.parquet", compression="zstd", compression_level=1)
        unit = Unit(folder, tuple(episode_ids), tuple(rejects))
        write_atomically(folder / _MARKER, orjson.dumps(_marker(unit)))
        return unit

    def image_path(self, sha256: str) -> Path:
        """Return where the screenshot of that hash lies."""
        return self.images / sha256[:2] / sha256

    def _save_image(self, screenshot: Screenshot) -> None:
        path = self.image_path(screenshot.sha256)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, screenshot.data)

    def _unit_folder(self, index: int) -> Path:
        return self.root / "units" / f"{index:06d}"


def _marker(unit: Unit) -> dict[str, Any]:
    return {"episode_ids": list(unit.episode_ids), "rejects": [asdict(reject) for reject in unit.rejects]}


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(path)


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the build lock of a dataset folder; it lies beside the folder, never in it.

    Raises:
        InputError: Another build holds it.
    """
    from filelock import FileLock, Timeout

    out.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(out.parent, os.W_OK):
        raise InputError("the folder can't be written to", where=str(out.parent), hint="use --out")
    lock_path = out.parent / f".{out.name}.lock"
    lock = FileLock(lock_path, timeout=0)
    owner = lock_path.with_suffix(".pid")
    try:
        lock.acquire()
    except Timeout:
        pid = owner.read_text() if owner.exists() else "unknown"
        raise InputError(
            f"another build (pid {pid}) is writing here", where=str(out), hint="wait for it, or use --out"
        ) from None
    try:
        owner.write_text(str(os.getpid()))
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()
        lock_path.unlink(missing_ok=True)


def claim(out: Path) -> None:
    """Make sure that a folder may be written to: new, empty, an unfinished build, or a dataset.

    Raises:
        InputError: It holds something else, or can't be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"can't be created: {error.strerror}", where=str(out)) from error
    foreign = next((path for path in sorted(out.iterdir()) if not _is_ours(path)), None)
    if foreign is not None:
        raise InputError(
            f"the folder holds '{foreign.name}', which is no part of a dataset",
            where=str(out),
            hint="use --out with a new folder",
        )
    if not os.access(out, os.W_OK):
        raise InputError("the folder can't be written to", where=str(out))


def _is_ours(path: Path) -> bool:
    """Tell whether a build may have put this into a dataset's folder, and so may replace it."""
    if path.name == "data" and path.is_dir():
        return all(
            table.name in TABLES and table.is_dir() and _only_parquet(table) for table in path.iterdir()
        )
    return path.name in _FILES or path.name == WORK or path.name.endswith(".tmp")


def _only_parquet(folder: Path) -> bool:
    return all(path.name.removesuffix(".tmp").endswith(".parquet") for path in folder.iterdir())
