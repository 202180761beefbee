"""Save what was trained as a folder that the next stage, a sampler or evaluate can load."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ADAPTER = "adapter"
"""Folder in output_dir that holds LoRA's own weights, beside the whole model."""
_PICKLE = "training_args.bin"
"""What transformers saves beside each model: its arguments, with paths of this machine."""


def save_policy(trainer: Any, folder: str | Path) -> None:
    """Save a trained model, its processor and its tokenizer; adapters are merged into the weights.

    Of a model with adapters (LoRA) the folder gets the merged weights, so that it loads as any other, and
    ``adapter/`` the adapters. Where the weights are sharded (FSDP, ZeRO-3) they can't be merged here: the
    folder gets the adapters alone, and a line on stderr says so.

    Nothing in the folder tells of the machine, so the same run gives the same files wherever it goes: a dataset
    that is sampled with them then has the same build id. training.json says how they were made.

    Args:
        trainer: A transformers Trainer that has trained.
        folder: Where it goes.
    """
    model = trainer.accelerator.unwrap_model(trainer.model)
    adapted = hasattr(model, "merge_and_unload")
    if not adapted or _sharded(trainer):
        _save(trainer, Path(folder))
        if adapted and trainer.is_world_process_zero():
            print(f"{folder} holds adapters alone: sharded weights can't be merged here", file=sys.stderr)
        return
    _save(trainer, Path(folder, ADAPTER))
    merged = model.merge_and_unload()
    if trainer.args.should_save:
        merged.save_pretrained(folder)
        trainer.processing_class.save_pretrained(folder)


def _save(trainer: Any, folder: Path) -> None:
    trainer.save_model(str(folder))
    if trainer.args.should_save:
        Path(folder, _PICKLE).unlink(missing_ok=True)


def _sharded(trainer: Any) -> bool:
    plugin = getattr(trainer.accelerator.state, "deepspeed_plugin", None)
    return bool(trainer.is_fsdp_enabled or (plugin is not None and plugin.zero_stage == 3))
