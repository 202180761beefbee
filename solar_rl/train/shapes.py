"""Read a model's shape from its configuration: the model is built without weights, and counted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solar_rl.policy.reader import from_pretrained_options, load_config, sees
from solar_rl.shipped import shipped_path
from solar_rl.train.keys import is_true, read_settings, whole
from solar_rl.train.launch import find_recipe, maker_of
from solar_rl.train.memory import Eyes, Shape

_DESCRIPTIONS = "model.json"
"""File in a folder of recipes/ that says of what shape its model is, so that a plan needs no network."""


def first_model(settings: Mapping[str, Any]) -> str:
    """Return the model that a recipe's training began with, through the earlier stages that aren't there yet."""
    model = str(settings["model_name_or_path"])
    earlier = None if Path(model).is_dir() else maker_of(model)
    return first_model(read_settings(find_recipe(earlier), [])) if earlier else model


def read_shape(model: str, settings: Mapping[str, Any]) -> Shape:
    """Return the shape of a model with the adapters that a recipe gives it.

    Args:
        model: A folder with a config.json, or an id on the Hub; that of a shipped recipe needs no network.
        settings: Keys of the recipe.

    Raises:
        ConfigError: There is no such model.
    """
    import torch
    import transformers

    config = _shipped_config(model) or load_config(model, from_pretrained_options(False, None))
    auto: Any = (
        transformers.AutoModelForImageTextToText if sees(config) else transformers.AutoModelForCausalLM
    )
    with torch.device("meta"):
        built = auto.from_config(config)
    sizes = [_size(module) for module in built.modules() if type(module).__name__ in _block_names(built)]
    text, vision = config.get_text_config(), getattr(config, "vision_config", None)
    head = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    parameters = _size(built)
    return Shape(
        parameters=parameters,
        adapters=_adapters(built, settings) if is_true(settings.get("use_peft", False)) else 0,
        block=max(sizes),
        root=parameters - sum(sizes),
        layers=text.num_hidden_layers,
        hidden=text.hidden_size,
        keys=text.num_key_value_heads * head,
        intermediate=text.intermediate_size,
        vocabulary=text.vocab_size,
        eyes=_eyes(vision) if vision is not None else None,
    )


def _shipped_config(model: str) -> Any:
    import transformers

    for path in shipped_path("recipes").glob(f"*/{_DESCRIPTIONS}"):
        described = json.loads(path.read_text(encoding="utf-8"))
        if described.pop("_name_or_path") == model and not Path(model).exists():
            return transformers.AutoConfig.for_model(**described)
    return None


def _size(module: Any) -> int:
    return sum(weight.numel() for weight in module.parameters())


def _block_names(model: Any) -> set[str]:
    """Return the classes that are sharded one by one, as accelerate chooses them."""
    return {str(name) for name in model._no_split_modules}


def _adapters(model: Any, settings: Mapping[str, Any]) -> int:
    from peft import LoraConfig, get_peft_model

    targets = settings.get("lora_target_modules")
    if isinstance(targets, list) and len(targets) == 1:  # one word is a pattern, as TRL reads it
        targets = targets[0]
    config = LoraConfig(r=whole(settings, "lora_r", 16), target_modules=targets, task_type="CAUSAL_LM")
    adapted = get_peft_model(model, config)
    return sum(weight.numel() for weight in adapted.parameters() if weight.requires_grad)


def _eyes(vision: Any) -> Eyes:
    patch = vision.patch_size**2 * vision.temporal_patch_size * vision.in_channels
    return Eyes(
        vision.depth, vision.hidden_size, vision.intermediate_size, patch, vision.spatial_merge_size**2
    )
