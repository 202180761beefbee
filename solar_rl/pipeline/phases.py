"""What ranks do, in two phases: sample the shards, then write the files. Any process can do any rank of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from solar_rl.builder import Builder, load_builder
from solar_rl.config import DatasetConfig
from solar_rl.errors import InputError, SolarError
from solar_rl.pipeline.rank import run_rank
from solar_rl.pipeline.settle import Settled, settle
from solar_rl.pipeline.tables import plan_files, write_file
from solar_rl.pipeline.units import UnitStore
from solar_rl.pipeline.work import WORK, write_atomically

if TYPE_CHECKING:
    from solar_rl.sampling.base import Sampler

Phase = Literal["sample", "write"]


@dataclass(frozen=True)
class Job:
    """A build as every process that takes part in it must know it; it travels between machines.

    Args:
        config: The dataset description.
        out: The dataset's folder, absolute.
        sample_key: Key of the units.
        build_id: Key of the build.
        cache: Folder of the request cache; None: no cache.
        sampler_identity: What stands for the sampler in the cache.
    """

    config: DatasetConfig
    out: Path
    sample_key: str
    build_id: str
    cache: Path | None
    sampler_identity: str

    @property
    def work(self) -> Path:
        """Return the folder of what was read and sampled; a build with other shaping goes on with it."""
        return self.out / WORK / self.sample_key

    @property
    def stage(self) -> Path:
        """Return the folder in which the new version is made."""
        return self.out / WORK / "stages" / self.build_id / "dataset"

    @property
    def notes(self) -> Path:
        """Return the folder of notes on files that are written."""
        return self.stage.parent / "notes"

    @property
    def units(self) -> UnitStore:
        """Return the units."""
        return UnitStore(self.work, self.config.shard_episodes, screens=self.config.source.screen_hash)

    def make_folders(self) -> None:
        """Create the work's folders."""
        self.units.make()
        self.notes.mkdir(parents=True, exist_ok=True)
        self.stage.mkdir(exist_ok=True)

    def builder(self) -> Builder:
        """Return the builder, ready to read."""
        builder = load_builder(self.config.source)
        builder.prepare(self.work)
        return builder

    def settled(self, builder: Builder) -> Settled:
        """Return the settled units; every shard must be finished."""
        shards = builder.shards()
        return settle(self.config, builder, self.units.units(len(shards)), shards)


@dataclass
class Standing:
    """What a rank has done so far.

    Args:
        pid: Its process.
        episodes: Finished episodes, those that were kept included.
        asked: Candidates asked for.
        hits: How many of them the cache knew.
        contexts: Prompts read: a step once, or once a candidate that has a history of its own.
        candidates: Answers drawn.
        tokens: Their tokens, where known.
        unparsed: How many of them are no action.
        judged: How many were judged, to tell how it goes.
        valid: How many of those are valid.
        calls: Calls to servers that were answered.
        retries: Calls that were made again.
        prompt_tokens: Tokens read, as the sampler counts them.
        completion_tokens: Tokens written, as the sampler counts them.
        shortened: Steps whose prompt lost its oldest actions.
        cost: Price of those tokens, where prices are set.
        drawn: Episodes that were sampled by this run.
        expected: Episodes in all, as far as it can be told; 0: not known.
        done: Whether it is through.
        error: What stopped it, as ``SolarError`` spells it: message, where, hint, exit code.
    """

    pid: int = 0
    episodes: int = 0
    asked: int = 0
    hits: int = 0
    contexts: int = 0
    candidates: int = 0
    tokens: int = 0
    unparsed: int = 0
    judged: int = 0
    valid: int = 0
    calls: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    shortened: int = 0
    cost: float = 0.0
    drawn: int = 0
    expected: int = 0
    done: bool = False
    error: dict[str, str | int | None] | None = None

    def usage(self) -> dict[str, Any]:
        """Return what the sampler counted, by name; what is 0 is left out."""
        return {name: value for name in USAGE if (value := getattr(self, name))}


USAGE = ("calls", "retries", "prompt_tokens", "completion_tokens", "shortened", "cost")
"""Fields of a standing that a sampler counts itself (sampling/usage.py)."""
COUNTS = (
    "episodes",
    "asked",
    "hits",
    "contexts",
    "candidates",
    "tokens",
    "unparsed",
    "judged",
    "valid",
    "drawn",
    *USAGE,
)
"""Fields of a standing that add up over ranks."""
Progress = Callable[[Standing], None]
"""Called with the standing each time an episode is finished, or now and then with that of all ranks."""


def run_phase(job: Job, phase: Phase, rank: int, world: int, progress: Progress) -> None:
    """Do one rank's share of a phase."""
    builder = job.builder()
    if phase == "sample":
        _sample(job, builder, rank, world, progress)
        return
    settled = job.settled(builder)
    for task in plan_files(settled)[rank::world]:
        write_file(task, settled, job.config, job.stage, job.notes)
        progress(Standing(os.getpid()))


def _sample(job: Job, builder: Builder, rank: int, world: int, progress: Progress) -> None:
    from solar_rl.pipeline.watch import Watch
    from solar_rl.sampling.base import close, summary
    from solar_rl.sampling.cache import Cached, open_sampler

    sampler: list[Sampler] = []
    standing = Standing(os.getpid())

    def make_sampler() -> Sampler:
        sampler.append(open_sampler(job.config, job.cache, job.sampler_identity))
        return sampler[0]

    def advance(count: int) -> None:
        standing.episodes += count
        if sampler and isinstance(sampler[0], Cached):
            standing.asked, standing.hits = sampler[0].asked, sampler[0].hits
        counted = summary(sampler[0]) if sampler else {}
        for name in USAGE:
            setattr(standing, name, counted.get(name, 0))
        progress(standing)

    try:
        saw = Watch(job.config, standing).saw
        run_rank(job.config, builder, make_sampler, job.units, rank, world, advance, saw)
    finally:
        for each in sampler:
            close(each)


@dataclass
class Slate:
    """A file in which a rank tells how far it is; the process that waits reads it.

    Args:
        path: The file.
    """

    path: Path
    _written: float = 0.0

    def write(self, standing: Standing, *, now: bool = False) -> None:
        """Write the standing, at most a few times a second."""
        if now or time.monotonic() - self._written > 0.3:
            self._written = time.monotonic()
            write_atomically(self.path, orjson.dumps(asdict(standing)))

    @classmethod
    def read_all(cls, folder: Path) -> dict[str, Standing]:
        """Read the standings of a phase's ranks, by rank."""
        return {path.stem: Standing(**orjson.loads(path.read_bytes())) for path in folder.glob("*.json")}


def run_watched(job: Job, phase: Phase, rank: int, world: int) -> None:
    """Do a rank's share in a process of its own: progress and what stops it are left on a slate.

    A rank whose launcher was killed stops too.
    """
    parent, last = os.getppid(), Standing(os.getpid())
    slate = Slate(slates(job, phase) / f"{rank:05d}.json")
    slate.write(last, now=True)

    def progress(standing: Standing) -> None:
        nonlocal last
        last = standing
        slate.write(standing)
        if os.getppid() != parent:
            raise SystemExit(1)

    try:
        run_phase(job, phase, rank, world, progress)
    except OSError as error:
        last.error = _told(InputError(error.strerror or str(error), where=str(error.filename or "") or None))
        raise
    except SolarError as error:
        last.error = _told(error)
        raise
    else:
        last.done = True
    finally:
        slate.write(last, now=True)


def _told(error: SolarError) -> dict[str, str | int | None]:
    code = error.exit_code
    return {"message": error.message, "where": error.where, "hint": error.hint, "exit_code": code}


def slates(job: Job, phase: Phase) -> Path:
    """Return the folder of a phase's slates."""
    folder = job.stage.parent / "slates" / phase
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def logs(job: Job, phase: Phase) -> Path:
    """Return the folder of what a phase's ranks say beside."""
    folder = job.stage.parent / "logs" / phase
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def together(ranks: dict[str, Standing]) -> Standing:
    """Return what all ranks together have done."""
    found = ranks.values()
    counts = {name: sum(getattr(rank, name) for rank in found) for name in COUNTS}
    return Standing(os.getpid(), **counts, done=all(rank.done for rank in found))
