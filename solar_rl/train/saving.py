"""Save what was trained as a folder that the next stage, a sampler or evaluate can load."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ADAPTER = "adapter"
"""Folder in output_dir that holds LoRA's own weights, beside the whole model."""


def save_policy(trainer: Any, folder: str | Path) -> None:
    """Save a trained model, its processor and its tokenizer; adapters are merged into the weights.

    Of a model with adapters (LoRA) the folder gets the merged weights, so that it loads as any other, and
    ``adapter/`` the adapters. Where the weights are sharded (FSDP, ZeRO-3) they can't be merged here: the
    folder gets the adapters alone, and a line on stderr says so.

    Args:
        trainer: A transformers Trainer that has trained.
        folder: Where it goes.
    """
    model = trainer.accelerator.unwrap_model(trainer.model)
    if not hasattr(model, "merge_and_unload"):
        trainer.save_model(str(folder))
        return
    if _sharded(trainer):
        trainer.save_model(str(folder))
        if trainer.is_world_process_zero():
            print(f"{folder} holds adapters alone: sharded weights can't be merged here", file=sys.stderr)
        return
    trainer.save_model(str(Path(folder, ADAPTER)))
    merged = model.merge_and_unload()
    if trainer.args.should_save:
        merged.save_pretrained(folder)
        trainer.processing_class.save_pretrained(folder)


def _sharded(trainer: Any) -> bool:
    plugin = getattr(trainer.accelerator.state, "deepspeed_plugin", None)
    return bool(trainer.is_fsdp_enabled or (plugin is not None and plugin.zero_stage == 3))
