"""What the scripts in recipes/ have in common: the recipe is parsed as TRL does, the policy loaded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import torch
import trl
from transformers.utils import logging as transformers_logging

from solar_rl.config import PromptConfig
from solar_rl.errors import ConfigError, InputError
from solar_rl.policy import Policy, load_policy
from solar_rl.train.arguments import RunArguments
from solar_rl.train.launch import check_arguments, check_pixels
from solar_rl.train.naming import default_output, recipe_name

TrlParser: Any = trl.TrlParser  # type: ignore[attr-defined]


def read_recipe(classes: Sequence[type], words: Sequence[str] | None = None) -> tuple[Any, ...]:
    """Return one object for each dataclass: our arguments, TRL's config, TRL's model config.

    A recipe that names no output_dir goes to its own place, such as ``runs/phone_cpu/stage1_atomic``.

    Args:
        classes: The dataclasses, in this order.
        words: What follows the script's name (default: the command line's).

    Raises:
        ConfigError: An unknown key, a value that isn't taken, or rows that don't add up.
        InputError: The dataset or the policy isn't there, or another number of processes runs.
    """
    words = sys.argv[1:] if words is None else list(words)
    parser = TrlParser(tuple(classes))
    if not {"-h", "--help"} & set(words):
        check_arguments(words)
        parser.error = _refuse  # one line instead of argparse's usage of 300 keys
    parser.set_defaults_with_config(output_dir=default_output(words))
    try:
        solar, config, model = parser.parse_args_and_config(words)
    except ValueError as error:  # a value that TRL or transformers refuses
        raise ConfigError(str(error).splitlines()[0]) from error
    if config.disable_tqdm:
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if solar.processes not in (None, config.world_size):
        raise InputError(
            f"{config.world_size} processes run, {solar.processes} were asked for",
            hint="on a CPU use torchrun: accelerate launch starts one process there and says nothing",
        )
    return solar, config, model


def told_recipe() -> dict[str, Any]:
    """Return what the record says of the recipe that this script was started with: its name, the keys it sets."""
    words = sys.argv[1:]
    return {"recipe": recipe_name(words), "written": check_arguments(words).keys()}


def load_start(solar: RunArguments, config: Any, model: Any, prompt: PromptConfig) -> Policy:
    """Load the policy that training starts from, on the CPU: the trainer puts it on its device.

    Args:
        solar: Our arguments.
        config: TRL's GRPOConfig or SFTConfig.
        model: TRL's ModelConfig.
        prompt: The dataset's prompt block, for the image sizes that its sampler saw.

    Raises:
        InputError: Those are larger than the recipe allows.
    """
    check_pixels(prompt.max_pixels, solar.dataset_max_pixels, solar.dataset)
    return load_policy(
        model.model_name_or_path,
        dtype=model.dtype if model.dtype not in (None, "auto") else "float32",
        device="cpu",
        revision=model.model_revision,
        trust_remote_code=config.trust_remote_code,
        min_pixels=prompt.min_pixels,
        max_pixels=prompt.max_pixels,
        attn_implementation=model.attn_implementation,
    )


def _refuse(message: str) -> NoReturn:
    raise ConfigError(message.splitlines()[0], where="command line")


def leave_processes() -> None:
    """Leave the group of processes, where there is one, after a run that ended well.

    Threads of gloo that still run when Python ends abort it now and then, and the launcher takes that for a failure.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
