from __future__ import annotations

import io
import struct
import zlib

import pytest
from PIL import Image

from solar_rl.errors import RecordError
from solar_rl.images import check_image, decode_image


def encoded(kind: str, size=(31, 17)) -> bytes:
    out = io.BytesIO()
    Image.effect_noise(size, 60).convert("RGB").save(out, kind)
    return out.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER = chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 3, 8, 0, 0, 0, 0))
PIXELS = chunk(b"IDAT", zlib.compress(b"\0aaaa" * 3))
END = chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_tells_the_size_of_a_whole_image(kind):
    data = encoded(kind)
    assert check_image(data) == (31, 17)
    assert decode_image(data).size == (31, 17)


def test_takes_bytes_after_the_end_mark():
    assert check_image(encoded("PNG") + b"more") == (31, 17)
    assert check_image(encoded("JPEG") + b"\0\0") == (31, 17)


def test_finds_a_flipped_bit_anywhere_in_a_png():
    data = encoded("PNG")
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 4
        with pytest.raises(RecordError) as caught:
            check_image(bytes(changed))
        assert caught.value.reason == "bad_image"


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_finds_an_image_cut_at_any_place(kind):
    data = encoded(kind)
    for cut in range(0, len(data), 13):
        with pytest.raises(RecordError) as caught:
            check_image(data[:cut])
        assert caught.value.reason == "bad_image"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "begins with nothing"),
        (b"GIF89a\x01\x00", "begins with 47 49 46"),
        (SIGNATURE + HEADER + PIXELS, "no end mark"),
        (SIGNATURE + HEADER + END, "holds no pixel data"),
        (SIGNATURE + PIXELS + END, "does not begin with its header"),
        (
            SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 3, 8, 0, 0, 0, 0)) + PIXELS + END,
            "0x3 pixels",
        ),
        (SIGNATURE + HEADER + PIXELS[:-1] + b"!" + END, "checksum of PNG chunk IDAT at byte 33"),
        (b"\xff\xd8\xff\xe0 no jpeg \xff\xd9", "can't be read"),
        (b"RIFF\x04\0\0\0WEBP", "can't be read"),
    ],
)
def test_says_what_is_broken(data, message):
    with pytest.raises(RecordError, match=message):
        check_image(data)


def test_decoding_finds_pixels_that_the_checksums_do_not_tell():
    data = SIGNATURE + HEADER + chunk(b"IDAT", zlib.compress(b"\0a")) + END
    assert check_image(data) == (4, 3)
    with pytest.raises(RecordError, match="can't be decoded"):
        decode_image(data)


@pytest.mark.parametrize("data", [b"", b"no image", SIGNATURE + HEADER])
def test_decoding_says_what_is_no_image(data):
    with pytest.raises(RecordError, match="can't be decoded"):
        decode_image(data)
