"""UI-S1's training reward, with the one flat box of its training file.

The rule of ``qwen.py`` with the single box, a radius of 0.04 of the unit square, and no icon that opens.
Terminate steps are judged by type, whatever the status. A swipe's path is compared with the label's path,
up and down flipped.
reward = 0.1 format + 0.9 {0 unreadable or raised, 0.1 another type, 0.5 the type, 1 exact}; format is a
thought that isn't empty, which every readable answer here has. Annotation GOOD.

``exact_match`` reads a predicted scroll as the protocol's own label would be drawn (up and down as the finger
goes, left and right as they are named); ``exact_match_physical`` draws the real finger, against the content.
"""

from __future__ import annotations

import polars as pl

from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.infigui_eval import OPPOSITE
from solar_rl.protocols.qwen import match, same_direction


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows as ``gui_action_match_compute_score`` does."""
    rows = match(frame, boxes="single_box", icon_opens=False, swipe=same_direction())
    exact, kind = pl.col("exact_match") == 1, pl.col("type_match") == 1
    action = pl.when(exact).then(1.0).when(kind).then(0.5).when(pl.col("error").is_null()).then(0.1)
    thought = pl.col("pred_type").is_not_null().cast(pl.Float64)
    return rows.with_columns(
        reward=0.1 * thought + 0.9 * action.otherwise(0.0),
        dropped=pl.when(pl.col("expert_type") == "other").then(pl.lit("not in the UI-S1 action space")),
        exact_match_physical=_physical(),
    )


def _physical() -> pl.Expr:
    """Return the verdict on a scroll drawn as the finger goes; null for other actions."""
    both = (pl.col("expert_type") == "scroll") & (pl.col("pred_type") == "scroll")
    word = pl.col("pred_direction").str.to_lowercase()
    across = pl.col("expert_direction").is_in(["left", "right"])
    meant = pl.when(across).then(pl.col("expert_direction").replace(OPPOSITE)).otherwise("expert_direction")
    return pl.when(both).then((word == meant).fill_null(False).cast(pl.Int8))


PROTOCOL = Protocol(
    name="uis1_train",
    kind="training reward",
    source="X-PLUG/MobileAgent 11cea575, UI-S1/verl/utils/reward_score/gui_traj.py gui_action_match_compute_score",
    rules=Rules(
        radius="<= 0.04 in the unit square (an ellipse of 43 x 96 px on 1080 x 2400)",
        boxes="the single box, 1.2 times larger",
        text="either contains the other, lower-cased and trimmed",
        scroll="direction of the path, the label's up and down flipped",
        open_app="text rule",
        wait_finish="type only",
        dropped="none of AndroidControl's",
        faults="takes one flat box only; a readable answer of another type earns 0.19; an empty text is always right; left and right follow another convention than up and down",
    ),
    rows=judge,
    evidence={"exact_match_physical": pl.Int8()},
)
