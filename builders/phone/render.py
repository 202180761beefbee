"""Draw a widget tree as a PNG."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import Any

from PIL import Image

from solar_rl.schema import Screenshot

from .drawings import DRAWINGS
from .painter import Painter
from .widgets import HEIGHT, WIDTH, Widget

_COLORS = 128
_FEW = 1 << 13
"""Nearly every screen has fewer colours; counting with this bound is faster."""
_LEVEL = 6
"""zlib level: 9 takes five times as long for 3 % fewer bytes."""


@lru_cache(maxsize=64)
def render(tree: Widget, scale: float) -> Screenshot:
    """Draw the tree and encode it; equal trees give the very same bytes.

    Args:
        tree: Root of the screen.
        scale: Pixels a dp.
    """
    image = _with_palette(paint(tree, scale))
    data = io.BytesIO()
    image.save(data, "PNG", compress_level=_LEVEL)
    return Screenshot(data.getvalue(), image.width, image.height)


def pixels(scale: float) -> tuple[int, int]:
    """Return the width and the height of a drawn screen."""
    return round(WIDTH * scale), round(HEIGHT * scale)


def paint(tree: Widget, scale: float) -> Image.Image:
    """Draw the tree in full colour."""
    painter = Painter(tree, scale)
    _draw(painter, tree)
    return painter.image


def _with_palette(image: Image.Image) -> Image.Image:
    """Keep the most frequent colours exactly and map the rest, edges of letters, to the nearest of them.

    Pillow's own quantisers merge surfaces that differ by a few shades.
    """
    counts: Any = image.getcolors(_FEW) or image.getcolors(image.width * image.height)
    frequent = sorted(counts, reverse=True)[:_COLORS]
    palette = Image.new("P", (1, 1))
    palette.putpalette([band for _, color in frequent for band in color])
    return image.quantize(palette=palette, dither=Image.Dither.NONE)


def _draw(painter: Painter, widget: Widget) -> None:
    """Draw a widget, then what is inside it."""
    drawing = DRAWINGS.get(widget.style) or DRAWINGS.get(widget.role)
    if drawing is not None:
        drawing(painter, widget)
    for child in widget.children:
        _draw(painter, child)
