"""Read, sample, score and shape: from a builder's episodes to the finished units of a build."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from solar_rl.builder import Builder, read_shard
from solar_rl.columns import candidates_frame, episodes_frame, label_columns, steps_frame
from solar_rl.config import DatasetConfig
from solar_rl.episodes import checked
from solar_rl.errors import ActionError, CheckFailed
from solar_rl.formats import get_format
from solar_rl.pipeline.work import Unit, Work
from solar_rl.prompts import frame_of
from solar_rl.sampling.base import Sampler
from solar_rl.sampling.drive import draw
from solar_rl.schema import Episode, Reject
from solar_rl.shaping import Shaped, shape
from solar_rl.validity import score
from solar_rl.verify import describe_steps, load_verifier, verify

REJECT_RATE_FROM = 200
Progress = Callable[[int], None]
"""Called with the number of episodes that were just finished."""


@dataclass
class _Batch:
    episodes: list[Episode] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)


def build_units(
    config: DatasetConfig,
    builder: Builder,
    make_sampler: Callable[[], Sampler],
    work: Work,
    progress: Progress,
) -> list[Unit]:
    """Turn a source into finished units; units that an earlier run finished are kept.

    The sampler is only set up when a unit is missing: models are costly to load.

    Raises:
        CheckFailed: More records are broken than ``source.max_reject_rate`` allows.
    """
    sampler: Sampler | None = None
    units: list[Unit] = []
    for index, batch in enumerate(_batches(config, builder)):
        ids = [episode.episode_id for episode in batch.episodes]
        unit = work.find_unit(index, ids, batch.rejects)
        if unit is None:
            sampler = sampler or make_sampler()
            tables = build_tables(config, sampler, batch.episodes)
            screenshots = [s.screenshot for e in batch.episodes for s in e.steps if s.screenshot]
            unit = work.save_unit(index, ids, batch.rejects, tables, screenshots)
        units.append(unit)
        progress(len(ids))
    return units


def build_tables(
    config: DatasetConfig, sampler: Sampler, episodes: Sequence[Episode]
) -> dict[str, pl.DataFrame]:
    """Sample, score and shape a handful of episodes: the tables of one unit."""
    candidates = candidates_frame(c for _, found in draw(config, sampler, episodes) for c in found)
    steps, rows = steps_frame(episodes), episodes_frame(episodes)
    shots = {s.screenshot.sha256: s.screenshot.data for e in episodes for s in e.steps if s.screenshot}
    images = pl.DataFrame(
        {"sha256": list(shots), "screenshot": list(shots.values())},
        {"sha256": pl.String, "screenshot": pl.Binary},
    )
    shaped = score_and_shape(config, candidates, steps, rows, lambda: images)
    return {
        "episodes": rows,
        "steps": steps,
        "candidates": candidates,
        "rewards": shaped.rewards,
        "trajectories": shaped.trajectories,
    }


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
        candidates: Rows of table ``candidates``.
        steps: The steps that they answer.
        episodes: Their episodes: episode_id, goal, ref_len.
        images: Gives sha256 and ``screenshot``; only asked for by a verifier.
    """
    keys = [
        "episode_id",
        "step_index",
        "candidate_index",
        "app",
        "action_type",
        "pred_action_type",
        "ref_len",
    ]
    labelled = label_columns(candidates, steps, episodes)
    if config.validity.verifier is None:
        scores = score(labelled, config.validity)
    else:
        described = describe_steps(steps, episodes, images())
        scores = verify(load_verifier(config.validity.verifier), described, candidates)
    return shape(labelled.select(keys).hstack(scores), config.shaping, config.advantage)


def _batches(config: DatasetConfig, builder: Builder) -> Iterator[_Batch]:
    """Group a source's good episodes; each batch carries the rejects met since the last one."""
    batch, good, bad = _Batch(), 0, 0
    last: Reject | None = None
    for item in _items(config, builder):
        if isinstance(item, Reject):
            batch.rejects.append(item)
            last, bad = item, bad + 1
        elif config.source.splits and item.split not in config.source.splits:
            continue
        else:
            batch.episodes.append(item)
            good += 1
        _check_reject_rate(builder.source.max_reject_rate, good, bad, last)
        if len(batch.episodes) == config.shard_episodes:
            yield batch
            batch = _Batch()
        if good == config.source.limit:
            break
    if batch.episodes or batch.rejects:
        yield batch


def _items(config: DatasetConfig, builder: Builder) -> Iterator[Episode | Reject]:
    seen: set[str] = set()
    for shard in builder.shards():
        for item in checked(read_shard(builder, shard), file=shard, seen=seen):
            yield item if isinstance(item, Reject) else _sayable(config, item, shard)


def _sayable(config: DatasetConfig, episode: Episode, shard: str) -> Episode | Reject:
    """Reject an episode with an action that has to be written in the format, and can't be."""
    history = config.prompt.history == "expert"
    written = episode.steps if config.sampler.type == "scripted" else episode.steps[:-1] if history else ()
    fmt = get_format(config.prompt.format)
    for step in written:
        try:
            fmt.render(step.action, frame_of(step, config.prompt))
        except ActionError as error:
            record = f"episode {episode.episode_id}, step {step.step_index}"
            return Reject(shard, record, "format_lacks_action", error.message, episode.episode_id)
    return episode


def _check_reject_rate(rate: float, good: int, bad: int, last: Reject | None) -> None:
    if last and good + bad >= REJECT_RATE_FROM and bad > rate * (good + bad):
        raise CheckFailed(
            f"{bad} of {good + bad} episodes are broken, more than max_reject_rate {rate:.0%}; "
            f"the last: {last.file}, {last.record}: {last.message}",
            hint="mend the source, or raise --source.max_reject_rate",
        )
