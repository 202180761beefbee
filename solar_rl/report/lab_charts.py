"""Draw what the lab measured: learning curves with bands, and paired differences with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINE, _BAND, _START, _INK, _SOFT = "#1a5fb4", "#1a5fb433", "#777777", "#222222", "#999999"
_COLUMNS = 4


class Curve(NamedTuple):
    """How an arm went: updates, and the mean with the ends of its interval at each."""

    title: str
    updates: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


class Difference(NamedTuple):
    """An arm less another, with the ends of the interval; what it is compared with is the panel."""

    panel: str
    title: str
    value: float
    low: float
    high: float


def draw_curves(curves: Sequence[Curve], start: float, label: str, out: Path) -> None:
    """Write a small picture for each arm side by side, on one scale, the start as a dashed line.

    Args:
        curves: At least one.
        start: The figure of the start policy.
        label: What the y axis is.
        out: An SVG file.
    """
    from matplotlib.figure import Figure

    rows = -(-len(curves) // _COLUMNS)
    figure = Figure(figsize=(11, 2.3 * rows), layout="constrained")
    grid = figure.subplots(rows, _COLUMNS, sharex=True, sharey=True, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(curves):
            axes.axis("off")
            continue
        curve = curves[place]
        axes.axhline(start, color=_START, linestyle="--", linewidth=0.8)
        axes.fill_between(curve.updates, curve.low, curve.high, color=_BAND, linewidth=0)
        axes.plot(curve.updates, curve.mean, color=_LINE, marker="o", markersize=3, linewidth=1.4)
        axes.set_title(curve.title, fontsize=9, color=_INK)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("updates", fontsize=9)
    figure.supylabel(label, fontsize=9)
    _save(figure, out)


def draw_forest(differences: Sequence[Difference], label: str, out: Path) -> None:
    """Write a forest plot: one panel for each arm that is compared with.

    Args:
        differences: At least one.
        label: What the x axis is.
        out: An SVG file.
    """
    from matplotlib.figure import Figure

    panels = list(dict.fromkeys(each.panel for each in differences))
    titles = list(dict.fromkeys(each.title for each in differences))[::-1]
    figure = Figure(figsize=(11, 0.28 * len(titles) + 1.2), layout="constrained")
    grid = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        axes.axvline(0, color=_START, linewidth=0.8)
        for each in differences:
            if each.panel == panel:
                color = _LINE if each.low > 0 or each.high < 0 else _SOFT
                y = titles.index(each.title)
                axes.plot([each.low, each.high], [y, y], color=color, linewidth=1.4)
                axes.plot([each.value], [y], color=color, marker="o", markersize=4)
        axes.set_yticks(range(len(titles)), titles, fontsize=8)
        axes.set_title(f"less {panel}", fontsize=9, color=_INK)
        axes.tick_params(axis="x", labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(label, fontsize=9)
    _save(figure, out)


def _save(figure: Figure, out: Path) -> None:
    """Write the same bytes every time: no date, ids from a fixed salt."""
    import matplotlib

    out.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "solar-rl", "svg.fonttype": "none"}):
        figure.savefig(out, metadata={"Date": None}, facecolor="white")
