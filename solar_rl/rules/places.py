"""Judge where an action happened: Gaussian kernels around the label's point, widened by its box."""

from __future__ import annotations

import polars as pl

from solar_rl.config import ValidityConfig

BOX = ("box_x1", "box_y1", "box_x2", "box_y2")
_SIDES = (("x1", "x2"), ("y1", "y2"))


def point(rows: pl.DataFrame, config: ValidityConfig) -> pl.DataFrame:
    """Judge clicks of every kind: the kernel around the label, at least ``box_floor`` inside its box.

    Source: method.md, section 2 (kernel: the paper; its constants and the floor: ours).
    """
    rows = _with_box(rows, "x", "y", config)
    near = rows.with_columns(
        raw_score=pl.max_horizontal(
            _kernel("pred_x", "pred_y", "x", "y", config),
            pl.when(_inside("pred_x", "pred_y")).then(config.box_floor),
        ),
        distance=_distance("pred_x", "pred_y", "x", "y"),
    )
    return _near_enough(near, config)


def drag(rows: pl.DataFrame, config: ValidityConfig) -> pl.DataFrame:
    """Judge drags: the product of the kernels of both ends, valid from ``click_threshold`` on.

    Each end has the smallest box that holds it; the evidence is the start's box and the larger of the
    two distances. No floor inside a box: a drag that starts anywhere in a list is another drag.

    Source: method.md, section 2 (ours).
    """
    rows = _with_box(rows, "x2", "y2", config)
    rows = rows.with_columns(end=_kernel("pred_x2", "pred_y2", "x2", "y2", config)).drop(BOX)
    rows = _with_box(rows, "x", "y", config)
    near = rows.with_columns(
        raw_score=_kernel("pred_x", "pred_y", "x", "y", config) * pl.col("end"),
        distance=pl.max_horizontal(
            _distance("pred_x", "pred_y", "x", "y"), _distance("pred_x2", "pred_y2", "x2", "y2")
        ),
    )
    return _near_enough(near, config)


def scroll(rows: pl.DataFrame, config: ValidityConfig) -> pl.DataFrame:
    """Judge scrolls: valid if and only if the direction agrees, graded by where the finger starts.

    With the right direction s = 1 if the label is a direction alone, else 0.5 + 0.5 * the kernel at the
    start point, 0.5 if the prediction has no start point.

    Source: method.md, section 2 (ours).
    """
    rows = _with_box(rows, "x", "y", config)
    start = _kernel("pred_x", "pred_y", "x", "y", config).fill_nan(0.0).fill_null(0.0)
    has_path = pl.col("x").is_finite().fill_null(False) & pl.col("y").is_finite().fill_null(False)
    agrees = pl.col("pred_direction") == pl.col("direction")
    graded = pl.when(has_path).then(0.5 + 0.5 * start).otherwise(1.0)
    return rows.select(
        "row",
        *BOX,
        raw_score=pl.when(agrees).then(graded).otherwise(0.0),
        valid=agrees,
        failure_reason=pl.when(~agrees).then(pl.lit("wrong_direction")),
        distance=_distance("pred_x", "pred_y", "x", "y").fill_nan(None),
    )


def _near_enough(rows: pl.DataFrame, config: ValidityConfig) -> pl.DataFrame:
    valid = pl.col("raw_score") >= config.click_threshold
    too_far = pl.when(~valid).then(pl.lit("too_far"))
    return rows.select("row", *BOX, "raw_score", "distance", valid=valid, failure_reason=too_far)


def _distance(px: str, py: str, x: str, y: str) -> pl.Expr:
    dx, dy = pl.col(px) - pl.col(x), pl.col(py) - pl.col(y)
    return (dx * dx + dy * dy).sqrt()


def _kernel(px: str, py: str, x: str, y: str, config: ValidityConfig) -> pl.Expr:
    """Return exp(-((dx/sx)^2 + (dy/sy)^2) / 2), each sigma s0 or more where the box is wide or high."""
    parts = []
    for p, label, (low, high) in ((px, x, _SIDES[0]), (py, y, _SIDES[1])):
        side = pl.col(f"box_{high}") - pl.col(f"box_{low}")
        scaled = (pl.col(p) - pl.col(label)) / pl.max_horizontal(
            pl.lit(config.sigma0), config.box_sigma * side
        )
        parts.append(scaled * scaled)
    return (-0.5 * (parts[0] + parts[1])).exp()


def _inside(px: str, py: str) -> pl.Expr:
    across = pl.col(px).is_between(pl.col("box_x1"), pl.col("box_x2"))
    down = pl.col(py).is_between(pl.col("box_y1"), pl.col("box_y2"))
    return across & down


def _with_box(rows: pl.DataFrame, x: str, y: str, config: ValidityConfig) -> pl.DataFrame:
    """Add the smallest box around the point (x, y) that is no container; null where there is none.

    Boxes are clipped to the screen first; what has no area then, or isn't four numbers, is ignored.
    Boxes of equal area: the one further left, then further up, so that their order is no matter.
    """
    places = rows.select("row", "target_box", "candidate_boxes", x=pl.col(x), y=pl.col(y))
    offered = places.select("row", "x", "y", box="candidate_boxes").explode("box")
    meant = places.select("row", "x", "y", box="target_box")
    corners = pl.concat([offered, meant]).select(
        "row",
        "x",
        "y",
        *(
            pl.when(pl.col("box").list.len() == 4)
            .then(pl.col("box").list.get(i, null_on_oob=True))
            .alias(name)
            for i, name in enumerate(BOX)
        ),
    )
    usable = corners.filter(pl.all_horizontal(pl.col(BOX).is_finite())).with_columns(
        pl.col(BOX).clip(0.0, 1.0)
    )
    width, height = pl.col("box_x2") - pl.col("box_x1"), pl.col("box_y2") - pl.col("box_y1")
    chosen = (
        usable.with_columns(area=width * height)
        .filter(width > 0, height > 0, pl.col("area") < config.max_box_area, _inside("x", "y"))
        .sort("row", "area", *BOX)
        .unique("row", keep="first", maintain_order=True)
    )
    found = rows.select("row").join(chosen.select("row", *BOX), on="row", how="left", maintain_order="left")
    return rows.with_columns(found.select(BOX))
