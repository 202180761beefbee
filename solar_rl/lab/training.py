"""Run a training recipe in this very process: its script, with its words, as ``solar-rl train`` starts it.

A lab has many short runs; starting Python and importing torch for each would cost as much as the training.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from solar_rl.errors import NothingToCompare
from solar_rl.shipped import shipped_path
from solar_rl.train.keys import SCRIPTS, read_settings
from solar_rl.train.launch import find_recipe


def train(recipe: str, keys: Mapping[str, Any], log: Path) -> bool:
    """Run a recipe.

    Args:
        recipe: Name of a shipped recipe.
        keys: What is said otherwise than it says.
        log: File for what the script prints.

    Returns:
        Whether anything was trained: False where no group of the dataset has a reward to compare under the recipe's
        credit, so that the policy stays as it is and nothing is saved.

    Raises:
        ConfigError: A key or value is wrong.
    """
    path = find_recipe(recipe)
    words = as_words(keys)
    settings = read_settings(path, words)
    script = shipped_path("recipes", SCRIPTS[str(settings.get("trainer", "grpo"))])
    module = _loaded(script)
    with _arguments([str(script), "--config", str(path), *words]), _printing_to(log):
        try:
            module.main()
        except NothingToCompare as error:
            print(error)
            return False
    return True


def _loaded(script: Path) -> ModuleType:
    """Import a recipe's script under a name of its own."""
    name = f"solar_rl_recipe_{script.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, script)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def as_words(keys: Mapping[str, Any]) -> list[str]:
    """Spell keys as they stand on a command line.

    >>> as_words({"max_steps": 10, "save_only_model": True})
    ['--max_steps', '10', '--save_only_model', 'true']
    """
    words = []
    for name, value in keys.items():
        words += [f"--{name}", value if isinstance(value, str) else json.dumps(value)]
    return words


@contextlib.contextmanager
def _arguments(words: list[str]) -> Iterator[None]:
    before, sys.argv = sys.argv, words
    try:
        yield
    finally:
        sys.argv = before


@contextlib.contextmanager
def _printing_to(log: Path) -> Iterator[None]:
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("a", encoding="utf-8") as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        yield
