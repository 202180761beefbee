"""Tell a whole screenshot from a broken one without decoding its pixels, and decode it where pixels count.

A build checks every image, so the check must be cheap: for a PNG the signature, the checksum of each
chunk and the end mark, which is about 0.05 ms a phone screen against 35 ms for decoding it. The checksums are
ISA-L's, which take a thirtieth of zlib's time.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from isal import isal_zlib

from solar_rl.errors import RecordError

if TYPE_CHECKING:
    from PIL import Image

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
_JPEG_END = b"\xff\xd9"
_CHUNK_FRAME = 12
"""Bytes of a PNG chunk beside its data: length, type and checksum, four each."""


@dataclass(frozen=True)
class Screenshot:
    """One encoded image exactly as it will be stored; it is hashed and checked once, however often it is asked.

    Args:
        data: Encoded bytes.
        width: Pixels that it is said to have.
        height: The same down the height.
    """

    data: bytes
    width: int
    height: int

    @classmethod
    def of(cls, data: bytes) -> Screenshot:
        """Take an encoded image, once it was found whole, with the size that it has.

        Raises:
            RecordError: ``bad_image``, with what is broken and where.
        """
        size = check_image(data)
        shot = cls(data, *size)
        vars(shot)["encoded_size"] = size
        return shot

    @cached_property
    def encoded_size(self) -> tuple[int, int]:
        """Check that the image is whole and return the width and height that it has.

        Raises:
            RecordError: ``bad_image``, with what is broken and where.
        """
        return check_image(self.data)

    @cached_property
    def sha256(self) -> str:
        """Return the hex digest of the encoded bytes: the key of table ``images``."""
        return hashlib.sha256(self.data).hexdigest()


def check_image(data: bytes) -> tuple[int, int]:
    """Check that an encoded image is whole and return its size.

    PNG: signature, checksum of each chunk, IHDR first, pixel data, IEND. JPEG and WebP: Pillow's header
    and ``verify``, and the end mark of a JPEG, which ``verify`` doesn't look at.

    Args:
        data: Encoded bytes.

    Returns:
        (width, height) in pixels.

    Raises:
        RecordError: ``bad_image``, with what is broken and where.
    """
    if data.startswith(_PNG):
        return _check_png(memoryview(data))
    if data.startswith(_JPEG):
        if not data.rstrip(b"\0").endswith(_JPEG_END):
            raise _bad("the JPEG has no end mark; it was cut off")
        return _verify(data, "JPEG")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        if len(data) < int.from_bytes(data[4:8], "little") + 8:
            raise _bad("the WebP is shorter than its header says; it was cut off")
        return _verify(data, "WEBP")
    raise _bad(f"begins with {data[:8].hex(' ') or 'nothing'}, expected a PNG, JPEG or WebP")


def decode_image(data: bytes, at_least: tuple[int, int] | None = None) -> Image.Image:
    """Decode an image fully.

    Args:
        data: Encoded bytes.
        at_least: Smallest width and height that will do: a JPEG is then decoded at the next larger of a half,
            a quarter or an eighth of its size, which is faster.

    Raises:
        RecordError: ``bad_image``: it is no image, or its pixels can't be decoded.
    """
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(data))
        if at_least is not None:
            image.draft(None, at_least)
        image.load()
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise _bad(f"can't be decoded: {error}") from error
    return image


def _check_png(view: memoryview) -> tuple[int, int]:
    position, size, has_pixels = len(_PNG), (0, 0), False
    while position + _CHUNK_FRAME <= len(view):
        end = position + _CHUNK_FRAME + int.from_bytes(view[position : position + 4])
        kind = bytes(view[position + 4 : position + 8])
        if end > len(view):
            raise _bad(f"the PNG is cut off in chunk {_name(kind)} at byte {position}")
        if isal_zlib.crc32(view[position + 4 : end - 4]) != int.from_bytes(view[end - 4 : end]):
            raise _bad(f"the checksum of PNG chunk {_name(kind)} at byte {position} is wrong")
        if position == len(_PNG):
            size = _png_size(kind, view[position + 8 : end - 4])
        has_pixels |= kind == b"IDAT"
        if kind == b"IEND":
            if not has_pixels:
                raise _bad("the PNG holds no pixel data")
            return size
        position = end
    raise _bad("the PNG has no end mark (IEND); it was cut off")


def _png_size(kind: bytes, header: memoryview) -> tuple[int, int]:
    if kind != b"IHDR" or len(header) != 13:
        raise _bad("the PNG does not begin with its header (IHDR)")
    width, height = int.from_bytes(header[:4]), int.from_bytes(header[4:8])
    if not (width and height):
        raise _bad(f"the PNG measures {width}x{height} pixels")
    return width, height


def _verify(data: bytes, kind: str) -> tuple[int, int]:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=[kind]) as image:
            size = image.size
            image.verify()
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise _bad(f"can't be read: {error}") from error
    return size


def _name(kind: bytes) -> str:
    return kind.decode("ascii", "backslashreplace")


def _bad(message: str) -> RecordError:
    return RecordError("bad_image", message)
