"""How far a verifier agrees with the rules: reliability curve, calibration error, disagreement by type.

The rules are the yardstick, not the truth: a disagreement is a case to look at. Noise in a verifier is what
makes reward hacking possible, so that this belongs beside every dataset that a verifier scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

BINS = 10


@dataclass(frozen=True)
class Calibration:
    """A verifier beside the rules.

    Args:
        figures: candidates, compared, unscored by either side, agreement, ece, brier.
        curve: By bin of the verifier's score: candidates, mean score, share that the rules call valid.
        by_type: By action type of the label: candidates, agreement, and disagreement either way.
        unscored: Why the verifier left candidates unscored.
    """

    figures: dict[str, float | int | None]
    curve: pl.DataFrame
    by_type: pl.DataFrame
    unscored: pl.DataFrame

    def as_dict(self) -> dict[str, Any]:
        """Return plain values."""
        tables = {"curve": self.curve, "by_type": self.by_type, "unscored": self.unscored}
        return {"figures": self.figures} | {name: table.to_dicts() for name, table in tables.items()}


def calibrate(verifier: pl.DataFrame, rules: pl.DataFrame, action_types: pl.Series) -> Calibration:
    """Compare a verifier's scores with the rules'.

    Args:
        verifier: Columns ``SCORE_COLUMNS`` of the verifier.
        rules: The same of the rules, row by row.
        action_types: Action type of each row's label.

    Returns:
        Expected calibration error over ten bins of equal width (the mean distance between a bin's mean score
        and its share of valid, weighted by its size), Brier score, and the tables.
    """
    rows = pl.DataFrame(
        {
            "action_type": action_types,
            "score": verifier["raw_score"],
            "said": verifier["valid"],
            "valid": rules["valid"],
            "reason": verifier["unscored_reason"],
        }
    )
    both = rows.filter(pl.col("score").is_not_null() & pl.col("valid").is_not_null())
    curve = _curve(both)
    gaps = (curve["mean_score"] - curve["valid_share"]).abs() * curve["candidates"]
    figures = {
        "candidates": rows.height,
        "compared": both.height,
        "unscored_by_verifier": rows["score"].null_count(),
        "unscored_by_rules": rows["valid"].null_count(),
        "agreement": _mean(both, pl.col("said") == pl.col("valid")),
        "ece": float(gaps.sum()) / both.height if both.height else None,
        "brier": _mean(both, (pl.col("score") - pl.col("valid").cast(pl.Float64)) ** 2),
    }
    reasons = rows.filter(pl.col("score").is_null()).group_by("reason").agg(candidates=pl.len())
    unscored = reasons.sort("candidates", "reason", descending=[True, False])
    return Calibration(figures, curve, _by_type(both), unscored)


def _curve(both: pl.DataFrame) -> pl.DataFrame:
    """Return the bins that hold anything, from low scores to high ones; 1 belongs to the last."""
    number = (pl.col("score") * BINS).floor().clip(0, BINS - 1).cast(pl.Int64)
    return (
        both.group_by(bin=number)
        .agg(
            candidates=pl.len().cast(pl.Int64),
            mean_score=pl.col("score").mean(),
            valid_share=pl.col("valid").mean(),
        )
        .sort("bin")
        .select(
            score_from=pl.col("bin") / BINS,
            score_to=(pl.col("bin") + 1) / BINS,
            candidates="candidates",
            mean_score="mean_score",
            valid_share="valid_share",
        )
    )


def _by_type(both: pl.DataFrame) -> pl.DataFrame:
    accepts, refuses = pl.col("said") & ~pl.col("valid"), ~pl.col("said") & pl.col("valid")
    return (
        both.group_by("action_type")
        .agg(
            candidates=pl.len().cast(pl.Int64),
            agreement=(pl.col("said") == pl.col("valid")).mean(),
            accepts_what_rules_refuse=accepts.sum().cast(pl.Int64),
            refuses_what_rules_accept=refuses.sum().cast(pl.Int64),
            mean_score=pl.col("score").mean(),
            valid_share=pl.col("valid").mean(),
        )
        .sort("candidates", "action_type", descending=[True, False])
    )


def _mean(rows: pl.DataFrame, value: pl.Expr) -> float | None:
    found = rows.select(value.cast(pl.Float64).mean()).item()
    return None if found is None else float(found)
