"""Lay out the report's three kinds of chart; the templates turn them into HTML and SVG.

Written here rather than with a plotting library: importing matplotlib alone takes longer than the whole
report may, and inline SVG with CSS variables follows the reader's dark mode, font and zoom.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

WIDTH, HEIGHT = 440, 230
LEFT, RIGHT, TOP, BOTTOM = 48, 434, 10, 180


class Bar(NamedTuple):
    """One horizontal bar: label, length as a share of the track, two figures beside it, hover text."""

    label: str
    share: float
    figure: str
    aside: str = ""
    hint: str = ""
    tone: str = "accent"


@dataclass(frozen=True)
class Bars:
    """A ranking: horizontal bars under a title that names the dimension."""

    title: str
    note: str
    axis: str
    bars: tuple[Bar, ...]
    kind: str = "bars"


class Part(NamedTuple):
    """One piece of a stacked column or split bar."""

    value: float
    tone: str
    hint: str = ""


class Stack(NamedTuple):
    """One column of a column chart, from the bottom up."""

    label: str
    parts: tuple[Part, ...]


class Rect(NamedTuple):
    """One drawn rectangle of a column chart, in the units of its view box."""

    x: float
    y: float
    width: float
    height: float
    tone: str
    hint: str


class Tick(NamedTuple):
    """One mark on an axis: its place in the view box and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Columns:
    """A distribution: vertical, possibly stacked columns with both axes named.

    Args:
        title: Names the dimension.
        note: The finding, in one sentence.
        x_label: Name of the horizontal axis.
        y_label: Name of the vertical axis.
        stacks: The columns from left to right.
        legend: (tone, name) of every tone in use; empty when there is one.
        shares: Whether values are shares of one, written as per cent.
        edges: Whether labels stand at the left edge of a column (histogram) or below its middle.
        end: Label at the right edge of the last column.
    """

    title: str
    note: str
    x_label: str
    y_label: str
    stacks: tuple[Stack, ...]
    legend: tuple[tuple[str, str], ...] = ()
    shares: bool = False
    edges: bool = False
    end: str = ""
    kind: str = "columns"

    @cached_property
    def top(self) -> float:
        """Return the value at the upper end of the vertical axis."""
        return nice_ceiling(
            max((sum(part.value for part in stack.parts) for stack in self.stacks), default=0.0)
        )

    @cached_property
    def rects(self) -> list[Rect]:
        """Return every drawn piece, columns from left to right, pieces from the bottom up."""
        pitch = (RIGHT - LEFT) / max(1, len(self.stacks))
        gap = min(3.0, 0.18 * pitch)
        drawn = []
        for index, stack in enumerate(self.stacks):
            floor = 0.0
            for part in stack.parts:
                y, height = self._y(floor + part.value), (BOTTOM - TOP) * part.value / self.top
                x = LEFT + index * pitch + gap / 2
                if part.value > 0:
                    drawn.append(Rect(x, y, pitch - gap, max(height, 0.6), part.tone, part.hint))
                floor += part.value
        return drawn

    @cached_property
    def y_ticks(self) -> list[Tick]:
        """Return the grid lines with their texts."""
        step = nice_step(self.top)
        values = [step * k for k in range(round(self.top / step) + 1)]
        return [Tick(self._y(value), self._text(value)) for value in values]

    @cached_property
    def x_ticks(self) -> list[Tick]:
        """Return as many column labels as fit side by side: round ones, zero if there is one, and the last."""
        if not self.stacks:
            return []
        pitch = (RIGHT - LEFT) / len(self.stacks)
        labels = [*(stack.label for stack in self.stacks), *([self.end] if self.end else [])]
        needed = (7.5 * max(map(len, labels)) + 6) / pitch
        every = next((step for step in (1, 2, 5, 10, 20, 50, 100) if step >= needed), len(labels))
        start = next((index for index, label in enumerate(labels) if label in ("0", "0.0")), 0) % every
        last = len(labels) - 1
        shown = [index for index in range(start, last, every) if last - index >= needed] + [last]
        shift = 0.0 if self.edges else 0.5
        return [Tick(LEFT + (index + shift) * pitch, labels[index]) for index in shown]

    def _y(self, value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * value / self.top

    def _text(self, value: float) -> str:
        if self.shares:
            return f"{100 * value:.0f}%" if self.top >= 0.05 else f"{100 * value:.1f}%"
        if self.top >= 10_000 and value:
            return f"{value / 1000:g}k"
        return f"{value:g}"


@dataclass(frozen=True)
class Split:
    """One whole cut into parts: a single stacked bar with its legend and figures."""

    title: str
    note: str
    axis: str
    parts: tuple[tuple[str, Part, str], ...]
    kind: str = "split"

    @cached_property
    def total(self) -> float:
        """Return the sum of all parts; 1 when there is nothing."""
        return sum(part.value for _, part, _ in self.parts) or 1.0


Chart = Bars | Columns | Split


def nice_step(highest: float) -> float:
    """Return a round step that cuts ``[0, highest]`` into three to six intervals.

    >>> nice_step(0.83), nice_step(1234)
    (0.2, 250.0)
    """
    if highest <= 0:
        return 1.0
    raw = highest / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    return float(f"{step * power:.12g}")


def nice_ceiling(highest: float) -> float:
    """Return the lowest multiple of a nice step that no column rises above.

    >>> nice_ceiling(0.83), nice_ceiling(0.0)
    (1.0, 1.0)
    """
    step = nice_step(highest)
    return max(step, math.ceil(round(highest / step, 9)) * step)
