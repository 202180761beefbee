"""Look into files without reading them: what builders recognise their own format by."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from solar_rl.lines import is_gzip, read_lines

PEEKED_LINE = 4 << 20
"""Bytes of the longest line that is looked at."""
PEEKED_FILE = 64 << 20
"""Bytes of the longest JSON file that is looked at."""


def some_files(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """List the files right in a folder whose names have one of the endings, sorted; none for no folder."""
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if file.name.endswith(endings) and file.is_file())


def first_objects(file: Path, count: int, *, whole: bool = False) -> list[dict[str, Any]]:
    """Return the JSON objects that a file begins with; an empty list where it holds no such thing.

    Args:
        file: A JSON lines file, plain or gzipped, or a JSON file; any other file, or none, may be asked too.
        count: How many lines, or items of a list, are looked at.
        whole: The file is one JSON object, or one list of objects, and can't be lines.
    """
    try:
        if not file.is_file():
            return []
        rows = [] if whole else _lines(file, count)
        if not any(isinstance(row, dict) for row in rows):
            rows = _whole(file)  # an object or a list over many lines
        return [row for row in rows[:count] if isinstance(row, dict)]
    except OSError:
        return []


def lines_about(file: Path) -> int | None:
    """Tell how many lines a file has: counted where it is short, else from the length of its first ones.

    Returns:
        The number; None for a gzipped file, or where not even one line ends in what is looked at.
    """
    if is_gzip(file):
        return None
    with file.open("rb") as opened:
        head = opened.read(PEEKED_LINE)
    size = file.stat().st_size
    if len(head) == size:
        return sum(not line.isspace() for line in head.splitlines() if line)
    ended = head.count(b"\n")
    return round(ended * size / (head.rfind(b"\n") + 1)) if ended else None


def _whole(file: Path) -> list[Any]:
    if file.stat().st_size > PEEKED_FILE:
        return []
    value = _loads(file.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    return value if isinstance(value, list) else [value]


def _lines(file: Path, count: int) -> list[Any]:
    lines = islice(read_lines(file, longest=PEEKED_LINE), count)
    return [_loads(line) for _, line in lines if isinstance(line, bytes)]


def _loads(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
