"""Let a model answer the recorded steps of a suite or a dataset, one answer a step, and keep labels beside answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from solar_rl.actions import ACTION_FIELDS
from solar_rl.builder import Builder
from solar_rl.columns import candidates_frame, episode_of, episodes_frame, step_of, steps_frame
from solar_rl.config import Config, DatasetConfig, override, validate_config
from solar_rl.errors import InputError
from solar_rl.evaluate.files import EvaluationData
from solar_rl.evaluate.suites import PREFIX, StepSuite
from solar_rl.pipeline.reading import Tally, read_items
from solar_rl.prompts import frame_of, settled, tried
from solar_rl.sampling.base import Sampler
from solar_rl.sampling.drive import draw
from solar_rl.schema import Candidate, Episode, Reject, Screenshot
from solar_rl.store.parquet import table_files
from solar_rl.train.images import Screens

_UNREAD = "screen_text"
Note = Callable[[dict[str, Any]], None]
"""Takes a prediction as a line of ``predictions.jsonl``."""


def suite_config(
    name: str,
    source: Mapping[str, Any],
    prompt: Mapping[str, Any],
    sampler: Mapping[str, Any],
    overrides: Mapping[str, str],
) -> DatasetConfig:
    """Describe what is asked as a dataset would be: source, prompt and sampler.

    Args:
        name: Name of the suite.
        source: Its source block.
        prompt: Its prompt block.
        sampler: Who answers.
        overrides: Dotted fields of the command line; another builder drops the suite's options of its own.

    Raises:
        ConfigError: A field or a template is wrong.
    """
    data: dict[str, Any] = {
        "name": name,
        "source": dict(source),
        "prompt": dict(prompt),
        "sampler": dict(sampler),
    }
    given = {key: text for key, text in overrides.items() if not key.startswith(PREFIX)}
    if given.get("source.builder", source.get("builder")) != source.get("builder"):
        data["source"]["options"] = {}
    override(data, given)
    config = validate_config(DatasetConfig, data, where=f"suite {name}", overrides=tuple(given))
    return config.model_copy(update={"prompt": tried(settled(config.prompt))})


def source_episodes(config: DatasetConfig, builder: Builder, rejects: list[Reject]) -> Iterator[Episode]:
    """Read the episodes of a source, of the wanted splits, up to ``source.limit``.

    Args:
        config: What is asked.
        builder: What reads the source.
        rejects: Broken episodes are added here, also those whose history the format can't say.

    Raises:
        CheckFailed: Too many are broken.
    """
    tally, seen = Tally(config.source.max_reject_rate), set[str]()
    for shard in builder.shards():
        for item in read_items(config, builder, shard):
            if isinstance(item, Episode) and item.episode_id in seen:
                place = f"episode {item.episode_id}"
                item = Reject(shard, place, "duplicate_id", "this id was read before", item.episode_id)
            tally.add(item)
            if isinstance(item, Reject):
                rejects.append(item)
                continue
            seen.add(item.episode_id)
            yield item
            if len(seen) == config.source.limit:
                return


def data_episodes(data: EvaluationData, limit: int | None = None) -> Iterator[Episode]:
    """Read the episodes of a built dataset back, with their screenshots.

    Args:
        data: The dataset.
        limit: At most so many.
    """
    data.dataset.fetch("images")
    screens = Screens(table_files(data.dataset.folder, "images"))
    episodes = data.episodes if limit is None else data.episodes.head(limit)
    parts = data.steps.partition_by("episode_id", as_dict=True, maintain_order=True)
    for row in episodes.iter_rows(named=True):
        steps = parts[(row["episode_id"],)].iter_rows(named=True)
        yield episode_of(row, [step_of(step, _shot(screens, step["image_sha256"])) for step in steps])


def _shot(screens: Screens, sha256: str | None) -> Screenshot | None:
    return None if sha256 is None else Screenshot(screens.encoded(sha256), *screens.size(sha256))


@dataclass
class Answered:
    """Labels and, where a model was asked, its answers.

    Args:
        steps: Rows of table ``steps``, without the screens' texts.
        episodes: Their episodes.
        predictions: Rows of table ``candidates``; empty where nobody was asked.
        counts: What to know of the answers: cut off, history shortened, steps without an instruction.
    """

    steps: pl.DataFrame
    episodes: pl.DataFrame
    predictions: pl.DataFrame
    counts: dict[str, int] = field(default_factory=dict)


def answer_steps(
    config: DatasetConfig,
    sampler: Sampler,
    episodes: Iterable[Episode],
    note: Note,
    done: Callable[[], None] = lambda: None,
) -> Answered:
    """Ask a sampler about every step.

    Args:
        config: Prompt and sampler, with one candidate a step.
        sampler: Who answers.
        episodes: May be lazy.
        note: Told of every answer, episode by episode.
        done: Called after each episode.

    Raises:
        InputError: No episodes, or no step has the instruction that level low gives.
    """

    def watched() -> Iterator[tuple[Episode, Sequence[Candidate]]]:
        for episode, candidates in draw(config, sampler, episodes):
            for step, candidate in zip(episode.steps, candidates, strict=True):
                note(_line(config, candidate, frame_of(step, config.prompt)))
            yield episode, candidates
            done()

    return _gather(config, watched())


def labels_alone(config: DatasetConfig, episodes: Iterable[Episode]) -> Answered:
    """Read the labels of a suite, and ask nobody."""
    return _gather(config, ((episode, ()) for episode in episodes))


def _gather(config: DatasetConfig, drawn: Iterable[tuple[Episode, Sequence[Candidate]]]) -> Answered:
    steps, rows, answers = [], [], []
    counts = {
        "cut off at max_new_tokens": 0,
        "with a shortened history": 0,
        "steps without an instruction": 0,
    }
    for episode, candidates in drawn:
        steps.append(steps_frame([episode]).with_columns(pl.lit(None, pl.String).alias(_UNREAD)))
        rows.append(episodes_frame([episode]))
        answers.append(candidates_frame(candidates))
        counts["cut off at max_new_tokens"] += sum(c.finish_reason == "length" for c in candidates)
        counts["with a shortened history"] += sum(c.history_dropped > 0 for c in candidates)
        counts["steps without an instruction"] += sum(not step.instruction for step in episode.steps)
    if not rows:
        raise InputError(
            "no episode to evaluate on", hint="check --source.path, the splits of the suite and rejects.jsonl"
        )
    if config.prompt.level == "high":
        del counts["steps without an instruction"]
    elif counts["steps without an instruction"] == sum(part.height for part in steps):
        raise InputError("level low gives each step's instruction, and no step of this source has one")
    key = ["episode_id", "step_index"]
    found = (pl.concat(parts) for parts in (steps, rows, answers))
    table, episodes, predictions = found
    return Answered(table.sort(key), episodes.sort("episode_id"), predictions.sort(key), counts)


def _line(config: DatasetConfig, candidate: Candidate, frame: Any) -> dict[str, Any]:
    """Describe an answer as ``read_predictions`` reads it: as an action, and raw with the size that it saw."""
    action = candidate.action
    told = (
        {"parse_error": candidate.parse_error}
        if action is None
        else {name: value for name in ACTION_FIELDS if (value := getattr(action, name)) is not None}
    )
    return {
        "episode_id": candidate.episode_id,
        "step_index": candidate.step_index,
        "level": config.prompt.level,
        **told,
        "raw": candidate.completion,
        "resized_w": frame.width,
        "resized_h": frame.height,
    }


def changed(suite: Config, shipped: Config) -> dict[str, Any]:
    """Return the fields in which a suite differs from the shipped one, so that no figure hides it."""
    ours, theirs = suite.model_dump(mode="json"), shipped.model_dump(mode="json")
    return {name: value for name, value in ours.items() if value != theirs.get(name)}


def is_whole(suite: StepSuite, found: Answered) -> bool:
    """Tell whether as many episodes and steps were read as the suite states; true where it states none."""
    whole = suite.reference
    return whole is None or (found.episodes.height, found.steps.height) == (whole.episodes, whole.steps)


def completeness(suite: StepSuite, found: Answered) -> str:
    """Say whether the whole suite was read, by the counts that it states."""
    count = f"{found.episodes.height:,} episodes, {found.steps.height:,} steps"
    whole = suite.reference
    if whole is None:
        return count
    if is_whole(suite, found):
        return f"{count}, as many as in {whole.source}"
    return f"{count}; {whole.source} has {whole.episodes:,} and {whole.steps:,}"
