"""GUI-R1's evaluation, with what it calls a step hit as the exact match.

Points are device pixels at scale 1, read back as ``guir1.py`` says.

* Labels click and long_press: the distance is under 0.14, each axis by its own side. Labels type, open_app
  and scroll: token F1 of the texts at least 0.5. Neither asks for the right action: an answer of
  another type, even an unreadable one, has the point (0, 0) and the text "no input text", and can hit with them.
* wait, press_back and press_home have no step notion: exact_match is null.

``exact_and_type`` is what a reader would expect: the hit with the right type.
"""

from __future__ import annotations

import polars as pl

from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.guir1 import NO_TEXT, not_theirs, same_type, texts_agree, written_text
from solar_rl.protocols.matching import by_pair, ratio, whole
from solar_rl.protocols.neutral import POINTED

RADIUS = 0.14


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows as ``evaluate`` of eval_omni.py does."""
    rows = frame.with_columns(
        same=same_type(), written=written_text("pred").fill_null(NO_TEXT), meant=written_text("expert")
    )
    texts = pl.col("expert_type").is_in(["input_text", "open_app", "scroll"])
    rows = rows.with_columns(agree=by_pair(rows, texts, "written", "meant", texts_agree))
    exact = (
        pl.when(pl.col("expert_type").is_in(POINTED)).then(_near())
        .when(texts).then(pl.col("agree") == 1.0)
    )  # fmt: skip
    return rows.select(
        type_match="same",
        exact_match=exact,
        exact_and_type=pl.when(exact.is_not_null()).then(exact & pl.col("same")),
        dropped=not_theirs(),
    )


def _near() -> pl.Expr:
    readable = (
        pl.col("pred_type").is_in(POINTED)
        & pl.col("pred_whole")
        & (pl.col("pred_x") >= 0)
        & (pl.col("pred_y") >= 0)
    ).fill_null(False)
    parts = []
    for axis, size in (("x", "screen_w"), ("y", "screen_h")):
        point = pl.when(readable).then(whole(pl.col(f"pred_{axis}"))).otherwise(0.0)
        share = ratio(pl.col(f"expert_{axis}") - point, pl.col(size))
        parts.append(share * share)
    return parts[0] + parts[1] < RADIUS * RADIUS


PROTOCOL = Protocol(
    name="guir1_eval",
    kind="evaluation",
    source="ritzz-ai/GUI-R1 d43eea2f, guir1/eval/eval_omni.py evaluate, guir1/inference/inference_vllm_android.py",
    rules=Rules(
        radius="< 0.14, each axis by its own side (an ellipse of 151 x 336 px on 1080 x 2400)",
        boxes="none",
        text="token F1 >= 0.5; single words by containment",
        scroll="the label's word, as text",
        open_app="as text",
        wait_finish="type only, no exact match",
        dropped="none by this code; its data has 7,708 steps",
        faults="a hit needs no right type, so an unreadable answer hits a label near (0, 0); a text with an apostrophe is lost; a decimal point loses the whole point",
    ),
    rows=judge,
    evidence={"exact_and_type": pl.Int8()},
)
