"""Train a policy with GRPO on the stored candidates of a built dataset, or on fresh ones. Read it from top to bottom.

Usage, with a recipe file and any of its keys overridden on the command line:

    solar-rl train phone_cpu/stage1_atomic --dataset runs/phone-1.0.0
    python recipes/grpo.py --config recipes/phone_cpu/stage1_atomic.yaml --max_steps 10
    torchrun --nproc_per_node 2 recipes/grpo.py --config recipes/phone_cpu/stage1_atomic.yaml --processes 2

Every key of TRL's GRPOConfig and ModelConfig keeps its name and meaning. SolarArguments adds what is ours.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from transformers import PrinterCallback
from trl import GRPOConfig, ModelConfig, get_peft_config

from solar_rl.errors import CheckFailed, SolarError
from solar_rl.pipeline.scoring import score_and_shape
from solar_rl.policy import answer_ids
from solar_rl.store.provenance import made_by
from solar_rl.train.anchor import Anchor
from solar_rl.train.arguments import RunArguments
from solar_rl.train.callbacks import RecordCallback
from solar_rl.train.data import Crediting, check_policy, load_replay
from solar_rl.train.fresh import FreshGRPOTrainer, let_generate
from solar_rl.train.fresh_data import load_fresh
from solar_rl.train.health import FRESH_RULES, RULES, HealthCallback, with_limits
from solar_rl.train.images import remember_images
from solar_rl.train.recipe import leave_processes, load_start, read_recipe, told_recipe
from solar_rl.train.resume import IdentityCallback, check_checkpoint, find_checkpoint, recipe_identity
from solar_rl.train.saving import save_policy
from solar_rl.train.trainer import ReplayGRPOTrainer

# transformers 5.24 renames gradient_checkpointing; the older ones that vLLM needs know the old name alone
warnings.filterwarnings("ignore", message=".*checkpointing` is deprecated", category=FutureWarning)


@dataclass
class SolarArguments(RunArguments):
    """What each candidate is credited with, and how; RunArguments names the dataset."""

    mode: Literal["replay", "fresh"] = field(
        default="replay",
        metadata={
            "help": "Train on the dataset's candidates, or sample new ones for its demonstrations all along."
        },
    )
    credit: Literal["solar", "atomic", "step_local", "sparse", "sparse_rtraj", "ui_s1"] = field(
        default="solar", metadata={"help": "Where a candidate's reward and advantage come from."}
    )
    advantage_weight: Literal["none", "std", "log_success"] = field(
        default="none",
        metadata={"help": "Weight of a group: 1, 1 / std, or 1 / share of valid candidates (log_step)."},
    )
    weight_floor: float | None = field(
        default=None, metadata={"help": "Smallest share that log_success divides by (default: 1 / N)."}
    )
    expert_anchor: float = field(
        default=0.0, metadata={"help": "Lambda of the recorded action's SFT term; 0: off (docs/method.md)."}
    )
    anchor_thoughts: Literal["auto", "recorded", "none"] = field(
        default="auto",
        metadata={
            "help": "Whether recorded actions think aloud: as the sampled answers do, always, or never. [ours]"
        },
    )
    off_policy: Literal["behaviour", "decoupled"] = field(
        default="behaviour",
        metadata={
            "help": "Stored log-probs as the old policy of the clipped ratio, or as a truncated weight."
        },
    )
    tis_clip: float = field(default=2.0, metadata={"help": "Upper end of decoupled's weight. [ours]"})
    tis_level: Literal["token", "prefix"] = field(
        default="token",
        metadata={"help": "decoupled's weight of a token: its own ratio, or that of the answer up to it."},
    )
    upsample_rare: float = field(
        default=0.0,
        metadata={
            "help": "0: every step once an epoch; 1: every action type as often as the commonest. [ours]"
        },
    )
    margin_groups: int = field(
        default=16, metadata={"help": "Groups on which the margin is measured; 0 leaves it out."}
    )
    margin_every: int = field(
        default=0, metadata={"help": "Measure it every so many steps too (0: first and last)."}
    )
    collapse: Literal["stop", "warn", "off"] = field(
        default="stop", metadata={"help": "What to do about a collapse (docs/metrics.md has the rules)."}
    )
    collapse_patience: int = field(
        default=5, metadata={"help": "Logs in a row that must be beyond a limit. [ours]"}
    )
    health_limits: str = field(
        default="", metadata={"help": "Other limits, NAME=VALUE with commas between: clipped=0.3."}
    )
    image_cache_mb: int = field(default=1024, metadata={"help": "Memory for preprocessed screenshots, MiB."})
    trainer: Literal["grpo"] = field(default="grpo", metadata={"help": "The script a recipe is for."})


def main() -> None:
    """Parse the recipe, load the dataset and the policy, train, save."""
    # 1. The recipe. Where it names no output_dir, its own place does: runs/phone_cpu/stage1_atomic.
    solar, config, model_config = read_recipe((SolarArguments, GRPOConfig, ModelConfig))

    # 2. The dataset: one row a candidate, N rows a group, with its credit; or demonstrations alone.
    fresh = solar.mode == "fresh"
    crediting = Crediting(
        credit=solar.credit,
        advantage_weight=solar.advantage_weight,
        weight_floor=solar.weight_floor,
        upsample_rare=solar.upsample_rare,
        anchor=solar.anchor_thoughts if solar.expert_anchor else None,
    )
    if fresh:
        data = load_fresh(
            solar.dataset,
            crediting,
            revision=solar.revision,
            split=solar.split,
            size=config.num_generations,
            temperature=config.temperature,
            local_rows=config.per_device_train_batch_size * config.steps_per_generation,
            seed=config.seed,
        )
    else:
        data = load_replay(
            solar.dataset,
            crediting,
            revision=solar.revision,
            split=solar.split,
            group_size=config.num_generations,
            temperature=config.temperature,
        )

    # A checkpoint to go on from must be whole and this recipe's.
    rules = with_limits(RULES + FRESH_RULES if fresh else RULES, solar.health_limits)
    identity = recipe_identity(solar, config, model_config, data.name)
    checkpoint = find_checkpoint(config.resume_from_checkpoint, config.output_dir)
    if checkpoint is not None:
        span = config.steps_per_generation * config.num_iterations
        check_checkpoint(checkpoint, identity, span, config.gradient_accumulation_steps)

    # 3. The policy, with the image sizes that the sampler saw. The trainer puts it on its device.
    policy = load_start(solar, config, model_config, data.prompt)
    images = None
    if policy.processor is not None:
        images = remember_images(policy.processor.image_processor, solar.image_cache_mb * 2**20)

    # 4. The trainer: TRL's, with stored candidates in the place of sampling, or with sampling, then the same.
    options = {
        "off_policy": solar.off_policy,
        "tis_clip": solar.tis_clip,
        "tis_level": solar.tis_level,
        "anchor": Anchor(solar.expert_anchor, partial(answer_ids, policy)) if solar.expert_anchor else None,
        "images": images,
        "model": policy.model,
        "processing_class": policy.processor or policy.tokenizer,
        "args": config,
        "peft_config": get_peft_config(model_config),
    }
    if fresh:
        let_generate(config, policy)
        trainer = FreshGRPOTrainer(
            data=data, policy=policy, score=score_and_shape, crediting=crediting, **options
        )
    else:
        check_policy(data, policy)
        trainer = ReplayGRPOTrainer(
            contexts=data.contexts, counts=data.counts, train_dataset=data.rows, **options
        )
    notes = {"mode": solar.mode, "credit": solar.credit, "advantage_weight": solar.advantage_weight}
    notes |= {"off_policy": solar.off_policy, "dataset": data.name, "groups": data.counts}
    same = trainer.mismatch if solar.off_policy == "behaviour" and not fresh else None
    health = HealthCallback(rules, solar.collapse, solar.collapse_patience, same)
    notes |= {"anchors": data.anchors, "warnings": health.found}
    parts = (solar, config, model_config)
    notes |= made_by(
        solar.dataset, model_config.model_name_or_path, *parts, revision=solar.revision, **told_recipe()
    )
    record = RecordCallback(trainer, data, policy, solar.margin_groups, solar.margin_every, notes)
    for callback in (health, IdentityCallback(trainer, identity), record):
        trainer.add_callback(callback)
    trainer.remove_callback(PrinterCallback)  # it prints every metric at once

    # 5. Train, or go on from a checkpoint; the saved folder is the next stage's model_name_or_path.
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    if health.collapsed is not None:
        raise CheckFailed(
            f"stopped at step {trainer.state.global_step}, the policy has collapsed: {health.collapsed}",
            where=config.output_dir,
            hint=f"last good checkpoint: {health.last_good or 'none, set save_strategy: steps'}",
        )
    save_policy(trainer, config.output_dir)


if __name__ == "__main__":
    try:
        main()
        leave_processes()
    except SolarError as error:
        print(f"{Path(__file__).name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
