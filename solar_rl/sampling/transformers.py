"""Sample from any local causal or vision-language model through transformers.

Every candidate draws its tokens from a source of its own, seeded with ``request.seed + k``, by inverting the
cumulative distribution softmax(logits / temperature) over the whole vocabulary: top_p 1, no top_k, no
penalty. So an answer depends on neither the order of requests nor the batch, up to rounding in the model.
Token ids that stand for images are never drawn, since an answer that held one couldn't be fed back; log-probs
stay those of the whole vocabulary, as training computes them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from solar_rl.config import PromptConfig, TransformersSampler
from solar_rl.errors import CheckFailed
from solar_rl.policy import (
    Policy,
    answer_text,
    encode,
    join_inputs,
    joinable,
    load_policy,
    prompt_length,
    prompt_logprobs,
    read_once,
    repeat_inputs,
)
from solar_rl.sampling.base import Completion, Request
from solar_rl.sampling.fitting import fit, longest_prompt
from solar_rl.sampling.usage import Usage

if TYPE_CHECKING:
    import torch

AGREEMENT = {"float32": 1e-2, "float16": 0.1, "bfloat16": 0.5}
"""Largest mean difference, in nats over the tokens of an answer, between the log-probs while generating and
those of a teacher-forced pass. Ours: ten times what rounding was seen to do, a tenth of what a fault does."""


@dataclass(frozen=True)
class _Prompt:
    """A request that was read: its inputs, and how many of its oldest actions were left out."""

    request: Request
    dropped: int
    inputs: dict[str, Any]

    @property
    def length(self) -> int:
        return int(self.inputs["input_ids"].shape[1])

    @property
    def place(self) -> str:
        return f"episode {self.request.episode.episode_id}, step {self.request.step.step_index}"


@dataclass(frozen=True)
class _Drawn:
    """Token ids of an answer, with the log-probs that they had while it was generated."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


class Transformers:
    """Answers requests with a model that ``solar_rl.policy`` loads.

    Candidates are generated ``batch_size`` side by side, of several steps where a step has fewer; shorter prompts
    are padded on the left. Log-probs are recomputed by a teacher-forced pass over each prompt, unpadded, at
    the sampling temperature: what training will compute. They are compared with those that the tokens had while
    they were generated. Token ids hold the end-of-answer token where one was drawn, and no padding.

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
        context = getattr(self._policy.model.config.get_text_config(), "max_position_embeddings", None)
        self._longest = longest_prompt(context, config.max_new_tokens, config.max_prompt_tokens)
        self.usage = Usage()
        name = Path(config.model).name
        settings = config.model_copy(update={"model": name}).digest()
        self.sampler_id = f"transformers/{name}/{settings[:12]}"

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yield the n answers of each request.

        Raises:
            InputError: A prompt is too long even without any history.
            CheckFailed: The model says other log-probs while it generates than in a forward pass.
        """
        for batch in self._batches(requests):
            yield from self._answers(batch)

    def summary(self) -> dict[str, Any]:
        """Return what was read and written so far."""
        return self.usage.as_dict()

    def close(self) -> None:
        """Let go of the model and give its memory back."""
        import torch

        del self._policy
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _batches(self, requests: Iterable[Request]) -> Iterator[list[_Prompt]]:
        """Gather requests until their candidates fill a batch; one request may be more than a batch."""
        batch: list[_Prompt] = []
        for request in requests:
            prompt = self._read(request)
            n = sum(each.request.n for each in batch) + request.n
            if batch and (n > self._config.batch_size or not joinable(batch[0].inputs, prompt.inputs)):
                yield batch
                batch, n = [], request.n
            batch.append(prompt)
            if n >= self._config.batch_size:
                yield batch
                batch = []
        if batch:
            yield batch

    def _read(self, request: Request) -> _Prompt:
        request, dropped = fit(request, self._longest, self._length)
        device = self._policy.model.device
        return _Prompt(
            request, dropped, encode(self._policy, request.messages, request.images, device=device)
        )

    def _length(self, request: Request) -> int:
        return prompt_length(self._policy, request.messages, request.images)

    def _answers(self, batch: list[_Prompt]) -> Iterator[list[Completion]]:
        if len(batch) > 1:
            seeds = [range(p.request.seed, p.request.seed + p.request.n) for p in batch]
            drawn = iter(self._generate(batch, seeds))
            groups = [[next(drawn) for _ in each] for each in seeds]
        else:
            groups = [self._in_pieces(batch[0])]
        for prompt, group in zip(batch, groups, strict=True):
            completions = self._completions(prompt, group, padded=len({p.length for p in batch}) > 1)
            self.usage.answered(completions)
            self.usage.prompt_tokens += prompt.length
            self.usage.completion_tokens += sum(len(each.ids) for each in group)
            yield completions

    def _in_pieces(self, prompt: _Prompt) -> list[_Drawn]:
        """Generate the candidates of one request, at most a batch at once."""
        first, last, size = (
            prompt.request.seed,
            prompt.request.seed + prompt.request.n,
            self._config.batch_size,
        )
        pieces = (range(start, min(start + size, last)) for start in range(first, last, size))
        return [drawn for seeds in pieces for drawn in self._generate([prompt], [seeds])]

    def _completions(self, prompt: _Prompt, group: list[_Drawn], *, padded: bool) -> list[Completion]:
        policy = self._policy
        rows = self._logprobs(prompt, group, padded=padded)
        return [
            Completion(
                answer_text(policy, drawn.ids),
                prompt.request.seed + k,
                drawn.ids,
                tuple(row),
                "stop" if drawn.ids[-1] in policy.eos_ids else "length",
                prompt.dropped,
            )
            for k, (drawn, row) in enumerate(zip(group, rows, strict=True))
        ]

    def _logprobs(self, prompt: _Prompt, group: list[_Drawn], *, padded: bool) -> Sequence[Sequence[float]]:
        """Return the log-probs that training will compute; a greedy answer is not trained on and keeps its own."""
        config = self._config
        if config.greedy:
            return [each.logprobs for each in group]
        answers = [each.ids for each in group]
        rows = prompt_logprobs(
            self._policy, prompt.inputs, answers, config.temperature, batch_size=config.batch_size
        )
        for drawn, row in zip(group, rows, strict=True):
            _compare(drawn, row, AGREEMENT[config.dtype], prompt.place, padded=padded)
        return rows

    def _generate(self, prompts: Sequence[_Prompt], seeds: Sequence[Sequence[int]]) -> list[_Drawn]:
        """Generate one answer a seed: those of the first prompt, then those of the second, ..."""
        import torch
        from transformers import LogitsProcessorList

        policy, config = self._policy, self._config
        draw = _Draw([seed for each in seeds for seed in each], config.temperature, policy.placeholder_ids)
        repeated = [repeat_inputs(p.inputs, len(each)) for p, each in zip(prompts, seeds, strict=True)]
        pad_id = policy.model.generation_config.pad_token_id
        inputs = join_inputs(repeated, pad_id)
        cache = read_once(policy, join_inputs([p.inputs for p in prompts], pad_id), [len(s) for s in seeds])
        with torch.inference_mode():
            out = policy.model.generate(
                **inputs,
                logits_processor=LogitsProcessorList([draw]),
                max_new_tokens=config.max_new_tokens,
                do_sample=False,
                **cache,
            )
        rows = out[:, inputs["input_ids"].shape[1] :].tolist()
        answers = [_until_end(row, policy.eos_ids) for row in rows]
        return [
            _Drawn(ids, tuple(row[: len(ids)])) for ids, row in zip(answers, draw.logprobs(), strict=True)
        ]


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


def _compare(drawn: _Drawn, row: Sequence[float], limit: float, place: str, *, padded: bool) -> None:
    """Hold the log-probs of a forward pass against those of the generator.

    Raises:
        CheckFailed: They differ by more than rounding; names the token where they differ most.
    """
    differences = [abs(a - b) for a, b in zip(drawn.logprobs, row, strict=True)]
    mean = sum(differences) / len(differences)
    if mean <= limit:
        return
    at = max(range(len(differences)), key=differences.__getitem__)
    cause = (
        "prompts of several lengths were generated side by side and this model's answers change with padding: "
        "set sampler.batch_size to sampler.n or less"
        if padded
        else "its key-value cache and its forward pass disagree: try another version of transformers or dtype float32"
    )
    raise CheckFailed(
        f"the log-probs while generating and those of a forward pass differ by {mean:.3g} on average; token {at}: "
        f"{drawn.logprobs[at]:.4f} and {row[at]:.4f}",
        where=place,
        hint=cause,
    )


class _Draw:
    """A logits processor that draws each row's next token and leaves it as the only choice.

    Args:
        seeds: One a row.
        temperature: Divides the logits; 0 takes the likeliest token.
        forbidden: Token ids that are never drawn.
    """

    def __init__(self, seeds: Sequence[int], temperature: float, forbidden: Sequence[int]) -> None:
        self._sources = [Random(seed) for seed in seeds]
        self._temperature = temperature
        self._forbidden = list(forbidden)
        self._logprobs: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import torch

        logs = torch.log_softmax(scores.double() / (self._temperature or 1.0), dim=-1)
        chances = logs.exp()
        chances[:, self._forbidden] = 0.0
        if self._temperature == 0:
            return self._take(chances.argmax(dim=-1, keepdim=True), logs, scores)
        heights = chances.cumsum(dim=-1)
        draws = [[source.random()] for source in self._sources]
        at = torch.tensor(draws, dtype=heights.dtype, device=heights.device) * heights[:, -1:]
        tokens = torch.searchsorted(heights, at, right=True).clamp_(max=scores.shape[-1] - 1)
        return self._take(tokens, logs, scores)

    def _take(self, tokens: torch.Tensor, logs: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        import torch

        self._logprobs.append(logs.gather(1, tokens))
        return torch.full_like(scores, -torch.inf).scatter_(1, tokens, 0.0)

    def logprobs(self) -> list[list[float]]:
        """Return, row by row, the log-prob of each token that was drawn, over the whole vocabulary."""
        import torch

        rows: list[list[float]] = torch.cat(self._logprobs, dim=1).tolist()
        return rows
