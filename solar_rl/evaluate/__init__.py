"""Evaluate predictions on a dataset: TM, EM, grounding, goal progress and task SR under any protocol.

Nothing is lost on the way: steps without a prediction, skipped, dropped and unreadable ones are counted
beside the metrics, with the protocol, its source and the number of judged steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from solar_rl.columns import candidates_frame, label_columns
from solar_rl.config import ValidityConfig
from solar_rl.errors import InputError
from solar_rl.evaluate.buckets import bucket
from solar_rl.evaluate.metrics import EPISODE_METRICS, STEP_METRICS, measure, measure_groups
from solar_rl.evaluate.verdicts import judge, source_of
from solar_rl.schema import Candidate

Missing = Literal["error", "wrong", "skip"]
KEY = ("episode_id", "step_index")
NO_PREDICTION = "no prediction"
GROUPS: dict[str, tuple[str, ...]] = {
    "action_type": STEP_METRICS,
    "app": ("type_match", "exact_match"),
    "bucket": ("exact_match", *EPISODE_METRICS),
}
"""Columns by which an evaluation is broken down, and the metrics that make sense there."""


@dataclass(frozen=True)
class Evaluation:
    """What one set of predictions scores under one protocol.

    Args:
        protocol: Its name.
        source: Repository and commit, or version, of the rule.
        bucket_rule: Name of the length buckets' rule.
        counts: Steps by what became of them, and episodes.
        metrics: metric, value, low, high, of.
        by: The same by action type, app and bucket.
        verdicts: One row per judged or dropped step: key, verdict and the protocol's evidence.
    """

    protocol: str
    source: str
    bucket_rule: str
    counts: dict[str, int]
    metrics: pl.DataFrame
    by: dict[str, pl.DataFrame]
    verdicts: pl.DataFrame

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the verdicts as plain values."""
        return {
            "protocol": self.protocol,
            "source": self.source,
            "bucket_rule": self.bucket_rule,
            "counts": self.counts,
            "metrics": {row.pop("metric"): row for row in self.metrics.to_dicts()},
            "by": {name: table.to_dicts() for name, table in self.by.items()},
        }


@dataclass(frozen=True)
class Cases:
    """Predictions beside their labels, ready for any protocol.

    Args:
        rows: One row per judged step, sorted by key: see ``columns.label_columns``; with ``whole``.
        counts: Steps of the data, and how many were predicted, missing, skipped and unreadable.
    """

    rows: pl.DataFrame
    counts: dict[str, int]


def prepare(
    predictions: pl.DataFrame,
    steps: pl.DataFrame,
    episodes: pl.DataFrame,
    *,
    missing: Missing = "error",
    skip: pl.DataFrame | None = None,
) -> Cases:
    """Put predictions beside their labels.

    Args:
        predictions: Rows of table ``candidates``, one a step.
        steps: Every step that should be predicted.
        episodes: Their episodes.
        missing: What a step without a prediction is: an error, a wrong answer, or left out (its episode
            then has no goal progress and no task success).
        skip: Keys of steps to leave out, such as known wrong labels.

    Raises:
        InputError: A prediction for an unknown step, or, with ``error``, a step without a prediction.
    """
    _refuse_strangers(predictions, steps)
    wanted = steps if skip is None else steps.join(skip, on=KEY, how="anti", maintain_order="left")
    given = predictions.join(wanted, on=KEY, how="semi", maintain_order="left")
    absent = wanted.select(KEY).join(given, on=KEY, how="anti", maintain_order="left")
    if missing == "error" and absent.height:
        episode, step = absent.row(0)
        raise InputError(
            f"{absent.height:,} of {wanted.height:,} steps have no prediction, such as step {step} of "
            f"episode {episode}",
            hint="--missing wrong counts them as wrong, --missing skip leaves them out",
        )
    answers = pl.concat([given, _no_predictions(absent)], how="diagonal") if missing == "wrong" else given
    rows = label_columns(answers.sort(KEY), wanted, episodes)
    lacking = (
        absent.select("episode_id").unique() if missing == "skip" else absent.clear().select("episode_id")
    )
    rows = rows.with_columns(whole=~pl.col("episode_id").is_in(lacking["episode_id"].implode()))
    counts = {
        "steps": steps.height,
        "skipped": steps.height - wanted.height,
        "missing": absent.height,
        "unreadable": given["parse_error"].count(),
    }
    return Cases(rows, counts)


def evaluate(
    cases: Cases,
    protocol: str,
    *,
    validity: ValidityConfig | None = None,
    bucket_rule: str = "androidcontrol",
    resamples: int = 1000,
    seed: int = 0,
    groups: bool = True,
) -> Evaluation:
    """Judge cases under a protocol and measure.

    Args:
        cases: From ``prepare``.
        protocol: Name of a protocol.
        validity: Settings of ``solar`` (default: strict).
        bucket_rule: A name in ``buckets.RULES``.
        resamples: Bootstrap samples of the intervals; 0: no intervals.
        seed: Seed of the bootstrap.
        groups: Measure by action type, app and bucket too.

    Raises:
        ConfigError: No such protocol.
    """
    validity = validity or ValidityConfig()
    verdicts = cases.rows.select(
        *KEY, "action_type", "pred_action_type", "app", "whole", bucket(bucket_rule)
    ).hstack(judge(cases.rows, protocol, validity))
    judged = verdicts.filter(pl.col("dropped").is_null())
    options = {"resamples": resamples, "seed": seed}
    counts = cases.counts | {
        "dropped": verdicts.height - judged.height,
        "judged": judged.height,
        "episodes": judged["episode_id"].n_unique(),
    }
    return Evaluation(
        protocol,
        source_of(protocol, validity),
        bucket_rule,
        counts,
        measure(judged, **options),
        {name: measure_groups(judged, name, of, **options) for name, of in GROUPS.items() if groups},
        verdicts.drop("action_type", "pred_action_type", "app", "whole", "bucket"),
    )


def _refuse_strangers(predictions: pl.DataFrame, steps: pl.DataFrame) -> None:
    strangers = predictions.join(steps, on=KEY, how="anti", maintain_order="left")
    if strangers.height:
        episode, step = strangers.select(KEY).row(0)
        raise InputError(
            f"{strangers.height:,} of {predictions.height:,} predictions are for steps that the data don't "
            f"have, such as step {step} of episode {episode}",
            hint="check --data and --split",
        )


def _no_predictions(absent: pl.DataFrame) -> pl.DataFrame:
    """Return answers that say nothing, for steps which have none."""
    return candidates_frame(
        Candidate(episode, step, 0, "", "predictions", 0, parse_error=NO_PREDICTION)
        for episode, step in absent.select(KEY).iter_rows()
    )
