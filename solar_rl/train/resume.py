"""Go on from a checkpoint: which one, whether it is whole, and whether it belongs to this recipe.

A checkpoint gets a small file last of all, once every process has written its part. It says what made it, so
that going on with another recipe or dataset is refused before the model loads.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from solar_rl.errors import InputError
from solar_rl.store.manifest import write_text
from solar_rl.train.health import COLLAPSE

IDENTITY = "solar_rl.json"
"""File in a checkpoint that says what made it; without it the checkpoint isn't whole."""
OURS = (
    "mode",
    "split",
    "credit",
    "advantage_weight",
    "weight_floor",
    "upsample_rare",
    "expert_anchor",
    "anchor_thoughts",
    "off_policy",
    "prompt_weight",
    "tis_clip",
    "tis_level",
    "thoughts",
)
"""Keys of SolarArguments that change what is learned."""
TRLS = (
    "assistant_only_loss",
    "beta",
    "completion_only_loss",
    "delta",
    "entropy_coef",
    "epsilon",
    "epsilon_high",
    "importance_sampling_level",
    "learning_rate",
    "loss_type",
    "lr_scheduler_type",
    "max_completion_length",
    "max_grad_norm",
    "max_length",
    "num_generations",
    "num_iterations",
    "optim",
    "packing",
    "seed",
    "shuffle_dataset",
    "steps_per_generation",
    "temperature",
    "top_entropy_quantile",
    "warmup_steps",
    "weight_decay",
)
"""Keys of GRPOConfig and SFTConfig that change what is learned. ``max_steps`` is left out: a run may go on for longer."""
_END = 2**20
"""Bytes of either end of a file of weights that tell it from another: the last hold weights, of several GB too."""
MODELS = ("use_peft", "lora_r", "lora_alpha", "lora_dropout", "lora_target_modules")
"""Keys of ModelConfig that decide which weights there are."""


def recipe_identity(solar: Any, config: Any, model: Any, dataset: str) -> dict[str, Any]:
    """Return what a checkpoint says of its making.

    Args:
        solar: The recipe's SolarArguments.
        config: TRL's GRPOConfig or SFTConfig.
        model: TRL's ModelConfig.
        dataset: Name, version and build id of the dataset.
    """
    rows = config.per_device_train_batch_size * config.gradient_accumulation_steps * config.world_size
    identity: dict[str, Any] = {"dataset": dataset, "rows_per_update": rows}
    for owner, names in ((solar, OURS), (config, TRLS), (model, MODELS)):
        known = {field.name for field in fields(owner)}
        identity |= {name: _plain(getattr(owner, name)) for name in names if name in known}
    if identity.get("beta") or identity.get("use_peft"):  # the start is part of the loss, or of the weights
        identity["start"] = _start_mark(model.model_name_or_path, model.model_revision)
    return identity


def _start_mark(model: str, revision: str | None) -> str:
    """Tell one start model from another: a folder by the ends of its weights, whatever it is called."""
    if not Path(model).is_dir():
        return f"{model}@{revision or 'main'}"
    digest = hashlib.sha256()
    for path in sorted(Path(model).glob("*.safetensors")):
        with path.open("rb") as file:
            size = file.seek(0, 2)
            for start in (0, max(0, size - _END)):
                file.seek(start)
                digest.update(file.read(_END))
    return digest.hexdigest()[:16]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def find_checkpoint(wanted: str | None, output_dir: str | Path) -> Path | None:
    """Return the checkpoint to go on from.

    Args:
        wanted: A checkpoint's folder, ``latest`` (the newest whole one in ``output_dir``, after a collapse the
            last good one; without one the run starts anew), or None.
        output_dir: Where the run's checkpoints lie.

    Raises:
        InputError: No such folder, or no whole checkpoint.
    """
    if wanted is None:
        return None
    if wanted.lower() in ("latest", "true"):
        numbered = ((_step(path), path) for path in Path(output_dir).glob("checkpoint-*"))
        good = _last_good(Path(output_dir))
        whole = [(step, path) for step, path in numbered if step <= good and (path / IDENTITY).is_file()]
        return max(whole)[1] if whole else None
    path = Path(wanted)
    if not path.is_dir():
        raise InputError("no such checkpoint", where=wanted, hint=_hint(Path(output_dir)))
    if not (path / IDENTITY).is_file():
        raise InputError(
            f"this checkpoint has no {IDENTITY}: the run was stopped while it was saved, or another program did",
            where=wanted,
            hint=_hint(path.parent),
        )
    return path


def _last_good(output_dir: Path) -> float:
    """Return the step up to which checkpoints can be trusted: after a collapse, the last good one's."""
    marker = output_dir / COLLAPSE
    if not marker.is_file():
        return math.inf
    good = json.loads(marker.read_text(encoding="utf-8"))["last_good_checkpoint"]
    return _step(Path(good)) if good else -1


def check_checkpoint(path: Path, identity: Mapping[str, Any], span: int = 1, accumulation: int = 1) -> None:
    """Make sure that a checkpoint belongs to a recipe.

    Args:
        path: The checkpoint.
        identity: ``recipe_identity`` of the recipe that goes on.
        span: Micro-batches that share a generation batch; a run can't go on amid one.
        accumulation: Micro-batches of an update.

    Raises:
        InputError: It was made by another recipe or from another dataset, or lies amid a generation batch.
    """
    made: dict[str, Any] = json.loads((path / IDENTITY).read_text(encoding="utf-8"))
    differences = [
        f"{name} is {made.get(name)} there and {identity.get(name)} here"
        for name in {**identity, **made}
        if made.get(name) != identity.get(name)
    ]
    if differences:
        raise InputError(
            f"this checkpoint is another recipe's: {'; '.join(differences)}",
            where=str(path),
            hint="go on with the recipe that made it, or start a new run with --model_name_or_path and this folder",
        )
    if _step(path) * accumulation % span:
        every = span // math.gcd(span, accumulation)
        raise InputError(
            f"step {_step(path)} lies amid a generation batch: {span} micro-batches share one, "
            f"an update has {accumulation}",
            where=str(path),
            hint=f"save every {every} steps or a multiple of it",
        )


def _step(path: Path) -> int:
    number = path.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _hint(folder: Path) -> str:
    whole = sorted(
        (_step(path), path.name) for path in folder.glob("checkpoint-*") if (path / IDENTITY).is_file()
    )
    names = ", ".join(name for _, name in whole)
    return f"whole checkpoints in {folder}: {names or 'none'}"


def read_weights(trainer: Any, checkpoint: str, model: Any = None) -> bool:
    """Read a checkpoint's weights into a trainer's model, or leave it to transformers.

    transformers 5.24 reads the saved names of Qwen2.5-VL as they are, finds 1 tensor of 57 and only warns;
    from_pretrained knows both spellings. Sharded weights and adapters are read well.

    Args:
        trainer: A transformers Trainer.
        checkpoint: The checkpoint's folder.
        model: The model (default: the trainer's).

    Returns:
        Whether they were read.
    """
    target = trainer.accelerator.unwrap_model(trainer.model if model is None else model)
    if trainer.is_fsdp_enabled or hasattr(target, "peft_config"):
        return False
    saved = type(target).from_pretrained(checkpoint, dtype=target.dtype)
    target.load_state_dict(saved.state_dict())
    return True


class IdentityCallback(TrainerCallback):  # type: ignore[misc]
    """Writes into each checkpoint what made it, once all processes have saved their part.

    Args:
        trainer: The trainer.
        identity: ``recipe_identity``.
    """

    def __init__(self, trainer: Any, identity: Mapping[str, Any]) -> None:
        self.trainer, self.identity = trainer, dict(identity)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the file that makes the checkpoint whole."""
        self.trainer.accelerator.wait_for_everyone()
        if args.should_save:
            folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
            write_text(folder / IDENTITY, json.dumps(self.identity, indent=1, sort_keys=True) + "\n")
