"""Read text files line by line as bytes, plain or gzipped, whole or in byte ranges, in bounded memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from solar_rl.errors import RecordError

MAX_LINE = 64 << 20
"""Bytes of the longest line that is read; a longer one is no record but another kind of file."""
_BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""How a text in UTF-16 begins."""
_BLOCK = 1 << 20


def is_gzip(path: Path) -> bool:
    """Tell by its first bytes, not by its name, whether a file is gzipped."""
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


def read_lines(
    path: Path, start: int = 0, end: int | None = None, *, longest: int = MAX_LINE
) -> Iterator[tuple[int, bytes | RecordError]]:
    """Yield the lines that begin within a range of bytes, without their ends; blank ones are left out.

    A UTF-8 byte order mark is taken off. Ranges that lie side by side give every line once.

    Args:
        path: The file; a gzipped one is read whole.
        start: First byte of the range.
        end: The byte after the range (default: the file's end).
        longest: Bytes of the longest line.

    Yields:
        The line's number within the range, from 1, and the line; a ``RecordError`` for one that is longer
        than ``longest`` (``line_too_long``), for UTF-16 (``bad_text``), and where a gzip stream is cut
        (``truncated``) or damaged (``bad_gzip``).
    """
    number = 0
    packed = is_gzip(path)
    with cast(BinaryIO, gzip.open(path)) if packed else path.open("rb") as file:
        try:
            if start:
                file.seek(start - 1)
                while (tail := file.readline(_BLOCK)) and not tail.endswith(b"\n"):
                    pass  # the rest of a line that began before the range
            at = file.tell()  # counted from here on: asking for each line takes longer than reading it
            while end is None or at < end:
                line = file.readline(longest)
                if not line:
                    return
                at_start, at, number = at == 0, at + len(line), number + 1
                if at_start and line.startswith(UTF16):
                    hint = "save it as UTF-8"
                    yield number, RecordError("bad_text", "the file is UTF-16, expected UTF-8", hint=hint)
                    return
                if len(line) == longest and not line.endswith(b"\n"):
                    _skip_line(file)
                    at = file.tell()
                    yield number, RecordError("line_too_long", f"the line is longer than {longest:,} bytes")
                    continue
                line = (line.removeprefix(_BOM) if at_start else line).rstrip(b"\r\n")
                if line.strip():
                    yield number, line
        except EOFError:
            yield (
                number + 1,
                RecordError("truncated", "the gzip stream ends too early", hint="fetch it again"),
            )
        except (gzip.BadGzipFile, zlib.error) as error:
            yield number + 1, RecordError("bad_gzip", f"the gzip stream is damaged ({error})")


def lines_before(path: Path, start: int) -> int:
    """Count the lines that begin before a byte, for the number of a line in a range."""
    count, left = 0, max(0, start - 1)
    with path.open("rb") as file:
        while left and (block := file.read(min(_BLOCK, left))):
            count, left = count + block.count(b"\n"), left - len(block)
    return count + 1 if start else 0


def _skip_line(file: BinaryIO) -> None:
    while (rest := file.readline(_BLOCK)) and not rest.endswith(b"\n"):
        pass
