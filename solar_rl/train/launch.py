"""Start a training recipe: check it, print the command, run it. Nothing heavy is imported here.

A mistake in the recipe or on the command line is found before torch is: keys and values are compared with the
fields of the dataclasses that the recipe script parses, read from their source files.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from solar_rl.errors import ConfigError, InputError, MissingExtra
from solar_rl.shipped import shipped_path
from solar_rl.yaml_file import read_yaml

SCRIPT = "grpo.py"
_LIBRARIES = {  # a class after those it inherits from: its fields replace theirs
    "transformers": ("training_args.py",),
    "trl": ("trainer/base_config.py", "trainer/grpo_config.py", "trainer/model_config.py"),
}
_CLASSES = {"SolarArguments", "GRPOConfig", "_BaseConfig", "ModelConfig", "TrainingArguments"}
_PACKAGES = ("torch", "transformers", "trl", "accelerate")
_TRUTHS = {"yes", "true", "t", "y", "1", "no", "false", "f", "n", "0"}
"""Words that transformers' parser reads as a bool, in any case."""
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
"""ORG/NAME, the shape of a model's id on the Hub."""


def _read_bool(word: str) -> None:
    if word.lower() not in _TRUTHS:
        raise ValueError(word)


_KINDS: dict[str, tuple[str, Callable[[str], object]]] = {
    "int": ("a whole number", int),
    "float": ("a number", float),
    "bool": ("true or false", _read_bool),
}


class Field(NamedTuple):
    """What a recipe's key takes, as far as its dataclass says it plainly.

    Args:
        kind: ``int``, ``float`` or ``bool``; any other annotation is not checked here.
        choices: The only values it takes; empty: any.
        optional: Whether ``none`` is a value.
    """

    kind: str
    choices: tuple[str, ...] = ()
    optional: bool = False

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
        return None


def launch(
    recipe: str | Path, extra: Sequence[str] = (), *, dry_run: bool = False, processes: int | None = None
) -> int:
    """Run a training recipe in processes of its own.

    Args:
        recipe: A YAML file, or the name of a shipped one, such as ``phone_cpu/stage1_atomic``.
        extra: Overrides as command-line words: ``["--max_steps", "10"]``.
        dry_run: Print the command to stdout and don't run it.
        processes: Number of processes (default: one for each GPU, or one).

    Returns:
        The exit code of the run.

    Raises:
        ConfigError: No such recipe, or an unknown key or a wrong value in it or among the overrides.
        InputError: The dataset or the policy isn't there.
        MissingExtra: torch, transformers, trl or accelerate isn't installed.
    """
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(f"training ({package})", "train")
    path = find_recipe(recipe)
    settings = check_settings(path, extra)
    command = make_command(path, extra, settings, processes)
    print(f"$ {shlex.join(command)}", file=sys.stdout if dry_run else sys.stderr, flush=True)
    return 0 if dry_run else subprocess.run(command, check=False).returncode


def find_recipe(recipe: str | Path) -> Path:
    """Return the YAML file that a path or the name of a shipped recipe means.

    Raises:
        ConfigError: There is none.
    """
    path = Path(recipe)
    if path.is_file():
        return path
    try:
        return shipped_path("recipes", f"{path.with_suffix('')}.yaml")
    except InputError:
        root = shipped_path("recipes")
        names = sorted(str(p.relative_to(root).with_suffix("")) for p in root.glob("*/*.yaml"))
        close = difflib.get_close_matches(str(recipe), names, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"shipped recipes: {', '.join(names)}"
        raise ConfigError("no such recipe", where=str(recipe), hint=hint) from None


def check_settings(path: Path, extra: Sequence[str]) -> dict[str, Any]:
    """Return the recipe's keys with the overrides put over them.

    Raises:
        ConfigError: A key is unknown (with a suggestion), a value is none that its key takes, or an override
            is no ``--key value``.
        InputError: The dataset isn't there, or the policy is neither a folder nor an id on the Hub.
    """
    written, given = read_yaml(path), parse_overrides(extra)
    fields = known_fields()
    for found, where in ((written, str(path)), (given, "command line")):
        for key, value in found.items():
            _check_setting(fields, key, value, where)
    settings = {**written, **given}
    _check_inputs(settings, str(path))
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


def parse_overrides(words: Sequence[str]) -> dict[str, str]:
    """Read ``--key value``, ``--key=value`` and bare ``--flag`` words; of a repeated key the last one wins.

    Raises:
        ConfigError: A word belongs to no key.

    >>> parse_overrides(["--max-steps", "10", "--credit=sparse", "--use_cpu"])
    {'max_steps': '10', 'credit': 'sparse', 'use_cpu': 'true'}
    """
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
    return {key: " ".join(words) if words else "true" for key, words in found.items()}


def known_keys(fields: Mapping[str, Field]) -> set[str]:
    """Return every key that a recipe may hold: the fields, ``no_`` before a bool, and TRL's ``env``."""
    return {*fields, *(f"no_{name}" for name, field in fields.items() if field.kind == "bool"), "env"}


def known_fields() -> dict[str, Field]:
    """Return every field that the recipe script takes, read from source without importing torch."""
    files = [*_library_files(), shipped_path("recipes", SCRIPT)]
    return {name: field for file in files for name, field in _dataclass_fields(file)}


def _library_files() -> Iterator[Path]:
    for package, files in _LIBRARIES.items():
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise MissingExtra(f"training ({package})", "train")
        yield from (Path(spec.origin).parent / file for file in files)


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
    return Field(kind, tuple(map(str, choices)), optional=kind != annotation)


def _metadata_choices(line: ast.AnnAssign) -> list[Any]:
    """Return what ``field(metadata={"choices": [...]})`` lists; a list made by code is not read."""
    for node in ast.walk(line):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "choices" and isinstance(value, ast.List):
                    return list(ast.literal_eval(value))
    return []


def _check_inputs(settings: Mapping[str, Any], where: str) -> None:
    for key in ("dataset", "model_name_or_path"):
        if not settings.get(key):
            raise ConfigError(f"key '{key}' is missing", where=where, hint=f"add --{key} FOLDER")
    dataset, policy = str(settings["dataset"]), str(settings["model_name_or_path"])
    if not Path(dataset, "manifest.json").is_file():
        raise InputError(
            "is no built dataset (it has no manifest.json)", where=dataset, hint="make it with solar-rl build"
        )
    folder = Path(policy)
    if not folder.is_dir() and (folder.exists() or not _HUB_ID.fullmatch(policy)):
        hint = "a later stage starts from an earlier one's output_dir: run that first, or name another folder"
        raise InputError("no such policy folder", where=policy, hint=f"{hint}, or ORG/NAME on the Hub")


def make_command(
    path: Path, extra: Sequence[str], settings: Mapping[str, Any], processes: int | None
) -> list[str]:
    """Return the words that run the recipe.

    One process: plain Python. Several on a CPU: torchrun, because accelerate starts one there and says
    nothing. On GPUs: accelerate.
    """
    script = str(shipped_path("recipes", SCRIPT))
    gpus = 0 if str(settings.get("use_cpu", "")).lower() in ("true", "1", "yes") else _gpu_count()
    count = processes or max(gpus, 1)
    words = ["--config", str(path), *extra, "--processes", str(count)]
    if gpus:
        accelerate = ["accelerate.commands.launch", "--num_processes", str(count), "--num_machines", "1"]
        accelerate += ["--mixed_precision", "no", "--dynamo_backend", "no"]  # the recipe's own keys decide
        accelerate += ["--multi_gpu"] if count > 1 else []
        return [sys.executable, "-m", *accelerate, script, *words]
    if count > 1:
        torchrun = ["torch.distributed.run", "--standalone", "--nproc_per_node", str(count)]
        return [sys.executable, "-m", *torchrun, script, *words]
    return [sys.executable, script, *words]


def _gpu_count() -> int:
    import torch

    return int(torch.cuda.device_count())


def default_output(words: Sequence[str]) -> str:
    """Return where a run goes that names no output_dir: ``runs`` and the recipe's folder and name.

    >>> default_output(["grpo.py", "--config", "recipes/phone_cpu/log_step.yaml"])
    'runs/phone_cpu/log_step'
    """
    words = list(words)
    if "--config" not in words[:-1]:
        return "runs/grpo"
    path = Path(words[words.index("--config") + 1]).absolute()
    return f"runs/{path.parent.name}/{path.stem}"
