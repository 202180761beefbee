"""Measure, wrap and draw text with the font that Pillow embeds, so that no machine's fonts matter."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

_BOLD_STROKE = 0.022
"""The embedded font has one weight; a stroke of this share of the size makes a bold one."""


@lru_cache(maxsize=64)
def font(size: float) -> ImageFont.FreeTypeFont:
    """Return the embedded font at a size in pixels."""
    loaded = ImageFont.load_default(size)
    assert isinstance(loaded, ImageFont.FreeTypeFont), "Pillow was built without FreeType"
    return loaded


@lru_cache(maxsize=8192)
def text_width(text: str, size: int) -> float:
    """Return the width of one line in dp."""
    return font(size).getlength(text)


class Line(NamedTuple):
    """One line of text as a mask; the origin is the pen's start at the height of the ascender.

    Args:
        mask: The letters, antialiased.
        left: How far the mask's left edge lies right of the origin, in pixels.
        top: How far its top edge lies below the origin.
        width: How far the pen moves.
        height: Ascent and descent of the font together.
    """

    mask: Image.Image
    left: int
    top: int
    width: float
    height: int


@lru_cache(maxsize=4096)
def text_line(text: str, size: float, bold: bool) -> Line:
    """Draw one line as a mask (cached: treat as read-only)."""
    face = font(size)
    stroke = size * _BOLD_STROKE if bold else 0.0
    x1, y1, x2, y2 = face.getbbox(text, stroke_width=stroke)
    left, top = int(x1) - 1, int(y1) - 1
    mask = Image.new("L", (max(1, int(x2) - left + 2), max(1, int(y2) - top + 2)), 0)
    ImageDraw.Draw(mask).text((-left, -top), text, fill=255, font=face, stroke_width=stroke)
    return Line(mask, left, top, face.getlength(text), sum(face.getmetrics()))


@lru_cache(maxsize=4096)
def wrap(text: str, size: int, width: int) -> tuple[str, ...]:
    """Break text into lines that fit ``width`` dp; a word that is too long is cut by letters."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            joined = f"{line} {word}" if line else word
            if text_width(joined, size) <= width:
                line = joined
                continue
            if line:
                lines.append(line)
            *full, line = _cut(word, size, width)
            lines += full
        lines.append(line)
    return tuple(lines)


def _cut(word: str, size: int, width: int) -> list[str]:
    parts = [""]
    for letter in word:
        if parts[-1] and text_width(parts[-1] + letter, size) > width:
            parts.append("")
        parts[-1] += letter
    return parts


@lru_cache(maxsize=4096)
def fit(text: str, size: int, width: int) -> str:
    """Shorten one line with an ellipsis until it fits ``width`` dp."""
    if text_width(text, size) <= width:
        return text
    kept = text
    while kept and text_width(kept + "…", size) > width:
        kept = kept[:-1]
    return kept.rstrip() + "…"
