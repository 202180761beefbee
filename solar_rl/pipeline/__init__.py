"""Build a dataset: read -> sample -> score -> reconstruct -> shape -> write, and pick up where a kill left it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from solar_rl.builder import Builder, load_builder
from solar_rl.config import DatasetConfig
from solar_rl.errors import InputError
from solar_rl.pipeline.finish import Origin, finish
from solar_rl.pipeline.merge import write_tables
from solar_rl.pipeline.preview import write_preview
from solar_rl.pipeline.units import build_units
from solar_rl.pipeline.work import WORK, Unit, Work, claim, locked, write_atomically
from solar_rl.schema import Reject
from solar_rl.store.manifest import (
    MANIFEST,
    Attribution,
    Manifest,
    code_versions,
    first_damaged,
    make_build_id,
    named_entry,
    read_manifest,
)
from solar_rl.verify import check_verifier

_PATH_FIELDS = {"sampler": ("policy", "model", "path")}


@dataclass(frozen=True)
class Built:
    """What a build did: the folder, its identity, its counts, and whether anything had to be done."""

    folder: Path
    build_id: str
    version: str
    counts: dict[str, int]
    rejects: dict[str, int]
    changed: bool
    replaced: str | None = None
    filtered: dict[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, manifest: Manifest, *, changed: bool, replaced: str | None = None) -> Built:
        """Describe a finished dataset, and which earlier build it took the place of."""
        identity = (manifest.build_id, manifest.version)
        counts, rejects, filtered = dict(manifest.counts), dict(manifest.rejects), dict(manifest.filtered)
        return cls(folder, *identity, counts, rejects, changed, replaced, filtered)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self) | {"folder": str(self.folder)}


def build(config: DatasetConfig, out: Path, *, progress: Callable[[int], None] = lambda count: None) -> Built:
    """Build a dataset into a folder; the same inputs give the same bytes.

    A build that was killed goes on at the first unfinished unit. A folder that already holds this very
    build is left alone.

    Args:
        config: The dataset description.
        out: Folder of the dataset: new, empty, or an earlier build of the same dataset.
        progress: Called with the number of episodes each time some are finished.

    Raises:
        InputError: The config's builder or sampler refuses its settings, or ``out`` can't be used.
        CheckFailed: Too many records of the source are broken.
    """
    builder = load_builder(config.source)
    check_verifier(config.validity)
    sampler = _sampler_factory(config)
    with locked(out):
        claim(out)
        origin = _origin(config, builder)
        there = _dataset_in(out, config.name)
        if there is not None and _is_current(out, there, origin):
            shutil.rmtree(out / WORK, ignore_errors=True)  # left by a kill right after the manifest
            return Built.of(out, there, changed=False)
        replaced = f"{there.version}, build {there.build_id[:12]}" if there else None
        work = Work(out, origin.build_id)
        builder.prepare(work.root)
        units = build_units(config, builder, sampler, work, progress)
        if not any(unit.episode_ids for unit in units):
            raise _nothing_built(units, config)
        _clear(out)
        write_tables(units, work, out)
        write_preview(out, config.preview_rows)
        rejects = [reject for unit in units for reject in unit.rejects]
        _write_rejects(out, rejects)
        manifest = finish(out, replace(origin, filtered=builder.filtered()), rejects)
        shutil.rmtree(out / WORK)
        return Built.of(out, manifest, changed=True, replaced=replaced)


def plan(config: DatasetConfig, out: Path) -> dict[str, Any]:
    """Say what ``build`` would do, without doing it."""
    builder = load_builder(config.source)
    check_verifier(config.validity)
    origin = _origin(config, builder)
    work = out / WORK / origin.build_id / "units"
    finished = len(list(work.glob("*/done.json")))
    there = _dataset_in(out, config.name)
    todo = "read, sample, score, shape, write"
    if there is not None:
        current = _is_current(out, there, origin)
        todo = (
            "nothing: this build is there" if current else f"{todo}, in place of build {there.build_id[:12]}"
        )
    return {
        "dataset": f"{config.name} {config.version}",
        "folder": str(out),
        "build_id": origin.build_id,
        "would do": todo,
        "source shards": len(builder.shards()),
        "finished units kept": finished,
        "sampler": f"{config.sampler.type}, n = {config.sampler.n}",
        "shaping": config.shaping.alignment,
    }


def portable(config: DatasetConfig) -> DatasetConfig:
    """Return the config without what depends on the machine: paths of sources, folders of other local paths.

    What lies behind a path is told by the hashes in the manifest and by ``sampler_id``.
    """
    data = config.model_dump(mode="json")
    for block in (data["source"], *data["source"]["sources"].values()):
        block["path"] = None
        _leave_folders_out(block["filters"], ("reference",))
        _leave_folders_out(block["options"], tuple(block["options"]))
    for name, fields in _PATH_FIELDS.items():
        _leave_folders_out(data[name], fields)
    return DatasetConfig.model_validate(data)


def _leave_folders_out(block: dict[str, Any], fields: tuple[str, ...]) -> None:
    for name in fields:
        value = block.get(name)
        if isinstance(value, str) and value and (Path(value).exists() or Path(value).is_absolute()):
            block[name] = Path(value).resolve().name


def _origin(config: DatasetConfig, builder: Builder) -> Origin:
    plain, code = portable(config), code_versions(*map(type, builder.parts().values()))
    files = tuple(named_entry(name, path) for name, path in builder.named_files())
    return Origin(
        config=plain,
        build_id=make_build_id(plain.digest(), files, code),
        source_files=files,
        attribution=Attribution.of(builder),
        code=code,
    )


def _sampler_factory(config: DatasetConfig) -> Callable[[], Any]:
    from solar_rl.formats import get_format
    from solar_rl.sampling import make_sampler

    get_format(config.prompt.format)  # an unknown format is told before any work starts
    return lambda: make_sampler(config.sampler, config.prompt)


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


def _is_current(out: Path, manifest: Manifest, origin: Origin) -> bool:
    """Tell whether this very build is there, whole: a file that is gone or cut is built again."""
    return manifest.build_id == origin.build_id and first_damaged(out, manifest) is None


def _clear(out: Path) -> None:
    """Take the old version out, its manifest first, so that half a dataset never looks whole."""
    (out / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(out / "data", ignore_errors=True)


def _write_rejects(out: Path, rejects: list[Reject]) -> None:
    lines = (orjson.dumps(asdict(reject)) for reject in rejects)
    write_atomically(out / "rejects.jsonl", b"".join(line + b"\n" for line in lines))


def _nothing_built(units: list[Unit], config: DatasetConfig) -> InputError:
    rejects = [reject for unit in units for reject in unit.rejects]
    if not rejects:
        hint = "check source.path, source.splits and the builder's options"
        return InputError("the source gave no episode", where=f"builder {config.source.builder}", hint=hint)
    first = rejects[0]
    return InputError(
        f"all {len(rejects)} records are broken; the first: {first.record}: {first.message}", where=first.file
    )
