"""Lay the same predictions under every protocol side by side, and find the cases on which they disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from solar_rl.columns import action_of
from solar_rl.evaluate import KEY, Cases, Evaluation
from solar_rl.evaluate.metrics import METRICS

COUNTS = ("judged", "dropped", "missing")


def side_by_side(evaluations: Sequence[Evaluation]) -> pl.DataFrame:
    """Return one row per protocol: its judged, dropped and missing steps, and each metric with its interval."""
    rows = []
    for each in evaluations:
        row = {"protocol": each.protocol} | {name: each.counts[name] for name in COUNTS}
        for found in each.metrics.to_dicts():
            row |= {found["metric"]: found["value"]}
            row |= {f"{found['metric']}_{end}": found[end] for end in ("low", "high")}
        rows.append(row)
    schema: dict[str, Any] = {"protocol": pl.String} | dict.fromkeys(COUNTS, pl.Int64)
    ends = [f"{name}{end}" for name in METRICS for end in ("", "_low", "_high")]
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(ends, pl.Float64))


def disagreements(cases: Cases, evaluations: Sequence[Evaluation], *, limit: int = 20) -> pl.DataFrame:
    """Return the steps on which the protocols are most evenly split over "exact".

    Protocols without an exact match, and those that drop the step, have no vote there.

    Returns:
        Key, label and prediction in words, ``exact`` and ``not_exact`` (names of protocols), the most evenly
        split first, then those with more votes, then by key.
    """
    answered = cases.rows.filter(~pl.col("absent"))
    votes = (
        pl.concat(
            each.verdicts.select(*KEY, "exact_match", protocol=pl.lit(each.protocol)) for each in evaluations
        )
        .drop_nulls("exact_match")
        .join(answered, on=KEY, how="semi", maintain_order="left")
    )
    split = votes.group_by(KEY).agg(
        exact=pl.col("protocol").filter(pl.col("exact_match") == 1),
        not_exact=pl.col("protocol").filter(pl.col("exact_match") == 0),
    )
    yes, no = pl.col("exact").list.len().cast(pl.Int32), pl.col("not_exact").list.len().cast(pl.Int32)
    found = (
        split.filter(yes > 0, no > 0)
        .sort(pl.min_horizontal(yes, no), yes + no, *KEY, descending=[True, True, False, False])
        .head(limit)
        .join(answered, on=KEY, how="left", maintain_order="left")
    )
    label, prediction = [], []
    for row in found.to_dicts():
        expert, answer = action_of(row), action_of(row, "pred_")
        label.append(expert.describe() if expert else None)
        prediction.append(answer.describe() if answer else f"unreadable: {row['parse_error']}")
    return found.select(
        *KEY,
        pl.Series("label", label, pl.String),
        pl.Series("prediction", prediction, pl.String),
        exact=pl.col("exact").list.sort().list.join(", "),
        not_exact=pl.col("not_exact").list.sort().list.join(", "),
    )
