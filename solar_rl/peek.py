"""Look into files without reading them: what builders recognise their own format by."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from solar_rl.lines import read_lines

PEEKED = 1 << 20
"""Bytes of the longest line, and of the longest JSON file, that is looked at."""


def some_files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """List the files right in a folder whose names have one of the endings, sorted; none for no folder."""
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.name.endswith(endings) and file.is_file())


def first_objects(file: Path, count: int) -> list[dict[str, Any]]:
    """Return the JSON objects in the first lines of a file; an empty list where it holds no such thing.

    Args:
        file: A JSON lines file, plain or gzipped; any other file may be asked too.
        count: How many lines are looked at.
    """
    try:
        return list(_objects(file, count))
    except OSError:
        return []


def _objects(file: Path, count: int) -> Iterator[dict[str, Any]]:
    for _, line in islice(read_lines(file, longest=PEEKED), count):
        try:
            row = orjson.loads(line) if isinstance(line, bytes) else None
        except orjson.JSONDecodeError:
            row = None
        if isinstance(row, dict):
            yield row
