"""Decide what a build has to do, do it, and let the finished version take its place."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from solar_rl.builder import Builder, load_builder
from solar_rl.config import DatasetConfig
from solar_rl.errors import InputError
from solar_rl.formats import get_format
from solar_rl.pipeline.finish import Origin, finish, prepared
from solar_rl.pipeline.hashes import FileHashes
from solar_rl.pipeline.keys import STAGES, Keys, make_keys, portable, sampler_identity, why
from solar_rl.pipeline.phases import Job, Phase, Standing, run_phase
from solar_rl.pipeline.preview import write_preview
from solar_rl.pipeline.reuse import Base, find_base, is_current, reuse_tables
from solar_rl.pipeline.settle import nothing_built
from solar_rl.pipeline.tables import read_images, read_notes
from solar_rl.pipeline.work import (
    WORK,
    claim,
    disk_told,
    keep_finished,
    locked,
    named,
    swap,
    write_atomically,
)
from solar_rl.privacy import allowing
from solar_rl.prompts import settled, tried
from solar_rl.schema import Reject
from solar_rl.store.manifest import (
    MANIFEST,
    Attribution,
    FileEntry,
    Manifest,
    read_manifest,
)
from solar_rl.verify import check_verifier

if TYPE_CHECKING:
    from solar_rl.report.strip import Images

CACHE = ".solar-cache"
"""Folder beside the datasets for answers of costly samplers, and for hashes of source files."""
WORKERS_WRITE_FROM = 256 << 20
"""Bytes of finished units from which on it pays to start several workers for writing."""
Progress = Callable[[Standing], None]
"""Called with what is done each time some episodes are finished."""


@dataclass(frozen=True)
class Built:
    """What a build did: the folder, its identity, its counts, and which stages had to run."""

    folder: Path
    build_id: str
    version: str
    counts: dict[str, int]
    rejects: dict[str, int]
    changed: bool
    replaced: str | None = None
    filtered: dict[str, dict[str, int]] = field(default_factory=dict)
    ran: tuple[str, ...] = ()
    kept_from: Path | None = None
    asked: int = 0
    hits: int = 0
    usage: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, manifest: Manifest, *, changed: bool, **more: Any) -> Built:
        """Describe a finished dataset."""
        identity = (manifest.build_id, manifest.version)
        counts, rejects, filtered = dict(manifest.counts), dict(manifest.rejects), dict(manifest.filtered)
        return cls(folder, *identity, counts, rejects, changed, filtered=filtered, **more)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        kept = str(self.kept_from) if self.kept_from else None
        return asdict(self) | {"folder": str(self.folder), "kept_from": kept}


@dataclass(frozen=True)
class Submitted:
    """A build that now waits in a queue: its folder, its identity and its jobs."""

    folder: Path
    build_id: str
    jobs: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self) | {"folder": str(self.folder)}


@dataclass(frozen=True)
class Options:
    """How a build goes about it; nothing here changes a byte.

    Args:
        base: Folder of a finished version to start from (default: what lies in the folder or beside it).
        cache: Folder for answers and hashes (default: ``.solar-cache`` beside the dataset's folder).
        use_cache: Whether answers of costly samplers are kept and looked up.
        trust_hashes: Whether remembered hashes of files that look unchanged are believed.
        replace: Whether another version of the dataset that lies in the folder may be replaced.
    """

    base: Path | None = None
    cache: Path | None = None
    use_cache: bool = True
    trust_hashes: bool = True
    replace: bool = True


@dataclass(frozen=True)
class Prepared:
    """A build before anything is written: what it would make, and what it can start from."""

    config: DatasetConfig
    out: Path
    builder: Builder
    keys: Keys
    origin: Origin
    hashes: FileHashes
    cache: Path | None
    there: Manifest | None
    base: Base | None

    @property
    def current(self) -> bool:
        """Tell whether this very build is there, whole: a file that is gone or cut is built again."""
        return is_current(self.out, self.there, self.keys.build_id)

    @property
    def stages_to_run(self) -> tuple[str, ...]:
        """Return the stages that a finished version doesn't give."""
        if self.current:
            return ()
        if self.base is None:
            return STAGES
        return tuple(stage for stage in STAGES if not self.base.same(self.keys, stage))

    def job(self) -> Job:
        """Return the build as every process that takes part in it must know it."""
        source = self.config.source
        config = self.config
        if source.path is not None:
            resolved = source.model_copy(update={"path": str(Path(source.path).resolve())})
            config = config.model_copy(update={"source": resolved})
        identity = sampler_identity(self.config, self.hashes)
        return Job(
            config, self.out.resolve(), self.keys.stages["sample"], self.keys.build_id, self.cache, identity
        )


def build(
    config: DatasetConfig,
    out: Path,
    *,
    progress: Progress = lambda standing: None,
    options: Options | None = None,
) -> Built | Submitted:
    """Build a dataset into a folder; the same inputs give the same bytes.

    A build that was killed goes on where it was. What a finished version has in common with the new one is
    kept; a folder that already holds this very build is left alone.

    Args:
        config: The dataset description.
        out: Folder of the dataset: new, empty, or an earlier build of the same dataset.
        progress: Told what is done.
        options: How to go about it.

    Raises:
        InputError: The config's builder or sampler refuses its settings, or ``out`` can't be used.
        CheckFailed: Too many records of the source are broken.
    """
    out = named(out)
    if config.executor.type == "local" and config.executor.workers > 1:
        from solar_rl.pipeline.local import get_ready

        get_ready()
    with disk_told(out):
        # before the lock: it may take long, and changes nothing
        made = prepare(config, out, options or Options())
        with locked(out):
            claim(out)
            made.hashes.save()
            done = _run(replace(made, there=_dataset_in(out, config.name)), progress)
        if isinstance(done, Built):
            return done
        from solar_rl.pipeline.executors import submit

        return Submitted(out, done.build_id, submit(done))  # unlocked: the jobs may begin at once


def finish_submitted(job: Job) -> None:
    """Put a dataset together whose ranks ran on a cluster: the last job of ``Submitted``."""
    config = job.config
    alone = config.executor.model_copy(update={"type": "local", "workers": 1})
    options = Options(cache=job.cache, use_cache=job.cache is not None)
    build(config.model_copy(update={"executor": alone}), job.out, options=options)


def plan(config: DatasetConfig, out: Path, *, options: Options | None = None) -> dict[str, Any]:
    """Say what ``build`` would do and why, without doing it."""
    out = named(out)
    made = prepare(config, out, options or Options())
    job = made.job()
    told: dict[str, Any] = {
        "dataset": f"{config.name} {config.version}",
        "folder": str(out),
        "build_id": made.keys.build_id,
    }
    runs = made.stages_to_run
    base = made.base or (Base(out, made.there) if made.there else None)
    reasons = why(made.keys, base.manifest if base else None)
    if reasons["sample"] and not reasons["read"]:
        reasons["read"] = ["sample runs, and asks for what is read"]
    for stage in STAGES:
        told[stage] = f"run: {'; '.join(reasons[stage]) or 'a file is damaged'}" if stage in runs else "keep"
    if made.current:
        told["would do"] = "nothing: this build is there"
        return told
    told["would do"] = ", ".join(runs)
    if base:
        told["compared with"] = (
            f"{base.folder} ({base.manifest.version}, build {base.manifest.build_id[:12]})"
        )
    if "sample" in runs:
        told["source shards"] = len(made.builder.shards())
        told["finished units kept"] = job.units.count()
        told["sampler"] = f"{config.sampler.type}, n = {config.sampler.n}"
        told["workers"] = f"{config.executor.type}, {config.executor.workers}"
    if config.executor.type == "slurm" and made.base is None:  # with one, all that is left is done here
        from solar_rl.pipeline.executors import slurm_scripts

        told["scripts"] = slurm_scripts(job)
    return told


def prepare(config: DatasetConfig, out: Path, options: Options) -> Prepared:
    """Check a build's config and work out its keys, and what it can start from; changes nothing."""
    builder = load_builder(config.source)
    check_verifier(config.validity)
    get_format(config.prompt.format)  # an unknown format is told before any work starts
    known = {name: part.known_private for name, part in builder.parts().items()}
    blocks = {"prompt": tried(settled(config.prompt)), "privacy": allowing(config.privacy, known)}
    config = config.model_copy(update=blocks)
    cache = options.cache or out.resolve().parent / CACHE
    hashes = FileHashes(cache, trust=options.trust_hashes)
    files = hashes.entries(builder.named_files())
    keys = make_keys(config, builder, files, hashes)
    origin = Origin(
        config=portable(config),
        keys=keys,
        source_files=files,
        attribution=Attribution.of(builder),
    )
    there = _dataset_in(out, config.name)
    if there and not options.replace:
        keep_finished(out, there, keys.build_id)
    base = None if is_current(out, there, keys.build_id) else find_base(config, out, keys, options.base)
    kept = cache if options.use_cache else None
    return Prepared(config, out, builder, keys, origin, hashes, kept, there, base)


def _run(made: Prepared, progress: Progress) -> Built | Job:
    """Do what is to be done here; what is to be submitted is handed back."""
    if made.current:
        assert made.there is not None
        shutil.rmtree(made.out / WORK, ignore_errors=True)  # left by a kill right after the manifest
        return Built.of(made.out, made.there, changed=False)
    job = made.job()
    job.make_folders()
    replaced = f"{made.there.version}, build {made.there.build_id[:12]}" if made.there else None
    last = Standing()

    def heard(standing: Standing) -> None:
        nonlocal last
        last = standing
        progress(standing)

    if not (job.stage / MANIFEST).exists():
        if made.base is not None:
            with prepared():
                known = reuse_tables(made.base, job.config, made.keys, job.stage)
            base = made.base.manifest
            origin = replace(made.origin, filtered=dict(base.filtered), base=base)
            close_version(job.stage, origin, made.base.rejects(), known)
        elif job.config.executor.type == "slurm":
            return job
        else:
            _make_tables(made, job, heard)
    manifest = read_manifest(job.stage)
    swap(job.stage, made.out)
    shutil.rmtree(made.out / WORK)
    return Built.of(
        made.out,
        manifest,
        changed=True,
        replaced=replaced,
        ran=made.stages_to_run,
        kept_from=made.base.folder if made.base else None,
        asked=last.asked,
        hits=last.hits,
        usage=last.usage(),
    )


def _make_tables(made: Prepared, job: Job, progress: Progress) -> None:
    """Read, sample, and write every table: by as many workers as the config says."""
    run_everywhere(job, "sample", len(made.builder.shards()), progress)
    builder = job.builder()
    settled = job.settled(builder)
    if not settled.episodes.height:
        raise nothing_built(settled, made.config)
    little = job.units.bytes() < WORKERS_WRITE_FROM
    with prepared():
        run_everywhere(job, "write", 1 if little else job.config.executor.workers, lambda standing: None)
    origin = replace(made.origin, filtered=builder.filtered())
    close_version(job.stage, origin, settled.rejects, read_notes(job.notes), partial(read_images, settled))


def run_everywhere(job: Job, phase: Phase, most: int, progress: Progress) -> None:
    """Do a phase with as many workers as the config says, at most ``most``, and wait for it."""
    workers = min(job.config.executor.workers, max(1, most))
    if workers == 1 and job.config.executor.type != "ray":
        run_phase(job, phase, 0, 1, progress)
        return
    from solar_rl.pipeline.executors import run_ranks

    run_ranks(job, phase, workers, progress)


def close_version(
    stage: Path,
    origin: Origin,
    rejects: Iterable[Reject],
    known: dict[str, FileEntry],
    images: Images | None = None,
) -> None:
    """Write what stands beside a new version's tables, the manifest last.

    Args:
        stage: Folder of the version, its tables written.
        origin: Where it comes from.
        rejects: What was not built.
        known: Entries of tables that needn't be hashed again.
        images: Reads screenshots for preview, report and picture (default: from the version's own table).
    """
    rejects = list(rejects)
    for left in stage.rglob(".*.tmp"):  # by a process that was killed; everyone who writes here is done
        left.unlink()
    write_preview(stage, origin.config.preview_rows, images)
    lines = (orjson.dumps(asdict(reject)) + b"\n" for reject in rejects)
    write_atomically(stage / "rejects.jsonl", b"".join(lines))
    finish(stage, origin, rejects, known, images)


def _dataset_in(out: Path, name: str) -> Manifest | None:
    if not (out / MANIFEST).exists():
        return None
    manifest = read_manifest(out)
    if manifest.name != name:
        raise InputError(
            f"the folder holds dataset '{manifest.name}', not '{name}'",
            where=str(out),
            hint="use --out with another folder",
        )
    return manifest
