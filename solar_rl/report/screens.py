"""Scale screenshots down for the page: one WebP data URI for each, dimensions of the shown screen."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

PORTRAIT_HEIGHT, LANDSCAPE_WIDTH = 256, 340
"""CSS pixels of the longer side of a shown screen: eight phone screens fit side by side on a laptop."""
SHARP, FRUGAL = 1.6, 1.0
"""Stored pixels for one CSS pixel: for few screens and for many, so that the page stays small."""
MANY_SCREENS = 110


def shown_size(width: int, height: int) -> tuple[int, int]:
    """Return the CSS pixels in which a screen of this shape is shown.

    >>> shown_size(1080, 2400), shown_size(1920, 1080)
    ((115, 256), (340, 191))
    """
    if width < height:
        return max(60, round(PORTRAIT_HEIGHT * width / height)), PORTRAIT_HEIGHT
    return LANDSCAPE_WIDTH, max(60, round(LANDSCAPE_WIDTH * height / width))


def data_uris(images: Mapping[str, bytes]) -> dict[str, str]:
    """Encode screenshots as small WebP data URIs, by the same keys.

    Raises:
        OSError: An image can't be decoded (Pillow's UnidentifiedImageError is one).
    """
    scale = SHARP if len(images) <= MANY_SCREENS else FRUGAL
    with ThreadPoolExecutor(max_workers=4) as pool:  # Pillow lets go of the GIL while it decodes and scales
        return dict(zip(images, pool.map(lambda data: _data_uri(data, scale), images.values()), strict=True))


def decode(data: bytes) -> Image:
    """Decode an encoded screenshot into an RGB image."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB")


def _data_uri(data: bytes, scale: float) -> str:
    from PIL import Image

    image = decode(data)
    width, height = (round(scale * side) for side in shown_size(*image.size))
    if width < image.width:
        image = image.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=2.0)
    out = io.BytesIO()
    image.save(out, "WEBP", quality=72, method=4)
    return "data:image/webp;base64," + base64.b64encode(out.getvalue()).decode("ascii")
