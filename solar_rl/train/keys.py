"""Know which keys a recipe may hold and what they take, without importing torch.

Keys and values are compared with the fields of the dataclasses that the recipe's script parses, read from
their source files, so that a mistake is found before anything heavy is loaded.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from solar_rl.errors import ConfigError, MissingExtra
from solar_rl.schema import SCHEMA_VERSION
from solar_rl.shipped import shipped_path
from solar_rl.train import arguments
from solar_rl.yaml_file import read_yaml

SCRIPTS = {"grpo": "grpo.py", "sft": "sft.py"}
"""The recipe script of each value of key ``trainer``."""
_LIBRARIES = {  # a class after those it inherits from: its fields replace theirs
    "transformers": ("training_args.py",),
    "trl": ("trainer/base_config.py", "trainer/{trainer}_config.py", "trainer/model_config.py"),
}
_CLASSES = {
    "RunArguments",
    "SolarArguments",
    "GRPOConfig",
    "SFTConfig",
    "_BaseConfig",
    "ModelConfig",
    "TrainingArguments",
}
_TRUTHS = {"yes", "true", "t", "y", "1", "no", "false", "f", "n", "0"}
"""Words that transformers' parser reads as a bool, in any case."""


def _read_bool(word: str) -> None:
    if word.lower() not in _TRUTHS:
        raise ValueError(word)


def _read_number(word: str) -> None:
    if math.isnan(float(word)):
        raise ValueError(word)


_RANGES = {
    "weight_floor": {"above": 0, "most": 1},
    "expert_anchor": {"least": 0},
    "tis_clip": {"above": 0},
    "upsample_rare": {"least": 0, "most": 1},
    "margin_groups": {"least": 0},
    "margin_every": {"least": 0},
    "collapse_patience": {"least": 1},
    "image_cache_mb": {"least": 0},
}
"""Bounds of our own keys; a dataclass's metadata can't hold them, since argparse takes all of it."""
_LOSSES = ("grpo", "dr_grpo", "dapo", "bnpo", "cispo", "sapo", "luspo", "vespo")
"""What TRL's GRPOConfig takes as loss_type: a plain str there, which fails once the model is loaded."""
_KINDS: dict[str, tuple[str, Callable[[str], object]]] = {
    "int": ("a whole number", int),
    "float": ("a number", _read_number),
    "bool": ("true or false", _read_bool),
}


class Field(NamedTuple):
    """What a recipe's key takes, as far as its dataclass says it plainly.

    Args:
        kind: ``int``, ``float`` or ``bool``; any other annotation is not checked here.
        choices: The only values it takes; empty: any.
        optional: Whether ``none`` is a value.
        default: The value where the recipe says nothing, as it stands in the source.
        bounds: Smallest value (``least``), one that it must exceed (``above``), largest (``most``).
    """

    kind: str
    choices: tuple[str, ...] = ()
    optional: bool = False
    default: object = None
    bounds: Mapping[str, float] = MappingProxyType({})

    def problem(self, value: object) -> str | None:
        """Say what was expected where a value isn't it.

        >>> Field("float").problem("abc")
        'a number'
        >>> Field("str", ("solar", "sparse")).problem("nope")
        'one of solar, sparse'
        """
        word = str(value)
        if self.optional and word.lower() in ("none", "null"):
            return None
        if self.choices:
            return None if word in self.choices else f"one of {', '.join(self.choices)}"
        if self.kind not in _KINDS:
            return None
        expected, read = _KINDS[self.kind]
        try:
            read(word)
        except ValueError:
            return expected
        return self._beyond(float(word)) if self.bounds else None

    def _beyond(self, value: float) -> str | None:
        least, above, most = map(self.bounds.get, ("least", "above", "most"))
        below = (least is not None and value < least) or (above is not None and value <= above)
        if not below and (most is None or value <= most):
            return None
        lower = f"at least {least:g}" if least is not None else f"above {above:g}"
        return lower if most is None else f"{lower} and at most {most:g}"


def read_settings(path: Path | None, extra: Sequence[str]) -> dict[str, Any]:
    """Return the recipe's keys with the overrides put over them, each known and of the right kind.

    Args:
        path: The recipe; None where all keys stand on the command line.
        extra: Overrides as command-line words.

    Raises:
        ConfigError: A key is unknown (with a suggestion), a value is none that its key takes, an override
            is no ``--key value``, or the recipe is for another schema version.
    """
    written = read_yaml(path) if path else {}
    words = _gathered(extra)
    given = _joined(words)
    trainer = str(given.get("trainer", written.get("trainer", "grpo")))
    if trainer not in SCRIPTS:
        raise ConfigError(f"'trainer' is '{trainer}', expected one of {', '.join(SCRIPTS)}", where=str(path))
    fields = known_fields(trainer)
    _refuse_stray_words(fields, words)
    for found, where in ((written, str(path)), (given, "command line")):
        for key, value in found.items():
            _check_setting(fields, key, value, where)
    settings = {**written, **given}
    _check_schema(settings, "command line" if path is None or "schema_version" in given else str(path))
    return settings


def _check_setting(fields: Mapping[str, Field], key: str, value: object, where: str) -> None:
    known = known_keys(fields)
    if key not in known:
        close = difflib.get_close_matches(key, sorted(known), n=1)
        hint = f"did you mean '{close[0]}'?" if close else "keys: docs/training.md"
        raise ConfigError(f"unknown key '{key}'", where=where, hint=hint)
    expected = fields[key].problem(value) if key in fields else None
    if expected:
        near = difflib.get_close_matches(str(value), fields[key].choices, n=1)
        advice = f"did you mean '{near[0]}'?" if near else None
        raise ConfigError(f"'{key}' is '{value}', expected {expected}", where=where, hint=advice)


def _check_schema(settings: Mapping[str, Any], where: str) -> None:
    wanted = str(settings.get("schema_version", "none"))
    if wanted.lower() in ("none", "null") or int(wanted) == SCHEMA_VERSION:
        return
    raise ConfigError(
        f"this recipe is for datasets of schema version {wanted}, this solar-rl reads {SCHEMA_VERSION}",
        where=where,
        hint=f"see docs/schema.md for what changed, then set schema_version: {SCHEMA_VERSION}, "
        "or install the solar-rl that the recipe was written for",
    )


def parse_overrides(words: Sequence[str]) -> dict[str, str]:
    """Read ``--key value``, ``--key=value`` and bare ``--flag`` words; of a repeated key the last one wins.

    Raises:
        ConfigError: A word belongs to no key.

    >>> parse_overrides(["--max-steps", "10", "--credit=sparse", "--use_cpu"])
    {'max_steps': '10', 'credit': 'sparse', 'use_cpu': 'true'}
    """
    return _joined(_gathered(words))


def _joined(words: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {key: " ".join(values) if values else "true" for key, values in words.items()}


def _gathered(words: Sequence[str]) -> dict[str, list[str]]:
    """Return the words that follow each key."""
    found: dict[str, list[str]] = {}
    values: list[str] | None = None
    for word in words:
        if word.startswith("--"):
            key, has_value, value = word[2:].partition("=")
            values = found[key.replace("-", "_")] = [value] if has_value else []
        elif values is None:
            raise ConfigError(f"'{word}' belongs to no key", where="command line", hint="write --key value")
        else:
            values.append(word)
    return found


def _refuse_stray_words(fields: Mapping[str, Field], words: Mapping[str, Sequence[str]]) -> None:
    """Refuse a second word behind a key that takes one value: it would be glued to the first, or lost."""
    for key, values in words.items():
        several = key not in fields or "list" in fields[key].kind.lower()
        if len(values) > 1 and not several:
            hint = f"--{key} takes one value: quote it if it holds spaces"
            raise ConfigError(f"'{values[1]}' belongs to no key", where="command line", hint=hint)


def is_true(value: object) -> bool:
    """Tell whether a setting is switched on, written in YAML or as a word."""
    return str(value).lower() in ("true", "yes", "t", "y", "1")


def whole(settings: Mapping[str, Any], key: str, default: int) -> int:
    """Return a setting as a whole number, or what holds where the recipe is silent."""
    return int(settings.get(key, default))


def known_keys(fields: Mapping[str, Field]) -> set[str]:
    """Return every key that a recipe may hold: the fields, ``no_`` before a bool, and TRL's ``env``."""
    return {*fields, *(f"no_{name}" for name, field in fields.items() if field.kind == "bool"), "env"}


def known_fields(trainer: str = "grpo") -> dict[str, Field]:
    """Return every field that a recipe script takes, read from source without importing torch.

    Args:
        trainer: grpo or sft.
    """
    ours = (Path(arguments.__file__), shipped_path("recipes", SCRIPTS[trainer]))
    files = [*_library_files(trainer), *ours]
    found = {name: field for file in files for name, field in _dataclass_fields(file)}
    if trainer == "grpo":
        found["loss_type"] = found["loss_type"]._replace(choices=_LOSSES)
    return {name: field._replace(bounds=_RANGES.get(name, {})) for name, field in found.items()}


def _library_files(trainer: str) -> Iterator[Path]:
    for package, files in _LIBRARIES.items():
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise MissingExtra(f"training ({package})", "train")
        yield from (Path(spec.origin).parent / file.format(trainer=trainer) for file in files)


def _dataclass_fields(file: Path) -> Iterator[tuple[str, Field]]:
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name in _CLASSES:
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    yield line.target.id, _read_field(line)


def _read_field(line: ast.AnnAssign) -> Field:
    annotation = ast.unparse(line.annotation)
    kind = annotation.removesuffix(" | None")
    literal = re.fullmatch(r"Literal\[([^|\[\]]*)\]", kind)
    choices = ast.literal_eval(f"({literal[1]},)") if literal else _metadata_choices(line)
    return Field(kind, tuple(map(str, choices)), optional=kind != annotation, default=_default(line.value))


def _default(value: ast.expr | None) -> object:
    """Return a plain default; one that is made by code is not read."""
    if isinstance(value, ast.Call):
        value = next((word.value for word in value.keywords if word.arg == "default"), None)
    return value.value if isinstance(value, ast.Constant) else None


def _metadata_choices(line: ast.AnnAssign) -> list[Any]:
    """Return what ``field(metadata={"choices": [...]})`` lists; a list made by code is not read."""
    for node in ast.walk(line):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "choices" and isinstance(value, ast.List):
                    return list(ast.literal_eval(value))
    return []
