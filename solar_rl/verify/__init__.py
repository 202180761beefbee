"""Verifiers: anything that scores candidates in the place of the rules, and how far it can be trusted.

A verifier is a callable over two frames, the steps and the candidates, that returns one row for each
candidate in the columns of ``schema.SCORE_COLUMNS``; nothing downstream looks at anything else. ``rules`` is
the default. A candidate that it can't judge is unscored with a reason, never 0.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import polars as pl

from solar_rl.columns import label_columns, polars_type
from solar_rl.config import ValidityConfig
from solar_rl.errors import ConfigError, InputError
from solar_rl.schema import SCORE_COLUMNS
from solar_rl.validity import score

Verifier = Callable[[pl.DataFrame, pl.DataFrame], pl.DataFrame]
"""Steps (table ``steps`` with ``goal``, ``ref_len`` and, where there are images, ``screenshot``) and candidates
(table ``candidates``) in; one row per candidate in the same order out, columns ``SCORE_COLUMNS``."""

RULES = "rules"
_SCHEMA = {column.name: polars_type(column.dtype) for column in SCORE_COLUMNS}


def rules(config: ValidityConfig | None = None) -> Verifier:
    """Return our rules (solar_rl/validity.py) as a verifier."""
    settings = config or ValidityConfig()

    def judge(steps: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
        return score(label_columns(candidates, steps, _episodes(steps)), settings)

    return judge


def load_verifier(name: str) -> Verifier:
    """Find a verifier: ``rules``, or an import string of a callable such as ``my_models:judge``.

    Raises:
        ConfigError: It can't be imported or is not callable.
    """
    if name == RULES:
        return rules()
    module, colon, attribute = name.partition(":")
    hint = "rules, module:callable, or the http(s) address of an endpoint"
    if not colon:
        raise ConfigError(f"'{name}' is no verifier", where="verifier", hint=hint)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        hint = "is its folder on PYTHONPATH?"
        raise ConfigError(f"'{name}' can't be imported: {error}", where="verifier", hint=hint) from error
    if not callable(found):
        raise ConfigError(f"'{name}' can't be called", where="verifier", hint=hint)
    return found  # type: ignore[no-any-return]


def check_verifier(config: ValidityConfig) -> None:
    """Look up the verifier that a config names, before any work starts.

    Raises:
        ConfigError: It can't be imported or is not callable.
    """
    if config.verifier is not None:
        load_verifier(config.verifier)


def describe_steps(steps: pl.DataFrame, episodes: pl.DataFrame, shots: pl.DataFrame) -> pl.DataFrame:
    """Put what a verifier needs beside each step.

    Args:
        steps: Rows of table ``steps``.
        episodes: Their episodes: episode_id, goal, ref_len.
        shots: sha256 and ``screenshot`` (encoded bytes) of the images to show; may be empty.

    Returns:
        The steps in the same order with ``goal``, ``ref_len`` and ``screenshot``.
    """
    about = episodes.select("episode_id", "goal", "ref_len")
    keep: dict[str, Any] = {"how": "left", "maintain_order": "left"}
    return steps.join(about, on="episode_id", **keep).join(
        shots.select("sha256", "screenshot"), left_on="image_sha256", right_on="sha256", **keep
    )


def judge(
    config: ValidityConfig,
    candidates: pl.DataFrame,
    steps: pl.DataFrame,
    episodes: pl.DataFrame,
    images: Callable[[], pl.DataFrame],
) -> pl.DataFrame:
    """Score candidates as a config says: by the rules, or by the verifier that it names.

    Args:
        config: Thresholds of the rules, or the verifier.
        candidates: Rows of table ``candidates``, sorted by key.
        steps: The steps that they answer.
        episodes: Their episodes: episode_id, goal, ref_len.
        images: Gives sha256 and ``screenshot``; only asked for by a verifier.

    Returns:
        Columns ``SCORE_COLUMNS``, one row per candidate in the same order.
    """
    if config.verifier is None:
        return score(label_columns(candidates, steps, episodes), config)
    described = describe_steps(steps, episodes, images())
    return verify(load_verifier(config.verifier), described, candidates)


def verify(verifier: Verifier, steps: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Run a verifier and hold it to the contract.

    Args:
        verifier: See ``Verifier``.
        steps: Every step that a candidate answers.
        candidates: Sorted by key.

    Returns:
        Columns ``SCORE_COLUMNS``, one row per candidate in the same order. Columns of evidence that the
        verifier leaves out are null.

    Raises:
        InputError: The verifier's rows are not what the contract says.
    """
    found = verifier(steps, candidates)
    lacking = [name for name in ("raw_score", "valid", "unscored_reason") if name not in found.columns]
    if lacking:
        raise InputError(f"the verifier returned no column {', '.join(lacking)}")
    if found.height != candidates.height:
        raise InputError(f"the verifier returned {found.height} rows for {candidates.height} candidates")
    scores = found.select(
        (pl.col(name) if name in found.columns else pl.lit(None)).cast(dtype).alias(name)
        for name, dtype in _SCHEMA.items()
    )
    _refuse_unlawful(scores)
    return scores


def _refuse_unlawful(scores: pl.DataFrame) -> None:
    unscored = pl.col("raw_score").is_null()
    laws = {
        "raw_score lies outside [0, 1]": ~pl.col("raw_score").is_between(0, 1),
        "valid and raw_score must both be given, or neither": pl.col("valid").is_null() != unscored,
        "an unscored row needs a reason, a scored one has none": pl.col("unscored_reason").is_null()
        == unscored,
    }
    for law, broken in laws.items():
        rows = scores.with_row_index("row").filter(broken)
        if rows.height:
            raise InputError(
                f"the verifier broke a law in {rows.height} rows: {law}", where=f"row {rows['row'][0]}"
            )


def _episodes(steps: pl.DataFrame) -> pl.DataFrame:
    return steps.select("episode_id", "ref_len").unique("episode_id", maintain_order=True)
