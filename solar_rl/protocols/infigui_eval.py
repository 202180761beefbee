"""InfiGUI-R1's evaluation of AndroidControl.

The rule of ``qwen.py`` with every candidate box; a click on the icon's box opens the app; the distance is at
most 0.04 of the longer side of the image that the model saw, in its pixels (smart-resized, at most 6400
tokens' worth). A swipe's path is compared with the label's word as it stands: for AndroidControl, whose
words name the content, the path that the protocol calls right is the finger going the other way.
An answer that raises counts as no match.

``exact_match`` reads a predicted scroll as the protocol's own label would be drawn, its path in the named
direction; ``exact_match_physical`` draws the real finger, against the content.
"""

from __future__ import annotations

import polars as pl

from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.matching import distance, smart_resized, with_resized
from solar_rl.protocols.qwen import RADIUS, match, no_terminate, same_direction

MAX_PIXELS = 6400 * 28 * 28
OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows as ``evaluate_android_control_action`` and ``compute_scores`` do."""
    seen = with_resized(frame, smart_resized(MAX_PIXELS))
    width, height = pl.col("seen_w"), pl.col("seen_h")
    away = distance((pl.col("gx") - pl.col("px")) * width, (pl.col("gy") - pl.col("py")) * height)
    near = away <= RADIUS * pl.max_horizontal("seen_w", "seen_h")
    verdicts = match(seen, icon_opens=True, near=near, swipe=same_direction())
    return verdicts.with_columns(dropped=no_terminate(), exact_match_physical=physical())


def physical() -> pl.Expr:
    """Return the verdict on a scroll drawn as the finger goes; null for other actions."""
    both = (pl.col("expert_type") == "scroll") & (pl.col("pred_type") == "scroll")
    finger = pl.col("pred_direction").str.to_lowercase().replace_strict(
        OPPOSITE, default=None, return_dtype=pl.String
    )  # fmt: skip
    return pl.when(both).then((finger == pl.col("expert_direction")).fill_null(False).cast(pl.Int8))


PROTOCOL = Protocol(
    name="infigui_eval",
    kind="evaluation",
    source="InfiXAI/InfiGUI-R1 a4fca178, eval/android_control AndroidControl.compute_scores, evaluate_android_control_action",
    rules=Rules(
        radius="<= 0.04 of the longer side (a circle of 96 px on 1080 x 2400)",
        boxes="all candidates, 1.2 times larger",
        text="either contains the other, lower-cased and trimmed",
        scroll="direction of the path = the label's word, not flipped",
        open_app="text rule, or a click on a candidate box",
        wait_finish="wait: type only",
        dropped="none of AndroidControl's",
        faults="the label's word names the content but is compared with the finger's path; an empty text is always right; whole-screen containers count as boxes",
    ),
    rows=judge,
    evidence={"exact_match_physical": pl.Int8()},
)
