"""GUI-R1's training reward: 0.8 accuracy + 0.2 format, accuracy being the exact match.

The frame is the screenshot shrunk, where it is larger, to at most 1,258,291 pixels: both sides times
sqrt(limit / area), cut to whole pixels (752 x 1672 for 1080 x 2400). Answers are whole pixels of it, cut
towards zero, and read back as ``guir1.py`` says; the label's box and point are scaled without cutting.

* Accuracy needs the right type. click: strictly inside the single box, or without one less than 140 pixels
  of the frame away (about 201 of the device). type and scroll: token F1 of the texts at least 0.5. The rest, open_app
  and long_press among it: the type is all.
* Format: both numbers of the point given (none is fine: [-100, -100]); a text for type and open_app; one of
  the four directions in lower case for scroll. An unreadable answer earns nothing.
"""

from __future__ import annotations

import math

import polars as pl

from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.guir1 import NO_TEXT, not_theirs, same_type, texts_agree, written_text
from solar_rl.protocols.matching import by_pair, corner, ratio, whole, with_resized
from solar_rl.protocols.neutral import POINTED

MAX_PIXELS = 1_258_291
RADIUS = 140


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows as ``r1gui_compute_score`` does."""
    rows = with_resized(frame, shrink).with_columns(
        same=same_type(), written=written_text("pred"), meant=written_text("expert"), box="single_box"
    )
    texts = pl.col("same") & pl.col("expert_type").is_in(["input_text", "scroll"])
    rows = rows.with_columns(agree=by_pair(rows, texts, "written", "meant", texts_agree))
    rows = _with_hit(rows)
    accuracy = (
        pl.when(pl.col("expert_type") == "click").then(pl.col("hit"))
        .when(texts).then(pl.col("agree") == 1.0)
        .otherwise(True)
    )  # fmt: skip
    rows = rows.with_columns(
        accuracy=(pl.col("same") & accuracy).cast(pl.Float64), format=_well_formed().cast(pl.Float64)
    )
    return rows.select(
        "format",
        type_match="same",
        exact_match="accuracy",
        reward=0.8 * pl.col("accuracy") + 0.2 * pl.col("format"),
        dropped=not_theirs(),
    )


def shrink(width: int, height: int) -> tuple[int, int]:
    """Return the size of the frame that the model is trained on.

    >>> shrink(1080, 2400), shrink(800, 600)
    ((752, 1672), (800, 600))
    """
    if width * height <= MAX_PIXELS:
        return width, height
    scale = math.sqrt(MAX_PIXELS / (width * height))
    return int(width * scale), int(height * scale)


def _well_formed() -> pl.Expr:
    kind, text = pl.col("pred_type"), pl.col("written")
    half_a_point = pl.col("pred_x").is_null() != pl.col("pred_y").is_null()
    return (
        pl.when(kind.is_null()).then(False)
        .when(kind.is_in(POINTED)).then(~half_a_point)
        .when(kind.is_in(["input_text", "open_app"])).then(text != NO_TEXT)
        .when(kind == "scroll").then(text.is_in(["left", "right", "up", "down"]))
        .otherwise(True)
    )  # fmt: skip


def _with_hit(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ``hit``: whether the predicted point, as it is read on the frame, is right for a click."""
    rows = rows.with_columns(
        scale_x=ratio(pl.col("seen_w"), pl.col("screen_w")),
        scale_y=ratio(pl.col("seen_h"), pl.col("screen_h")),
    )
    rows = rows.with_columns(
        whole(pl.col(f"pred_{axis}") * pl.col(f"scale_{axis}")).alias(axis) for axis in ("x", "y")
    )
    readable = ((pl.col("x") >= 0) & (pl.col("y") >= 0)).fill_null(False)
    rows = rows.with_columns(pl.when(readable).then(axis).otherwise(0.0).alias(axis) for axis in ("x", "y"))
    inside, away = [], []
    for axis, size, (low, high) in (("x", "w", (0, 2)), ("y", "h", (1, 3))):
        screen, seen = pl.col(f"screen_{size}"), pl.col(f"seen_{size}")
        inside.append(ratio(corner(low) * seen, screen) < pl.col(axis))
        inside.append(pl.col(axis) < ratio(corner(high) * seen, screen))
        offset = pl.col(axis) - ratio(pl.col(f"expert_{axis}") * seen, screen)
        away.append(offset * offset)
    near = away[0] + away[1] < RADIUS * RADIUS
    in_box = pl.all_horizontal(inside)
    return rows.with_columns(hit=pl.when(pl.col("box").is_not_null()).then(in_box).otherwise(near))


PROTOCOL = Protocol(
    name="guir1_reward",
    kind="training reward",
    source="ritzz-ai/GUI-R1 d43eea2f, verl/utils/reward_score/r1gui.py r1gui_compute_score",
    rules=Rules(
        radius="without a box < 140 px of the shrunk frame (a circle of about 201 device px)",
        boxes="the single box, strictly inside",
        text="token F1 >= 0.5; single words by containment",
        scroll="the label's word, as text",
        open_app="type only",
        wait_finish="type only",
        dropped="none of AndroidControl's",
        faults="open_app and long_press need no argument; a text with an apostrophe is lost; a direction that contains the word counts",
    ),
    rows=judge,
    evidence={"format": pl.Float64()},
)
