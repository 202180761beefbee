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
from solar_rl.evaluate.caveats import caveat
from solar_rl.evaluate.metrics import EPISODE_METRICS, STEP_METRICS, measure
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
        caveat: What to know before quoting it, where that hangs on the data.
    """

    protocol: str
    source: str
    bucket_rule: str
    counts: dict[str, int]
    metrics: pl.DataFrame
    by: dict[str, pl.DataFrame]
    verdicts: pl.DataFrame
    caveat: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the verdicts as plain values."""
        return {
            "protocol": self.protocol,
            "source": self.source,
            "bucket_rule": self.bucket_rule,
            "caveat": self.caveat,
            "counts": self.counts,
            "metrics": {row.pop("metric"): row for row in self.metrics.to_dicts()},
            "by": {name: table.to_dicts() for name, table in self.by.items()},
        }


@dataclass(frozen=True)
class Cases:
    """Predictions beside their labels, ready for any protocol.

    Args:
        rows: One row per wanted step, sorted by key: see ``columns.label_columns``; ``absent`` where a step
            has no prediction.
        counts: Steps of the data, and how many are skipped and unreadable.
        missing: What a step without a prediction is.
    """

    rows: pl.DataFrame
    counts: dict[str, int]
    missing: Missing


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
        missing: What a step without a prediction is, unless the protocol drops the step anyway: an error, a
            wrong answer, or left out (its episode then has no goal progress and no task success).
        skip: Keys of steps to leave out, such as known wrong labels.

    Raises:
        InputError: A prediction is for an unknown step.
    """
    _refuse_strangers(predictions, steps)
    wanted = steps if skip is None else steps.join(skip, on=KEY, how="anti", maintain_order="left")
    given = predictions.join(wanted, on=KEY, how="semi", maintain_order="left")
    absent = wanted.select(KEY).join(given, on=KEY, how="anti", maintain_order="left")
    answers = pl.concat(
        [
            given.with_columns(absent=pl.lit(False)),
            _no_predictions(absent).with_columns(absent=pl.lit(True)),
        ],
        how="diagonal",
    )
    counts = {
        "steps": steps.height,
        "skipped": steps.height - wanted.height,
        "unreadable": given["parse_error"].count(),
    }
    return Cases(label_columns(answers.sort(KEY), wanted, episodes), counts, missing)


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
        InputError: A step that the protocol judges has no prediction, and that is an error.
    """
    validity = validity or ValidityConfig()
    verdicts = cases.rows.select(*KEY, "action_type", "app", "absent", bucket(bucket_rule)).hstack(
        judge(cases.rows, protocol, validity)
    )
    contained = verdicts.filter(pl.col("dropped").is_null())
    lacking = contained.filter("absent")
    _refuse_gaps(lacking, contained, protocol, cases.missing)
    gaps = lacking["episode_id"] if cases.missing == "skip" else lacking["episode_id"].clear()
    judged = contained.with_columns(whole=~pl.col("episode_id").is_in(gaps.unique().implode()))
    if cases.missing == "skip":
        judged = judged.filter(~pl.col("absent"))
    found = measure(judged, GROUPS if groups else None, resamples=resamples, seed=seed)
    counts = cases.counts | {
        "missing": lacking.height,
        "dropped": verdicts.height - contained.height,
        "judged": judged.height,
        "episodes": judged["episode_id"].n_unique(),
    }
    return Evaluation(
        protocol,
        source_of(protocol, validity),
        bucket_rule,
        counts,
        found.metrics,
        found.by,
        verdicts.filter(~pl.col("absent") | (cases.missing == "wrong")).drop(
            "action_type", "app", "absent", "bucket"
        ),
        caveat(protocol, cases.rows.join(judged, on=KEY, how="semi", maintain_order="left")),
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


def _refuse_gaps(lacking: pl.DataFrame, contained: pl.DataFrame, protocol: str, missing: Missing) -> None:
    if missing == "error" and lacking.height:
        episode, step = lacking.select(KEY).row(0)
        raise InputError(
            f"{lacking.height:,} of {contained.height:,} steps that {protocol} judges have no prediction, such as "
            f"step {step} of episode {episode}",
            hint="--missing wrong counts them as wrong, --missing skip leaves them out",
        )


def _no_predictions(absent: pl.DataFrame) -> pl.DataFrame:
    """Return answers that say nothing, for steps which have none."""
    return candidates_frame(
        Candidate(episode, step, 0, "", "predictions", 0, parse_error=NO_PREDICTION)
        for episode, step in absent.select(KEY).iter_rows()
    )
