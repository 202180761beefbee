"""Make a new version of a dataset from what is stored: shape or score again, no sampling, no GPU.

Tables that don't change are hard-linked (copied across file systems), so a new version costs seconds
and little space.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from solar_rl.config import DatasetConfig, set_dotted, validate_config
from solar_rl.errors import ConfigError, InputError
from solar_rl.pipeline import Built
from solar_rl.pipeline.finish import Origin, finish, prepared
from solar_rl.pipeline.preview import write_preview
from solar_rl.pipeline.units import score_and_shape
from solar_rl.pipeline.work import claim, locked
from solar_rl.schema import SCORE_COLUMNS, SPLITS, Reject
from solar_rl.shaping import shape
from solar_rl.store.manifest import Manifest, code_versions, make_build_id, require_whole
from solar_rl.store.parquet import TableWriter
from solar_rl.verify import check_verifier

KEPT = ("episodes", "steps", "images", "candidates")
MAY_CHANGE = {"shape": ("shaping", "advantage"), "score": ("validity", "shaping", "advantage")}


@dataclass(frozen=True)
class Derivation:
    """A new version to be made: from where, to where, what stage, under which config."""

    folder: Path
    out: Path
    stage: str
    manifest: Manifest
    config: DatasetConfig

    def as_dict(self) -> dict[str, Any]:
        """Say what would be done, for --dry-run."""
        old = DatasetConfig.model_validate(self.manifest.config)
        blocks = MAY_CHANGE[self.stage]
        changed = [block for block in blocks if getattr(old, block) != getattr(self.config, block)]
        return {
            "from": str(self.folder),
            "folder": str(self.out),
            "version": self.config.version,
            "changed": ", ".join(changed) or "nothing",
            "would write": "rewards, trajectories, preview, views.sql, report.html, README.md, manifest.json",
            "would link": ", ".join(KEPT),
        }


def plan(
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
    target = out or _sibling(folder, manifest.version, config.version)
    if target.resolve() == folder.resolve():
        raise InputError("a version is never overwritten", where=str(target), hint="use --out or --version")
    return Derivation(folder, target, stage, manifest, config)


def run(plan: Derivation) -> Built:
    """Make the new version; the manifest is written last of all."""
    with locked(plan.out):
        claim(plan.out)
        origin = _origin(plan)
        known = {}
        for entry in plan.manifest.files:
            if entry.path.split("/")[:1] == ["data"] and entry.path.split("/")[1] in KEPT:
                _link(plan.folder / entry.path, plan.out / entry.path)
                known[entry.path] = entry
        with prepared():
            for split in SPLITS:
                if any((plan.folder / "data" / "rewards").glob(f"{split}-*.parquet")):
                    _derive_split(plan, split)
            write_preview(plan.out, plan.config.preview_rows)
        shutil.copyfile(plan.folder / "rejects.jsonl", plan.out / "rejects.jsonl")
        manifest = finish(plan.out, origin, _rejects(plan.folder), known)
        return Built.of(plan.out, manifest, changed=True)


def _derive_split(plan: Derivation, split: str) -> None:
    episodes = _read(plan.folder, "episodes", split, ["episode_id", "goal", "ref_len"])
    if plan.stage == "shape":
        keys = ["episode_id", "step_index", "candidate_index", "app", "action_type", "pred_action_type"]
        columns = [*keys, *(column.name for column in SCORE_COLUMNS)]
        scored = _read(plan.folder, "rewards", split, columns)
        scored = scored.join(episodes.drop("goal"), on="episode_id", how="left", maintain_order="left")
        shaped = shape(scored, plan.config.shaping, plan.config.advantage)
    else:
        candidates = _read(plan.folder, "candidates", split)
        steps = _read(plan.folder, "steps", split)
        shaped = score_and_shape(plan.config, candidates, steps, episodes, lambda: _screenshots(plan.folder))
    for table, frame in (("rewards", shaped.rewards), ("trajectories", shaped.trajectories)):
        with TableWriter(plan.out, table, split) as writer:
            writer.write(frame)


def _read(folder: Path, table: str, split: str, columns: list[str] | None = None) -> pl.DataFrame:
    files = sorted((folder / "data" / table).glob(f"{split}-*.parquet"))
    return pl.concat([pl.read_parquet(path, columns=columns) for path in files])


def _screenshots(folder: Path) -> pl.DataFrame:
    """Read every screenshot: one that several splits share lies in the first of them alone."""
    files = sorted((folder / "data" / "images").glob("*.parquet"))
    image = pl.scan_parquet(files, glob=False).select(
        "sha256", screenshot=pl.col("image").struct.field("bytes")
    )
    return image.collect(engine="in-memory")


def _origin(plan: Derivation) -> Origin:
    old = plan.manifest
    code = old.code | code_versions()
    build_id = make_build_id(plan.config.digest(), old.source_files, code)
    return Origin(plan.config, build_id, old.source_files, old.attribution, code, dict(old.filtered))


def _rejects(folder: Path) -> list[Reject]:

    lines = (folder / "rejects.jsonl").read_bytes().splitlines()
    return [Reject(**orjson.loads(line)) for line in lines]


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


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
