"""Read a config from YAML and the command line; the first problem becomes one clear line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from solar_rl.config.base import Config
from solar_rl.config.dataset import DatasetConfig
from solar_rl.config.sampler import SAMPLER_TYPES, AnySampler, Sampler
from solar_rl.config.source import sources_by_name
from solar_rl.errors import ConfigError
from solar_rl.yaml_file import parse_scalar, read_yaml

C = TypeVar("C", bound=Config)
_SAMPLERS: tuple[type[AnySampler], ...] = get_args(get_args(Sampler)[0])


def load_dataset_config(
    path: str | Path, overrides: Mapping[str, str] | None = None, *, sampler: str | Path | None = None
) -> DatasetConfig:
    """Read a dataset.yaml, put a sampler's file over it, and apply dotted overrides.

    Args:
        path: The YAML file.
        overrides: Dotted key to YAML scalar, such as {"shaping.alignment": "paper"}.
        sampler: A file with blocks ``prompt`` and ``sampler``, see ``put_sampler``.

    Raises:
        ConfigError: Missing file, broken YAML, unknown key (with a suggestion) or wrong value.
    """
    data = read_yaml(path)
    if sampler is not None:
        put_sampler(data, read_sampler(sampler))
    override(data, overrides or {})
    return validate_config(DatasetConfig, data, where=str(path), overrides=tuple(overrides or ()))


def read_sampler(path: str | Path) -> dict[str, Any]:
    """Read a sampler's file: how a model is asked (``prompt``) and how it is run (``sampler``).

    Raises:
        ConfigError: Missing file, broken YAML, or another block.
    """
    data = read_yaml(path)
    if not data or set(data) - {"prompt", "sampler"}:
        found = ", ".join(sorted(data)) or "nothing"
        raise ConfigError(f"expected blocks prompt and sampler, found {found}", where=str(path))
    return data


def put_sampler(data: dict[str, Any], blocks: Mapping[str, Any]) -> None:
    """Put a sampler's file over a config's data: its fields of ``prompt``, and its ``sampler`` as a whole."""
    prompt = dict(data.get("prompt") or {})
    if "format" in blocks.get("prompt", {}):
        prompt.pop("template", None)
    data["prompt"] = prompt | blocks.get("prompt", {})
    if "sampler" in blocks:
        data["sampler"] = blocks["sampler"]


def override(data: dict[str, Any], overrides: Mapping[str, str]) -> None:
    """Set dotted keys of a config's data; fields of another kind of sampler or format go."""
    kind = overrides.get("sampler.type")
    if "prompt.format" in overrides and "prompt.template" not in overrides:
        data.get("prompt", {}).pop("template", None)  # another format's models expect another
    if kind is not None and kind != data.get("sampler", {}).get("type", "scripted"):
        # another sampler: what it doesn't know means nothing to it, but the longest answer, say, stays
        known = next((each for each in _SAMPLERS if each.model_fields["type"].default == kind), AnySampler)
        data["sampler"] = {
            name: value for name, value in data.get("sampler", {}).items() if name in known.model_fields
        }
    _name_sources(data)
    for key, text in overrides.items():
        set_dotted(data, key, text)


def _name_sources(data: dict[str, Any]) -> None:
    """Turn a list of sources into a mapping, so that dotted keys find them by name."""
    for block in (data, data.get("source")):
        if isinstance(block, dict) and isinstance(block.get("sources"), list):
            try:
                block["sources"] = sources_by_name(block["sources"])
            except ValueError as error:
                raise ConfigError(str(error), where="sources") from None


def validate_config(
    model: type[C], data: Mapping[str, Any], *, where: str, overrides: tuple[str, ...] = ()
) -> C:
    """Validate data as a config model; the first problem becomes one clear line.

    Args:
        model: The model.
        data: What a file holds, with the command line's values put over it.
        where: The file.
        overrides: Dotted keys that come from the command line.

    Raises:
        ConfigError: With the dotted key, what was expected and, for an unknown key, a suggestion.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _first_problem(model, error, where, overrides) from None


def field_docs(model: type[BaseModel], prefix: str = "") -> list[tuple[str, str, str]]:
    """List every field as (dotted name, default, meaning); the variants of a sampler follow each other."""
    rows: list[tuple[str, str, str]] = []
    for name, info in model.model_fields.items():
        inner = [
            part
            for part in (info.annotation, *get_args(info.annotation))
            if isinstance(part, type) and issubclass(part, BaseModel)
        ]
        if inner:
            for part in inner:
                rows += field_docs(part, f"{prefix}{name}.")
        else:
            default = "required" if info.is_required() else str(info.default)
            rows.append((f"{prefix}{name}", default, info.description or ""))
    return rows


def _first_problem(
    model: type[Config], error: ValidationError, where: str, overrides: tuple[str, ...]
) -> ConfigError:
    problems = error.errors()
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    key = _dotted(problem["loc"])
    where = "command line" if any(key == name or key.startswith(f"{name}.") for name in overrides) else where
    others = sorted({_dotted(each["loc"]) for each in problems} - {key, ""})
    more = f"; wrong too: {', '.join(others)}" if others else ""
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        known = sorted(_all_field_names(model))
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean '{close[0]}'?" if close else "`solar-rl build --fields` lists every key"
        if key.startswith("sampler.") and (types := _samplers_with(name)):
            hint = f"it goes with sampler.type {' or '.join(types)}"
        return ConfigError(f"unknown key '{key}'{more}", where=where, hint=hint)
    if problem["type"] == "missing":
        return ConfigError(f"key '{key}' is missing{more}", where=where)
    message = problem["msg"].removeprefix("Value error, ")
    got = "" if problem["type"] == "value_error" else f", got {problem['input']!r}"
    return ConfigError(f"'{key}': {message}{got}{more}" if key else f"{message}{more}", where=where)


def _dotted(location: tuple[int | str, ...]) -> str:
    """Spell a place in the config as a user does: pydantic puts a union's variant in between."""
    return ".".join(str(part) for part in location if part not in SAMPLER_TYPES)


def _samplers_with(name: str) -> list[str]:
    """List the sampler types that have a field."""
    return [kind.model_fields["type"].default for kind in _SAMPLERS if name in kind.model_fields]


def _all_field_names(model: type[BaseModel]) -> set[str]:
    names: set[str] = set()
    for name, info in model.model_fields.items():
        names.add(name)
        for part in (info.annotation, *get_args(info.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                names |= _all_field_names(part)
    return names


def set_dotted(data: dict[str, Any], key: str, text: str) -> None:
    """Set a dotted key of nested mappings to a YAML scalar.

    Raises:
        ConfigError: A parent of the key is a value.
    """
    *parents, last = key.split(".")
    for part in parents:
        data = data.setdefault(part, {})
        if not isinstance(data, dict):
            raise ConfigError(f"'{key}' does not name a field: '{part}' is a value", where=f"--{key}")
    data[last] = parse_scalar(text)
