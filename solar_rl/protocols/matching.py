"""Compare columns: texts once for each distinct pair, boxes once for each candidate box."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from solar_rl.formats.resize import smart_resize

Pixels = Callable[[int, int], tuple[int, int]]


def by_pair(
    frame: pl.DataFrame, where: pl.Expr, left: str, right: str, function: Callable[[str, str], float | bool]
) -> pl.Series:
    """Compare two text columns by a function that is called once for each distinct pair.

    Args:
        frame: Rows with both columns.
        where: The rows that matter; those with a null text are left out as well.
        left: First argument of the function.
        right: Second argument.
        function: Gives a share or a truth.

    Returns:
        Float64, null in the rows left out.
    """
    wanted = where & pl.col(left).is_not_null() & pl.col(right).is_not_null()
    pairs = frame.select(left, right, wanted=wanted).with_row_index("row").filter("wanted").drop("wanted")
    distinct = pairs.select(left, right).unique(maintain_order=True)
    scores = [float(function(a, b)) for a, b in distinct.iter_rows()]
    scored = distinct.with_columns(score=pl.Series(scores, dtype=pl.Float64))
    found = pairs.join(scored, on=[left, right], how="left", maintain_order="left")
    values = np.full(frame.height, np.nan)
    values[found["row"].to_numpy()] = found["score"].to_numpy()
    return pl.Series(values, dtype=pl.Float64).fill_nan(None)


def in_any_box(frame: pl.DataFrame, where: pl.Expr, inside: pl.Expr, boxes: str = "boxes") -> pl.Series:
    """Tell for each row whether any of its boxes passes.

    Args:
        frame: Neutral rows, and whatever ``inside`` reads.
        where: The rows that matter.
        inside: The test, on the columns of the row and ``box``, one of its boxes.
        boxes: The column with the boxes: ``boxes`` or ``single_box``.

    Returns:
        Boolean, False in the rows left out and in those without a box.
    """
    rows = frame.with_row_index("row").filter(where & pl.col(boxes).is_not_null()).rename({boxes: "box"})
    if boxes == "boxes":
        rows = rows.filter(pl.col("box").list.len() > 0).explode("box")
    hit = np.zeros(frame.height, dtype=bool)
    hit[rows.filter(inside)["row"].to_numpy()] = True
    return pl.Series(hit, dtype=pl.Boolean)


def ratio(top: pl.Expr, bottom: pl.Expr | float) -> pl.Expr:
    """Divide as Python does.

    Polars multiplies by the reciprocal where the divisor is one number, also when a whole column is known to
    hold just one. That is a bit off now and then, and rules turn on exact thousandths.
    """
    divisor = bottom if isinstance(bottom, pl.Expr) else pl.lit(bottom)
    return pl.map_batches([top, divisor], _divide, return_dtype=pl.Float64, is_elementwise=True)


def _divide(columns: Sequence[pl.Series]) -> pl.Series:
    top, bottom = (column.cast(pl.Float64).to_numpy() for column in columns)
    return pl.Series(columns[0].name, top / bottom, dtype=pl.Float64).fill_nan(None)


def corner(index: int) -> pl.Expr:
    """Return one corner value of the column ``box``: 0 to 3 for x1, y1, x2, y2."""
    return pl.col("box").list.get(index)


def unit_corners() -> tuple[pl.Expr, pl.Expr, pl.Expr, pl.Expr]:
    """Return x1, y1, x2, y2 of the column ``box`` as shares of the screen."""
    width, height = pl.col("screen_w"), pl.col("screen_h")
    sides = (width, height, width, height)
    x1, y1, x2, y2 = (ratio(corner(index), side) for index, side in enumerate(sides))
    return x1, y1, x2, y2


def inside_enlarged(x: pl.Expr, y: pl.Expr, factor: float = 1.2) -> pl.Expr:
    """Tell whether a point in the unit square lies in ``box`` made larger about its centre, edges included."""
    x1, y1, x2, y2 = unit_corners()
    parts = []
    for value, low, high in ((x, x1, x2), (y, y1, y2)):
        middle, half = (low + high) / 2, (high - low) * factor / 2
        parts.append((middle - half <= value) & (value <= middle + half))
    return parts[0] & parts[1]


def distance(dx: pl.Expr, dy: pl.Expr) -> pl.Expr:
    """Return the Euclidean length of a difference."""
    return (dx * dx + dy * dy).sqrt()


def whole(value: pl.Expr) -> pl.Expr:
    """Cut the digits behind the point, towards zero, as Python's ``int`` does."""
    return value.abs().floor() * value.sign()


def with_resized(frame: pl.DataFrame, resize: Pixels) -> pl.DataFrame:
    """Add the size in pixels of the image that the model saw: ``seen_w`` and ``seen_h``.

    Args:
        frame: Rows with screen_w and screen_h.
        resize: Gives the seen (width, height) of a screen; called once for each distinct size.
    """
    sizes = frame.select("screen_w", "screen_h").unique(maintain_order=True)
    seen = [resize(int(width), int(height)) for width, height in sizes.iter_rows()]
    table = sizes.with_columns(
        seen_w=pl.Series([width for width, _ in seen], dtype=pl.Float64),
        seen_h=pl.Series([height for _, height in seen], dtype=pl.Float64),
    )
    return frame.join(table, on=["screen_w", "screen_h"], how="left", maintain_order="left")


def smart_resized(max_pixels: int = 12_845_056) -> Pixels:
    """Return the function that resizes as Qwen2.5-VL does, with a largest area of its own."""
    return lambda width, height: smart_resize(width, height, max_pixels=max_pixels)


def renamed(column: str, names: dict[str, str]) -> pl.Expr:
    """Translate a neutral action into a peer's name of it; null stays null, and so does what has none."""
    return pl.col(column).replace_strict(names, default=None, return_dtype=pl.String)
