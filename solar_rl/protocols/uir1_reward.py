"""UI-R1's training reward: one each for the action, the coordinate and the format; exact match = coordinate.

* Action: the names are equal. Coordinate: needs that; a click lies in the single box, edges included, and
  every other action is right by its type: texts, apps and directions are never compared. Format: an answer
  in its tags, which every readable one is.
* A click is whole pixels of the smart-resized image, cut towards zero, and brought back by
  ``int(value * screen / resized)``. Regular expressions read digits alone: a point with a minus sign or
  of one number is (0, 0), a box with a negative corner is [0, 0, 0, 0].
* wait and long_press aren't in its action space, and clicks need a box: dropped.
"""

from __future__ import annotations

import polars as pl

from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.matching import corner, ratio, smart_resized, whole, with_resized

LABELS = ("click", "open_app", "scroll", "navigate_back", "input_text")


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows as the action, coord and format rewards of grpo_json_action_coord.py do."""
    rows = with_resized(frame, smart_resized()).with_columns(
        box="single_box", same=(pl.col("pred_type") == pl.col("expert_type")).fill_null(False)
    )
    rows = _with_click(rows)
    inside = pl.col("x").is_between("x1", "x2") & pl.col("y").is_between("y1", "y2")
    hit = pl.when(pl.col("expert_type") == "click").then(inside.fill_null(False)).otherwise(True)
    exact = (pl.col("same") & hit).cast(pl.Float64)
    well_formed = pl.col("pred_type").is_not_null().cast(pl.Float64)
    boxless = (pl.col("expert_type") == "click") & pl.col("single_box").is_null()
    dropped = (
        pl.when(~pl.col("expert_type").is_in(LABELS))
        .then(pl.lit("not in the UI-R1 action space / ac_test.json"))
        .when(boxless)
        .then(pl.lit("click without a box"))
    )
    return rows.select(
        type_match="same",
        exact_match=exact,
        reward=pl.col("same").cast(pl.Float64) + exact + well_formed,
        format=well_formed,
        dropped=dropped,
    )


def _with_click(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the predicted point in device pixels and the corners of the box, as they are read: x, y, x1 ... y2."""
    rows = rows.with_columns(
        whole(pl.col(f"pred_{axis}") * ratio(pl.col(f"seen_{size}"), pl.col(f"screen_{size}"))).alias(axis)
        for axis, size in (("x", "w"), ("y", "h"))
    )
    rows = rows.with_columns(
        readable=((pl.col("x") >= 0) & (pl.col("y") >= 0)).fill_null(False),
        signed=pl.min_horizontal(*(corner(index) for index in range(4))) < 0,
    )
    point = [
        pl.when("readable")
        .then(whole(pl.col(axis) * ratio(pl.col(f"screen_{size}"), pl.col(f"seen_{size}"))))
        .otherwise(0.0)
        .alias(axis)
        for axis, size in (("x", "w"), ("y", "h"))
    ]
    corners = [
        pl.when("signed").then(0.0).otherwise(corner(index)).alias(name)
        for index, name in enumerate(("x1", "y1", "x2", "y2"))
    ]
    return rows.with_columns(*point, *corners)


PROTOCOL = Protocol(
    name="uir1_reward",
    kind="training reward",
    source="lll6gg/UI-R1 2fe9bf00, src/ui_r1/src/open_r1/grpo_json_action_coord.py",
    rules=Rules(
        radius="none",
        boxes="the single box, edges included",
        text="not compared",
        scroll="type only",
        open_app="type only",
        wait_finish="dropped",
        dropped="wait, long_press, clicks without a box",
        faults="typing, launching and scrolling are right whatever they say; a box with a negative corner is read as [0, 0, 0, 0]",
    ),
    rows=judge,
    evidence={"format": pl.Float64()},
)
