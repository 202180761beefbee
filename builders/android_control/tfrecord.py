"""Read a GZIP TFRecord file one record at a time, every checksum checked, without TensorFlow.

A record is its length (8 bytes, little endian), the masked CRC32C of the length, the data, and the masked
CRC32C of the data. Damage costs as little as it can: a record whose data are wrong is skipped alone;
only where the next record begins can no longer be known is the rest of the file given up.

Source of the framing: TensorFlow's TFRecord format; the reader is ours.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from crc32c import crc32c

from solar_rl.errors import RecordError

_COMPRESSED = 1 << 17
_PIECE = 1 << 20
_GZIP = 31
"""zlib's wbits for a gzip stream, its checksum included."""


def read_records(path: Path) -> Iterator[bytes | RecordError]:
    """Yield each record's data, or an error in the place of what can't be read.

    Memory is one record, whatever the size of the file.

    Args:
        path: A GZIP TFRecord file.

    Yields:
        Data of a record; a ``RecordError`` for a damaged one (``bad_crc``: this record alone when its
        data are wrong, the rest of the file when its length is), or for a file that ends too early
        (``truncated``) or whose gzip stream is damaged (``bad_gzip``).
    """
    with path.open("rb") as file:
        stream, skipped = _Bytes(_inflate(file)), False
        try:
            while header := stream.read(12):
                item = _frame(stream, header)
                skipped |= isinstance(item, RecordError)
                yield item
        except _FileDamaged as error:
            # When a record was skipped, the gzip checksum only says the same thing again.
            if not (skipped and error.reason == "bad_gzip_checksum"):
                yield error


def is_tfrecord(path: Path) -> bool:
    """Tell whether a file begins as a GZIP TFRecord does: with a record's length and its checksum."""
    if not path.is_file():  # opening a pipe would wait for its other end
        return False
    try:
        with path.open("rb") as file:
            header = zlib.decompressobj(_GZIP).decompress(file.read(1 << 16), 12)
    except (OSError, zlib.error):
        return False
    return len(header) == 12 and masked_crc(header[:8]) == int.from_bytes(header[8:], "little")


class _FileDamaged(RecordError):
    """What follows in the file can't be read."""


def masked_crc(data: bytes) -> int:
    """Return TFRecord's checksum: CRC32C, rotated and shifted by a constant.

    >>> hex(masked_crc(b""))
    '0xa282ead8'
    """
    crc: int = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _frame(stream: _Bytes, header: bytes) -> bytes | RecordError:
    if len(header) < 12:
        raise _cut_off("a record's length")
    if masked_crc(header[:8]) != int.from_bytes(header[8:], "little"):
        raise _FileDamaged(
            "bad_crc",
            "the checksum of the record's length is wrong; where the next record begins is unknown, "
            "so the rest of the file is left out",
        )
    length = int.from_bytes(header[:8], "little")
    data = stream.read(length)
    footer = stream.read(4)
    if len(footer) < 4:
        raise _cut_off(f"a record of {length} bytes, {len(data)} of which are there")
    if masked_crc(data) != int.from_bytes(footer, "little"):
        return RecordError("bad_crc", f"the checksum of the record's {length} bytes is wrong")
    return data


def _cut_off(where: str) -> _FileDamaged:
    return _FileDamaged("truncated", f"the file ends within {where}", hint="fetch it again")


class _Bytes:
    """Hands out exact counts of bytes from pieces of any size."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer only at the end."""
        parts, missing = [], size
        while missing:
            if not self._rest:
                self._rest = memoryview(next(self._pieces, b""))
                if not self._rest:
                    break
            part, self._rest = self._rest[:missing], self._rest[missing:]
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


def _inflate(file: BinaryIO) -> Iterator[bytes]:
    """Yield what a gzip file holds in non-empty pieces, twice as fast as module gzip.

    Raises:
        _FileDamaged: After everything that lies before the damage has been yielded.
    """
    inflater, read = zlib.decompressobj(_GZIP), 0
    while compressed := file.read(_COMPRESSED):
        read += len(compressed)
        while compressed:
            if inflater.eof:  # a gzip file may hold several members, one after the other
                inflater = zlib.decompressobj(_GZIP)
            before = inflater.copy()
            try:
                piece = inflater.decompress(compressed, _PIECE)
            except zlib.error as error:
                yield from _up_to_damage(before, compressed)
                raise _gzip_damage(error, read - len(compressed)) from error
            compressed = inflater.unconsumed_tail or inflater.unused_data
            if piece:
                yield piece
    if not inflater.eof:
        raise _FileDamaged("truncated", f"the gzip stream ends too early, after {read} bytes of the file")


def _up_to_damage(inflater: zlib._Decompress, compressed: bytes) -> Iterator[bytes]:
    """Feed byte by byte, since zlib keeps back what one call gave when it ends in an error."""
    for position in range(len(compressed)):
        try:
            piece = inflater.decompress(compressed[position : position + 1])
        except zlib.error:
            return
        if piece:
            yield piece


def _gzip_damage(error: zlib.error, position: int) -> _FileDamaged:
    if "incorrect data check" in str(error) or "incorrect length check" in str(error):
        return _FileDamaged("bad_gzip_checksum", "the gzip checksum at the end of the file is wrong")
    return _FileDamaged("bad_gzip", f"the gzip stream is damaged after byte {position} ({error})")
