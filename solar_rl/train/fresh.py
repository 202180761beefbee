"""GRPO on candidates that the policy samples while it trains, shaped as the build shapes them.

A generation batch holds whole episodes (train/fresh_packing.py). Their candidates are drawn as a dataset's are
(sampling/drive.py, every history), by TRL's own generation: transformers, vLLM in the process, or a vLLM server.
They are scored and shaped by the build's functions and become rows as a dataset's do (train/data.py). From there
on ``ReplayGRPOTrainer`` does what it does with stored ones, so every credit, weight and the expert anchor hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
import torch
from accelerate.utils.operations import gather_object

from solar_rl.config import DatasetConfig
from solar_rl.errors import ConfigError
from solar_rl.policy import Reader, answer_text, open_images
from solar_rl.sampling.base import Completion, Request
from solar_rl.sampling.drive import draw
from solar_rl.schema import POSITIONS, Candidate
from solar_rl.shaping import Shaped
from solar_rl.train.data import Crediting, make_rows
from solar_rl.train.fresh_data import Fresh
from solar_rl.train.fresh_packing import PackedSampler
from solar_rl.train.images import HASH_KEY
from solar_rl.train.trainer import GRPOTrainer, ReplayGRPOTrainer

if TYPE_CHECKING:
    from datasets.arrow_dataset import Dataset

PRIVATE_NAMES = ("_tokenize_prompts", "_generate_single_turn")
"""What of TRL's trainer is called here, beside what ``train/trainer.py`` lists."""
Scorer = Callable[
    [DatasetConfig, pl.DataFrame, pl.DataFrame, pl.DataFrame, Callable[[], pl.DataFrame]], Shaped
]
"""Config, candidates, steps, episodes and a way to the screenshots in; rewards and trajectories out."""


class FreshGRPOTrainer(ReplayGRPOTrainer):
    """Trains on candidates of its own.

    Args:
        data: The demonstrations, packed.
        policy: What turns messages into inputs and token ids into text.
        score: ``solar_rl.pipeline.scoring.score_and_shape``, the function that the build uses.
        crediting: What candidates are credited with.
        **kwargs: ``ReplayGRPOTrainer``'s, but for ``contexts``, ``counts`` and ``train_dataset``.

    Under transformers the log-probs of the sampled tokens come from a forward pass right after generation, at the
    same temperature; vLLM tells its own, and ``off_policy`` corrects for the difference.

    Source: ours; the paper samples once, before training.
    """

    def __init__(
        self, *, data: Fresh, policy: Reader, score: Scorer, crediting: Crediting, **kwargs: Any
    ) -> None:
        self.data, self.policy, self.score, self.crediting = data, policy, score, crediting
        self._logprobs_known = True
        no_contexts: Any = None  # each batch makes its own
        super().__init__(contexts=no_contexts, train_dataset=data.rows, **kwargs)
        kinds = (f"position/{name}" for name in POSITIONS)
        figures = self._sampled_figures
        self._sampled_figures = replace(figures, kinds=tuple(sorted({*figures.kinds, *kinds})))
        self.sampler = TrainerSampler(self)

    def _get_train_sampler(self, dataset: Dataset | None = None) -> PackedSampler:  # type: ignore[override]
        return PackedSampler(
            self.data.bins,
            self.data.lengths,
            size=self.num_generations,
            slots=self.data.slots,
            processes=self.accelerator.num_processes,
            repeat=self.args.steps_per_generation * self.num_iterations,
            shuffle=self.shuffle_dataset,
            seed=self.args.seed,
            epoch=lambda: int((self.state.epoch or 0.0) + 1e-6),
        )

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        if not self.model.training:
            return super()._generate_and_score_completions(inputs)
        rows = self.fresh_rows(list(dict.fromkeys(row["episode_id"] for row in inputs if row["episode_id"])))
        padding = _padding(rows[0], len(inputs) - len(rows))
        batch = super()._generate_and_score_completions(rows + padding)
        # dapo divides by the tokens in play; a batch in which nothing can be compared has none
        batch["num_items_in_batch"] = batch["num_items_in_batch"].clamp(min=1)
        return batch

    def fresh_rows(self, episode_ids: Sequence[str]) -> list[dict[str, Any]]:
        """Sample the candidates of whole episodes and return them as training rows, N a step."""
        data, config = self.data, self.data.config
        episodes, steps = data.demonstrations.tables(episode_ids)
        drawn = draw(config, self.sampler, data.demonstrations.read(episode_ids))
        sampled = [candidate for _, candidates in drawn for candidate in candidates]
        self.sampler.wait_for_others()
        self._logprobs_known = self._everywhere(all(c.sampling_logprobs is not None for c in sampled))
        frame = candidates_with_logprobs(sampled, known=self._logprobs_known)
        shaped = self.score(config, frame, steps, episodes, partial(data.demonstrations.screenshots, steps))
        tables = {
            "episodes": episodes,
            "steps": steps,
            "candidates": frame,
            "rewards": shaped.rewards,
            "trajectories": shaped.trajectories,
        }
        made = make_rows(tables, config, data.demonstrations.screens, self.crediting, every_group=True)
        self.contexts = made.contexts
        rows: list[dict[str, Any]] = made.rows.to_list()
        self._note_groups(made.counts)
        return rows

    def _sampling_logps(self, batch: dict[str, Any]) -> torch.Tensor:
        if self._logprobs_known:
            return super()._sampling_logps(batch)
        batch.pop("old_per_token_logps", None)
        now = self._current_logps(batch)
        batch["old_per_token_logps"] = batch["sampling_per_token_logps"] = now
        return now

    def _everywhere(self, truth: bool) -> bool:
        """Tell whether something holds in all processes: they go through the model together."""
        return all(gather_object([truth]))

    def _note_groups(self, counts: dict[str, int]) -> None:
        groups = torch.tensor([sum(counts.values()), counts.get("kept", 0)], dtype=torch.float32)
        every, kept = self._total(groups.to(self.accelerator.device)).tolist()
        self._metrics["train"]["data/groups_without_spread"].append(1 - kept / every)


class TrainerSampler:
    """Answers requests with the trainer's policy as it is now, by TRL's generation.

    Processes ask together: a vLLM server takes the prompts of all in one call, and a sharded model is gathered for
    each. So each call of one process is a call of every other one, and all bring the same number of prompts: one
    that has fewer left asks again for what it asked last, and throws the answers away.

    Args:
        trainer: The trainer.
    """

    def __init__(self, trainer: FreshGRPOTrainer) -> None:
        self._trainer = trainer
        self._last: Request | None = None

    @property
    def sampler_id(self) -> str:
        """Return the policy's name and how many updates it has seen."""
        return f"{self._trainer.policy.name}, update {self._trainer.state.global_step}"

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yield the n answers of each request, all generated in one call."""
        asked = list(requests)
        if not asked:
            return
        self._last = asked[-1]
        answers = iter(self._together([request for request in asked for _ in range(request.n)]))
        for request in asked:
            yield [self._completion(request, k, *next(answers)) for k in range(request.n)]

    def wait_for_others(self) -> None:
        """Take part in the calls of processes that have more to ask."""
        assert self._last is not None, "every process has an episode in each batch"
        while most := self._agree(0, 0)[0]:
            self._generate([self._last] * most, 1)

    def _together(self, asked: list[Request]) -> list[tuple[list[int], list[float | None] | None]]:
        """Generate an answer to each request, in a call that all processes make."""
        most, repeats = self._agree(len(asked), asked[0].n)
        padded = asked + [asked[-1]] * (most - len(asked))
        ids, logprobs = self._generate(padded, repeats)
        known: Sequence[list[float | None] | None] = logprobs or [None] * most
        return list(zip(ids, known, strict=True))[: len(asked)]

    def _agree(self, count: int, n: int) -> tuple[int, int]:
        """Return the most prompts that a process brings, and how often each comes, 1 where they differ."""
        found = gather_object([(count, n)])
        counts, repeats = {each for each, _ in found}, {each for _, each in found}
        same = len(repeats) == 1 and len(counts) == 1
        return max(counts), repeats.pop() if same else 1

    def _generate(
        self, asked: list[Request], repeats: int
    ) -> tuple[list[list[int]], list[list[float | None]] | None]:
        trainer = self._trainer
        made = {id(request): self._prompt(request) for request in asked}
        prompts = [made[id(request)] for request in asked]
        # vLLM schedules a whole call by itself; transformers holds all of it in memory at once
        size = len(prompts) if trainer.use_vllm else trainer.args.per_device_train_batch_size
        ids: list[list[int]] = []
        logprobs: list[list[float | None]] = []
        for start in range(0, len(prompts), size):
            tokens, images, fields = trainer._tokenize_prompts(prompts[start : start + size])
            found, known = GRPOTrainer._generate_single_turn(trainer, tokens, images, fields, repeats)
            ids += found
            logprobs += known or []
        return ids, logprobs if trainer.use_vllm else None

    def _prompt(self, request: Request) -> list[dict[str, Any]]:
        """Put the screenshots into the messages, as TRL takes them, at the size that the policy sees."""
        opened = open_images(self._trainer.policy, request.images)
        for image, data in zip(opened, request.images, strict=True):
            image.info = {HASH_KEY: hashlib.sha256(data).hexdigest()}
        images = iter(opened)
        return [
            {
                **message,
                "content": [
                    {**part, "image": next(images)} if part["type"] == "image" else part
                    for part in message["content"]
                ]
                if isinstance(message["content"], list)
                else message["content"],
            }
            for message in request.messages
        ]

    def _completion(
        self, request: Request, k: int, ids: list[int], logprobs: Sequence[float | None] | None
    ) -> Completion:
        policy = self._trainer.policy
        known = None
        if logprobs is not None and all(value is not None for value in logprobs):
            known = tuple(value for value in logprobs if value is not None)
        ended = bool(ids) and ids[-1] in policy.eos_ids
        return Completion(
            answer_text(policy, ids), request.seed + k, tuple(ids), known, "stop" if ended else "length"
        )


def candidates_with_logprobs(candidates: Sequence[Candidate], *, known: bool) -> pl.DataFrame:
    """Make rows of table ``candidates``; log-probs that aren't known yet are 0 until the forward pass tells them."""
    from solar_rl.columns import candidates_frame

    if known:
        return candidates_frame(candidates)
    return candidates_frame(
        replace(each, sampling_logprobs=(0.0,) * len(each.token_ids or ())) for each in candidates
    )


def let_generate(config: Any, policy: Reader) -> None:
    """Set what TRL's generation needs: no answer holds a token that stands for an image, and one correction.

    Args:
        config: TRL's GRPOConfig. Under vLLM ``off_policy`` corrects for the difference between sampler and trainer,
            so that TRL's own correction is switched off.
        policy: The policy.

    Raises:
        ConfigError: The recipe uses a setting that is set here.
    """
    ids = list(policy.placeholder_ids)
    words = [policy.tokenizer.decode([each]) for each in ids]
    name, value = ("bad_words", words) if config.use_vllm else ("suppress_tokens", ids)
    given = dict(config.generation_kwargs or {})
    if name in given:
        raise ConfigError(f"generation_kwargs can't hold {name}: mode: fresh sets it")
    config.generation_kwargs = given | ({name: value} if ids else {})
    config.vllm_importance_sampling_correction = False


def _padding(row: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Return rows that fill a batch up: they cost a place, go through no model, and count nowhere."""
    nothing = dict.fromkeys(("reward", "anchor", "position", "valid", "parsed", "prefix_len"))
    out = {"in_play": False, "advantage": 0.0, "weight": 0.0, "token_ids": [0], "sampling_logprobs": [0.0]}
    return [{**row, **nothing, **out} for _ in range(count)]
