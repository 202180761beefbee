"""GUI-Odyssey's own evaluation, on AndroidControl's steps said in its words.

Points are 0..1000 of the screen as floats, the single box alike, scrolls name the finger's direction.

* CLICK, LONG_PRESS: inside the box, edges included, or at most 0.14 away in the unit square. An answer
  without a whole point makes their code raise: info ``invalid``, which counts as the right type and as wrong.
* TEXT: trimmed but not lower-cased, either contains the other, or 1 - Levenshtein / longer length is at least
  0.5. Only what stands before the first colon is looked at, since their reader splits the line there; a
  missing text is an empty one, which is in every text.
* SCROLL: the direction without case. The rest: the type is all.

type_match = info is not ``action_fail``, as in their statistics. AndroidControl's wait and open_app have no
GUI-Odyssey action and are dropped. ``with_empty_list_box`` is the verdict, where it differs, when a step
without a box has an empty list as its box, as in their data, instead of None: every such click is ``invalid``.
"""

from __future__ import annotations

import polars as pl
from rapidfuzz.distance import Levenshtein

from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.matching import by_pair, corner, distance, ratio, renamed
from solar_rl.protocols.neutral import POINTED

RADIUS = 0.14
TEXT_THRESHOLD = 0.5
_NAMES = {
    "click": "CLICK",
    "long_press": "LONG_PRESS",
    "scroll": "SCROLL",
    "input_text": "TYPE",
    "navigate_back": "PRESS_BACK",
    "navigate_home": "PRESS_HOME",
    "navigate_recent": "PRESS_RECENT",
    "status": "COMPLETE",
}
_EMPTY_BOX = pl.Struct({"type_match": pl.Int8, "exact_match": pl.Int8, "info": pl.String})


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows as ``action_matching`` does."""
    rows = frame.with_columns(
        pl.col("pred_text").fill_null(""), label=_type("expert"), answer=_type("pred"), box="single_box"
    )
    rows = rows.with_columns(same=(pl.col("label") == pl.col("answer")).fill_null(False))
    typed = pl.col("same") & (pl.col("label") == "TYPE")
    rows = rows.with_columns(typed=by_pair(rows, typed, "pred_text", "expert_text", similar))
    pointed = pl.col("expert_type").is_in(POINTED)
    no_point = pl.col("pred_x").is_null() | pl.col("pred_y").is_null()
    scrolled = pl.col("pred_direction").str.to_lowercase() == pl.col("expert_direction")
    info = (
        pl.when(~pl.col("same")).then(pl.lit("action_fail"))
        .when(pointed & no_point).then(pl.lit("invalid"))
        .when(pointed).then(_verdict("click", _hit()))
        .when(pl.col("label") == "TYPE").then(_verdict("type", pl.col("typed") == 1.0))
        .when(pl.col("label") == "SCROLL").then(_verdict("scroll", scrolled.fill_null(False)))
        .otherwise(pl.lit("action_correct"))
    )  # fmt: skip
    rows = rows.with_columns(info=info)
    invalid = pl.struct(
        pl.lit(1).alias("type_match"), pl.lit(0).alias("exact_match"), pl.lit("invalid").alias("info")
    )
    boxless_hit = pl.col("box").is_null() & (pl.col("info") == "click_correct")
    return rows.select(
        "info",
        type_match=pl.col("info") != "action_fail",
        exact_match=pl.col("info").str.ends_with("correct"),
        dropped=pl.when(pl.col("label").is_null()).then(pl.lit("no such GUI-Odyssey action")),
        with_empty_list_box=pl.when(boxless_hit).then(invalid.cast(_EMPTY_BOX)),
    )


def similar(predicted: str, label: str) -> bool:
    """Tell whether two texts match: containment, or half of the longer one is the same.

    >>> similar("10:45", "10:30"), similar("Cat", "cat"), similar("kitten", "mitten"), similar("a", "b")
    (True, True, True, False)
    """
    a, b = predicted.split(":")[0].strip(), label.split(":")[0].strip()
    if a in b or b in a:
        return True
    return 1 - Levenshtein.distance(a, b) / max(len(a), len(b)) >= TEXT_THRESHOLD


def _type(who: str) -> pl.Expr:
    infeasible = (pl.col(f"{who}_type") == "status") & (pl.col(f"{who}_status") == "infeasible")
    return pl.when(infeasible).then(pl.lit("INCOMPLETE")).otherwise(renamed(f"{who}_type", _NAMES))


def _verdict(kind: str, right: pl.Expr) -> pl.Expr:
    return pl.when(right).then(pl.lit(f"{kind}_correct")).otherwise(pl.lit(f"{kind}_fail"))


def _hit() -> pl.Expr:
    grid = {"x": ("screen_w", 0, 2), "y": ("screen_h", 1, 3)}
    inside, away = [], []
    for axis, (size, low, high) in grid.items():
        side = pl.col(size)
        point = ratio(pl.col(f"pred_{axis}"), side) * 1000
        inside.append(point.is_between(ratio(corner(low), side) * 1000, ratio(corner(high), side) * 1000))
        away.append(ratio(point, 1000) - ratio(pl.col(f"expert_{axis}"), side))
    return (inside[0] & inside[1]).fill_null(False) | (distance(away[0], away[1]) <= RADIUS)


PROTOCOL = Protocol(
    name="gui_odyssey_official",
    kind="evaluation",
    source="OpenGVLab/GUI-Odyssey fefcbe9d, src/eval_mm/GUIOdyssey_action_matching.py action_matching, evaluate_GUIOdyssey.py",
    rules=Rules(
        radius="<= 0.14 in the unit square (an ellipse of 151 x 336 px on 1080 x 2400)",
        boxes="the single box (theirs: SAM2), as it is",
        text="containment, or 1 - Levenshtein / longer length >= 0.5, case counted, up to the first colon",
        scroll="finger direction, case-free",
        open_app="dropped",
        wait_finish="finish and giving up: type only; wait: dropped",
        dropped="wait, open_app, enter",
        faults="a text ends at its first colon; a missing text is right; an unreadable point counts as the right type; an empty list as box makes every click invalid",
    ),
    rows=judge,
    evidence={"info": pl.String(), "with_empty_list_box": _EMPTY_BOX},
)
