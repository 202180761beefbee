"""Read a round's figures from what its stages left: dataset versions and training.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from solar_rl.errors import InputError
from solar_rl.evaluate.bootstrap import Sums, intervals
from solar_rl.evaluate.buckets import bucket
from solar_rl.store.dataset import open_dataset

RECORD = "training.json"
"""File that a training recipe leaves in its output_dir."""
RESAMPLES = 1000


def sampled(folder: Path) -> dict[str, Any]:
    """Return what a round's candidates are like: shares of valid, unparsable and successful ones, and counts."""
    data = open_dataset(folder)
    rewards = data.rewards.select("valid", "pred_action_type").collect(engine="in-memory")
    trajectories = data.trajectories.select("success").collect(engine="in-memory")
    manifest = data.manifest
    return {
        "version": manifest.version,
        "build_id": manifest.build_id,
        "episodes": manifest.counts["episodes"],
        "candidates": rewards.height,
        "valid": _mean(rewards["valid"]),
        "unparsable": _mean(rewards["pred_action_type"].is_null()),
        "success": _mean(trajectories["success"]),
    }


def held_out(folder: Path, rule: str, *, seed: int = 0) -> dict[str, Any]:
    """Measure a policy's answers to recorded steps.

    Progress is valid prefix / length, the mean over an episode's answers, then over episodes; its interval is
    a 95 % bootstrap over episodes.

    Args:
        folder: The answers as a dataset.
        rule: Rule of the length buckets.
        seed: Seed of the bootstrap.
    """
    data = open_dataset(folder)
    paths = (
        data.trajectories.select("episode_id", "ref_len", "valid_prefix_len", "success")
        .group_by("episode_id", maintain_order=True)
        .agg(
            pl.col("ref_len").first(),
            (pl.col("valid_prefix_len") / pl.col("ref_len")).mean().alias("progress"),
            pl.col("success").mean(),
        )
        .collect(engine="in-memory")
    )
    if paths.is_empty():
        raise InputError("no held-out episode was answered at every step", where=str(folder))
    top = paths["progress"].to_numpy()[:, None]
    sums = Sums(np.arange(paths.height), top, np.ones_like(top))
    [ends] = intervals([sums], paths.height, resamples=RESAMPLES, seed=seed)
    by_bucket = (
        paths.with_columns(bucket(rule))
        .group_by("bucket")
        .agg(pl.len().alias("episodes"), pl.col("progress").mean())
        .sort("bucket")
    )
    rewards = data.rewards.select("valid", "pred_action_type").collect(engine="in-memory")
    return {
        "episodes": paths.height,
        "steps": data.manifest.counts["steps"],
        "progress": _mean(paths["progress"]),
        "low": float(ends.low[0]),
        "high": float(ends.high[0]),
        "success": _mean(paths["success"]),
        "valid": _mean(rewards["valid"]),
        "unparsable": _mean(rewards["pred_action_type"].is_null()),
        "bucket_rule": rule,
        "buckets": by_bucket.with_columns(pl.col("bucket").cast(pl.String)).to_dicts(),
    }


def played(report: Path) -> dict[str, Any]:
    """Return how a policy did in closed loop, from the report.json that ``evaluate`` left."""
    overall = json.loads(report.read_text(encoding="utf-8"))["overall"]
    names = ("episodes", "success", "low", "high", "progress", "invalid")
    return {name: overall[name] for name in names}


def trained(folder: Path) -> dict[str, Any]:
    """Return how a round's updates went, from training.json.

    The lag of an update is the number of updates since the policy that sampled: 0 for the first of a round, where
    nothing is read twice. Ratios are raw importance ratios a token, of the present policy to the sampler's.
    """
    path = folder / RECORD
    if not path.is_file():
        raise InputError("the training run left no record", where=str(path))
    record = json.loads(path.read_text(encoding="utf-8"))
    updates, log = record["steps"], record["log"]
    ratios, highest, shares = (
        [entry[name] for entry in log if name in entry]
        for name in ("policy/ratio", "policy/ratio_max", "policy/sample_share")
    )
    margins = [each["margin"] for each in record["margin"]]
    return {
        "updates": updates,
        "groups": record["groups"].get("kept"),
        "lag_mean": max(updates - 1, 0) / 2,
        "lag_max": max(updates - 1, 0),
        "ratio": sum(ratios) / len(ratios) if ratios else None,
        "ratio_max": max(highest, default=None),
        "sample_share": min(shares, default=None),
        "margin_before": margins[0] if margins else None,
        "margin_after": margins[-1] if margins else None,
    }


def _mean(column: pl.Series) -> float | None:
    values = column.drop_nulls().cast(pl.Float64).to_numpy()
    return float(values.mean()) if len(values) else None
