"""Guess the format of a file or folder by asking every builder, and say honestly where several fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from solar_rl.builder import Builder, Sign
from solar_rl.errors import InputError
from solar_rl.lines import UTF16
from solar_rl.peek import first_objects
from solar_rl.shipped import shipped_module, shipped_names

DATASET = "dataset"
"""A built dataset of ours: not a source but what comes of one."""
CANDIDATES = "candidates"
"""Sampled answers, for ``solar-rl import-candidates``."""
CLOSE = 0.15
"""Guesses whose certainties lie no further apart are a tie."""
_ANSWER = {"episode_id", "step_index", "candidate_index", "completion"}
_PACKED = (".zip", ".tar", ".tar.gz", ".tgz", ".7z", ".rar", ".zst", ".xz", ".bz2")
_LOOKED_INTO, _ABOVE = 40, 3


class Guess(NamedTuple):
    """One format that a path may hold: a builder's short name, ``dataset`` or ``candidates``."""

    format: str
    certainty: float
    why: str
    options: dict[str, Any] = {}


def guess(path: Path) -> list[Guess]:
    """Return what a path holds, the likeliest first, and at least one.

    Raises:
        InputError: There is no such path, it is empty, or no format fits; says what is known and, for a
            folder, what its parts hold.
    """
    if not path.exists():
        raise InputError("no such file or folder", where=str(path))
    if not (path.is_file() or path.is_dir()):
        raise InputError("is neither a file nor a folder", where=str(path))
    if path.is_file() and not path.stat().st_size:
        raise InputError("the file is empty", where=str(path))
    if path.is_dir() and not any(path.iterdir()):
        raise InputError("the folder is empty", where=str(path))
    if path.is_file() and path.name.lower().endswith(_PACKED):  # one of lines would be taken for lines
        raise InputError("is an archive", where=str(path), hint="unpack it, then inspect the folder")
    found = guesses(path)
    if not found:
        raise _unknown(path)
    return found


def guesses(path: Path) -> list[Guess]:
    """Return every format that recognises a path, the likeliest first; empty where none does."""
    if not (path.is_file() or path.is_dir()):  # a pipe or a device: reading it may never end
        return []
    found = [Guess(name, *sign) for name, builder in builders() if (sign := builder.recognises(path))]
    found += [
        Guess(name, *sign) for name, sign in ((DATASET, _dataset(path)), (CANDIDATES, _answers(path))) if sign
    ]
    return sorted(found, key=lambda each: (-each.certainty, each.format))


def builders() -> list[tuple[str, type[Builder]]]:
    """List the shipped builders that read files, by their short names."""
    modules = [(name, shipped_module("builders", name)) for name in shipped_names("builders")]
    found = [(name, module.BUILDER) for name, module in modules if hasattr(module, "BUILDER")]
    return [(name, builder) for name, builder in found if builder.needs_path]


def _dataset(path: Path) -> Sign | None:
    folder = path.parent if path.name == "manifest.json" else path
    row = first_objects(folder / "manifest.json", 1, whole=True)
    if row and {"schema_version", "build_id", "config"} <= row[0].keys():
        return Sign(1.0, f"manifest.json of {row[0].get('name')} {row[0].get('version')}")
    return None


def _answers(path: Path) -> Sign | None:
    if path.suffix == ".parquet":
        return (
            Sign(0.95, f"parquet columns {', '.join(sorted(_ANSWER))}")
            if columns_of(path) >= _ANSWER
            else None
        )
    row = first_objects(path, 1) if path.is_file() else []
    return (
        Sign(0.95, f"lines with {', '.join(sorted(_ANSWER))}") if row and row[0].keys() >= _ANSWER else None
    )


def columns_of(path: Path) -> set[str]:
    """Return the columns of a parquet file; none for any other file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return set(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):
        return set()


def _unknown(path: Path) -> InputError:
    known = ", ".join(name for name, _ in builders())
    hint = f"known: {known}; name one with --builder, or write one (docs/builders.md)"
    if path.is_dir() and (inside := _inside(path)):
        return InputError(
            f"no format fits the folder itself, but inside: {'; '.join(inside)}", where=str(path)
        )
    if above := _above(path):
        return above
    if path.is_dir():
        names = sorted(each.name for each in path.iterdir())
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        return InputError(
            f"no format is recognised in a folder that holds {shown}", where=str(path), hint=hint
        )
    return InputError(f"no format is recognised: {_first_look(path)}", where=str(path), hint=hint)


def _above(path: Path) -> InputError | None:
    """Say that a path is a piece of something that is known, such as its folder of annotations."""
    for parent in path.resolve().parents[:_ABOVE]:
        if found := guesses(parent):
            name = found[0].format
            look = f" ({_first_look(path)})" if path.is_file() else ""
            message = f"is nothing by itself{look}, but lies in {parent}, which is {name}"
            return InputError(message, where=str(path))
    return None


def _inside(folder: Path) -> list[str]:
    parts = sorted(each for each in folder.iterdir() if not each.name.startswith("."))[:_LOOKED_INTO]
    found = [(part, guesses(part)) for part in parts]
    return [f"{part.name} ({best[0].format})" for part, best in found if best][:8]


def _first_look(path: Path) -> str:
    """Say what a file that nobody knows looks like."""
    if columns := columns_of(path):
        return f"a parquet file with columns {', '.join(sorted(columns)[:12])}"
    if rows := first_objects(path, 1):
        return f"JSON with keys {', '.join(list(rows[0])[:12])}"
    with path.open("rb") as file:
        head = file.read(24)
    if head.startswith(UTF16):
        return "it is UTF-16, save it as UTF-8"
    return f"it begins with {head!r}"
