"""Colours and type sizes of the simulated phone. All values are ours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from PIL import ImageColor


@dataclass(frozen=True, slots=True)
class Theme:
    """One colour scheme; the accent comes from the app in the foreground."""

    background: str
    surface: str
    raised: str
    text: str
    muted: str
    line: str
    key: str
    tint: float
    """Share of the accent in tonal surfaces."""


LIGHT = Theme("#f6f7fb", "#ffffff", "#ffffff", "#1b1c20", "#5c606b", "#e1e3ea", "#ffffff", 0.14)
DARK = Theme("#121317", "#1e2026", "#282a31", "#e6e7ec", "#a2a6b1", "#33363f", "#3a3d46", 0.30)

TEXT_SIZES = {
    "display": 44,
    "headline": 26,
    "title": 20,
    "subtitle": 17,
    "body": 15,
    "label": 14,
    "detail": 13,
    "small": 11,
}
BOLD_STYLES = ("headline", "title", "subtitle", "label")

AVATARS = ("#d0463b", "#c2185b", "#7b3fb5", "#3f51b5", "#1976d2", "#00838f", "#2e7d32", "#a86a00", "#6d4c41")


@cache
def blend(front: str, back: str, share: float) -> str:
    """Return ``share`` of ``front`` over ``back`` as #rrggbb."""
    a, b = ImageColor.getrgb(front), ImageColor.getrgb(back)
    mixed = (round(x * share + y * (1 - share)) for x, y in zip(a[:3], b[:3], strict=True))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def avatar_color(name: str) -> str:
    """Return a colour that belongs to a name, the same in every process."""
    return AVATARS[sum(name.encode()) % len(AVATARS)]
