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
_RECORDED = ("step", "grad_norm", *_SHOWN, "policy/ratio", "policy/sample_share", "policy/drift")
"""Figures of a log that training.json keeps."""


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


class LogCallback(TrainerCallback):  # type: ignore[misc]
    """Prints what is trained on and one short line a log, and writes training.json at the end.

    Args:
        head: What is trained on, in one line.
        notes: What else training.json says, such as the dataset.
        shown: Figures of a log that are printed, with their short names.
        recorded: Figures of a log that training.json keeps.
    """

    def __init__(
        self, head: str, notes: Mapping[str, Any], shown: Mapping[str, str], recorded: Sequence[str]
    ) -> None:
        self.head, self.notes, self.shown, self.recorded = head, dict(notes), dict(shown), tuple(recorded)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Say what is trained on."""
        _say(state, self.head)

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Print what a person looks at."""
        logs: dict[str, Any] = kwargs["logs"]
        if "loss" in logs:
            known = (key for key in self.shown if logs.get(key) is not None)
            figures = "  ".join(f"{self.shown[key]} {float(logs[key]):.3f}" for key in known)
            _say(state, f"step {state.global_step}/{state.max_steps}  {figures}", sys.stderr)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the record."""
        if state.is_world_process_zero:
            entries = (entry for entry in state.log_history if "loss" in entry)
            log = [{key: entry[key] for key in self.recorded if key in entry} for entry in entries]
            record = {**self.notes, "steps": state.global_step, **self.measured(), "log": log}
            text = json.dumps(record, indent=2) + "\n"
            Path(args.output_dir, RECORD).write_text(text, encoding="utf-8")

    def measured(self) -> dict[str, Any]:
        """Return what training.json says beside the notes and the log."""
        return {}


class RecordCallback(LogCallback):
    """Measures the margin as well.

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
        super().__init__(f"groups: {counted(data.counts)}", notes or {}, _SHOWN, _RECORDED)
        self.trainer, self.data, self.policy = trainer, data, policy
        self.groups, self.every = pick_groups(data, groups), every
        self.margins: list[dict[str, float]] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure before the first step."""
        super().on_train_begin(args, state, control, **kwargs)
        self._measure(state)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Measure every so many steps."""
        if self.every and state.global_step % self.every == 0 and state.global_step < state.max_steps:
            self._measure(state)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure after the last step and write the record."""
        self._measure(state)
        super().on_train_end(args, state, control, **kwargs)

    def measured(self) -> dict[str, Any]:
        """Return the margins."""
        return {"margin": self.margins}

    def _measure(self, state: Any) -> None:
        # Every process measures all groups: a sharded model needs all of them in each forward pass.
        if not self.groups:
            return
        model = self.trainer.accelerator.unwrap_model(self.trainer.model)
        training = model.training
        value = margin(self.data, replace(self.policy, model=model.eval()), self.groups)
        model.train(training)
        self.margins.append({"step": state.global_step, "margin": value})
        _say(state, f"margin at step {state.global_step}: {value:+.4f} nats a token")


def counted(counts: Mapping[str, int]) -> str:
    """Return counts in one line.

    >>> counted({"kept": 12, "no spread": 3})
    '12 kept, 3 no spread'
    """
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())


def _say(state: Any, line: str, stream: TextIO | None = None) -> None:
    if state.is_world_process_zero:
        print(line, file=stream, flush=True)
