"""Sample from any local causal or vision-language model through transformers.

Every candidate draws its tokens from a source of its own, seeded with ``request.seed + k``, by inverting the
cumulative distribution softmax(logits / temperature) over the whole vocabulary: top_p 1, no top_k, no
penalty. So an answer depends on neither the order of requests nor the batch, up to rounding in the model.
Token ids that stand for images are never drawn, since an answer that held one couldn't be fed back; log-probs
stay those of the whole vocabulary, as training computes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from solar_rl.config import PromptConfig, TransformersSampler
from solar_rl.policy import (
    Policy,
    answer_text,
    encode,
    load_policy,
    prompt_logprobs,
    repeat_inputs,
)
from solar_rl.sampling.base import Completion, Request

if TYPE_CHECKING:
    import torch


class Transformers:
    """Answers requests with a model that ``solar_rl.policy`` loads.

    Log-probs are recomputed by a teacher-forced pass at the sampling temperature: what training will
    compute. Token ids hold the end-of-answer token where one was drawn, and no padding.

    Args:
        config: Names the model.
        prompt: Holds the pixel limits.
    """

    def __init__(self, config: TransformersSampler, prompt: PromptConfig) -> None:
        self._config = config
        self._policy = load_policy(
            config.model,
            dtype=config.dtype,
            device=config.device,
            trust_remote_code=config.trust_remote_code,
            revision=config.revision,
            min_pixels=prompt.min_pixels,
            max_pixels=prompt.max_pixels,
        )
        _forget_generation_defaults(self._policy)
        name = Path(config.model).name
        settings = config.model_copy(update={"model": name}).digest()
        self.sampler_id = f"transformers/{name}/{settings[:12]}"

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yield the n answers of each request, drawn in one batch."""
        for request in requests:
            device = self._policy.model.device
            inputs = encode(self._policy, request.messages, request.images, device=device)
            seeds = range(request.seed, request.seed + request.n)
            answers = self._generate(inputs, seeds)
            rows = prompt_logprobs(
                self._policy, inputs, answers, self._config.temperature, batch_size=request.n
            )
            yield [
                Completion(answer_text(self._policy, ids), seed, ids, tuple(row))
                for ids, seed, row in zip(answers, seeds, rows, strict=True)
            ]

    def _generate(self, inputs: dict[str, Any], seeds: Sequence[int]) -> list[tuple[int, ...]]:
        import torch
        from transformers import LogitsProcessorList

        policy, config = self._policy, self._config
        draw = _Draw(seeds, config.temperature, policy.placeholder_ids)
        with torch.inference_mode():
            out = policy.model.generate(
                **repeat_inputs(inputs, len(seeds)),
                logits_processor=LogitsProcessorList([draw]),
                max_new_tokens=config.max_new_tokens,
                do_sample=False,
            )
        rows = out[:, inputs["input_ids"].shape[1] :].tolist()
        return [_until_end(row, policy.eos_ids) for row in rows]


def _forget_generation_defaults(policy: Policy) -> None:
    """Drop penalties and filters that a model ships with: they would bend the sampled distribution."""
    import transformers

    config: Any = transformers.GenerationConfig
    pad = policy.tokenizer.pad_token_id
    policy.model.generation_config = config(
        eos_token_id=list(policy.eos_ids), pad_token_id=policy.eos_ids[0] if pad is None else pad
    )


def _until_end(row: Sequence[int], eos_ids: Sequence[int]) -> tuple[int, ...]:
    """Keep an answer up to and with its first end token; what follows is padding."""
    ends = [i for i, token in enumerate(row) if token in eos_ids]
    return tuple(row[: ends[0] + 1] if ends else row)


class _Draw:
    """A logits processor that draws each row's next token and leaves it as the only choice."""

    def __init__(self, seeds: Sequence[int], temperature: float, forbidden: Sequence[int]) -> None:
        self._sources = [Random(seed) for seed in seeds]
        self._temperature = temperature
        self._forbidden = list(forbidden)

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import torch

        chances = torch.softmax(scores.double() / self._temperature, dim=-1)
        chances[:, self._forbidden] = 0.0
        heights = chances.cumsum(dim=-1)
        draws = [[source.random()] for source in self._sources]
        at = torch.tensor(draws, dtype=heights.dtype, device=heights.device) * heights[:, -1:]
        tokens = torch.searchsorted(heights, at, right=True).clamp_(max=scores.shape[-1] - 1)
        return torch.full_like(scores, -torch.inf).scatter_(1, tokens, 0.0)
