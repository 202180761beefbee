"""Supervised fine-tuning on the recorded actions: the same steps, prompts and pixels as the GRPO recipes.

The answer to a step is its recorded action in the dataset's format, the very text that the expert anchor
uses (train/anchor.py); the loss is taken on the answer alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import polars as pl
import trl
from datasets.arrow_dataset import Dataset
from transformers import TrainerCallback

from solar_rl.config import DatasetConfig, validate_config
from solar_rl.errors import InputError
from solar_rl.policy import Reader, prompt_text
from solar_rl.store.dataset import open_dataset
from solar_rl.store.parquet import table_files
from solar_rl.train.anchor import Thoughts, anchor_texts
from solar_rl.train.callbacks import RECORD
from solar_rl.train.contexts import Contexts, make_contexts
from solar_rl.train.images import Screens

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
        **kwargs: ``SFTTrainer``'s own.
    """

    def __init__(self, *, contexts: Contexts, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._collate: Callable[[list[dict[str, Any]]], Any] = self.data_collator  # type: ignore[has-type]
        self._contexts = contexts
        self.data_collator = self._collate_with_images

    def _collate_with_images(self, rows: list[dict[str, Any]]) -> Any:
        self._contexts.turn()
        for row in rows:
            if "images" in row:
                row["images"] = self._contexts.inputs(row["images"]).get("images", [])
        return self._collate(rows)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        # transformers 5.24 reads 1 of 57 tensors back and only warns; see train/trainer.py
        target = self.accelerator.unwrap_model(self.model if model is None else model)
        if self.is_fsdp_enabled or hasattr(target, "peft_config"):
            super()._load_from_checkpoint(resume_from_checkpoint, model)
            return
        saved = type(target).from_pretrained(resume_from_checkpoint, dtype=target.dtype)
        target.load_state_dict(saved.state_dict())


class SftRecord(TrainerCallback):  # type: ignore[misc]
    """Prints one short line a log, and writes training.json at the end.

    Args:
        counts: Steps with and without an answer.
        notes: What else training.json says, such as the dataset.
    """

    def __init__(self, counts: Mapping[str, int], notes: Mapping[str, Any]) -> None:
        self.counts, self.notes = dict(counts), dict(notes)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Say what is trained on."""
        counts = ", ".join(f"{count} {reason}" for reason, count in self.counts.items())
        _say(state, f"steps: {counts}")

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Print what a person looks at."""
        logs: dict[str, Any] = kwargs["logs"]
        if "loss" in logs:
            shown = (f"{_SHOWN[key]} {float(logs[key]):.3f}" for key in _SHOWN if logs.get(key) is not None)
            _say(state, f"step {state.global_step}/{state.max_steps}  {'  '.join(shown)}", sys.stderr)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the record."""
        if state.is_world_process_zero:
            entries = [entry for entry in state.log_history if "loss" in entry]
            log = [{k: e[k] for k in ("step", "grad_norm", *_SHOWN) if k in e} for e in entries]
            record = {**self.notes, "steps": state.global_step, "counts": self.counts, "log": log}
            text = json.dumps(record, indent=2) + "\n"
            Path(args.output_dir, RECORD).write_text(text, encoding="utf-8")


def _say(state: Any, line: str, stream: TextIO | None = None) -> None:
    if state.is_world_process_zero:
        print(line, file=stream, flush=True)
