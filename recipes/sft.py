"""Fine-tune a policy on the recorded actions of a built dataset: the baseline that always runs. Read it from top to bottom.

Usage, with a recipe file and any of its keys overridden on the command line:

    solar-rl train phone_cpu/baseline_sft --dataset runs/phone-1.0.0
    python recipes/sft.py --config recipes/phone_cpu/baseline_sft.yaml --max_steps 10
    torchrun --nproc_per_node 2 recipes/sft.py --config recipes/phone_cpu/baseline_sft.yaml --processes 2

Every key of TRL's SFTConfig and ModelConfig keeps its name and meaning. SolarArguments adds what is ours.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from transformers import PrinterCallback
from trl import ModelConfig, SFTConfig, get_peft_config

from solar_rl.errors import SolarError
from solar_rl.store.provenance import made_by
from solar_rl.train.arguments import RunArguments
from solar_rl.train.recipe import leave_processes, load_start, read_recipe, told_recipe
from solar_rl.train.resume import IdentityCallback, check_checkpoint, find_checkpoint, recipe_identity
from solar_rl.train.saving import save_policy
from solar_rl.train.sft import DemonstrationTrainer, SftRecord, load_demonstrations

# transformers 5.24 renames gradient_checkpointing; the older ones that vLLM needs know the old name alone
warnings.filterwarnings("ignore", message=".*checkpointing` is deprecated", category=FutureWarning)


@dataclass
class SolarArguments(RunArguments):
    """How recorded actions are learned; RunArguments names the dataset."""

    thoughts: Literal["auto", "recorded", "none"] = field(
        default="auto",
        metadata={
            "help": "Answers think aloud: as the sampled ones do, with the recorded thought, or never."
        },
    )
    prompt_weight: float = field(
        default=0.0,
        metadata={
            "help": "Weight of the loss on prompts, beside the answers'; for a model from random weights."
        },
    )
    trainer: Literal["sft"] = field(default="sft", metadata={"help": "The script a recipe is for."})


def main() -> None:
    """Parse the recipe, load the dataset and the policy, train, save."""
    # 1. The recipe. Where it names no output_dir, its own place does: runs/phone_cpu/baseline_sft.
    solar, config, model_config = read_recipe((SolarArguments, SFTConfig, ModelConfig))

    # 2. The dataset: every recorded step, its prompt as the sampler put it, its action as the answer.
    data = load_demonstrations(
        solar.dataset, revision=solar.revision, split=solar.split, thoughts=solar.thoughts
    )

    # A checkpoint to go on from must be whole and this recipe's.
    identity = recipe_identity(solar, config, model_config, data.name)
    checkpoint = find_checkpoint(config.resume_from_checkpoint, config.output_dir)
    if checkpoint is not None:
        check_checkpoint(checkpoint, identity)

    # 3. The policy, with the image sizes that the sampler saw. The trainer puts it on its device.
    policy = load_start(solar, config, model_config, data.contexts.prompt)

    # 4. The trainer: TRL's, with the loss on the answers alone.
    trainer = DemonstrationTrainer(
        contexts=data.contexts,
        prompt_weight=solar.prompt_weight,
        model=policy.model,
        processing_class=policy.processor or policy.tokenizer,
        args=config,
        train_dataset=data.rows(policy),
        peft_config=get_peft_config(model_config),
    )
    notes = {"trainer": "sft", "dataset": data.name}
    parts = (solar, config, model_config)
    notes |= made_by(
        solar.dataset, model_config.model_name_or_path, *parts, revision=solar.revision, **told_recipe()
    )
    for callback in (IdentityCallback(trainer, identity), SftRecord(data.counts, notes)):
        trainer.add_callback(callback)
    trainer.remove_callback(PrinterCallback)  # it prints every metric at once

    # 5. Train, or go on from a checkpoint; the saved folder is another stage's model_name_or_path.
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    save_policy(trainer, config.output_dir)


if __name__ == "__main__":
    try:
        main()
        leave_processes()
    except SolarError as error:
        print(f"{Path(__file__).name}: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
