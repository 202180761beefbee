"""GRPO on stored candidates: TRL's trainer with its sampling replaced by what the dataset holds.

Three methods of ``trl.GRPOTrainer`` are overridden:

* ``_get_train_sampler``: groups of N different rows, where TRL repeats one row N times;
* ``_generate_single_turn``: the stored token ids and log-probs instead of generation;
* ``_generate_and_score_completions``: the dataset's advantages, the mask of members that are not in play,
  and the off-policy correction.

A fourth, ``_load_from_checkpoint`` of transformers' ``Trainer``, works around a checkpoint that is read
back with 1 of 57 tensors for Qwen2.5-VL. ``PRIVATE_NAMES`` lists everything private that is relied on;
a test fails when TRL or transformers moves one of them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal

import torch
import trl
from datasets.arrow_dataset import Dataset

from solar_rl.errors import InputError
from solar_rl.train.data import Contexts
from solar_rl.train.sampler import GroupSampler

PRIVATE_NAMES = {
    "GRPOTrainer": (
        "_get_train_sampler",
        "_generate_single_turn",
        "_generate_and_score_completions",
        "_get_per_token_logps_and_entropies",
        "_compute_loss",
        "_prepare_inputs",
        "_load_from_checkpoint",
    ),
    "trl.trainer.grpo_trainer": ("logger",),
    "self": ("_metrics", "num_iterations", "shuffle_dataset", "num_generations"),
    "output": (
        "prompt_ids",
        "prompt_mask",
        "completion_ids",
        "completion_mask",
        "advantages",
        "num_items_in_batch",
        "sampling_per_token_logps",
    ),
}
FORWARD_INPUTS = (
    "pixel_values",
    "image_grid_thw",
    "num_images",
    "pixel_attention_mask",
    "spatial_shapes",
    "num_tiles",
    "image_sizes",
    "token_type_ids",
    "mm_token_type_ids",
    "image_position_ids",
)
"""Keys of the generation batch that the forward pass takes beside ids and masks."""

GRPOTrainer: Any = trl.GRPOTrainer  # type: ignore[attr-defined]  # half of it is untyped
OffPolicy = Literal["behaviour", "decoupled"]


def stored_reward(
    completions: Sequence[Any], *, reward: Sequence[float | None], **_: Any
) -> list[float | None]:
    """Return the stored rewards; None = not in play. TRL logs them, the advantages are the dataset's."""
    return list(reward)


class ReplayGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """Trains on the candidates of a built dataset.

    Args:
        contexts: Prompts and screenshots by the rows' ``context``.
        off_policy: How the stored log-probs correct for candidates that another policy sampled.
            ``behaviour``: they are the old policy of the clipped ratio. ``decoupled``: the old policy is the
            current one, and the ratio of current to stored, truncated at ``tis_clip``, weighs each token's
            advantage.
        tis_clip: Upper end of that weight.
        **kwargs: ``GRPOTrainer``'s own; ``train_dataset`` holds N consecutive rows a group (train/data.py).

    Raises:
        InputError: The rows aren't whole groups of ``num_generations``, or log-probs are missing.

    Source: clipped ratio against the sampling policy: PPO (arXiv 1707.06347), with GRPO's advantages;
    decoupled proximal policy: arXiv 2110.00641; truncation of the weight: ours, with the usual bound 2.
    """

    def __init__(
        self,
        *,
        contexts: Contexts,
        off_policy: OffPolicy = "behaviour",
        tis_clip: float = 2.0,
        **kwargs: Any,
    ) -> None:
        self.contexts, self.off_policy, self.tis_clip = contexts, off_policy, tis_clip
        self._replayed: list[dict[str, Any]] = []
        super().__init__(reward_funcs=[stored_reward], **kwargs)
        check_groups(self.train_dataset, self.num_generations)
        logging.getLogger("trl.trainer.grpo_trainer").addFilter(_not_about_absent_rewards)

    def _get_train_sampler(self, dataset: Dataset | None = None) -> GroupSampler:
        rows = self.train_dataset if dataset is None else dataset
        size = self.num_generations
        repeats = rows["repeat"][::size]
        return GroupSampler(
            [group for group, times in enumerate(repeats) for _ in range(times)],
            size=size,
            batch=self.args.generation_batch_size // size,
            repeat=self.args.steps_per_generation * self.num_iterations,
            shuffle=self.shuffle_dataset,
            seed=self.args.seed,
            epoch=lambda: int((self.state.epoch or 0.0) + 1e-6),
        )

    def _generate_single_turn(self, prompt_ids: list[Any], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        if not self.model.training:
            sampled: tuple[Any, Any] = super()._generate_single_turn(prompt_ids, *args, **kwargs)
            return sampled
        rows = self._replayed
        assert len(rows) == len(prompt_ids), "TRL tokenised other rows than it was given"
        return [list(row["token_ids"]) for row in rows], [list(row["sampling_logprobs"]) for row in rows]

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        if not self.model.training:  # evaluation rows hold their own prompts, and really sample
            return dict(super()._generate_and_score_completions(inputs))
        self._replayed = inputs
        with_prompts = [{**row, **self.contexts.inputs(row["context"])} for row in inputs]
        batch: dict[str, Any] = super()._generate_and_score_completions(with_prompts)
        self._mask_members(batch, inputs)
        batch["advantages"] = self._advantages(batch, inputs)
        stored = batch["sampling_per_token_logps"]
        if self.off_policy == "behaviour":
            batch["old_per_token_logps"] = stored
        else:
            now = self._current_logps(batch)
            weight = torch.exp(now - stored).clamp(max=self.tis_clip)
            batch["old_per_token_logps"] = now
            batch["advantages"] = batch["advantages"][:, None] * weight
            self._note("replay/importance_weight", weight[batch["tool_mask"].bool()])
        return batch

    def _mask_members(self, batch: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        """Take members that are not in play out of the loss and out of dapo's denominator."""
        mask = batch["completion_mask"]
        in_play = torch.tensor([row["in_play"] for row in rows], device=mask.device)
        batch["tool_mask"] = mask * in_play[:, None]
        batch["num_items_in_batch"] = self.accelerator.gather(batch["tool_mask"].sum()).sum()
        self._note("replay/in_play", in_play.float())

    def _advantages(self, batch: dict[str, Any], rows: list[dict[str, Any]]) -> torch.Tensor:
        """Return (B,) advantages divided by the mean weight of the whole batch, 0 where not in play.

        So a weight moves effort between groups and leaves the size of a step alone. [ours]
        """
        device = batch["completion_mask"].device
        advantage = torch.tensor([row["advantage"] for row in rows], device=device)
        weight = torch.tensor([row["weight"] for row in rows], device=device)
        sums = torch.stack([weight.sum(), (weight > 0).sum()])
        total, count = self.accelerator.reduce(sums, reduction="sum")
        return advantage * (count / total) if total > 0 else advantage

    @torch.no_grad()
    def _current_logps(self, batch: dict[str, Any]) -> torch.Tensor:
        """Return (B, T) log-probs of the stored tokens under the policy as it is now."""
        known: torch.Tensor | None = batch.get("old_per_token_logps")
        if known is not None:
            return known
        logps, _, _ = self._get_per_token_logps_and_entropies(
            self.model,
            torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1),
            batch["completion_ids"].size(1),
            batch_size=self.args.per_device_train_batch_size,
            **{name: batch[name] for name in FORWARD_INPUTS if name in batch},
        )
        assert isinstance(logps, torch.Tensor)
        return logps

    def _note(self, name: str, values: torch.Tensor) -> None:
        """Log the mean over all processes."""
        sums = torch.stack([values.sum(), values.new_tensor(float(values.numel()))])
        total, count = self.accelerator.reduce(sums, reduction="sum").tolist()
        self._metrics["train"][name].append(total / max(count, 1.0))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        # transformers 5.24 reads the saved names of Qwen2.5-VL as they are, finds 1 tensor of 57 and only
        # warns; from_pretrained knows both spellings.
        target = self.accelerator.unwrap_model(self.model if model is None else model)
        if self.is_fsdp_enabled or hasattr(target, "peft_config"):
            super()._load_from_checkpoint(resume_from_checkpoint, model)
            return
        saved = type(target).from_pretrained(resume_from_checkpoint, dtype=target.dtype)
        target.load_state_dict(saved.state_dict())


def _not_about_absent_rewards(record: logging.LogRecord) -> bool:
    """Drop TRL's warning about a row without a reward, which here means: not in play."""
    return "All reward functions returned None" not in str(record.msg)


def check_groups(rows: Dataset, size: int) -> None:
    """Make sure that rows come in whole groups of ``size`` candidates of one step.

    Raises:
        InputError: A group is short, mixed, or holds a candidate twice.
    """
    if len(rows) % size:
        raise InputError(
            f"{len(rows)} rows are no whole groups of {size}", hint="set num_generations to the dataset's N"
        )
    keys = zip(rows["episode_id"], rows["step_index"], rows["candidate_index"], strict=True)
    members = list(keys)
    for start in range(0, len(members), size):
        group = members[start : start + size]
        if len({key[:2] for key in group}) != 1 or len(set(group)) != size:
            episode, step, _ = group[0]
            raise InputError(
                f"rows {start} to {start + size - 1} aren't {size} different candidates of one step",
                where=f"episode {episode}, step {step}",
                hint="set num_generations to the dataset's N",
            )
