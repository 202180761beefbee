"""Name each stage of a build by what goes into it, so that a change runs again only what it touches.

read -> sample -> score -> shape -> write: the key of a stage is the hash of the key before it, its part of the
config (without fields that change only speed), the files that it reads and the modules behind it. The
last key is the build's id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar_rl import __version__
from solar_rl.builder import Builder
from solar_rl.config import SPEED_ONLY, Config, DatasetConfig
from solar_rl.formats import get_format
from solar_rl.pipeline.code import builder_code, code_behind, foreign_code, module_exists
from solar_rl.pipeline.hashes import FileHashes
from solar_rl.prompts.catalogue import hashes as template_hashes
from solar_rl.schema import SCHEMA_VERSION
from solar_rl.store.manifest import FileEntry, Manifest

STAGES = ("read", "sample", "score", "shape", "write")
_BLOCKS = {
    "read": ("source", "privacy.mask", "privacy.key_id"),
    "sample": ("prompt", "sampler", "seed"),
    "score": ("validity",),
    "shape": ("shaping", "advantage"),
}
"""What of the config goes into which stage; all that is left goes into write."""
_CODE = {
    "read": ("builder", "episodes", "columns", "store.parquet", "pipeline.reading", "pipeline.units"),
    "sample": ("sampling.drive", "formats.base", "pipeline.rank"),
    "score": ("validity", "columns", "pipeline.scoring"),
    "shape": ("shaping", "columns"),
    "write": ("pipeline.finish", "pipeline.preview", "pipeline.settle", "pipeline.tables"),
}
_JUDGING = ("solar_rl.sampling.judged",)
_PATH_FIELDS = ("policy", "model", "path")
"""Fields of a sampler that may name something on this machine."""


@dataclass(frozen=True)
class Inputs:
    """What goes into one stage, beside the stage before it: each a name and its value or hash."""

    config: dict[str, Any]
    files: dict[str, str]
    code: dict[str, str]


@dataclass(frozen=True)
class Keys:
    """The key of every stage, and what it is made of."""

    stages: dict[str, str]
    inputs: dict[str, Inputs]

    @property
    def build_id(self) -> str:
        """Return the name of the build: the last stage's key."""
        return self.stages["write"]

    @property
    def code(self) -> dict[str, str]:
        """Return the code for ``Manifest.code``: version, and ``STAGE MODULE`` to hash."""
        named = {f"{s} {name}": v for s, inputs in self.inputs.items() for name, v in inputs.code.items()}
        return {"solar-rl": __version__} | named


def portable(config: DatasetConfig) -> DatasetConfig:
    """Return the config without what depends on the machine: sources' paths, folders, what changes only speed.

    What lies behind a path is told by the hashes in the manifest.
    """
    data = _without_speed(config)
    for block in (data["source"], *data["source"]["sources"].values()):
        block["path"] = None
        _leave_folders_out(block["filters"], ("reference",))
        _leave_folders_out(block["options"], tuple(block["options"]))
    _leave_folders_out(data["sampler"], _PATH_FIELDS)
    return DatasetConfig.model_validate(data)


def _leave_folders_out(block: dict[str, Any], fields: Iterable[str]) -> None:
    for name in fields:
        value = block.get(name)
        if isinstance(value, str) and value and (Path(value).exists() or Path(value).is_absolute()):
            block[name] = Path(value).resolve().name


def make_keys(
    config: DatasetConfig, builder: Builder, files: Iterable[FileEntry], hashes: FileHashes
) -> Keys:
    """Work out the keys of a build.

    Args:
        config: As the user gave it: its paths are looked at.
        builder: What reads the source.
        files: The source's files.
        hashes: Hashes of the sampler's own files.
    """
    code = _code(config, builder)
    known = {
        "read": {entry.path: entry.sha256 for entry in files},
        "sample": sampler_files(config, hashes) | _template_files(config),
    }
    return _keys(portable(config), code, known, {})


def derived_keys(config: DatasetConfig, old: Manifest) -> Keys:
    """Work out the keys of a new version of a dataset whose source and sampler aren't looked at again."""
    code = {stage: _stored_code(old, stage) for stage in ("read", "sample")}
    code |= _later_code(config)
    files = {"read": {entry.path: entry.sha256 for entry in old.source_files}, "sample": old.sampler_files}
    fallback = dict.fromkeys(("read", "sample"), old.build_id)
    return _keys(config, code, files, {name: old.stages.get(name, fallback[name]) for name in fallback})


def sampler_files(config: DatasetConfig, hashes: FileHashes) -> dict[str, str]:
    """Hash what the sampler reads on this machine: a model's folder, recorded answers."""
    found: dict[str, str] = {}
    for name in _PATH_FIELDS:
        value = getattr(config.sampler, name, None)
        if value and Path(value).exists():
            tree = hashes.tree(Path(value))
            found |= {f"sampler.{name}/{path}": digest for path, digest in tree.items()}
    return found


def _template_files(config: DatasetConfig) -> dict[str, str]:
    """Hash the shipped template and what it includes; a template of the user's own is in the config."""
    template = config.prompt.template
    return (
        {} if template is None else {f"prompt.template/{n}": h for n, h in template_hashes(template).items()}
    )


def sampler_identity(config: DatasetConfig, hashes: FileHashes) -> str:
    """Return what stands for the sampler in the request cache: settings, model and code, but not n."""
    settings = _flat(_results(portable(config).sampler))
    for name in ("n", "adaptive"):
        settings.pop(name, None)
    module = f"solar_rl.sampling.{config.sampler.type}"
    code = code_behind([module]).get(module) if module_exists(module) else None
    text = json.dumps([settings, sampler_files(config, hashes), code], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def why(keys: Keys, old: Manifest | None) -> dict[str, list[str]]:
    """Say, stage by stage, what differs from a finished dataset; no reasons: the stage can be kept."""
    if old is None:
        return {stage: ["nothing is there yet"] for stage in STAGES}
    reasons: dict[str, list[str]] = {}
    before: str | None = None
    for stage in STAGES:
        found = []
        if keys.stages[stage] != old.stages.get(stage):
            found = _differences(stage, keys.inputs[stage], old)
            found += [f"{before} runs"] if before else []
        reasons[stage] = found
        before = stage if found else None
    return reasons


def _differences(stage: str, new: Inputs, old: Manifest) -> list[str]:
    files = {e.path: e.sha256 for e in old.source_files} if stage == "read" else old.sampler_files
    pairs: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = [
        ("config ", _fields(stage, DatasetConfig.model_validate(old.config)), new.config),
        ("file ", files if stage in ("read", "sample") else {}, new.files),
        ("code of ", _stored_code(old, stage), new.code),
    ]
    found = []
    for kind, ours, theirs in pairs:
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                values = f": {ours.get(name)} -> {theirs.get(name)}" if kind == "config " else ""
                found.append(f"{kind}{name}{values}")
    return found


def _stored_code(old: Manifest, stage: str) -> dict[str, str]:
    prefix = f"{stage} "
    return {name.removeprefix(prefix): v for name, v in old.code.items() if name.startswith(prefix)}


def _keys(
    config: DatasetConfig,
    code: Mapping[str, dict[str, str]],
    files: Mapping[str, dict[str, str]],
    known: Mapping[str, str],
) -> Keys:
    inputs = {stage: Inputs(_fields(stage, config), files.get(stage, {}), code[stage]) for stage in STAGES}
    stages: dict[str, str] = {}
    before = ""
    for stage, given in inputs.items():
        parts = [SCHEMA_VERSION, stage, before, given.config, given.files, given.code]
        text = json.dumps(parts, sort_keys=True, default=str)
        stages[stage] = before = known.get(stage) or hashlib.sha256(text.encode()).hexdigest()[:16]
    return Keys(stages, inputs)


def _code(config: DatasetConfig, builder: Builder) -> dict[str, dict[str, str]]:
    parts = {name: builder_code(type(part)) for name, part in builder.parts().items()}
    for name, part in builder.parts().items():
        parts |= {f"{name}, {what}": version for what, version in part.fingerprint().items()}
    read = (*_CODE["read"], *(["mixing"] if module_exists(type(builder).__module__) else []))
    if config.privacy.mask:
        read = (*read, "privacy")
    sampler = f"sampling.{config.sampler.type}"
    model_format = type(get_format(config.prompt.format)).__module__.removeprefix("solar_rl.")
    sample = (*_CODE["sample"], model_format, *([sampler] if module_exists(f"solar_rl.{sampler}") else []))
    return {
        "read": _behind(read) | {f"builder {name}": digest for name, digest in parts.items()},
        "sample": _behind(sample, without=() if _judges_while_sampling(config) else _JUDGING),
    } | _later_code(config)


def _judges_while_sampling(config: DatasetConfig) -> bool:
    """Tell whether what is asked depends on how earlier answers were judged."""
    return config.prompt.history == "candidate" or config.sampler.adaptive


def _later_code(config: DatasetConfig) -> dict[str, dict[str, str]]:
    """Return the code of the stages after sampling."""
    code = {stage: _behind(_CODE[stage]) for stage in ("score", "shape", "write")}
    if config.validity.verifier is not None:
        code["score"] |= _behind(["verify"])
        if digest := foreign_code(config.validity.verifier):
            code["score"][f"verifier {config.validity.verifier}"] = digest
    return code


def _behind(names: Iterable[str], without: Iterable[str] = ()) -> dict[str, str]:
    return code_behind((f"solar_rl.{name}" for name in names), without)


def _fields(stage: str, config: DatasetConfig) -> dict[str, Any]:
    """Return the config fields of a stage by dotted name."""
    every = _flat(_results(config))
    if stage == "write":
        taken = tuple(block for blocks in _BLOCKS.values() for block in blocks)
        return {name: value for name, value in every.items() if not _inside(name, taken)}
    blocks = _BLOCKS[stage]
    if stage == "sample" and _judges_while_sampling(config):
        blocks = (*blocks, "validity")
    return {name: value for name, value in every.items() if _inside(name, blocks)}


def _inside(name: str, blocks: Iterable[str]) -> bool:
    return any(name == block or name.startswith(f"{block}.") for block in blocks)


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat


def _results(config: Config) -> dict[str, Any]:
    """Dump the fields that can change a result."""
    data = config.model_dump(mode="json")
    for name, info in type(config).model_fields.items():
        if (info.json_schema_extra or {}) == SPEED_ONLY:
            del data[name]
        elif isinstance(value := getattr(config, name), Config):
            data[name] = _results(value)
    return data


def _without_speed(config: Config) -> dict[str, Any]:
    """Dump a config with every field that changes only speed at its default."""
    data = config.model_dump(mode="json")
    for name, info in type(config).model_fields.items():
        if (info.json_schema_extra or {}) == SPEED_ONLY:
            if not info.is_required():
                del data[name]
        elif isinstance(value := getattr(config, name), Config):
            data[name] = _without_speed(value)
    return data
