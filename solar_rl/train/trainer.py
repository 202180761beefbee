"""GRPO on stored candidates: TRL's trainer with its sampling replaced by what the dataset holds.

Five methods of ``trl.GRPOTrainer`` are overridden:

* ``_get_train_sampler``: groups of N different rows, where TRL repeats one row N times;
* ``_generate_single_turn``: the stored token ids and log-probs instead of generation;
* ``_generate_and_score_completions``: the dataset's advantages, the mask of members that are not in play,
  the recorded actions, and the off-policy correction;
* ``_compute_loss``: the expert anchor's term beside TRL's loss, and the ratios that health is judged by;
* ``_get_per_token_logps_and_entropies``: rows that are not in play skip the model, recorded actions join it.

``log``, which is public, tells figures over all micro-batches since the last log (train/figures.py).

Two of transformers' ``Trainer`` are mended: ``_load_from_checkpoint``, which reads 1 of 57 tensors back for
Qwen2.5-VL, and ``_run_epoch``, which takes a step more when a finished run is resumed. ``PRIVATE_NAMES`` lists everything private that is relied on;
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
from solar_rl.train.anchor import Anchor
from solar_rl.train.contexts import Contexts
from solar_rl.train.figures import PolicyFigures, SampledFigures, Window
from solar_rl.train.forward import can_choose, choose_rows, gather_head, score_answers_alone, spread, widen
from solar_rl.train.images import Memory
from solar_rl.train.resume import read_weights
from solar_rl.train.sampler import GroupSampler, check_groups, mean_weight

PRIVATE_NAMES = {
    "GRPOTrainer": (
        "_get_train_sampler",
        "_generate_single_turn",
        "_generate_and_score_completions",
        "_get_per_token_logps_and_entropies",
        "_compute_loss",
        "_prepare_inputs",
        "_load_from_checkpoint",
        "_run_epoch",
    ),
    "trl.trainer.grpo_trainer": ("logger",),
    "self": ("_metrics", "_step", "num_iterations", "shuffle_dataset", "num_generations", "_tokenizer"),
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
TisLevel = Literal["token", "prefix"]


def stored_reward(
    completions: Sequence[Any], *, reward: Sequence[float | None], **_: Any
) -> list[float | None]:
    """Pass the stored rewards on, so that TRL logs them; the advantages are the dataset's."""
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
        tis_level: ``token`` takes each token's own ratio; ``prefix`` the product of the ratios up to it, so that what
            follows a word that the policy no longer says counts as little as the word (per-decision importance
            sampling, Precup, Sutton and Singh 2000).
        anchor: How the recorded actions enter the loss; None leaves them out.
        images: What the image processor remembers (train/images.py), told of each new batch.
        counts: Groups kept, and left out by reason, for the share of groups without spread that is logged.
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
        tis_level: TisLevel = "token",
        anchor: Anchor | None = None,
        images: Memory[Any] | None = None,
        counts: dict[str, int] | None = None,
        **kwargs: Any,
    ) -> None:
        self.contexts, self.off_policy = contexts, off_policy
        self.tis_clip, self.tis_level = tis_clip, tis_level
        self.anchor, self.images = anchor, images
        self._replayed: list[dict[str, Any]] = []
        self._live: torch.Tensor | None = None  # (B,) rows that go through the model; None: all
        self._joining: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None
        self._joined: torch.Tensor | None = None  # log-probs of the recorded actions that joined
        self._seen: torch.Tensor | None = None  # log-probs that the loss was computed from
        self._window = Window()
        score_answers_alone()
        super().__init__(reward_funcs=[stored_reward], **kwargs)
        check_groups(self.train_dataset, self.num_generations)
        self._mean_weight = mean_weight(self.train_dataset)
        self._sampled_figures = SampledFigures.of(self.train_dataset, counts or {})
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
        self._live = torch.tensor([row["in_play"] for row in inputs], device=self.accelerator.device)
        batch: dict[str, Any] = super()._generate_and_score_completions(self._with_prompts(inputs))
        self._mask_members(batch)
        batch["advantages"] = self._advantages(batch, inputs)
        stored = self._sampling_logps(batch)
        if self.off_policy == "behaviour":
            batch["old_per_token_logps"] = stored
        else:
            now = self._current_logps(batch)
            ratio = now - stored
            if self.tis_level == "prefix":
                ratio = (ratio * batch["completion_mask"]).cumsum(1)
            weight = torch.exp(ratio).clamp(max=self.tis_clip)
            batch["old_per_token_logps"] = now
            batch["advantages"] = batch["advantages"][:, None] * weight
            self._note("policy/importance_weight", weight, batch["tool_mask"])
        self._live = None
        if self.anchor is not None:
            batch |= self._recorded_actions(inputs, self.anchor)
        batch["valid"] = _truths([row["valid"] for row in inputs]).to(stored.device)
        for name, value in self._sampled_figures.report(inputs, self._total).items():
            self._metrics["train"][name].append(value)
        if self.images is not None:
            self._metrics["train"]["data/screenshots_made"] = [float(self.images.made)]
        return batch

    def _sampling_logps(self, batch: dict[str, Any]) -> torch.Tensor:
        """Return (B, T) log-probs of the answers under the policy that sampled them."""
        stored: torch.Tensor = batch["sampling_per_token_logps"]
        return stored

    def _with_prompts(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Put prompt and screenshots into the rows, each made once for all rows that share it."""
        self.contexts.turn()
        if self.images is not None:
            self.images.turn()
        made = {context: self.contexts.inputs(context) for context in {row["context"]: 0 for row in rows}}
        return [{**row, **made[row["context"]]} for row in rows]

    def _mask_members(self, batch: dict[str, Any]) -> None:
        """Take members that are not in play out of the loss and out of dapo's denominator."""
        assert self._live is not None
        batch["tool_mask"] = batch["completion_mask"] * self._live[:, None]
        batch["num_items_in_batch"] = self._total(batch["tool_mask"].sum())
        self._note("data/in_play", self._live.float())

    def _advantages(self, batch: dict[str, Any], rows: list[dict[str, Any]]) -> torch.Tensor:
        """Return (B,) advantages divided by the mean weight, 0 where not in play.

        The mean is the dataset's; of fresh candidates, the generation batch's. So a weight moves effort between
        groups and leaves the size of a step alone, however an update is cut into generation batches. [ours]
        """
        device = batch["completion_mask"].device
        advantage = torch.tensor([row["advantage"] for row in rows], device=device)
        if self._mean_weight is not None:
            return advantage / self._mean_weight
        weight = torch.tensor([row["weight"] for row in rows], device=device)
        total, count = self._total(torch.stack([weight.sum(), (weight > 0).sum()]))
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

    # --- the expert anchor ----------------------------------------------------------------------------

    def _recorded_actions(self, rows: list[dict[str, Any]], anchor: Anchor) -> dict[str, torch.Tensor]:
        """Return the recorded actions as rows beside the candidates, masked where a row carries none."""
        pad_id, device = self._tokenizer.pad_token_id, self.accelerator.device
        answers = [list(anchor.encode(row["anchor"])) if row["anchor"] is not None else [] for row in rows]
        width = max(1, *map(len, answers))
        ids = torch.tensor([ids + [pad_id] * (width - len(ids)) for ids in answers], device=device)
        mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids in answers], device=device)
        self._note("data/anchored_groups", mask.any(1).float(), scale=self.num_generations)
        return {"anchor_ids": ids, "anchor_mask": mask, "anchor_items": self._total(mask.sum())}

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        loss: torch.Tensor
        if not self.model.training:
            loss = super()._compute_loss(model, inputs)
            return loss
        mask = inputs["completion_mask"] * inputs["tool_mask"]
        self._live = mask.any(1)
        if self.anchor is not None:
            carriers = inputs["anchor_mask"].any(1).nonzero().squeeze(1)
            self._joining = carriers, inputs["anchor_ids"][carriers], inputs["anchor_mask"][carriers]
        loss = super()._compute_loss(model, inputs)
        if self.anchor is not None:
            loss = loss + self.anchor.weight * self._anchor_loss(inputs["anchor_items"])
        assert self._seen is not None
        figures = PolicyFigures.of(
            self._seen.detach(), inputs["sampling_per_token_logps"], mask, inputs["valid"]
        )
        self._window.take(figures, self._metrics["train"], self._total)
        self._live = self._joining = self._joined = self._seen = None
        return loss

    def _anchor_loss(self, items: torch.Tensor) -> torch.Tensor:
        """Return this micro-batch's share of the recorded actions' mean negative log-prob a token.

        The shares of all processes and of one accumulation window add up to the mean over every recorded
        token of the window: as TRL's ``dapo`` normalises, and as SFT does.
        """
        assert self._joined is not None and self._joining is not None
        _, _, mask = self._joining
        nll = -(self._joined * mask).sum()
        self._note("policy/anchor_nll", -self._joined.detach(), mask)
        window = self.current_gradient_accumulation_steps / self.args.steps_per_generation
        share: torch.Tensor = nll / (items.clamp(min=1) / self.accelerator.num_processes * window)
        return share

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **images: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        rest = {"compute_entropy": compute_entropy, "compute_aux_loss": compute_aux_loss}
        forward = super()._get_per_token_logps_and_entropies
        gather_head(model)
        if self._live is None or not can_choose(images):
            if self._joining is not None:
                raise InputError(
                    "expert_anchor can't tell the images of this model's rows apart", hint="set it to 0"
                )
            logps, entropies, aux = forward(
                model, input_ids, attention_mask, logits_to_keep, batch_size, **rest, **images
            )
            self._seen = logps
            return logps, entropies, aux
        rows = self._live.nonzero().squeeze(1)
        carriers, ids, mask = self._joining or (rows[:0], input_ids[:0, :1], attention_mask[:0, :1])
        if not len(rows) and not len(carriers):  # the processes of a group go through the model together
            rows = rows.new_zeros(1)
        kept = max(logits_to_keep, ids.size(1))
        prompt = input_ids.size(1) - logits_to_keep
        chosen = torch.cat([rows, carriers])
        answers = torch.cat([widen(input_ids[rows, prompt:], kept), widen(ids, kept)])
        present = torch.cat([widen(attention_mask[rows, prompt:], kept), widen(mask, kept)])
        logps, entropies, aux = forward(
            model,
            torch.cat([input_ids[chosen, :prompt], answers], dim=1),
            torch.cat([attention_mask[chosen, :prompt], present], dim=1),
            kept,
            batch_size,
            **rest,
            **choose_rows(chosen, images, kept - logits_to_keep),
        )
        size, own = input_ids.size(0), slice(None, len(rows))
        self._joined = logps[len(rows) :, : ids.size(1)]
        self._seen = spread(logps[own, :logits_to_keep], rows, size)
        if entropies is not None:
            entropies = spread(entropies[own, :logits_to_keep], rows, size)
        return self._seen, entropies, aux

    # --- figures --------------------------------------------------------------------------------------

    def _total(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sum over all processes."""
        summed: torch.Tensor = self.accelerator.reduce(values, reduction="sum")
        return summed

    def _highest(self, values: torch.Tensor) -> torch.Tensor:
        """Return (K,) the highest over all processes of (K,) values."""
        gathered: torch.Tensor = self.accelerator.gather(values[None])
        return gathered.max(0).values

    def _note(
        self, name: str, values: torch.Tensor, mask: torch.Tensor | None = None, scale: float = 1.0
    ) -> None:
        """Log the mean over all processes, of the values that a mask keeps."""
        mask = torch.ones_like(values) if mask is None else mask
        total, count = self._total(torch.stack([(values * mask).sum(), mask.sum().to(values.dtype)])).tolist()
        self._window.note(name, scale * total, count)

    def mismatch(self) -> float | None:
        """Return the mean absolute log-ratio of a token to its sampler since the last log; every process must ask."""
        return self._window.mismatch(self._total)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log the figures since the last log."""
        if self.model.training:
            self._window.close(self._metrics["train"], self._total, self._highest)
        super().log(logs, start_time)

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        # transformers 5.24 takes one step too many when it goes on from a run's last checkpoint
        if self.state.global_step >= self.state.max_steps:
            self.control.should_training_stop = True
            return
        super()._run_epoch(*args, **kwargs)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if not read_weights(self, resume_from_checkpoint, model):
            super()._load_from_checkpoint(resume_from_checkpoint, model)


def _truths(values: Sequence[bool | None]) -> torch.Tensor:
    """Return 1 for true, 0 for false and -1 for not known."""
    return torch.tensor([-1 if value is None else int(value) for value in values])


def _not_about_absent_rewards(record: logging.LogRecord) -> bool:
    """Drop TRL's warning about a row without a reward, which here means: not in play."""
    return "All reward functions returned None" not in str(record.msg)
