"""Our own validity as a protocol: exact match is ``valid``, the reward is ``raw_score``.

The rule of solar_rl/validity.py with its default thresholds (docs/method.md): Gaussian kernels around the label,
widened by the smallest box that is no container; token F1; similarity of app names; equality for the rest.
A label that can't be judged is dropped with its reason, never 0. Keys that an action doesn't take are ignored.
"""

from __future__ import annotations

import polars as pl

from solar_rl.config import ValidityConfig
from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.neutral import canonical_frame
from solar_rl.validity import score

_EVIDENCE = {
    "rule": pl.String(),
    "distance": pl.Float64(),
    "matched_text": pl.String(),
    "failure_reason": pl.String(),
}


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows by our validity."""
    return judge_canonical(canonical_frame(frame))


def judge_canonical(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge canonical candidates by our validity: rows as ``validity.score`` reads them."""
    parsed = pl.col("parse_error").is_null()
    same = (parsed & (pl.col("pred_action_type") == pl.col("action_type"))).fill_null(False)
    kinds = frame.select(type_match=same)
    scores = score(frame, ValidityConfig())
    return pl.concat([kinds, scores], how="horizontal").select(
        *_EVIDENCE,
        "type_match",
        exact_match="valid",
        reward="raw_score",
        dropped="unscored_reason",
    )


PROTOCOL = Protocol(
    name="solar",
    kind="evaluation",
    source="solar-rl, solar_rl/validity.py (ours, see docs/method.md)",
    rules=Rules(
        radius="kernel exp(-d^2 / 2) of 0.034 a side, 0.5 at a distance of 0.04; wider in a box",
        boxes="the smallest that holds the label and covers less than a quarter of the screen",
        text="token F1 >= 0.5 after NFKC and casefold",
        scroll="content direction",
        open_app="similarity of the name >= 0.8",
        wait_finish="wait: type only; finish: the status",
        dropped="labels that can't be judged",
        faults="none known; a right action that the source does not list is wrong here too",
    ),
    rows=judge,
    evidence=_EVIDENCE,
    canonical=judge_canonical,
)
