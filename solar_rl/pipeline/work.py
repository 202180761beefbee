"""Own a dataset's folder while it is made: lock, whole files or none, and the swap of a finished version.

``OUT/.build/`` holds unfinished work. A new version is made whole in there, its manifest too, and then takes the
old one's place by renames, manifest last.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from solar_rl.errors import InputError
from solar_rl.schema import TABLES
from solar_rl.store.manifest import MANIFEST, Manifest, read_manifest

WORK = ".build"
_FILES = {"README.md", MANIFEST, "views.sql", "report.html", "rejects.jsonl", "croissant.json", "episode.png"}
_LEFT_OUT_AT_TIMES = ("episode.png",)


def temporary_name(path: Path) -> Path:
    """Return a name beside ``path`` that no other process, on whatever machine, writes to."""
    return path.with_name(f".{path.name}.{os.uname().nodename}-{os.getpid()}.tmp")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    temporary = temporary_name(path)
    with temporary.open("wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(path)


def sync(path: Path) -> None:
    """Make sure that a file, or a folder's entries, have reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def swap(staged: Path, out: Path) -> None:
    """Let a finished version take the place of what ``out`` holds; killed at any point, it goes on when run again.

    Args:
        staged: A whole dataset, manifest included, below ``out``.
        out: The dataset's folder. It has no manifest while the rest is exchanged.
    """
    (out / MANIFEST).unlink(missing_ok=True)
    listed = {entry.path for entry in read_manifest(staged).files}
    for name in _LEFT_OUT_AT_TIMES:
        if name not in listed:
            (out / name).unlink(missing_ok=True)  # the old version's
    for path in sorted(staged.iterdir()):
        if path.name == MANIFEST:
            continue
        target = out / path.name
        if target.is_dir():
            # renamed first: a kill while a large folder is deleted must not leave half of it in place
            old = staged.parent / f"{target.name}.old"
            shutil.rmtree(old, ignore_errors=True)
            target.rename(old)
        path.rename(target)
    sync(out)
    (staged / MANIFEST).rename(out / MANIFEST)
    sync(out)


def named(out: Path) -> Path:
    """Give a folder its name where it was called "." or "..": its lock lies beside it under that name."""
    return out if out.name not in {"", ".."} else out.resolve()


def keep_finished(out: Path, there: Manifest, build_id: str) -> None:
    """Let nothing but the same build take the place of a finished version.

    Raises:
        InputError: It is another one.
    """
    if there.build_id != build_id:
        raise InputError(
            f"the folder holds {there.name} {there.version}, and a finished version is never overwritten",
            where=str(out),
            hint="use --out with a new folder",
        )


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the build lock of a dataset folder; it lies beside the folder, never in it.

    Raises:
        InputError: Another build holds it, or it can't be made.
    """
    from filelock import FileLock, Timeout

    out.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(out.parent, os.W_OK):
        raise InputError("the folder can't be written to", where=str(out.parent), hint="use --out")
    lock_path = out.parent / f".{out.name}.lock"
    try:
        lock_path.touch()  # filelock takes a lock that can't be made for one that another process holds
    except OSError as error:
        raise InputError(
            f"the folder can't be written to: {error.strerror}", where=str(out.parent), hint="use --out"
        ) from None
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


@contextmanager
def disk_told(out: Path) -> Iterator[None]:
    """Tell what the disk refuses as the user's to mend."""
    try:
        yield
    except OSError as error:
        raise InputError(
            error.strerror or str(error),
            where=str(error.filename or out),
            hint="mend the cause and run the same command again: it goes on where it stopped",
        ) from error


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
