"""Icons drawn from shapes on a grid of 24 x 24: our own drawings, no font and no file.

A shape is (kind, points, width): ``line`` and ``arc`` are strokes, ``poly``, ``disc`` and ``box`` are
filled where width is 0. A negative width cuts the shape out.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from PIL import Image, ImageDraw

_OVERSAMPLING = 4


class Shape(NamedTuple):
    """One stroke or area of an icon."""

    kind: str
    points: tuple[float, ...]
    width: float = 0.0


def _line(*points: float, width: float = 2.0) -> Shape:
    return Shape("line", points, width)


def _ring(x: float, y: float, radius: float, width: float = 2.0) -> Shape:
    return Shape("disc", (x, y, radius), width)


def _disc(x: float, y: float, radius: float) -> Shape:
    return Shape("disc", (x, y, radius))


def _box(x1: float, y1: float, x2: float, y2: float, radius: float = 2.0, width: float = 0.0) -> Shape:
    return Shape("box", (x1, y1, x2, y2, radius), width)


def _poly(*points: float) -> Shape:
    return Shape("poly", points)


def _hole(shape: Shape) -> Shape:
    return shape._replace(width=-1.0)


def _star() -> Shape:
    points: list[float] = []
    for corner in range(10):
        radius = 9.5 if corner % 2 == 0 else 4.0
        angle = math.pi * corner / 5 - math.pi / 2
        points += [12 + radius * math.cos(angle), 12.6 + radius * math.sin(angle)]
    return Shape("poly", tuple(points))


def _gear() -> tuple[Shape, ...]:
    teeth = [
        _line(12, 12, 12 + 9.5 * math.cos(math.pi * t / 4), 12 + 9.5 * math.sin(math.pi * t / 4), width=4)
        for t in range(8)
    ]
    return (*teeth, _disc(12, 12, 7), _hole(_disc(12, 12, 3)))


_FILE = (_box(5, 2, 19, 22, 2), _hole(_poly(13, 1.5, 19.5, 8, 13, 8)), _poly(14, 3, 18.5, 7.5, 14, 7.5))

ICONS: dict[str, tuple[Shape, ...]] = {
    "back": (_line(20, 12, 5, 12), _line(12, 5, 5, 12, 12, 19)),
    "forward": (_line(9, 5, 16, 12, 9, 19),),
    "previous": (_line(15, 5, 8, 12, 15, 19),),
    "device": (_box(6, 1.5, 18, 22.5, 3), _hole(_box(8, 4.5, 16, 18, 1)), _hole(_disc(12, 20.2, 1))),
    "more": (_disc(12, 5, 1.9), _disc(12, 12, 1.9), _disc(12, 19, 1.9)),
    "add": (_line(12, 5, 12, 19, width=2.4), _line(5, 12, 19, 12, width=2.4)),
    "minus": (_line(5, 12, 19, 12, width=2.4),),
    "close": (_line(6, 6, 18, 18), _line(18, 6, 6, 18)),
    "check": (_line(4, 12.5, 9.5, 18, 20, 6.5, width=2.4),),
    "search": (_ring(10.5, 10.5, 6.5), _line(15.5, 15.5, 20.5, 20.5, width=2.4)),
    "star": (_star(),),
    "star_off": (_star(), Shape("poly", tuple(12.3 + (p - 12.3) * 0.66 for p in _star().points), -1.0)),
    "delete": (_box(6, 8, 18, 21, 2), _line(4, 5.5, 20, 5.5), _line(9, 3.5, 15, 3.5)),
    "edit": (
        _poly(4, 20, 4.8, 15.6, 15.5, 5, 19, 8.5, 8.4, 19.2),
        _poly(16.6, 3.8, 18, 2.6, 21.4, 6, 20.1, 7.4),
    ),
    "person": (_disc(12, 8, 4.4), _box(4, 14, 20, 26, 7)),
    "phone": (
        _line(5.5, 5, 9, 12.5, 15, 17.5, 19.5, 19, width=4.2),
        _disc(6, 6, 2.8),
        _disc(18.5, 18.5, 2.8),
    ),
    "mail": (
        _box(3, 5, 21, 19, 2),
        _hole(_line(4, 7, 12, 13, 20, 7)),
    ),
    "chat": (_box(3, 3, 21, 17, 4), _poly(6, 15, 6, 22, 12, 16)),
    "send": (_poly(3, 3.5, 22, 12, 3, 20.5, 6, 12), _hole(_line(5, 12, 13, 12, width=1.6))),
    "clock": (_ring(12, 12, 9), _line(12, 7, 12, 12.5, 16, 15)),
    "alarm": (_ring(12, 13, 8), _line(12, 9, 12, 13.5, 15, 15), _line(3, 6, 7, 2.8), _line(21, 6, 17, 2.8)),
    "timer": (_ring(12, 13.5, 8), _line(12, 9.5, 12, 13.5), _line(9.5, 2.5, 14.5, 2.5)),
    "note": (
        _box(4, 3, 20, 21, 2),
        *(_hole(_line(7.5, y, x, y, width=1.6)) for y, x in ((8, 16.5), (12, 16.5), (16, 13))),
    ),
    "list": tuple(s for y in (6, 12, 18) for s in (_disc(4.5, y, 1.7), _line(9, y, 20.5, y))),
    "pin": (_box(8, 3, 16, 12, 2), _line(6, 13, 18, 13), _line(12, 13, 12, 21)),
    "cart": (_line(2, 4, 5, 4, 8, 15, 18.5, 15, 21, 7, 6, 7), _disc(9, 19.5, 1.9), _disc(17.5, 19.5, 1.9)),
    "bag": (_box(4, 8, 20, 21, 3), _ring(12, 8, 4), _hole(_line(9, 11.5, 15, 11.5, width=1.6))),
    "calendar": (
        _box(3.5, 5, 20.5, 21, 2.5),
        _hole(_box(6, 10, 18, 18.5, 1)),
        _line(8, 3, 8, 6),
        _line(16, 3, 16, 6),
        _box(8, 12, 12, 16, 0.5),
    ),
    "folder": (_box(2.5, 5, 11, 12, 2), _box(2.5, 7.5, 21.5, 19.5, 2)),
    "file": _FILE,
    "image": (
        _box(3, 4, 21, 20, 2.5),
        _hole(_disc(8.5, 9, 1.8)),
        _hole(_poly(5, 18, 10, 11.5, 13, 15, 15.5, 12.5, 19, 18)),
    ),
    "music": (_line(9, 18, 9, 5, 19, 3.5, 19, 16), _disc(6.7, 18, 2.7), _disc(16.7, 16.2, 2.7)),
    "settings": _gear(),
    "wifi": (
        Shape("arc", (12, 19, 15, 225, 315), 2.2),
        Shape("arc", (12, 19, 10, 225, 315), 2.2),
        _disc(12, 18, 2.2),
    ),
    "bluetooth": (_line(7, 8, 17, 16.5, 12, 21, 12, 3, 17, 7.5, 7, 16, width=1.9),),
    "airplane": (
        _poly(
            11,
            2,
            13,
            2,
            14,
            9,
            22,
            14,
            22,
            16,
            14,
            13.5,
            13.4,
            19,
            16,
            21,
            16,
            22,
            12,
            21,
            8,
            22,
            8,
            21,
            10.6,
            19,
            10,
            13.5,
            2,
            16,
            2,
            14,
            10,
            9,
        ),
    ),
    "bell": (_box(6, 4, 18, 20, 6), _box(4, 15.5, 20, 18, 1), _disc(12, 20, 2.2)),
    "moon": (_disc(12, 12, 9), _hole(_disc(16.5, 9, 7.5))),
    "sun": (
        _disc(12, 12, 4.5),
        *(
            _line(
                12 + 6.8 * math.cos(math.pi * t / 4),
                12 + 6.8 * math.sin(math.pi * t / 4),
                12 + 9.6 * math.cos(math.pi * t / 4),
                12 + 9.6 * math.sin(math.pi * t / 4),
                width=1.8,
            )
            for t in range(8)
        ),
    ),
    "volume": (
        _poly(3, 9, 7, 9, 12, 4.5, 12, 19.5, 7, 15, 3, 15),
        Shape("arc", (12, 12, 5, 300, 420), 2.0),
        Shape("arc", (12, 12, 9, 300, 420), 2.0),
    ),
    "text": (_line(4, 5, 20, 5, width=2.6), _line(12, 5, 12, 20, width=2.6)),
    "lock": (_box(5, 10, 19, 21, 2.5), Shape("arc", (12, 10, 5, 180, 360), 2.2), _hole(_disc(12, 15.5, 1.7))),
    "location": (_disc(12, 9.5, 7), _poly(5.6, 12, 18.4, 12, 12, 22), _hole(_disc(12, 9.5, 2.7))),
    "battery": (_box(7, 4, 17, 22, 2), _box(10, 2, 14, 5, 0.5)),
    "storage": (
        _box(4, 4, 20, 10.5, 2),
        _box(4, 13.5, 20, 20, 2),
        _hole(_disc(7.5, 7.2, 1.2)),
        _hole(_disc(7.5, 16.8, 1.2)),
    ),
    "info": (_ring(12, 12, 9), _line(12, 11, 12, 16.5, width=2.2), _disc(12, 7.7, 1.4)),
    "update": (Shape("arc", (12, 12, 8.5, 30, 330), 2.2), _poly(16, 5, 22, 4, 20.5, 11)),
    "key": (_ring(7, 12, 4), _line(11, 12, 21, 12, 21, 16), _line(17, 12, 17, 15)),
    "globe": (_ring(12, 12, 9), _line(3, 12, 21, 12, width=1.5), Shape("oval", (7.5, 3, 16.5, 21), 1.5)),
    "tag": (_poly(3, 3, 12, 3, 21, 12, 12, 21, 3, 12), _hole(_disc(7.5, 7.5, 1.8))),
    "box": (
        _poly(12, 2.5, 21, 7, 12, 11.5, 3, 7),
        _poly(3, 8.8, 11, 12.8, 11, 21.5, 3, 17.2),
        _poly(21, 8.8, 13, 12.8, 13, 21.5, 21, 17.2),
    ),
    "home": (_poly(12, 3, 22, 12, 2, 12), _box(5, 11, 19, 21, 1)),
    "erase": (
        _poly(8, 5, 21, 5, 21, 19, 8, 19, 2, 12),
        _hole(_line(11.5, 9, 17, 15)),
        _hole(_line(17, 9, 11.5, 15)),
    ),
    "enter": (_line(19, 6, 19, 12, 6, 12), _line(10, 7.5, 5.5, 12, 10, 16.5)),
    "down": (_line(5, 9, 12, 16, 19, 9),),
    "nav_back": (_poly(16.5, 4.5, 16.5, 19.5, 5, 12),),
    "nav_home": (_ring(12, 12, 7.5, 2.2),),
    "nav_recent": (_box(5.5, 5.5, 18.5, 18.5, 2, 2.2),),
    "signal": (_poly(3, 20, 20, 20, 20, 3),),
    "trash_restore": (_box(6, 8, 18, 21, 2), _line(4, 5.5, 20, 5.5), _hole(_line(12, 18, 12, 12, width=1.8))),
}
"""Every icon by name."""


@lru_cache(maxsize=512)
def icon_mask(name: str, size: int) -> Image.Image:
    """Draw an icon as an antialiased mask of ``size`` x ``size`` pixels (cached: treat as read-only)."""
    side = size * _OVERSAMPLING
    mask = Image.new("L", (side, side), 0)
    pen = ImageDraw.Draw(mask)
    for shape in ICONS[name]:
        _draw(pen, shape, side / 24)
    return mask.reduce(_OVERSAMPLING)


def _draw(pen: ImageDraw.ImageDraw, shape: Shape, unit: float) -> None:
    ink = 0 if shape.width < 0 else 255
    width = max(1, round(abs(shape.width) * unit))
    points = [p * unit for p in shape.points]
    if shape.kind == "line":
        _stroke(pen, points, max(width, round(1.6 * unit)), ink)
    elif shape.kind == "poly":
        pen.polygon(points, fill=ink)
    elif shape.kind == "disc":
        x, y, r = points
        fill = None if shape.width > 0 else ink
        pen.ellipse(
            (x - r, y - r, x + r, y + r), fill=fill, outline=ink, width=width if shape.width > 0 else 1
        )
    elif shape.kind == "oval":
        pen.ellipse(points, outline=ink, width=width)
    elif shape.kind == "arc":
        x, y, r = points[:3]
        pen.arc((x - r, y - r, x + r, y + r), shape.points[3], shape.points[4], fill=ink, width=width)
    elif shape.width > 0:
        pen.rounded_rectangle(points[:4], points[4], outline=ink, width=width)
    else:
        pen.rounded_rectangle(points[:4], points[4], fill=ink)


def _stroke(pen: ImageDraw.ImageDraw, points: list[float], width: int, ink: int) -> None:
    pairs = list(zip(points[::2], points[1::2], strict=True))
    pen.line(pairs, fill=ink, width=width, joint="curve")
    for x, y in (pairs[0], pairs[-1]):
        r = width / 2 - 0.5
        pen.ellipse((x - r, y - r, x + r, y + r), fill=ink)
