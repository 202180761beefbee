"""What every training script is told of its dataset; each script adds its own (recipes/grpo.py, recipes/sft.py)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class RunArguments:
    """Which dataset is read, and what must be so before anything is loaded."""

    dataset: str = field(
        metadata={"help": "A built dataset: a folder, OWNER/NAME[@REVISION] on the Hub, or hf://."}
    )
    revision: str | None = field(
        default=None, metadata={"help": "Tag, branch or commit of a dataset on the Hub."}
    )
    split: str = field(default="train", metadata={"help": "Split to train on."})
    schema_version: int | None = field(
        default=None,
        metadata={"help": "Stop unless datasets of this solar-rl have this schema version (docs/schema.md)."},
    )
    dataset_max_pixels: int | None = field(
        default=None,
        metadata={
            "help": "Stop where the dataset's prompt.max_pixels is larger: the recipe's memory is reckoned with this."
        },
    )
    processes: int | None = field(
        default=None, metadata={"help": "Stop unless exactly so many processes run."}
    )
    rows_per_update: int | None = field(
        default=None,
        metadata={
            "help": "Stop unless processes x per_device_train_batch_size x gradient_accumulation_steps is this."
        },
    )
