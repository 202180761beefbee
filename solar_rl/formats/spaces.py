"""Coordinate spaces as types: a point knows what it is measured in and converts to any other space.

    Point(Device(1080, 2400), 540, 1200).to(Resized.of(Device(1080, 2400))) == (546, 1204) of a 1092x2408 image

Conversion is a division by one size and a multiplication by the other: no rounding, so that going there and
back gives the point again up to floating point. Integers appear only where a model writes them: ``on_grid``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from solar_rl.errors import InputError
from solar_rl.formats.resize import smart_resize

FACTORS = (28, 32)
"""Side of a token's square of pixels: 28 in Qwen2-VL and Qwen2.5-VL, 32 in Qwen3-VL."""


@dataclass(frozen=True, slots=True)
class Space:
    """What coordinates are measured in: (0, 0) is the top left corner, (width, height) the bottom right one.

    Raises:
        InputError: A side is not positive.
    """

    width: int
    height: int

    def __post_init__(self) -> None:
        if min(self.width, self.height) < 1:
            raise InputError(f"a screen of {self.width}x{self.height} has no area")


@dataclass(frozen=True, slots=True)
class Unit(Space):
    """The unit square: what canonical actions are in."""

    width: int = 1
    height: int = 1


@dataclass(frozen=True, slots=True)
class Thousand(Space):
    """0 to 1000 along both sides, whatever the screen."""

    width: int = 1000
    height: int = 1000


@dataclass(frozen=True, slots=True)
class Device(Space):
    """Pixels of the screen on which an action was recorded or is carried out."""


@dataclass(frozen=True, slots=True)
class Resized(Space):
    """Pixels of the image as a model sees it after ``smart_resize``."""

    @classmethod
    def of(
        cls, device: Device, *, factor: int = 28, min_pixels: int = 3136, max_pixels: int = 12_845_056
    ) -> Resized:
        """Return what smart_resize makes of a screen.

        Args:
            device: The screen.
            factor: One of ``FACTORS``.
            min_pixels: Smallest area.
            max_pixels: Largest area.

        Raises:
            InputError: The screen is too narrow to be resized.

        >>> Resized.of(Device(1080, 2400), factor=32)
        Resized(width=1088, height=2400)
        """
        limits = {"factor": factor, "min_pixels": min_pixels, "max_pixels": max_pixels}
        return cls(*smart_resize(device.width, device.height, **limits))


S = TypeVar("S", bound=Space)
T = TypeVar("T", bound=Space)


@dataclass(frozen=True, slots=True)
class Point(Generic[S]):
    """A point and the space that it is measured in; it may lie outside.

    >>> Point(Device(1080, 2400), 540, 600).to(Thousand())
    Point(space=Thousand(width=1000, height=1000), x=500.0, y=250.0)
    """

    space: S
    x: float
    y: float

    def to(self, space: T) -> Point[T]:
        """Return the same place measured in another space."""
        return Point(
            space, self.x / self.space.width * space.width, self.y / self.space.height * space.height
        )

    def on_grid(self) -> Point[S]:
        """Return the nearest point with integer coordinates, halves upward: what a model can write.

        >>> Point(Unit(), 0.4996, 0.5).to(Thousand()).on_grid()
        Point(space=Thousand(width=1000, height=1000), x=500, y=500)
        """
        return Point(self.space, math.floor(self.x + 0.5), math.floor(self.y + 0.5))
