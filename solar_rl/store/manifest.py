"""Say what a dataset is made of and whether it is complete: manifest.json, written last of all."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

import solar_rl
from solar_rl import __version__
from solar_rl.errors import InputError
from solar_rl.schema import SCHEMA_VERSION, SPLITS

if TYPE_CHECKING:
    from solar_rl.builder import Builder

MANIFEST = "manifest.json"
_BROKEN = "bring the file back, or delete it and build again: without it the folder is an unfinished build"
_SOURCES = {".py", ".sql", ".jinja", ".j2", ".css"}
LIBRARIES = ("datasets", "duckdb", "numpy", "pillow", "polars", "pyarrow", "pydantic", "rapidfuzz")
"""Libraries whose versions can change a byte of what is written."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(_Model):
    """One file of the dataset or of its source; ``rows`` for parquet alone."""

    path: str
    sha256: str
    bytes: int
    rows: int | None = None


class CheckEntry(_Model):
    """One check that the build made of itself: how many things broke it, or were found and are allowed."""

    name: str
    passed: bool
    count: int = 0
    note: str = ""


@dataclass(frozen=True)
class Attribution:
    """Where the demonstrations come from, as the builder states it."""

    source: str
    license: str | None = None
    homepage: str | None = None
    citation: str | None = None
    parts: tuple[Attribution, ...] = ()
    """The sources of a mix, each as its builder states it."""

    @classmethod
    def of(cls, builder: Builder) -> Attribution:
        """State a builder's source, or a mix's: its licence is the one that all of its sources share."""
        stated = (cls(b.name, b.license, b.homepage, b.citation) for b in builder.parts().values())
        parts = tuple(dict.fromkeys(stated))
        if len(parts) == 1:
            return parts[0]
        licenses = {part.license for part in parts}
        citations = dict.fromkeys(part.citation for part in parts if part.citation)
        return cls(
            " + ".join(part.source for part in parts),
            licenses.pop() if len(licenses) == 1 else None,
            citation="\n\n".join(citations) or None,
            parts=parts,
        )


class Manifest(_Model):
    """What ``manifest.json`` holds. No wall-clock time, no host name, no absolute path."""

    schema_version: int = SCHEMA_VERSION
    name: str
    version: str
    build_id: str
    config: dict[str, Any]
    attribution: Attribution | None = None
    stages: dict[str, str] = {}
    """Key of each stage: what a rebuild compares to know what it may keep."""
    source_files: tuple[FileEntry, ...] = ()
    sampler_files: dict[str, str] = {}
    """Hashes of the sampler's own files, such as a model's."""
    code: dict[str, str] = {}
    libraries: dict[str, str] = {}
    seeds: dict[str, int] = {}
    counts: dict[str, int] = {}
    rejects: dict[str, int] = {}
    filtered: dict[str, dict[str, int]] = {}
    schemas: dict[str, str] = {}
    checks: tuple[CheckEntry, ...] = ()
    files: tuple[FileEntry, ...] = ()

    def table_rows(self, table: str) -> dict[str, int]:
        """Return the rows of a table by split, for the splits that have a file.

        >>> entry = FileEntry(path="data/steps/train-00000-of-00001.parquet", sha256="", bytes=9, rows=3)
        >>> Manifest(name="n", version="1.0.0", build_id="b", config={}, files=[entry]).table_rows("steps")
        {'train': 3}
        """
        rows = dict.fromkeys(SPLITS, 0)
        found = set()
        for entry in self.files:
            parts = entry.path.split("/")
            if parts[:2] == ["data", table] and entry.rows is not None:
                split = parts[2].split("-")[0]
                rows[split] += entry.rows
                found.add(split)
        return {split: count for split, count in rows.items() if split in found}


def code_versions() -> dict[str, str]:
    """Return solar-rl's version and the hash of its sources."""
    return {"solar-rl": __version__, "solar-rl sources": source_digest(Path(solar_rl.__file__).parent)}


def source_digest(root: Path) -> str:
    """Return 16 hex digits of a source file, or of every source below a folder (what is shipped left out)."""
    files = [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.suffix in _SOURCES)
    digest = hashlib.sha256()
    for path in files:
        name = path.relative_to(root).as_posix()
        if not name.startswith("_shipped/"):
            digest.update(f"{name}\0{sha256_file(path)}\0".encode())
    return digest.hexdigest()[:16]


def library_versions() -> dict[str, str]:
    """Return the installed versions of ``LIBRARIES``, for ``Manifest.libraries``."""
    return {name: version(name) for name in LIBRARIES}


def make_build_id(
    config_digest: str, source_files: Iterable[FileEntry], code: Mapping[str, str] | None = None
) -> str:
    """Return 16 hex digits that name a build: its config, its source's bytes and the code's version.

    Args:
        config_digest: ``DatasetConfig.digest()``.
        source_files: Every file of the source that is read.
        code: What made it (default: ``code_versions``).
    """
    sources = sorted((entry.path, entry.sha256) for entry in source_files)
    text = json.dumps([SCHEMA_VERSION, dict(code or code_versions()), config_digest, sources], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def damaged_files(folder: Path, manifest: Manifest) -> list[str]:
    """List the files that are no longer what the manifest says: missing, of another size, of other bytes."""
    return [
        entry.path
        for entry in manifest.files
        if not (folder / entry.path).is_file()
        or (folder / entry.path).stat().st_size != entry.bytes
        or sha256_file(folder / entry.path) != entry.sha256
    ]


def sha256_file(path: Path) -> str:
    """Return the hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_entry(folder: str | Path, path: str | Path, rows: int | None = None) -> FileEntry:
    """Describe one file below ``folder``.

    Args:
        folder: The dataset's folder, or the source's.
        path: The file, absolute or relative to ``folder``.
        rows: Rows of a parquet file.

    Raises:
        InputError: The file is missing.
    """
    full = Path(folder) / path
    if not full.is_file():
        raise InputError("no such file", where=str(full))
    relative = full.relative_to(folder).as_posix()
    return FileEntry(path=relative, sha256=sha256_file(full), bytes=full.stat().st_size, rows=rows)


def named_entry(name: str, path: Path) -> FileEntry:
    """Describe a file of the source under a name of its own.

    Raises:
        InputError: The file is missing.
    """
    return file_entry(path.parent, path.name).model_copy(update={"path": name})


def list_files(folder: str | Path) -> list[str]:
    """List every file of a dataset but the manifest as sorted relative paths, hidden ones left out."""
    root = Path(folder)
    paths = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    shown = [path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts)]
    return sorted(path for path in shown if path != MANIFEST)


def describe_files(folder: str | Path, known: Mapping[str, FileEntry] | None = None) -> list[FileEntry]:
    """Describe every file of a dataset but the manifest, sorted by path, hidden ones left out.

    Args:
        folder: The dataset's folder.
        known: Entries by path that needn't be hashed again, such as those of hard-linked tables.
    """
    return [(known or {}).get(path) or _described(Path(folder), path) for path in list_files(folder)]


def _described(root: Path, path: str) -> FileEntry:
    import pyarrow.parquet as pq

    rows = pq.read_metadata(root / path).num_rows if path.endswith(".parquet") else None
    return file_entry(root, path, rows)


def first_damaged(folder: str | Path, manifest: Manifest) -> str | None:
    """Return the first listed file that is missing or has another size; None when all look whole.

    A look at sizes alone, cheap enough for every reader; ``validate`` compares the bytes.
    """
    for entry in manifest.files:
        path = Path(folder) / entry.path
        if not path.is_file() or path.stat().st_size != entry.bytes:
            return entry.path
    return None


def require_whole(folder: str | Path) -> Manifest:
    """Read a dataset's manifest and make sure that its data files are there in full.

    Raises:
        InputError: No complete dataset there, or a data file is missing or has another size.
    """
    manifest = read_manifest(folder)
    data = manifest.model_copy(update={"files": [e for e in manifest.files if e.path.startswith("data/")]})
    if (path := first_damaged(folder, data)) is not None:
        raise InputError(
            "a file of the dataset is missing or has another size than its manifest says",
            where=str(Path(folder) / path),
            hint="`solar-rl validate` lists what is wrong; build or download it again",
        )
    return manifest


def write_text(path: str | Path, text: str) -> Path:
    """Write a whole text file or nothing: temporary name, fsync, rename. NUL, which no text may hold, is shown."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text.replace("\0", "\ufffd"))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    return path


def write_manifest(folder: str | Path, manifest: Manifest) -> Path:
    """Write ``manifest.json``: from here on the dataset counts as complete."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=1, ensure_ascii=False, sort_keys=False)
    return write_text(Path(folder) / MANIFEST, text + "\n")


def read_manifest(folder: str | Path) -> Manifest:
    """Read and check ``manifest.json``.

    Raises:
        InputError: No such folder, no manifest (an unfinished build), or one that we can't read.
    """
    path = Path(folder) / MANIFEST
    if not Path(folder).is_dir():
        hint = "a folder of this machine is needed: `hf download` brings it" if "hf:" in str(folder) else None
        raise InputError("no such dataset folder", where=str(folder), hint=hint)
    if not path.is_file():
        begun = (Path(folder) / "data").is_dir()
        hint = (
            "an unfinished build? run the same `solar-rl build` again and it goes on where it stopped"
            if begun
            else "a dataset has manifest.json and data/; name the folder that `solar-rl build` wrote"
        )
        raise InputError("no manifest.json in this folder", where=str(folder), hint=hint)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = data.get("schema_version") if isinstance(data, dict) else None
        if isinstance(found, int) and found > SCHEMA_VERSION:
            raise InputError(
                f"written with schema version {found}, this solar-rl knows {SCHEMA_VERSION}",
                where=str(path),
                hint="pip install --upgrade solar-rl",
            )
        return Manifest.model_validate(data)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"manifest.json is no JSON: {error}", where=str(path), hint=_BROKEN) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"manifest.json is wrong at '{key}': {first['msg']}", where=str(path), hint=_BROKEN
        ) from error
