"""Judge candidates and shape their rewards: the two stages that are arithmetic on columns."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from solar_rl.columns import label_columns
from solar_rl.config import DatasetConfig
from solar_rl.shaping import Shaped, shape
from solar_rl.validity import score
from solar_rl.verify import describe_steps, load_verifier, verify

_KEYS = ("episode_id", "step_index", "candidate_index", "app", "action_type", "pred_action_type", "ref_len")


def score_and_shape(
    config: DatasetConfig,
    candidates: pl.DataFrame,
    steps: pl.DataFrame,
    episodes: pl.DataFrame,
    images: Callable[[], pl.DataFrame],
) -> Shaped:
    """Judge candidates by the rules, or the config's verifier, and shape their rewards.

    Args:
        config: Validity, shaping and advantage.
        candidates: Rows of table ``candidates`` of whole episodes.
        steps: The steps that they answer.
        episodes: Their episodes: episode_id, goal, ref_len.
        images: Gives sha256 and ``screenshot``; only asked for by a verifier.
    """
    labelled = label_columns(candidates, steps, episodes)
    if config.validity.verifier is None:
        scores = score(labelled, config.validity)
    else:
        described = describe_steps(steps, episodes, images())
        scores = verify(load_verifier(config.validity.verifier), described, candidates)
    return shape(labelled.select(_KEYS).hstack(scores), config.shaping, config.advantage)
