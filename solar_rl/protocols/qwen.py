"""The rule that UI-S1 and InfiGUI-R1 share: the one that Qwen2.5-VL's authors published as a gist.

What differs between its users (which boxes, whether an icon opens an app, how a swipe and a distance are
judged) are the arguments of ``match``; everything else is the same:

* Both actions are renamed to the mobile_use words (scroll = swipe, input_text = type, open_app = open, the
  keys = system_button, status = terminate); unequal words are no match of type.
* click and long_press: the point lies in a candidate box made 1.2 times larger about its centre, or near
  the label's point.
* type and open: lower-cased and trimmed, either text contains the other; an empty text is in every text.
* system_button: the same button. wait and terminate: the type is all.
* The peers' code raises where an answer lacks an argument that is looked at, and that counts as no match:
  TypeError (no action at all), IndexError (a point of one number), KeyError (no point, text or direction).
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from solar_rl.protocols.matching import by_pair, distance, in_any_box, inside_enlarged, ratio, renamed
from solar_rl.protocols.neutral import POINTED

BUTTONS = ("navigate_back", "navigate_home", "navigate_recent", "keyboard_enter")
NAMES = {
    "click": "click",
    "long_press": "long_press",
    "scroll": "swipe",
    "input_text": "type",
    "open_app": "open",
    "wait": "wait",
    **dict.fromkeys(BUTTONS, "system_button"),
    "status": "terminate",
    "other": "other",
}
RADIUS = 0.04
_RIGHT, _WRONG = pl.lit(1), pl.lit(0)


class Point(NamedTuple):
    """The predicted and the meant point as shares of the screen."""

    x: pl.Expr
    y: pl.Expr
    label_x: pl.Expr
    label_y: pl.Expr


def contains(predicted: str, label: str) -> bool:
    """Tell whether either text contains the other, lower-cased and trimmed.

    >>> contains("YouTube ", "youtube music"), contains("", "anything"), contains("maps", "mail")
    (True, True, False)
    """
    a, b = predicted.lower().strip(), label.lower().strip()
    return a in b or b in a


def unit_radius(point: Point) -> pl.Expr:
    """Tell whether the points are at most 0.04 apart in the unit square: an ellipse on the screen."""
    return distance(point.label_x - point.x, point.label_y - point.y) <= RADIUS


def same_direction() -> pl.Expr:
    """Tell whether the answer's direction is the label's, in any case; null where it is no direction."""
    word = pl.col("pred_direction").str.to_lowercase()
    return pl.when(word.is_in(["up", "down", "left", "right"])).then(word == pl.col("expert_direction"))


def match(
    frame: pl.DataFrame,
    *,
    boxes: str = "boxes",
    icon_opens: bool,
    near: pl.Expr | None = None,
    swipe: pl.Expr | None = None,
) -> pl.DataFrame:
    """Judge neutral rows by the shared rule.

    Args:
        frame: Neutral rows.
        boxes: Column of the boxes that count: ``boxes`` or ``single_box``.
        icon_opens: Whether a click on a box of an open step counts as opening the app.
        near: Whether predicted and meant point are near, on the columns px, py, gx, gy in the unit square
            (default: ``unit_radius``).
        swipe: Whether a swipe is right, null where the answer has no direction (default: any swipe is).

    Returns:
        ``frame`` with type_match, exact_match and error added.
    """
    rows = frame.with_columns(label=renamed("expert_type", NAMES), answer=renamed("pred_type", NAMES))
    has_box = pl.col("boxes").list.len() > 0
    by_icon = icon_opens & (pl.col("label") == "open") & (pl.col("answer") == "click") & has_box
    rows = rows.with_columns(_points(), by_icon=by_icon.fill_null(False))
    rows = rows.with_columns(
        same=((pl.col("label") == pl.col("answer")) | pl.col("by_icon")).fill_null(False)
    )
    point = Point(pl.col("px"), pl.col("py"), pl.col("gx"), pl.col("gy"))
    aimed = pl.col("same") & pl.col("answer").is_in(POINTED)
    close = unit_radius(point) if near is None else near
    texts = pl.col("same") & pl.col("label").is_in(["type", "open"]) & ~pl.col("by_icon")
    rows = rows.with_columns(
        in_box=in_any_box(rows, aimed, inside_enlarged(point.x, point.y), boxes),
        contained=by_pair(rows, texts, "pred_text", "expert_text", contains),
    )
    lacks_argument = (
        (aimed & pl.col("px").is_null())
        | (texts & pl.col("pred_text").is_null())
        | (
            pl.lit(swipe is not None)
            & (pl.col("label") == "swipe")
            & (_RIGHT if swipe is None else swipe).is_null()
        )
    )
    half_a_point = pl.col("pred_type").is_in(POINTED) & (
        pl.col("pred_x").is_null() != pl.col("pred_y").is_null()
    )
    error = (
        pl.when(pl.col("pred_type").is_null()).then(pl.lit("TypeError"))
        .when(half_a_point).then(pl.lit("IndexError"))
        .when(pl.col("same") & lacks_argument).then(pl.lit("KeyError"))
    )  # fmt: skip
    exact = (
        pl.when(aimed).then(pl.col("in_box") | close)
        .when(texts).then(pl.col("contained") == 1.0)
        .when(pl.col("label") == "system_button").then(pl.col("pred_type") == pl.col("expert_type"))
        .when(pl.col("label") == "swipe").then(pl.lit(True) if swipe is None else swipe)
        .otherwise(True)
    )  # fmt: skip
    return rows.with_columns(error=error).with_columns(
        type_match=(pl.col("error").is_null() & pl.col("same")).cast(pl.Int8),
        exact_match=(pl.col("error").is_null() & pl.col("same") & exact).cast(pl.Int8),
    )


def no_terminate() -> pl.Expr:
    """Return why a label can't occur in the published AndroidControl set, null if it can."""
    foreign = pl.col("expert_type").is_in(["status", "other"])
    return pl.when(foreign).then(pl.lit("no such AndroidControl step"))


def _points() -> list[pl.Expr]:
    """Return the predicted point and the label's; an open step means the centre of its first box."""
    predicted = [
        ratio(pl.col(f"pred_{axis}"), pl.col(f"screen_{size}")).alias(f"p{axis}")
        for axis, size in (("x", "w"), ("y", "h"))
    ]
    first = pl.col("boxes").list.first()
    x1, y1, x2, y2 = (ratio(first.list.get(i), pl.col(f"screen_{'wh'[i % 2]}")) for i in range(4))
    centre = {"x": (x1 + x2) / 2, "y": (y1 + y2) / 2}
    meant = [
        pl.when(pl.col("label") == "open")
        .then(centre[axis])
        .otherwise(ratio(pl.col(f"expert_{axis}"), pl.col(f"screen_{size}")))
        .alias(f"g{axis}")
        for axis, size in (("x", "w"), ("y", "h"))
    ]
    return [*predicted, *meant]
