"""Judge predictions under a protocol: the same rows, each peer's own rule."""

from __future__ import annotations

import polars as pl

from solar_rl import __version__
from solar_rl.config import ValidityConfig
from solar_rl.protocols import PROTOCOLS, get_protocol
from solar_rl.validity import score

OURS = "solar"

NAMES: tuple[str, ...] = (OURS, *(name for name in PROTOCOLS if name != OURS))
"""Every protocol, ours first."""


def source_of(protocol: str, validity: ValidityConfig) -> str:
    """Say which rule a protocol is: repository and commit with our version of it, or our settings."""
    if protocol == OURS:
        changed = validity.model_dump(exclude_defaults=True)
        settings = ", ".join(f"{name} {value}" for name, value in changed.items()) or "default settings"
        return f"{get_protocol(OURS).source}, {__version__}, {settings}"
    found = get_protocol(protocol)
    return f"{found.source} (version {found.version})"


def judge(rows: pl.DataFrame, protocol: str, validity: ValidityConfig) -> pl.DataFrame:
    """Judge each row under a protocol.

    Args:
        rows: One row per prediction with its label beside it: see ``columns.label_columns``.
        protocol: Name of a protocol.
        validity: Settings of ``solar``.

    Returns:
        type_match, exact_match (0 or 1), reward, dropped (why the protocol can't contain the step) and the
        protocol's evidence, in the order of the rows. All null but ``dropped`` where it isn't.

    Raises:
        ConfigError: No such protocol.
    """
    if protocol == OURS:
        return _judge_as_ours(rows, validity)
    return get_protocol(protocol).judge_canonical(rows)


def _judge_as_ours(rows: pl.DataFrame, validity: ValidityConfig) -> pl.DataFrame:
    """Judge by ``validity.score``: every canonical action, desktop and web too; unscored is dropped."""
    scored = score(rows, validity)
    same_type = rows["parse_error"].is_null() & rows["pred_action_type"].eq_missing(rows["action_type"])
    return scored.select(
        type_match=pl.when(pl.col("unscored_reason").is_null()).then(same_type).cast(pl.Int8),
        exact_match=pl.col("valid").cast(pl.Int8),
        reward="raw_score",
        dropped="unscored_reason",
        rule="rule",
        distance="distance",
        failure_reason="failure_reason",
    )
