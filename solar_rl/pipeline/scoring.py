"""Judge candidates and shape their rewards: the two stages that are arithmetic on columns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import polars as pl

from solar_rl.columns import label_columns
from solar_rl.config import DatasetConfig
from solar_rl.pipeline.work import write_atomically
from solar_rl.shaping import Shaped, shape
from solar_rl.validity import score
from solar_rl.verify import describe_steps, load_verifier, verify

Images = Callable[[pl.DataFrame], pl.DataFrame]
"""Gives sha256 and ``screenshot`` of some steps, rows of table ``steps``."""
VERIFIED_AT_ONCE = 50
"""Episodes that a verifier judges in one call: what a kill costs, and whose screenshots are in memory."""
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
    return _shaped(config, labelled, scores)


def score_by_parts(
    config: DatasetConfig,
    candidates: pl.DataFrame,
    steps: pl.DataFrame,
    episodes: pl.DataFrame,
    images: Images,
    kept: Path,
) -> Shaped:
    """Do the same for a build: a verifier judges some episodes after the other, and is asked for none twice.

    Args:
        config: As ``score_and_shape``, as are the next three.
        candidates: Sorted by key.
        steps: The steps that they answer.
        episodes: Their episodes.
        images: Only asked by a verifier.
        kept: Folder of this build alone, in which a verifier's scores outlive a kill.
    """
    name = config.validity.verifier
    if name is None:
        return score_and_shape(config, candidates, steps, episodes, lambda: images(steps))
    scores = pl.concat(_verified(name, candidates, steps, episodes, images, kept))
    return _shaped(config, label_columns(candidates, steps, episodes), scores)


def _shaped(config: DatasetConfig, labelled: pl.DataFrame, scores: pl.DataFrame) -> Shaped:
    return shape(labelled.select(_KEYS).hstack(scores), config.shaping, config.advantage)


def _verified(
    name: str,
    candidates: pl.DataFrame,
    steps: pl.DataFrame,
    episodes: pl.DataFrame,
    images: Images,
    kept: Path,
) -> Iterator[pl.DataFrame]:
    """Yield the scores of a few episodes at a time: a verifier may be as costly as the sampler."""
    verifier = load_verifier(name)
    kept.mkdir(exist_ok=True)
    ids = candidates["episode_id"].unique(maintain_order=True)
    for start in range(0, max(1, ids.len()), VERIFIED_AT_ONCE):
        some = ids[start : start + VERIFIED_AT_ONCE]
        path = kept / f"{hashlib.sha256(repr(some.to_list()).encode()).hexdigest()}.parquet"
        if not path.exists():
            wanted = pl.col("episode_id").is_in(some.implode())
            asked = steps.filter(wanted)
            described = describe_steps(asked, episodes, images(asked))
            buffer = BytesIO()
            verify(verifier, described, candidates.filter(wanted)).write_parquet(buffer)
            write_atomically(path, buffer.getvalue())
        yield pl.read_parquet(path, glob=False)
