"""Make a new version of a dataset from what is stored: shape or score again, no source, no sampler, no GPU.

Tables that don't change are hard-linked (copied across file systems), so a new version costs seconds
and little space.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar_rl.config import DatasetConfig, set_dotted, validate_config
from solar_rl.errors import ConfigError, InputError
from solar_rl.pipeline.build import Built, close_version
from solar_rl.pipeline.finish import Origin, prepared
from solar_rl.pipeline.keys import STAGES, Keys, derived_keys, why
from solar_rl.pipeline.reuse import SAMPLED, Base, reuse_tables
from solar_rl.pipeline.work import WORK, claim, keep_finished, locked, named, swap
from solar_rl.store.manifest import MANIFEST, Manifest, first_damaged, read_manifest, require_whole
from solar_rl.verify import check_verifier

SAMPLING = ("read", "sample")
_STAGED = "stages"
"""Folder of a build's unfinished work that holds what costs seconds; what was sampled lies beside it."""
MAY_CHANGE = {"shape": ("shaping", "advantage"), "score": ("validity", "shaping", "advantage")}


@dataclass(frozen=True)
class Derivation:
    """A new version to be made: from where, to where, what stage, under which config."""

    folder: Path
    out: Path
    stage: str
    manifest: Manifest
    config: DatasetConfig

    @property
    def keys(self) -> Keys:
        """Return the new version's keys."""
        return derived_keys(self.config, self.manifest)

    def as_dict(self) -> dict[str, Any]:
        """Say what would be done and why, for --dry-run."""
        if already_there(self.out, self.keys.build_id):
            return {"folder": str(self.out), "would do": "nothing: this version is there"}
        reasons = why(self.keys, self.manifest)
        told = {s: f"run: {'; '.join(reasons[s])}" if reasons[s] else "keep" for s in STAGES}
        return {
            "from": str(self.folder),
            "folder": str(self.out),
            "version": self.config.version,
            **told,
            "would link": ", ".join(SAMPLED),
        }


def plan(
    folder: Path, overrides: Mapping[str, str], out: Path | None, version: str | None, stage: str
) -> Derivation:
    """Draft a new version, and make sure that its folder is free for it.

    Raises:
        InputError: No dataset there, or the new folder holds a finished version or somebody's work.
        ConfigError: An override is unknown, wrong, or belongs to another stage.
    """
    planned = draft(folder, overrides, out, version, stage)
    already_there(planned.out, planned.keys.build_id)
    return planned


def draft(
    folder: Path, overrides: Mapping[str, str], out: Path | None, version: str | None, stage: str
) -> Derivation:
    """Read a dataset's config, apply the overrides, and choose the new version's name and folder.

    Raises:
        InputError: No dataset there, or the new folder is the old one.
        ConfigError: An override is unknown, wrong, or belongs to another stage.
    """
    manifest = require_whole(folder)
    data = deepcopy(manifest.config)
    for key, text in overrides.items():
        if key.split(".")[0] not in MAY_CHANGE[stage]:
            allowed = ", ".join(f"--{block}.*" for block in MAY_CHANGE[stage])
            raise ConfigError(f"'{stage}' can't change '{key}'", hint=f"it takes {allowed}")
        set_dotted(data, key, text)
    data["version"] = version or _next_version(folder, out, manifest.version)
    config = validate_config(DatasetConfig, data, where="command line")
    if config.version == manifest.version:
        raise InputError(
            f"this dataset is version {config.version} already, and a version is never overwritten",
            where=str(folder),
            hint="give another --version",
        )
    if stage == "score":
        check_verifier(config.validity)
    target = named(out) if out else _sibling(folder, manifest.version, config.version)
    if target.resolve() == folder.resolve():
        raise InputError("a version is never overwritten", where=str(target), hint="use --out or --version")
    return Derivation(folder, target, stage, manifest, config)


def run(plan: Derivation) -> Built:
    """Make the new version; the manifest is written last of all."""
    base = Base(plan.folder, plan.manifest)
    keys = plan.keys
    ran = tuple(stage for stage in STAGES if stage not in SAMPLING and not base.same(keys, stage))
    old = plan.manifest
    origin = Origin(plan.config, keys, old.source_files, old.attribution, dict(old.filtered), base=old)
    with locked(plan.out):
        if there := already_there(plan.out, keys.build_id):
            shutil.rmtree(plan.out / WORK, ignore_errors=True)  # left by a kill right after the manifest
            return Built.of(plan.out, there, changed=False)
        claim(plan.out)
        stage = _stage(plan.out, keys.build_id)
        stage.mkdir(parents=True, exist_ok=True)
        if not (stage / MANIFEST).exists():
            with prepared():
                known = reuse_tables(base, plan.config, keys, stage)
            close_version(stage, origin, base.rejects(), known)
        manifest = read_manifest(stage)
        swap(stage, plan.out)
        shutil.rmtree(plan.out / WORK)
    return Built.of(plan.out, manifest, changed=True, ran=ran, kept_from=plan.folder)


def already_there(out: Path, build_id: str) -> Manifest | None:
    """Return the manifest of this very version where it lies whole in ``out``; None where there is room for it.

    There is room in a folder that is new or empty, or holds what an interrupted run of this derivation left.

    Raises:
        InputError: The folder holds a finished version, or parts or unfinished work of another one.
    """
    if (out / MANIFEST).is_file():
        there = read_manifest(out)
        keep_finished(out, there, build_id)
        return there if first_damaged(out, there) is None else None
    found = sorted(path.name for path in out.iterdir()) if out.is_dir() else []
    begun = sorted(path.name for path in (out / WORK).iterdir()) if WORK in found else []
    foreign = [name for name in found if name != WORK] + [
        f"{WORK}/{name}" for name in begun if name != _STAGED
    ]
    if foreign and not (_stage(out, build_id) / MANIFEST).is_file():
        raise InputError(
            f"the folder holds '{foreign[0]}', which is no part of this version",
            where=str(out),
            hint="use --out with a new folder",
        )
    return None


def _stage(out: Path, build_id: str) -> Path:
    return out / WORK / _STAGED / build_id / "dataset"


def _next_version(folder: Path, out: Path | None, version: str) -> str:
    major, minor, patch = (int(part) for part in version.split("-")[0].split("+")[0].split("."))
    while True:
        patch += 1
        new = f"{major}.{minor}.{patch}"
        if out is not None or not _sibling(folder, version, new).exists():
            return new


def _sibling(folder: Path, old: str, new: str) -> Path:
    name = folder.resolve().name.removesuffix(f"-{old}")
    return folder.parent / f"{name}-{new}"
