"""Load a policy's weights and ask it for log-probs."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solar_rl.errors import MissingExtra
from solar_rl.policy.reader import (
    Message,
    Reader,
    encode,
    from_pretrained_options,
    load_config,
    load_reader,
    sees,
)

if TYPE_CHECKING:
    import torch

_PER_TOKEN = ("input_ids", "attention_mask", "mm_token_type_ids", "token_type_ids")


@dataclass(frozen=True)
class Policy(Reader):
    """A loaded model with what turns messages into its inputs.

    Args:
        model: The transformers model, in eval mode on its device.
    """

    model: Any


def load_policy(
    folder: str | Path,
    *,
    dtype: str = "float32",
    device: str = "auto",
    trust_remote_code: bool = False,
    revision: str | None = None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
    attn_implementation: str | None = None,
) -> Policy:
    """Load a model and its processor or tokenizer.

    Args:
        folder: What ``save_pretrained`` wrote, or an id on the Hub.
        dtype: float32, bfloat16 or float16.
        device: auto (a GPU if there is one), cpu, cuda, cuda:1, ...
        trust_remote_code: Run code that comes with the model.
        revision: Revision, where the model comes from the Hub.
        min_pixels: Smallest image area, as in ``PromptConfig`` (default: the processor's own).
        max_pixels: Largest image area.
        attn_implementation: How attention is computed, such as flash_attention_2 (default: transformers' own).

    Raises:
        MissingExtra: torch or transformers isn't installed.
        ConfigError: There is no model at ``folder``.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtra("a policy through transformers", "train") from error

    source, options = str(folder), from_pretrained_options(trust_remote_code, revision)
    reader = load_reader(
        source,
        trust_remote_code=trust_remote_code,
        revision=revision,
        min_pixels=min_pixels,
        max_pixels=max_pixels,
    )
    eyes = sees(load_config(source, options))
    auto = transformers.AutoModelForImageTextToText if eyes else transformers.AutoModelForCausalLM
    if attn_implementation is not None:
        options["attn_implementation"] = attn_implementation
    model: Any = auto.from_pretrained(source, dtype=getattr(torch, dtype), **options)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device).eval()
    return Policy(**vars(reader), model=model)


def repeat_inputs(inputs: Mapping[str, torch.Tensor], n: int) -> dict[str, torch.Tensor]:
    """Repeat the inputs of one prompt n times, images included."""
    return {name: value.repeat(n, *[1] * (value.dim() - 1)) for name, value in inputs.items()}


def joinable(one: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor]) -> bool:
    """Tell whether the inputs of two prompts can be read in one batch: images may be of shapes that can't."""
    rest = one.keys() - set(_PER_TOKEN)
    return one.keys() == other.keys() and all(one[name].shape[1:] == other[name].shape[1:] for name in rest)


def join_inputs(prompts: Sequence[Mapping[str, torch.Tensor]], pad_id: int) -> dict[str, torch.Tensor]:
    """Put the inputs of several prompts into one batch, the shorter ones padded on the left.

    Args:
        prompts: What ``encode`` or ``repeat_inputs`` returned, each ``joinable`` with the first.
        pad_id: Token id of the padding; the attention mask is 0 there.
    """
    import torch
    from torch.nn.functional import pad

    width = max(prompt["input_ids"].shape[1] for prompt in prompts)
    joined = {}
    for name in prompts[0]:
        values = [prompt[name] for prompt in prompts]
        if name in _PER_TOKEN:
            fill = pad_id if name == "input_ids" else 0
            values = [pad(value, (width - value.shape[1], 0), value=fill) for value in values]
        joined[name] = torch.cat(values)
    return joined


def read_once(policy: Policy, inputs: Mapping[str, torch.Tensor], times: Sequence[int]) -> dict[str, Any]:
    """Read every prompt but its last token, and return the cache of that, each row repeated so many times.

    The candidates of a step share a prompt: it is read once instead of once for each. Only for models that
    read text; one that sees keeps more about its images than a cache holds.

    Args:
        policy: The policy.
        inputs: Prompts, padded on the left.
        times: How often each is repeated.

    Returns:
        The model's argument that holds the cache; nothing where this model can't share one.
    """
    import torch

    if policy.sees or inputs["input_ids"].shape[1] < 2 or sum(times) == len(times):
        return {}
    present = inputs["attention_mask"][:, :-1]
    with torch.no_grad():  # FSDP2 reuses its buffers, and training can't write to inference tensors
        read = policy.model(
            input_ids=inputs["input_ids"][:, :-1],
            attention_mask=present,
            position_ids=(present.cumsum(dim=1) - 1).clamp(min=0),
            use_cache=True,
            logits_to_keep=1,
        )
        # transformers has begun to rename it
        name = "cache" if "cache" in inspect.signature(policy.model.forward).parameters else "past_key_values"
        cache = read[name]
        if not hasattr(cache, "batch_select_indices"):
            return {}
        rows = [row for row, count in enumerate(times) for _ in range(count)]
        cache.batch_select_indices(torch.tensor(rows, device=present.device))
    return {name: cache}


def logprobs(
    policy: Policy,
    messages: Sequence[Message],
    images: Sequence[bytes],
    token_ids: Sequence[int],
    temperature: float,
) -> list[float]:
    """Return the log-prob of each token of one answer; see ``batch_logprobs``."""
    return batch_logprobs(policy, messages, images, [token_ids], temperature)[0]


def batch_logprobs(
    policy: Policy,
    messages: Sequence[Message],
    images: Sequence[bytes],
    completions: Sequence[Sequence[int]],
    temperature: float,
    *,
    batch_size: int = 8,
) -> list[list[float]]:
    """Return the log-probs of several answers to one prompt, by a teacher-forced forward pass.

    Log-probs are log_softmax(logits / temperature) over the whole vocabulary, taken in float32.

    Args:
        policy: The policy.
        messages: Chat messages of the prompt.
        images: Encoded screenshots, in the order of the messages' image parts.
        completions: Token ids of each answer, as generated, without padding.
        temperature: The sampling temperature.
        batch_size: Answers a forward pass.
    """
    inputs = encode(policy, messages, images, device=policy.model.device)
    return prompt_logprobs(policy, inputs, completions, temperature, batch_size=batch_size)


def prompt_logprobs(
    policy: Policy,
    inputs: Mapping[str, torch.Tensor],
    completions: Sequence[Sequence[int]],
    temperature: float,
    *,
    batch_size: int = 8,
) -> list[list[float]]:
    """Return the same as ``batch_logprobs`` for a prompt that ``encode`` has already made."""
    chunks = (completions[i : i + batch_size] for i in range(0, len(completions), batch_size))
    return [row for chunk in chunks for row in _forward(policy, inputs, chunk, temperature)]


def _forward(
    policy: Policy,
    inputs: Mapping[str, torch.Tensor],
    completions: Sequence[Sequence[int]],
    temperature: float,
) -> list[list[float]]:
    import torch

    longest = max(len(ids) for ids in completions)
    if longest == 0:
        return [[] for _ in completions]
    answers, present = _padded(completions, longest, policy.eos_ids[0])
    device = policy.model.device
    answers, present = answers.to(device), present.to(device)
    cache = read_once(policy, inputs, [len(completions)])
    batch = repeat_inputs(inputs, len(completions))
    tails = {"input_ids": answers, "attention_mask": present}
    for name in _PER_TOKEN:
        if name in batch:
            tail = tails.get(name, torch.zeros_like(answers))
            batch[name] = torch.cat([batch[name], tail.to(batch[name].dtype)], dim=1)
    if cache:  # all but the prompt's last token is read already
        batch["input_ids"] = batch["input_ids"][:, -longest - 1 :]
    with torch.no_grad():  # FSDP2 reuses its buffers, and training can't write to inference tensors
        out = policy.model(**batch, **cache, use_cache=bool(cache), logits_to_keep=longest + 1)
        logits = out.logits[:, :-1]
        scaled = torch.log_softmax(logits.float() / temperature, dim=-1)
        picked = scaled.gather(-1, answers.unsqueeze(-1)).squeeze(-1)
    return [row[: len(ids)] for row, ids in zip(picked.tolist(), completions, strict=True)]


def _padded(rows: Sequence[Sequence[int]], width: int, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    ids = torch.full((len(rows), width), pad, dtype=torch.long)
    present = torch.zeros((len(rows), width), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(list(row), dtype=torch.long)
        present[i, : len(row)] = 1
    return ids, present
