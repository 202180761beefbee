r"""OS-Atlas' evaluation of AndroidControl, on the texts that label and answer are written as.

Both are one line such as ``CLICK <point>[[512,87]]</point>`` (0..1000, ``int(1000 * x / width)``),
``TYPE [text]``, ``OPEN_APP [name]``, ``SCROLL [DOWN]`` (the label's word), ``WAIT``. The type is the first word.

* CLICK, LONG_PRESS: the first two runs of digits are at most 140 apart; the sign is lost, so -92 is
  92. An answer with fewer than two numbers stands for (-100, -100).
* TYPE, OPEN_APP: the lines are equal, or the token F1 of the second white-space separated words alone is above
  0.5, which for single words means that they are equal without case: of "[Broadway Podcast" only
  "[Broadway" counts. An answer without a second word raises IndexError and would end the run; here 0 and ``error``.
* SCROLL and the rest: the lines are equal.

Boxes play no part.
"""

from __future__ import annotations

import polars as pl

from solar_rl.protocols.agentcpm import thousandths
from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.matching import by_pair, distance, renamed
from solar_rl.protocols.neutral import POINTED

RADIUS = 140
_NAMES = {
    "click": "CLICK",
    "long_press": "LONG_PRESS",
    "scroll": "SCROLL",
    "input_text": "TYPE",
    "open_app": "OPEN_APP",
    "wait": "WAIT",
    "navigate_back": "PRESS_BACK",
    "navigate_home": "PRESS_HOME",
    "navigate_recent": "PRESS_RECENT",
    "keyboard_enter": "ENTER",
    "status": "COMPLETE",
}
_NO_POINT = -100.0


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows as ``evaluate`` of evaluation_unify.py does."""
    rows = frame.with_columns(
        *thousandths("pred"), *thousandths("expert"), label=_type("expert"), answer=_type("pred")
    )
    rows = rows.with_columns(same=(pl.col("label") == pl.col("answer")).fill_null(False))
    texts = pl.col("same") & pl.col("label").is_in(["TYPE", "OPEN_APP"])
    rows = rows.with_columns(texts=texts, alike=by_pair(rows, texts, "pred_text", "expert_text", second_word))
    error = pl.col("texts") & pl.col("pred_text").is_null()
    exact = (
        pl.when(pl.col("expert_type").is_in(POINTED)).then(_near())
        .when("texts").then(pl.col("alike") == 1.0)
        .when(pl.col("label") == "SCROLL")
        .then(pl.col("pred_direction").str.to_uppercase() == pl.col("expert_direction").str.to_uppercase())
        .otherwise(True)
    )  # fmt: skip
    return rows.select(
        type_match=pl.col("same") & ~error,
        exact_match=(pl.col("same") & ~error & exact).fill_null(False),
        error=pl.when(error).then(pl.lit("IndexError")),
        dropped=pl.when(pl.col("label").is_null()).then(pl.lit("no such OS-Atlas action")),
    )


def second_word(predicted: str, label: str) -> bool:
    """Tell whether two texts are equal, or have the same first word once "[" is put before them.

    >>> second_word("Broadway Tickets", "broadway Podcast Network"), second_word("cnn", "cnn news")
    (True, False)
    """
    answer, meant = f"TYPE [{predicted}]", f"TYPE [{label}]"
    return answer == meant or answer.split()[1].lower() == meant.split()[1].lower()


def _type(who: str) -> pl.Expr:
    infeasible = (pl.col(f"{who}_type") == "status") & (pl.col(f"{who}_status") == "infeasible")
    return pl.when(infeasible).then(pl.lit("IMPOSSIBLE")).otherwise(renamed(f"{who}_type", _NAMES))


def _near() -> pl.Expr:
    whole_point = pl.col("pred_gx").is_not_null() & pl.col("pred_gy").is_not_null()
    x, y = (
        pl.when(whole_point).then(pl.col(f"pred_g{axis}").abs()).otherwise(_NO_POINT) for axis in ("x", "y")
    )
    return distance(x - pl.col("expert_gx").abs(), y - pl.col("expert_gy").abs()) <= RADIUS


PROTOCOL = Protocol(
    name="osatlas_ac",
    kind="evaluation",
    source="OS-Copilot/OS-Atlas bad08407, eval/eval_scripts/android_control/evaluation_unify.py evaluate",
    rules=Rules(
        radius="<= 140 on the 0..1000 grid (an ellipse of 151 x 336 px on 1080 x 2400)",
        boxes="none",
        text="equal, or the first word is",
        scroll="the label's word",
        open_app="as text",
        wait_finish="equality",
        dropped="none by this code; its data has 7,708 steps",
        faults="only the first word of a text counts; a minus sign is lost; an answer without a text ends the run",
    ),
    rows=judge,
    evidence={"error": pl.String()},
)
