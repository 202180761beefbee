"""Make sure that what a recipe switches on is installed, before anything is loaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from solar_rl.errors import ConfigError, InputError
from solar_rl.train.keys import is_true

_LOGGERS = (
    "clearml",
    "codecarbon",
    "comet_ml",
    "dvclive",
    "mlflow",
    "swanlab",
    "tensorboard",
    "trackio",
    "wandb",
)
_NEEDED = {("report_to", name): name for name in _LOGGERS} | {
    # (key, a word in its value): the package that it takes
    ("optim", "bnb"): "bitsandbytes",
    ("optim", "paged"): "bitsandbytes",
    ("use_liger_kernel", "true"): "liger_kernel",
    ("use_peft", "true"): "peft",
    ("use_vllm", "true"): "vllm",
}
_UNUSED = ("load_in_4bit", "load_in_8bit")
"""TRL's keys that would have no effect: the recipes load policies themselves, in ``dtype``."""


def check_packages(settings: Mapping[str, Any], where: str) -> None:
    """Make sure that what the recipe switches on is installed, and is something that the recipes do.

    Raises:
        ConfigError: A key is switched on that would have no effect.
        InputError: A package isn't installed.
    """
    for key in _UNUSED:
        if is_true(settings.get(key, False)):
            raise ConfigError(f"'{key}' isn't supported", where=where, hint="use dtype: bfloat16 and LoRA")
    if is_true(settings.get("use_vllm", False)) and settings.get("mode", "replay") != "fresh":
        raise ConfigError("'use_vllm' goes with mode: fresh", where=where, hint="replay samples nothing")
    for (key, word), package in _NEEDED.items():
        if word in str(settings.get(key, "")).lower() and importlib.util.find_spec(package) is None:
            hint = f"pip install {package.replace('_', '-')}"
            raise InputError(
                f"'{key}: {word}' needs {package}, which isn't installed", where=where, hint=hint
            )
