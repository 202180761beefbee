"""Read and sample alone: what a later build of the same config finds, and a forecast of what that takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from solar_rl.config import DatasetConfig
from solar_rl.errors import InputError
from solar_rl.pipeline.build import Options, Prepared, Progress, prepare, run_everywhere
from solar_rl.pipeline.expected import Expected
from solar_rl.pipeline.phases import Job, Standing
from solar_rl.pipeline.reading import read_items
from solar_rl.pipeline.units import Unit
from solar_rl.pipeline.work import claim, disk_told, locked
from solar_rl.prompts import Request, build_request
from solar_rl.sampling.base import candidate_seed
from solar_rl.sampling.cache import known_answers
from solar_rl.schema import Reject

CHARACTERS_A_TOKEN = 4
"""English text: about so many characters a token."""
PIXELS_A_TOKEN = 28 * 28
"""Area of an image token of Qwen2-VL and Qwen2.5-VL."""


@dataclass(frozen=True)
class Sampled:
    """What there is after sampling: all of it, and what this run drew.

    Args:
        folder: The dataset's folder; a build of the same config finds everything there.
        kept_from: A finished version that has these very candidates: nothing had to be sampled.
        episodes: Episodes with candidates.
        contexts: Prompts that were read for them.
        candidates: Answers.
        tokens: Their tokens; None: not known.
        unparsed: Answers that are no action.
        drawn: Answers that this run drew, those from the cache included.
        hits: How many of those the cache knew.
        asked: How many it was asked for.
        seconds: How long this run took.
        judged: How many answers were judged on the way.
        valid: How many of those are valid.
        usage: What the sampler counted in this run: calls, retries, tokens, cost.
    """

    folder: Path
    kept_from: Path | None
    episodes: int
    contexts: int
    candidates: int
    tokens: int | None
    unparsed: int
    drawn: int
    hits: int
    asked: int
    seconds: float
    judged: int
    valid: int
    usage: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON, with the rates."""
        kept = str(self.kept_from) if self.kept_from else None
        rates = {
            "candidates_a_second": _over(self.drawn, self.seconds),
            "parse_error_rate": _over(self.unparsed, self.candidates),
            "validity_so_far": _over(self.valid, self.judged),
        }
        return asdict(self) | {"folder": str(self.folder), "kept_from": kept} | rates


def sample(
    config: DatasetConfig,
    out: Path,
    *,
    progress: Progress = lambda standing: None,
    options: Options | None = None,
) -> Sampled:
    """Read the source and sample every step; a build of the same config and folder goes on from there.

    A run that was killed goes on where it was.

    Args:
        config: The dataset description.
        out: The dataset's folder.
        progress: Told what is done.
        options: How to go about it.

    Raises:
        InputError: The config's builder or sampler refuses its settings, or ``out`` can't be used.
        CheckFailed: Too many records of the source are broken.
    """
    began, last = time.monotonic(), Standing()
    with disk_told(out):
        made = prepare(config, out, options or Options())
        if made.config.executor.type == "slurm":
            hint = "use `solar-rl build --executor slurm`: sampling is its first array"
            raise InputError("sampling alone can't be submitted", where="--executor slurm", hint=hint)
        with locked(out):
            claim(out)
            made.hashes.save()
            job = made.job()
            kept = _finished(made)
            if kept is None:
                job.make_folders()
                names = made.builder.shards()
                shards = len(names)
                expected = Expected(
                    job.units, shards, config.source.limit, lambda shard: made.builder.about(names[shard])
                )

                def heard(standing: Standing) -> None:
                    nonlocal last
                    last = standing
                    progress(replace(standing, expected=expected.episodes()))

                run_everywhere(job, "sample", shards, heard)
        return _told(made, job, kept, last, time.monotonic() - began)


def _finished(made: Prepared) -> Path | None:
    """Return the folder of a finished version with the same candidates."""
    if made.current:
        return made.out
    return made.base.folder if made.base else None


def _told(made: Prepared, job: Job, kept: Path | None, last: Standing, seconds: float) -> Sampled:
    if kept is not None:
        files = sorted(kept.glob("data/candidates/*.parquet"))
        scan = [pl.scan_parquet(file, glob=False) for file in files]
    else:
        units = job.units.units(len(made.builder.shards()))
        scan = [unit.scan("candidates") for unit in units]
    counts = _counts(scan, own=made.config.prompt.history == "candidate")
    return Sampled(
        folder=made.out,
        kept_from=kept,
        **counts,
        drawn=last.candidates,
        hits=last.hits,
        asked=last.asked,
        seconds=seconds,
        judged=last.judged,
        valid=last.valid,
        usage=last.usage(),
    )


def _counts(tables: list[pl.LazyFrame], *, own: bool) -> dict[str, Any]:
    """Count episodes, contexts and answers; ``own``: each candidate has a history of its own."""
    if not tables:
        return {"episodes": 0, "contexts": 0, "candidates": 0, "tokens": None, "unparsed": 0}
    step = pl.struct("episode_id", "step_index")
    first = pl.col("step_index") == 0
    contexts = (pl.len() - first.sum() + step.filter(first).n_unique()) if own else step.n_unique()
    found = pl.concat(
        [
            table.select(
                episodes=pl.col("episode_id").n_unique(),
                contexts=contexts,
                candidates=pl.len(),
                tokens=pl.col("token_ids").list.len().sum(),
                known=pl.col("token_ids").is_not_null().sum(),
                unparsed=pl.col("pred_action_type").is_null().sum(),
            )
            for table in tables
        ]
    ).collect(engine="in-memory")
    totals = found.sum().row(0, named=True)
    known = totals.pop("known")
    return {name: int(count) for name, count in totals.items()} | ({} if known else {"tokens": None})


def forecast(
    config: DatasetConfig,
    out: Path,
    *,
    progress: Callable[[int], None] = lambda episodes: None,
    options: Options | None = None,
) -> dict[str, Any]:
    """Say what sampling would ask for: reads the whole source, asks nobody, writes nothing.

    Args:
        config: The dataset description.
        out: The dataset's folder.
        progress: Told the number of episodes that were read.
        options: How to go about it.
    """
    made = prepare(config, out, options or Options())
    told: dict[str, Any] = {"dataset": f"{config.name} {config.version}", "folder": str(out)}
    told["sampler"] = f"{config.sampler.type}, n = {config.sampler.n}"
    told["template"] = made.config.prompt.template
    kept = _finished(made)
    if kept is not None:
        return told | {"would do": f"nothing: the candidates are in {kept}"}
    job, counts = made.job(), _Forecast()
    with known_answers(job.config, job.cache, job.sampler_identity) as known:
        for request in _requests(made, job, counts, progress):
            counts.add(request, known(request))
    return told | counts.as_dict(made.config)


@dataclass
class _Forecast:
    episodes: int = 0
    finished: int = 0
    rejects: int = 0
    steps: int = 0
    known: int = 0
    prompt_tokens: int = 0

    def add(self, request: Request, known: int) -> None:
        self.steps += 1
        self.known += known
        if known < request.n:
            self.prompt_tokens += _prompt_tokens(request)

    def as_dict(self, config: DatasetConfig) -> dict[str, Any]:
        n, adaptive = config.sampler.n, config.sampler.adaptive
        own = config.prompt.history == "candidate"
        most = self.steps * n - self.known
        longest = getattr(config.sampler, "max_new_tokens", None)
        told: dict[str, Any] = {
            "episodes in finished units": self.finished,
            "episodes to sample": self.episodes,
            "rejected": self.rejects,
            "steps": self.steps,
            "candidates to draw": f"{max(self.steps - self.known, 0):,} to {most:,}" if adaptive else most,
            "known to the cache": self.known,
            "prompt tokens, estimated": self.prompt_tokens * (n if own else 1),
            "answer tokens, at most": most * longest if longest else None,
        }
        if own:
            told["note"] = (
                "each candidate has a history of its own: known answers are told for the recorded one"
            )
        return told


def _requests(
    made: Prepared, job: Job, counts: _Forecast, progress: Callable[[int], None]
) -> Iterator[Request]:
    config, limit = made.config, made.config.source.limit
    seen: set[str] = set()
    for number, shard in enumerate(made.builder.shards()):
        finished: list[Unit] = job.units.parts(number)
        there = {episode_id for unit in finished for episode_id, _ in unit.episodes}
        counts.finished += len(there)
        seen |= there
        if job.units.finished_parts(number) is not None:
            continue
        for item in read_items(config, made.builder, shard):
            if limit is not None and len(seen) >= limit:
                return
            if isinstance(item, Reject):
                counts.rejects += 1
                continue
            if item.episode_id in seen:
                continue
            seen.add(item.episode_id)
            counts.episodes += 1
            progress(1)
            for step in item.steps:
                seed = candidate_seed(config.seed, item.episode_id, step.step_index)
                yield build_request(item, step, config.prompt, n=config.sampler.n, seed=seed)


def _prompt_tokens(request: Request) -> int:
    """Estimate the tokens of a prompt: words by their characters, screenshots by their area."""
    texts = (part["text"] for m in request.messages for part in m["content"] if part["type"] == "text")
    images = len(request.images) * request.frame.width * request.frame.height // PIXELS_A_TOKEN
    return sum(map(len, texts)) // CHARACTERS_A_TOKEN + images


def _over(value: float, whole: float) -> float | None:
    return value / whole if whole else None
