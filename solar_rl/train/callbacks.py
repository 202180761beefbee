"""Say whether training does what it should: the margin between rewarded and punished answers.

Margins and the counts of groups are results and go to stdout; the line a log is progress and goes to stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from transformers import Trainer, TrainerCallback

from solar_rl.policy import Policy, batch_logprobs
from solar_rl.train.data import Replay

RECORD = "training.json"
"""File in output_dir: margins, group counts and the log, as JSON."""
_SHOWN = {
    "loss": "loss",
    "reward": "reward",
    "kl": "kl",
    "entropy": "entropy",
    "clip_ratio/region_mean": "clipped",
    "data/in_play": "in play",
    "policy/ratio_max": "highest ratio",
    "policy/anchor_nll": "anchor",
}
"""Figures of a log that are printed and recorded, with their short names."""


def margin(data: Replay, policy: Policy, groups: Sequence[int]) -> float:
    """Return how much likelier rewarded answers are than punished ones, in nats a token.

    The mean log-prob a token of stored answers with a positive advantage minus that of those with a
    negative one, each group counted once. [ours]

    Args:
        data: The training rows.
        policy: The policy as it is now.
        groups: Which groups are looked at; each must hold both kinds.
    """
    gaps = []
    for group in groups:
        rows = [row for row in data.group(group) if row["in_play"] and row["advantage"]]
        means = []
        for context, sharing in _by_context(rows).items():
            logps = batch_logprobs(
                policy,
                data.contexts.messages(context),
                data.contexts.encoded(context),
                [row["token_ids"] for row in sharing],
                data.temperature,
            )
            means += [
                (sum(values) / len(values), row["advantage"] > 0)
                for values, row in zip(logps, sharing, strict=True)
            ]
        sides = [[mean for mean, positive in means if positive is side] for side in (True, False)]
        gaps.append(sum(sides[0]) / len(sides[0]) - sum(sides[1]) / len(sides[1]))
    return sum(gaps) / len(gaps)


def _by_context(rows: Sequence[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    sharing: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        sharing.setdefault(row["context"], []).append(row)
    return sharing


def pick_groups(data: Replay, count: int) -> list[int]:
    """Choose up to ``count`` groups with rewarded and punished members, spread evenly over the dataset."""
    mixed = [group for group, (low, high) in enumerate(data.extremes()) if low < 0 < high]
    stride = max(1, len(mixed) / count) if count else 1
    return [mixed[int(k * stride)] for k in range(min(count, len(mixed)))]


class RecordCallback(TrainerCallback):  # type: ignore[misc]
    """Measures the margin, prints one short line a log, and writes training.json at the end.

    Args:
        trainer: The trainer; its model is measured.
        data: The training rows.
        policy: How the model is asked; its model is replaced by the trainer's.
        groups: Number of groups the margin is measured on; 0 leaves it out.
        every: Measure every so many steps too; 0: before the first and after the last alone.
        notes: What else training.json says, such as the credit.
    """

    def __init__(
        self,
        trainer: Trainer,
        data: Replay,
        policy: Policy,
        groups: int,
        every: int = 0,
        notes: Mapping[str, Any] | None = None,
    ) -> None:
        self.trainer, self.data, self.policy = trainer, data, policy
        self.groups, self.every, self.notes = pick_groups(data, groups), every, dict(notes or {})
        self.margins: list[dict[str, float]] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Measure before the first step."""
        self._say("groups: " + ", ".join(f"{count} {reason}" for reason, count in self.data.counts.items()))
        self._measure(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Measure every so many steps."""
        if self.every and state.global_step % self.every == 0 and state.global_step < state.max_steps:
            self._measure(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Print what a person looks at."""
        logs: dict[str, Any] = kwargs["logs"]
        if "loss" in logs:
            shown = (f"{_SHOWN[key]} {float(logs[key]):.3f}" for key in _SHOWN if logs.get(key) is not None)
            self._say(f"step {state.global_step}/{state.max_steps}  {'  '.join(shown)}", sys.stderr)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Measure after the last step and write the record."""
        self._measure(state.global_step)
        if state.is_world_process_zero:
            keys = ("step", "grad_norm", *_SHOWN)
            log = [
                {k: entry[k] for k in keys if k in entry} for entry in state.log_history if "loss" in entry
            ]
            record = {**self.notes, "steps": state.global_step, "margin": self.margins, "log": log}
            text = json.dumps(record, indent=2) + "\n"
            Path(args.output_dir, RECORD).write_text(text, encoding="utf-8")

    def _measure(self, step: int) -> None:
        # Every process measures all groups: a sharded model needs all of them in each forward pass.
        if not self.groups:
            return
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        training = model.training
        value = margin(self.data, replace(self.policy, model=model.eval()), self.groups)
        model.train(training)
        self.margins.append({"step": step, "margin": value})
        self._say(f"margin at step {step}: {value:+.4f} nats a token")

    def _say(self, line: str, stream: TextIO | None = None) -> None:
        if self.trainer.is_world_process_zero():
            print(line, file=stream, flush=True)
