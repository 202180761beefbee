"""UI-S1's evaluation of AndroidControl as its driver really runs it: without any box.

``fix_line`` in the driver looks for candidate_bbox on the step instead of in check_options, finds none, and
writes check_options anew with an empty list. What is left of ``uis1_eval`` is the radius; a click can no
longer open an app.
"""

from __future__ import annotations

import polars as pl

from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.neutral import NEUTRAL
from solar_rl.protocols.qwen import match, no_terminate


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows as ``evaluate_android_control_action`` does after ``fix_line``."""
    boxless = frame.with_columns(boxes=pl.lit([], NEUTRAL["boxes"]))
    return match(boxless, icon_opens=True).with_columns(dropped=no_terminate())


PROTOCOL = Protocol(
    name="uis1_eval_asshipped",
    kind="evaluation",
    source="X-PLUG/MobileAgent 11cea575, UI-S1/evaluation/eval_qwenvl.py fix_line, then as uis1_eval",
    rules=Rules(
        radius="<= 0.04 in the unit square (an ellipse of 43 x 96 px on 1080 x 2400)",
        boxes="none: all are lost on the way",
        text="either contains the other, lower-cased and trimmed",
        scroll="any swipe is right",
        open_app="text rule",
        wait_finish="wait: type only",
        dropped="none of AndroidControl's",
        faults="fix_line throws all candidate boxes away; swipe directions are never compared; an empty text is always right; an answer without an argument raises",
    ),
    rows=judge,
    evidence={"error": pl.String()},
)
