"""What measuring a model takes, on recorded steps and in closed loop: who is asked how, and where results go."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from solar_rl.commands import log, sampler_file, told_usage

if TYPE_CHECKING:
    from solar_rl.config import DatasetConfig
    from solar_rl.evaluate import Missing
    from solar_rl.evaluate.files import EvaluationData
    from solar_rl.evaluate.suites import ClosedLoopSuite, StepSuite
    from solar_rl.sampling.base import Sampler

EXPERT = "expert"
"""``--sampler expert``: recorded actions, or the environment's own expert; what the suite can give at most."""
RUNNERS = ("transformers", "vllm", "openai")
"""What runs a model; anything else that ``--sampler`` names is a file."""
CACHE = ".cache"
"""Folder in the output where answers are remembered."""


@dataclass(frozen=True)
class Asked:
    """What the user asked for; see the verb ``evaluate``."""

    suite: str | None
    data: str | None
    model: str | None
    sampler: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    predictions: Path | None = None
    protocol: str | None = None
    format_name: str | None = None
    split: str | None = None
    level: str | None = None
    missing: Missing = "error"
    skip: Path | None = None
    buckets: str | None = None
    resamples: int = 1000
    seed: int = 0
    verdicts: Path | None = None
    limit: int | None = None
    out: Path | None = None
    dry_run: bool = False
    as_json: bool = False

    @property
    def name(self) -> str:
        """Return the name of what is measured."""
        return Path(self.suite or self.data or "").stem

    @property
    def folder(self) -> Path:
        """Return where files go."""
        if self.out is not None:
            return self.out
        who = Path(self.model).name if self.model else Path(self.sampler).stem
        return Path("runs") / "evaluate" / self.name / who


def config_of(
    asked: Asked,
    suite: StepSuite | ClosedLoopSuite,
    data: EvaluationData | None,
    overrides: Mapping[str, str],
) -> DatasetConfig:
    """Describe what is asked: the suite's source, how the model expects to be asked, and the user's own fields.

    Args:
        asked: What the user asked for.
        suite: The suite.
        data: A built dataset in the source's place.
        overrides: Dotted fields of the command line.

    Raises:
        ConfigError: A field or a template is wrong.
    """
    from solar_rl.config import put_sampler, read_sampler
    from solar_rl.evaluate.answering import suite_config
    from solar_rl.store.provenance import prompt_of

    given = dict(overrides)
    if asked.format_name is not None:
        given["prompt.format"] = asked.format_name
    if asked.level is not None:
        given["prompt.level"] = asked.level
    if asked.limit is not None:
        given["source.limit"] = str(asked.limit)
    trained = prompt_of(asked.model) if asked.model else None
    own = data.dataset.manifest.config.get("prompt", {}) if data else {}
    if suite.kind == "closed_loop":
        source: Mapping[str, Any] = {"builder": suite.environment, "options": suite.options}
    else:
        source = suite.source or {"builder": "dataset"}
    # a model is asked as its sampler's file says, or as it was trained, or as the dataset's sampler was;
    # the suite says what it is given
    data_of: dict[str, Any] = {"prompt": trained or own}
    sampler = _sampler(asked)
    if asked.sampler not in (*RUNNERS, EXPERT):
        blocks = read_sampler(sampler_file(asked.sampler))
        put_sampler(data_of, blocks)
        named = {} if asked.model is None else {"model": asked.model}
        sampler = blocks.get("sampler", {}) | named | _greedy(blocks.get("sampler", {}).get("type"))
    return suite_config(suite.name, source, data_of["prompt"] | suite.prompt, sampler, given)


def _sampler(asked: Asked) -> dict[str, Any]:
    if asked.sampler == EXPERT or asked.model is None:
        return {"type": "scripted", "n": 1, "error_rate": 0.0}
    return {"type": asked.sampler, "model": asked.model, **_greedy(asked.sampler)}


def _greedy(kind: str | None) -> dict[str, Any]:
    """Return the fields of a sampler that answers once, greedily, without what only training reads."""
    alone = {"n": 1, "temperature": 0, "adaptive": False}
    return alone | ({"logprobs": False, "token_ids": False} if kind == "openai" else {})


@contextmanager
def sampler_of(config: DatasetConfig, folder: Path) -> Iterator[tuple[Sampler, Callable[[], None]]]:
    """Set a sampler up behind a cache in the folder, so that a run which was cut off goes on."""
    from solar_rl.pipeline.hashes import FileHashes
    from solar_rl.pipeline.keys import sampler_identity
    from solar_rl.sampling.base import close, summary
    from solar_rl.sampling.cache import open_sampler

    hashes = FileHashes(folder / CACHE)
    sampler = open_sampler(config, folder / CACHE, sampler_identity(config, hashes))
    hashes.save()

    def told() -> None:
        if counted := summary(sampler):
            log.print("answers: " + told_usage({name: value for name, value in counted.items() if value}))

    try:
        yield sampler, told
    finally:
        close(sampler)


@contextmanager
def bar(what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar of episodes on stderr; the value is called after each of them."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=log, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.update(task, advance=1)


@contextmanager
def lines(path: Path) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Write a file of JSON lines: under another name until it is whole."""
    unfinished = path.with_name(f".{path.name}.tmp")
    with unfinished.open("wb") as file:

        def note(row: Mapping[str, Any]) -> None:
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))

        yield note
    unfinished.replace(path)


def save(asked: Asked, report: Mapping[str, Any]) -> None:
    """Write report.json, where a model was asked."""
    if asked.predictions is None:
        text = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        (asked.folder / "report.json").write_bytes(text)


def say_files(asked: Asked) -> None:
    """Say where the files are."""
    if asked.predictions is None:
        log.print(f"answers, rejects and report.json in {asked.folder}")


def say_plan(asked: Asked, config: DatasetConfig, more: str) -> None:
    """Say what would be measured."""
    who = asked.predictions or asked.model or EXPERT
    print(f"would measure {who} on {asked.name} ({more}), {told_prompt(config)}; files in {asked.folder}")


def told_prompt(config: DatasetConfig) -> str:
    """Say in a line how a model is asked."""
    from solar_rl.prompts.catalogue import told_name

    prompt = config.prompt
    pixels = f"{prompt.min_pixels:,} to {prompt.max_pixels:,} pixels"
    return (
        f"format {prompt.format}, template {told_name(prompt.template or '')}, level {prompt.level}, "
        f"history {prompt.history}, observation {prompt.observation}, {pixels}"
    )


def print_about(text: str, about: Mapping[str, Any]) -> None:
    """Print what a suite is and what was measured how."""
    if text:
        print(text)
    for name, value in about.items():
        if value not in (None, {}, []) and name not in ("resamples", "seed"):
            shown = json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
            print(f"{name}: {shown}")
    if about["resamples"]:
        print(f"intervals: 95 %, {about['resamples']:,} resamples of episodes, seed {about['seed']}")
    print()
