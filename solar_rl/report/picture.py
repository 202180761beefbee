"""Draw one episode as a picture for a README or a slide: the one place that loads matplotlib."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solar_rl.errors import InputError
from solar_rl.query import connect
from solar_rl.report.screens import decode
from solar_rl.report.strip import (
    Cell,
    Line,
    Mark,
    Records,
    Rect,
    Screen,
    Strip,
    make_strip,
    read_images,
    read_records,
    telling_candidates,
)
from solar_rl.report.words import decimal, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

INK, SOFT, LINE = "#191c22", "#565d69", "#d5d8dd"
EXPERT, VALID, INVALID, UNSCORED = "#1f5bff", "#0a7f5d", "#c8371f", "#8a6d1d"
MARKS = {"expert": EXPERT, "valid": "#00a878", "invalid": "#d62b12", "unscored": UNSCORED}
CELLS = {
    # tone of a cell: (ground, edge, ink)
    "prefix": ("#d8f0e6", VALID, VALID),
    "later": ("#dfecf8", "#5b9bd1", INK),
    "breakdown": ("#fbe0da", INVALID, INVALID),
    "after": ("#ececec", "#b3b8bf", SOFT),
    "absent": ("#ececec", "#b3b8bf", SOFT),
    "unscored": ("#f5ecd0", UNSCORED, UNSCORED),
}
KEY = {
    "prefix": "valid prefix: shares the gap to the target",
    "breakdown": "breakdown: −(1 − s)",
    "later": "valid again: a segment of its own",
    "after": "after t*: thrown away",
    "unscored": "unscored",
}
DPI, ZOOM = 100, 1.18
MARGIN, NAMES, TOTALS, GAP = 26, 142, 176, 8
SCREENS_TOP, ROW = 116, 66


def draw_strip(folder: Path, episode_id: str, candidates: int | Sequence[int], out: Path) -> Path:
    """Draw one episode; see ``solar_rl.report.episode_strip``."""
    if out.suffix not in (".png", ".svg"):
        raise InputError(
            f"can't draw a '{out.suffix}' picture", where=str(out), hint="end it in .png or .svg"
        )
    with connect(folder) as con:
        records = read_records(con, [episode_id]).get(episode_id)
        if records is None:
            raise InputError(f"no episode is named '{episode_id}'", where=str(folder))
        strip = make_strip(records, _chosen(records, candidates))
        images = read_images(con, [screen.sha256 for screen in strip.screens if screen.sha256])
    _save(draw(strip, images), out)
    return out


def _chosen(records: Records, candidates: int | Sequence[int]) -> Sequence[int]:
    if isinstance(candidates, int):
        return telling_candidates(records.trajectories, candidates)
    known = {row["candidate_index"] for row in records.trajectories}
    if not candidates or not known.issuperset(candidates):
        where = f"episode {records.episode['episode_id']}"
        raise InputError(
            f"no such candidates: {list(candidates)}", where=where, hint=f"there is: {sorted(known)}"
        )
    return candidates


def preload() -> None:
    """Import matplotlib, for a build that has a core to spare meanwhile."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401


def pixels(figure: Figure) -> Image:
    """Return a figure as an image: the same pixels every time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL.Image import frombuffer

    figure.set_dpi(DPI)
    figure.set_facecolor("white")
    canvas = FigureCanvasAgg(figure)
    with _boxes_for_unknown_letters():
        canvas.draw()  # type: ignore[no-untyped-call]
    shown = canvas.buffer_rgba()  # type: ignore[no-untyped-call]
    return frombuffer("RGBA", canvas.get_width_height(), shown, "raw", "RGBA", 0, 1).convert("RGB")


@contextmanager
def _boxes_for_unknown_letters() -> Iterator[None]:
    """Let a PNG show boxes for letters that matplotlib's own font lacks, such as Chinese, without a word.

    A font of the machine would have them, and would give other bytes on the next machine.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def _save(figure: Figure, out: Path) -> None:
    """Write the same bytes every time: no date, no version, ids from a fixed salt."""
    import matplotlib

    metadata: dict[str, Any] = {"Software": None} if out.suffix == ".png" else {"Date": None}
    with (
        matplotlib.rc_context({"svg.hashsalt": "solar-rl", "svg.fonttype": "none"}),
        _boxes_for_unknown_letters(),
    ):
        figure.savefig(out, dpi=DPI, metadata=metadata, facecolor="white")


def draw(strip: Strip, images: Mapping[str, bytes]) -> Figure:
    """Draw a strip.

    Args:
        strip: The laid out episode.
        images: Its screenshots' bytes by hash.
    """
    from matplotlib.figure import Figure

    widths = [_width(screen) for screen in strip.screens]
    lefts = [MARGIN + NAMES + sum(widths[:k]) + k * GAP for k in range(len(widths))]
    tallest = max(ZOOM * screen.height for screen in strip.screens)
    rows_top = SCREENS_TOP + tallest + 40
    width = lefts[-1] + widths[-1] + GAP + TOTALS + MARGIN
    height = rows_top + ROW * len(strip.lines) + 62
    figure = Figure(figsize=(width / DPI, height / DPI))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    _heading(axes, strip)
    for screen, left, column in zip(strip.screens, lefts, widths, strict=True):
        _screen(axes, screen, images, (left + (column - ZOOM * screen.width) / 2, SCREENS_TOP))
        words = shorten(screen.words, int(column / 8.6))
        _text(axes, left + column / 2, rows_top - 16, words, 14, INK, ha="center")
    _text(axes, lefts[-1] + widths[-1] + GAP + 10, rows_top - 16, "sum of rewards", 14, SOFT)
    for index, line in enumerate(strip.lines):
        _line(axes, line, rows_top + index * ROW, lefts, widths)
    _key(axes, strip, lefts[0], height - 36)
    return figure


def _width(screen: Screen) -> float:
    return max(118.0, ZOOM * screen.width)


def _heading(axes: Axes, strip: Strip) -> None:
    _text(axes, MARGIN, 40, f"“{strip.goal}”", 23, INK, weight="bold")
    finished = sum(line.success for line in strip.lines)
    about = (
        f"{strip.app or strip.platform} · {len(strip.screens)} expert steps · finished by {finished} of the "
    )
    _text(axes, MARGIN, 72, f"{about}{len(strip.lines)} candidates shown", 15, SOFT)
    _text(axes, MARGIN, SCREENS_TOP + 22, "expert", 15, EXPERT, weight="bold")
    _text(axes, MARGIN, SCREENS_TOP + 44, "ring, target", 13, SOFT)
    for row, (tone, name) in enumerate((("valid", "valid"), ("invalid", "not valid"))):
        y = SCREENS_TOP + 76 + 26 * row
        _point(axes, tone, MARGIN + 8, y)
        _text(axes, MARGIN + 24, y, name, 14, SOFT)


def _key(axes: Axes, strip: Strip, left: float, y: float) -> None:
    """Say what the tones of the cells mean, those that occur."""
    from matplotlib.patches import Rectangle

    occurring = {cell.tone for line in strip.lines for cell in line.cells}
    for tone, meaning in KEY.items():
        if tone in occurring:
            ground, edge, _ = CELLS[tone]
            axes.add_patch(Rectangle((left, y - 8), 24, 16, fc=ground, ec="none"))
            axes.add_patch(Rectangle((left, y - 8), 4, 16, fc=edge, ec="none"))
            _text(axes, left + 33, y, meaning, 13.5, SOFT)
            left += 68 + 7.6 * len(meaning)


def _text(axes: Axes, x: float, y: float, text: str, size: float, color: str, **more: Any) -> None:
    """Write text of a size in pixels, centred on y; a dollar sign is a dollar sign."""
    axes.text(x, y, text, fontsize=size * 72 / DPI, color=color, va="center", parse_math=False, **more)


def _screen(axes: Axes, screen: Screen, images: Mapping[str, bytes], corner: tuple[float, float]) -> None:
    from matplotlib.patches import FancyBboxPatch

    left, top = corner
    width, height = ZOOM * screen.width, ZOOM * screen.height
    frame = FancyBboxPatch(
        (left, top), width, height, "round,pad=0,rounding_size=10", fc="#eeeeea", ec=LINE, lw=1, zorder=1
    )
    axes.add_patch(frame)
    data = images.get(screen.sha256 or "")
    if data is not None:
        picture = decode(data).resize((round(width), round(height)), reducing_gap=3.0)
        shown = axes.imshow(picture, extent=(left, left + width, top + height, top), aspect="auto", zorder=2)
        shown.set_clip_path(frame)
    else:
        for box in screen.boxes:
            _box(axes, box, corner, SOFT, 0.5)
    if screen.target:
        _box(axes, screen.target, corner, EXPERT, 1.4)
    for mark in (*([screen.expert] if screen.expert else []), *screen.marks):
        _mark(axes, mark, corner)
    if not screen.expert:
        _label(axes, left + width / 2, top + height - 22, screen)


def _box(axes: Axes, box: Rect, corner: tuple[float, float], color: str, line: float) -> None:
    from matplotlib.patches import Rectangle

    place = (corner[0] + ZOOM * box.x, corner[1] + ZOOM * box.y)
    size = (ZOOM * box.width, ZOOM * box.height)
    axes.add_patch(Rectangle(place, *size, fill=False, ec=color, lw=line, ls=(0, (4, 2)), zorder=3))


def _mark(axes: Axes, mark: Mark, corner: tuple[float, float]) -> None:
    x, y = corner[0] + ZOOM * mark.x, corner[1] + ZOOM * mark.y
    if mark.shape == "point":
        _point(axes, mark.tone, x, y)
        return
    end = (corner[0] + ZOOM * mark.x2, corner[1] + ZOOM * mark.y2)
    wide = 5.0 if mark.tone == "expert" else 2.2  # the candidates' arrows lie on top of the expert's
    for color, line in (("white", wide + 2.4), (MARKS[mark.tone], wide)):
        arrow = {"arrowstyle": "-|>,head_width=.32,head_length=.5", "color": color, "lw": line}
        arrow |= {"shrinkA": 0, "shrinkB": 0}
        axes.annotate("", xy=end, xytext=(x, y), arrowprops=arrow, zorder=5)


def _point(axes: Axes, tone: str, x: float, y: float) -> None:
    """Draw a ring (expert), a dot (valid), a cross (not valid) or a square (unscored), each with a halo."""
    color = MARKS[tone]
    if tone == "expert":
        axes.scatter([x], [y], s=230, facecolors="none", edgecolors="white", linewidths=4.5, zorder=4)
        axes.scatter([x], [y], s=230, facecolors="none", edgecolors=color, linewidths=2.2, zorder=4)
    elif tone == "invalid":
        axes.scatter([x], [y], s=80, marker="x", c="white", linewidths=5, zorder=6)
        axes.scatter([x], [y], s=70, marker="x", c=color, linewidths=2.4, zorder=6)
    else:
        shape = "o" if tone == "valid" else "s"
        axes.scatter([x], [y], s=62, marker=shape, c=color, edgecolors="white", linewidths=1.2, zorder=5)


def _label(axes: Axes, x: float, y: float, screen: Screen) -> None:
    words = shorten(screen.words, int(ZOOM * screen.width / 8.4))
    frame = {"boxstyle": "round,pad=0.45", "fc": "#1746b8", "ec": "none"}
    _text(axes, x, y, words, 12.5, "white", ha="center", weight="bold", bbox=frame, zorder=6)


def _line(axes: Axes, line: Line, top: float, lefts: list[float], widths: list[float]) -> None:
    color = VALID if line.success else INVALID
    _text(axes, MARGIN, top + 22, f"candidate {line.candidate}", 16, INK, weight="bold")
    said = "✓ finishes" if line.success else f"t* = {line.first_failure}"
    _text(axes, MARGIN, top + 43, said, 14, color)
    for cell, left, width in zip(line.cells, lefts, widths, strict=True):
        _cell(axes, cell, left, top, width)
    x = lefts[-1] + widths[-1] + GAP + 10
    _text(axes, x, top + 22, f"Σ {decimal(line.reward_sum, sign=True)}", 19, INK, weight="bold")
    said = f"= target {decimal(line.target, sign=True)}" if line.aligned else "no target claimed"
    _text(axes, x, top + 44, said, 14, SOFT)


def _cell(axes: Axes, cell: Cell, left: float, top: float, width: float) -> None:
    from matplotlib.patches import FancyBboxPatch, Rectangle

    ground, edge, ink = CELLS[cell.tone]
    shape = "round,pad=0,rounding_size=5"
    axes.add_patch(FancyBboxPatch((left, top + 3), width, ROW - 8, shape, fc=ground, ec="none"))
    axes.add_patch(Rectangle((left, top + 3), 5, ROW - 8, fc=edge, ec="none"))
    cross = " ×" if cell.tone == "breakdown" else ""
    _text(axes, left + 14, top + 23, cell.reward + cross, 18, ink, weight="bold")
    _text(axes, left + 14, top + 45, shorten(cell.words, int((width - 18) / 8.3)), 13, SOFT)
    if cell.first_failure:
        frame = {"boxstyle": "round,pad=0.25", "fc": INVALID, "ec": "none"}
        place = (left + width - 20, top + 21)
        _text(axes, *place, "t*", 13, "white", ha="center", weight="bold", bbox=frame)
