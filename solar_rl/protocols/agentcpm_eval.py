"""AgentCPM-GUI's evaluation, with the radius for AndroidControl (0.04) and the one for other sets (0.14).

Label and answer are one of click, long_point, scroll, type, press, stop (wait, finish and impossible: their
type is all). An unreadable answer (see ``agentcpm.py``) has no type.

* click, long_point: the answer lies in a box, or at most the radius away in the unit square. Boxes are
  made 1.2 times larger about their centre, then cut: left and top at 0, width and height at 1. Which ones:
  for AndroidControl the five whose centres (after the cut) are nearest to the label, else those that
  hold the label.
* type: lower-cased and trimmed, either text contains the other. press: the same button. scroll: the same
  finger direction.
* AndroidControl's long presses become labels of DUAL_POINT with equal ends, which their evaluator reads as
  clicks: a long press is never right there, a click is. open_app steps are removed.

In the cases here the candidate boxes stand for the whole accessibility tree.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from solar_rl.protocols.agentcpm import GRID, direction, readable, thousandths
from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.matching import by_pair, distance, ratio, renamed, unit_corners
from solar_rl.protocols.neutral import POINTED
from solar_rl.protocols.qwen import contains

NEAREST = 5
_TYPES = {
    "click": "click",
    "scroll": "scroll",
    "input_text": "type",
    "wait": "stop",
    "status": "stop",
    **dict.fromkeys(("navigate_back", "navigate_home", "navigate_recent", "keyboard_enter"), "press"),
}
_LABELS = _TYPES | {"long_press": "click"}
_ANSWERS = _TYPES | {"long_press": "long_point"}
_NO_CODE = {
    "open_app": "open_app has no AITW code",
    "navigate_recent": "navigate_recent has no AITW code",
    "other": "not in the action space",
}


def judge(frame: pl.DataFrame, *, android_control: bool) -> pl.DataFrame:
    """Judge neutral rows as ``ActionEvaluator`` does with eval_android_control True or False."""
    rows = frame.with_columns(*thousandths("pred"), label=renamed("expert_type", _LABELS))
    rows = rows.with_columns(answer=pl.when(readable()).then(renamed("pred_type", _ANSWERS)))
    same = (pl.col("label") == pl.col("answer")).fill_null(False)
    rows = rows.with_columns(
        same=same,
        px=ratio(pl.col("pred_gx"), GRID),
        py=ratio(pl.col("pred_gy"), GRID),
        gx=ratio(pl.col("expert_x"), pl.col("screen_w")),
        gy=ratio(pl.col("expert_y"), pl.col("screen_h")),
    )
    near = distance(pl.col("gx") - pl.col("px"), pl.col("gy") - pl.col("py"))
    rows = rows.with_columns(
        in_box=_in_box(rows, android_control),
        near=near <= (0.04 if android_control else 0.14),
        contained=by_pair(rows, same & (pl.col("label") == "type"), "pred_text", "expert_text", contains),
    )
    exact = (
        pl.when(pl.col("label") == "click").then(pl.col("in_box") | pl.col("near"))
        .when(pl.col("label") == "scroll").then(direction() == pl.col("expert_direction"))
        .when(pl.col("label") == "type").then(pl.col("contained") == 1.0)
        .when(pl.col("label") == "press").then(pl.col("pred_type") == pl.col("expert_type"))
        .otherwise(True)
    )  # fmt: skip
    return rows.select(
        type_match="same",
        exact_match=pl.col("same") & exact,
        dropped=renamed("expert_type", _NO_CODE),
    )


def _in_box(rows: pl.DataFrame, android_control: bool) -> pl.Series:
    """Tell whether the answer lies in one of the boxes that count."""
    boxes = _cut_boxes(
        rows.with_row_index("row").filter(pl.col("same") & pl.col("expert_type").is_in(POINTED))
    )
    right, bottom = pl.col("left") + pl.col("width"), pl.col("top") + pl.col("height")
    if android_control:
        middle_x, middle_y = pl.col("left") + pl.col("width") / 2, pl.col("top") + pl.col("height") / 2
        away = distance(middle_x - pl.col("gx"), middle_y - pl.col("gy"))
        boxes = boxes.sort("row", away, maintain_order=True)
        counts = pl.int_range(pl.len()).over("row") < NEAREST
    else:
        counts = pl.col("gx").is_between("left", right) & pl.col("gy").is_between("top", bottom)
    inside = pl.col("px").is_between("left", right) & pl.col("py").is_between("top", bottom)
    hit = np.zeros(rows.height, dtype=bool)
    hit[boxes.filter(counts & inside)["row"].to_numpy()] = True
    return pl.Series(hit, dtype=pl.Boolean)


def _cut_boxes(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row a box, in their order: left, top, width, height after enlarging and cutting."""
    offered = rows.filter(pl.col("boxes").list.len() > 0)
    offered = offered.select("row", "px", "py", "gx", "gy", "screen_w", "screen_h", box="boxes").explode(
        "box"
    )
    x1, y1, _, _ = unit_corners()
    box = pl.col("box")
    wide = ratio(box.list.get(2) - box.list.get(0), pl.col("screen_w"))
    high = ratio(box.list.get(3) - box.list.get(1), pl.col("screen_h"))
    growth = 1.2 - 1
    return offered.with_columns(
        left=pl.max_horizontal(pl.lit(0.0), x1 - growth * wide / 2),
        top=pl.max_horizontal(pl.lit(0.0), y1 - growth * high / 2),
        width=pl.min_horizontal(pl.lit(1.0), wide + growth * wide),
        height=pl.min_horizontal(pl.lit(1.0), high + growth * high),
    )


def _protocol(name: str, android_control: bool) -> Protocol:
    radius = (
        "0.04 in the unit square (an ellipse of 43 x 96 px"
        if android_control
        else "0.14 in the unit square (an ellipse of 151 x 336 px"
    )
    which = "the 5 nearest to the label" if android_control else "those that hold the label"
    return Protocol(
        name=name,
        kind="evaluation",
        source=f"OpenBMB/AgentCPM-GUI acbaf509, eval/utils/evaluator.py ActionEvaluator, eval_android_control {android_control}",
        rules=Rules(
            radius=f"<= {radius} on 1080 x 2400)",
            boxes=f"{which}, 1.2 times larger and cut at the screen",
            text="either contains the other, lower-cased and trimmed",
            scroll="finger direction",
            open_app="removed",
            wait_finish="wait, finish and impossible are one class, stop",
            dropped="open_app",
            faults="a labelled long press is read as a click; an empty text is always right; waiting equals finishing",
        ),
        rows=partial(judge, android_control=android_control),
    )


PROTOCOLS = (_protocol("agentcpm_eval_ac004", True), _protocol("agentcpm_eval_014", False))
