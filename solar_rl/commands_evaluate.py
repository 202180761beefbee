"""What the judging verbs do: parse raw answers, evaluate predictions, calibrate a verifier."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import orjson

from solar_rl.errors import InputError
from solar_rl.parsing import parse_lines


def parse(file: Path | None, format_name: str, *, canonical: bool) -> None:
    """Read raw answers from a file or stdin and print one action a line."""
    for said in parse_lines(_lines(file), format_name, canonical=canonical):
        sys.stdout.write(orjson.dumps(said).decode() + "\n")


def _lines(file: Path | None) -> Iterator[bytes]:
    if file is None:
        yield from sys.stdin.buffer
        return
    try:
        with file.open("rb") as lines:
            yield from lines
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(file)) from None
