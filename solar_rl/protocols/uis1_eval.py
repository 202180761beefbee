"""UI-S1's evaluation of AndroidControl with the boxes of its published file.

The rule of ``qwen.py`` with every candidate box; a click on the icon's box opens the app (the label's point
is then the centre of the first box); the radius is 0.04 of the unit square. A swipe is right whatever its
direction: the comparison is commented out in their code. An answer that raises ends the episode with
progress 0 in their driver.

Choices of ours where the code alone says nothing: a terminate step, which the file doesn't have (their code
raises NotImplementedError), is dropped.
"""

from __future__ import annotations

import polars as pl

from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.qwen import match, no_terminate


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows as ``evaluate_android_control_action`` does."""
    return match(frame, icon_opens=True).with_columns(dropped=no_terminate())


PROTOCOL = Protocol(
    name="uis1_eval",
    kind="evaluation",
    source="X-PLUG/MobileAgent 11cea575, UI-S1/evaluation/qwenvl_utils.py evaluate_android_control_action",
    rules=Rules(
        radius="<= 0.04 in the unit square (an ellipse of 43 x 96 px on 1080 x 2400)",
        boxes="all candidates, 1.2 times larger",
        text="either contains the other, lower-cased and trimmed",
        scroll="any swipe is right",
        open_app="text rule, or a click on a candidate box",
        wait_finish="wait: type only",
        dropped="none of AndroidControl's",
        faults="swipe directions are never compared; an empty text is always right; whole-screen containers count as boxes; an answer without an argument raises",
    ),
    rows=judge,
    evidence={"error": pl.String()},
)
