"""Supervised fine-tuning on the recorded actions: the same steps, prompts and pixels as the GRPO recipes.

The answer to a step is its recorded action in the dataset's format, the very text that the expert anchor
uses (train/anchor.py); the loss is taken on the answer alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import trl
from datasets.arrow_dataset import Dataset

from solar_rl.config import DatasetConfig, validate_config
from solar_rl.errors import InputError
from solar_rl.policy import Reader, prompt_text
from solar_rl.store.dataset import open_dataset
from solar_rl.store.parquet import table_files
from solar_rl.train.anchor import Thoughts, anchor_texts
from solar_rl.train.callbacks import LogCallback, counted
from solar_rl.train.contexts import Contexts, make_contexts
from solar_rl.train.forward import gather_head, score_answers_alone
from solar_rl.train.images import Screens
from solar_rl.train.prompt_loss import ScoresPrompts
from solar_rl.train.resume import read_weights

SFTTrainer: Any = trl.SFTTrainer  # type: ignore[attr-defined]  # half of it is untyped
_SHOWN = {"loss": "loss", "mean_token_accuracy": "token accuracy", "entropy": "entropy"}
"""Figures of a log that are printed and recorded, with their short names."""


@dataclass(frozen=True)
class Demonstrations:
    """The recorded steps of a dataset, as prompts and answers.

    Args:
        contexts: Prompts and screenshots; where each candidate has a history of its own, the first one's.
        answers: The answer to each step, by the number of its context; steps without one are left out.
        counts: Steps with an answer, and steps without one by reason.
        name: Name, version and build id of the dataset.
    """

    contexts: Contexts
    answers: dict[int, str]
    counts: dict[str, int]
    name: str

    def rows(self, policy: Reader) -> Dataset:
        """Return what TRL's SFTTrainer reads: ``prompt``, ``completion`` and, for a policy that sees, ``images``.

        Prompts are rendered by the sampler's own function; ``images`` holds the context alone until
        ``DemonstrationTrainer`` puts a batch together.
        """
        end = policy.tokenizer.eos_token
        texts: dict[str, list[Any]] = {
            "prompt": [prompt_text(policy, self.contexts.messages(index)) for index in self.answers],
            "completion": [answer + end for answer in self.answers.values()],
        }
        return Dataset.from_dict(texts | ({"images": list(self.answers)} if policy.sees else {}))


def load_demonstrations(
    dataset: str | Path, *, revision: str | None = None, split: str = "train", thoughts: Thoughts = "auto"
) -> Demonstrations:
    """Read the recorded steps of a built dataset.

    Args:
        dataset: A folder, or a dataset of the Hub: ``owner/name`` or ``hf://datasets/owner/name@revision``.
        revision: Tag, branch or commit of a dataset of the Hub.
        split: Split to read.
        thoughts: Whether answers think aloud: as the sampled ones do, always with the recorded thought, or
            never.

    Raises:
        InputError: No such dataset, revision or split, or no step has an answer.
    """
    source = open_dataset(dataset, revision)
    manifest, where = source.manifest, str(source.folder)
    config = validate_config(DatasetConfig, manifest.config, where=f"{where}: manifest.json")
    tables = {
        name: source.table(name, split).collect(engine="in-memory")
        for name in ("episodes", "steps", "candidates", "rewards")
    }
    source.fetch("images")
    screens = Screens(table_files(source.folder, "images"))
    figures = tables["episodes"].select("episode_id", "goal", "ref_len")
    steps = tables["steps"].join(figures, on="episode_id", how="left", maintain_order="left")
    contexts = make_contexts(steps, tables["candidates"], tables["rewards"], screens, config)
    parsed = tables["candidates"].filter(pl.col("parse_error").is_null())["completion"]
    texts, counts = anchor_texts(contexts, parsed, thoughts)
    answers = {number * contexts.stride: text for number, text in enumerate(texts) if text is not None}
    if not answers:
        raise InputError(f"no step of split '{split}' has an answer", where=where, hint=str(counts))
    return Demonstrations(
        contexts, answers, counts, f"{manifest.name} {manifest.version} ({manifest.build_id})"
    )


class DemonstrationTrainer(SFTTrainer):  # type: ignore[misc]
    """TRL's SFTTrainer with screenshots read batch by batch; it goes on from a checkpoint of Qwen2.5-VL too.

    Args:
        contexts: Where screenshots are read from, by the rows' ``images``.
        prompt_weight: Weight of the prompts' loss beside that of the answers; 0 leaves it out.
        **kwargs: ``SFTTrainer``'s own.

    Raises:
        InputError: Prompts with screenshots can't be learned.
    """

    def __init__(self, *, contexts: Contexts, prompt_weight: float = 0.0, **kwargs: Any) -> None:
        score_answers_alone()
        super().__init__(**kwargs)
        self.prompt_weight = prompt_weight
        if prompt_weight and "images" in self.train_dataset.column_names:
            raise InputError("prompt_weight is for screens as text", hint="set it to 0")
        self._collate: Callable[[list[dict[str, Any]]], Any] = self.data_collator  # type: ignore[has-type]
        self._contexts = contexts
        self.data_collator = self._collate_with_images

    def _collate_with_images(self, rows: list[dict[str, Any]]) -> Any:
        self._contexts.turn()
        for row in rows:
            if "images" in row:
                row["images"] = self._contexts.inputs(row["images"]).get("images", [])
        return self._collate(rows)

    def compute_loss(self, model: Any, *args: Any, **kwargs: Any) -> Any:
        """Compute TRL's loss, with a head whose gradient all processes share."""
        gather_head(model)
        if not self.prompt_weight:
            return super().compute_loss(model, *args, **kwargs)
        scored = ScoresPrompts(model)
        loss = super().compute_loss(scored, *args, **kwargs)
        return loss + self.prompt_weight * scored.loss / self.current_gradient_accumulation_steps

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if not read_weights(self, resume_from_checkpoint, model):
            super()._load_from_checkpoint(resume_from_checkpoint, model)


class SftRecord(LogCallback):
    """Prints one short line a log, and writes training.json at the end.

    Args:
        counts: Steps with and without an answer.
        notes: What else training.json says, such as the dataset.
    """

    def __init__(self, counts: Mapping[str, int], notes: Mapping[str, Any]) -> None:
        recorded = ("step", "grad_norm", *_SHOWN)
        super().__init__(f"steps: {counted(counts)}", {**notes, "counts": dict(counts)}, _SHOWN, recorded)
