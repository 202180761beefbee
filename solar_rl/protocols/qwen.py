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
UNIT_RADIUS = distance(pl.col("gx") - pl.col("px"), pl.col("gy") - pl.col("py")) <= RADIUS
"""Whether predicted and meant point are near in the unit square: an ellipse on the screen."""
ANY_SWIPE = pl.lit(True)


def contains(predicted: str, label: str) -> bool:
    """Tell whether either text contains the other, lower-cased and trimmed.

    >>> contains("YouTube ", "youtube music"), contains("", "anything"), contains("maps", "mail")
    (True, True, False)
    """
    a, b = predicted.lower().strip(), label.lower().strip()
    return a in b or b in a


def same_direction() -> pl.Expr:
    """Tell whether the answer's direction is the label's, in any case; null where it is no direction."""
    word = pl.col("pred_direction").str.to_lowercase()
    return pl.when(word.is_in(["up", "down", "left", "right"])).then(word == pl.col("expert_direction"))


def match(
    frame: pl.DataFrame,
    *,
    boxes: str = "boxes",
    icon_opens: bool,
    near: pl.Expr = UNIT_RADIUS,
    swipe: pl.Expr = ANY_SWIPE,
) -> pl.DataFrame:
    """Judge neutral rows by the shared rule.

    Args:
        frame: Neutral rows.
        boxes: Column of the boxes that count: ``boxes`` or ``single_box``.
        icon_opens: Whether a click on a box of an open step counts as opening the app.
        near: Whether the predicted point (px, py) and the meant one (gx, gy), shares of the screen, are near.
        swipe: Whether a swipe is right, null where the answer has no direction.

    Returns:
        ``frame`` with type_match, exact_match and error added.
    """
    rows = _named(frame, icon_opens)
    inside = inside_enlarged(pl.col("px"), pl.col("py"))
    rows = rows.with_columns(
        in_box=in_any_box(rows, pl.col("aimed"), inside, boxes),
        contained=by_pair(rows, pl.col("texts"), "pred_text", "expert_text", contains),
    )
    exact = (
        pl.when("aimed").then(pl.col("in_box") | near)
        .when("texts").then(pl.col("contained") == 1.0)
        .when(pl.col("label") == "system_button").then(pl.col("pred_type") == pl.col("expert_type"))
        .when(pl.col("label") == "swipe").then(swipe)
        .otherwise(True)
    )  # fmt: skip
    rows = rows.with_columns(error=_error(swipe))
    same = pl.col("error").is_null() & pl.col("same")
    return rows.with_columns(type_match=same.cast(pl.Int8), exact_match=(same & exact).cast(pl.Int8))


def _named(frame: pl.DataFrame, icon_opens: bool) -> pl.DataFrame:
    """Add both actions' names, both points, and which rows are of one type, of points, and of texts."""
    rows = frame.with_columns(label=renamed("expert_type", NAMES), answer=renamed("pred_type", NAMES))
    on_icon = (pl.col("label") == "open") & (pl.col("answer") == "click") & (pl.col("boxes").list.len() > 0)
    by_icon = (on_icon & icon_opens).fill_null(False)
    rows = rows.with_columns(
        _points(), same=((pl.col("label") == pl.col("answer")) | by_icon).fill_null(False)
    )
    return rows.with_columns(
        aimed=pl.col("same") & pl.col("answer").is_in(POINTED),
        texts=pl.col("same") & pl.col("answer").is_in(["type", "open"]),
    )


def _error(swipe: pl.Expr) -> pl.Expr:
    """Return the name of what the peers' code raises, null if it raises nothing."""
    half_a_point = pl.col("pred_x").is_null() != pl.col("pred_y").is_null()
    lacks_argument = (
        (pl.col("aimed") & pl.col("px").is_null())
        | (pl.col("texts") & pl.col("pred_text").is_null())
        | (pl.col("same") & (pl.col("label") == "swipe") & swipe.is_null())
    )
    return (
        pl.when(pl.col("pred_type").is_null()).then(pl.lit("TypeError"))
        .when(pl.col("pred_type").is_in(POINTED) & half_a_point).then(pl.lit("IndexError"))
        .when(lacks_argument).then(pl.lit("KeyError"))
    )  # fmt: skip


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
