"""Remember file hashes between builds, so that a source of many gigabytes is read once, not at every look.

A hash is believed as long as path, size, time of change and inode are the same. The little file lies
in the cache folder beside the datasets and may be deleted at any time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson

from solar_rl.errors import InputError
from solar_rl.pipeline.work import write_atomically
from solar_rl.store.manifest import FileEntry, sha256_file

_NAME = "hashes.json"
_AT_ONCE = 4
"""Files that are hashed side by side: a hash leaves Python idle."""
_SETTLED_NS = 2_000_000_000
"""A file that changed less than 2 s ago is not remembered: a clock tick may hide the next change."""


class FileHashes:
    """SHA-256 of files, remembered in ``FOLDER/hashes.json``.

    Args:
        folder: The cache folder; None remembers nothing.
        trust: Whether to believe what is remembered (``--rehash`` doesn't).
    """

    def __init__(self, folder: Path | None, *, trust: bool = True) -> None:
        self._path = folder / _NAME if folder else None
        self._known = _read(self._path) if trust else {}
        self._changed = False

    def sha256(self, path: Path) -> str:
        """Return the hex digest of a file's bytes."""
        state = path.stat()
        mark = [state.st_size, state.st_mtime_ns, state.st_ino]
        name = str(path.resolve())
        remembered = self._known.get(name)
        if remembered is not None and remembered[:3] == mark:
            return str(remembered[3])
        digest = sha256_file(path)
        if abs(time.time_ns() - state.st_mtime_ns) > _SETTLED_NS:
            self._known[name] = [*mark, digest]
            self._changed = True
        return digest

    def entries(self, named: Sequence[tuple[str, Path]]) -> tuple[FileEntry, ...]:
        """Describe files of a source under names of their own; several are read at once.

        Raises:
            InputError: One is missing.
        """
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            return tuple(threads.map(lambda file: self._entry(*file), named))

    def _entry(self, name: str, path: Path) -> FileEntry:
        if not path.is_file():
            raise InputError("no such file", where=str(path))
        return FileEntry(path=name, sha256=self.sha256(path), bytes=path.stat().st_size)

    def tree(self, path: Path) -> dict[str, str]:
        """Return the digest of a file, or of every file below a folder by relative path."""
        files: Iterable[Path] = [path] if path.is_file() else (p for p in path.rglob("*") if p.is_file())
        root = path.parent if path.is_file() else path
        return {file.relative_to(root).as_posix(): self.sha256(file) for file in sorted(files)}

    def save(self) -> None:
        """Write down what was learnt; the last writer wins."""
        if self._path is not None and self._changed:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path, orjson.dumps(self._known))
            self._changed = False


def _read(path: Path | None) -> dict[str, list[int | str]]:
    """Read the remembered hashes; a file that is gone or torn is an empty memory."""
    if path is None or not path.is_file():
        return {}
    try:
        known = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError:
        return {}
    return known if isinstance(known, dict) else {}
