"""Load a policy from a folder and ask it for log-probs: the same prompt and maths for sampling and training.

A policy is a causal language model or a vision-language model of transformers. Torch and transformers are
imported inside the functions, so that reading this module costs nothing.

Qwen2-VL and Qwen2.5-VL are loaded with transformers' PIL image processor and without the video part,
with or without torchvision: the same pixels everywhere, and no package that can't load beside a CPU torch.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solar_rl.errors import ConfigError, InputError, MissingExtra

if TYPE_CHECKING:
    import torch

Message = Mapping[str, Any]
_QWEN_VL = ("qwen2_vl", "qwen2_5_vl")
_PER_TOKEN = ("input_ids", "attention_mask", "mm_token_type_ids", "token_type_ids")


@dataclass(frozen=True)
class Policy:
    """A loaded model with what turns messages into its inputs.

    Args:
        model: The transformers model, in eval mode on its device.
        tokenizer: Its tokenizer.
        processor: Its processor; None for a policy that reads text only.
        name: Where it was loaded from.
    """

    model: Any
    tokenizer: Any
    processor: Any | None
    name: str

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Return the token ids that end an answer, the tokenizer's own first."""
        config = self.model.generation_config.eos_token_id
        ids = config if isinstance(config, list) else [config]
        return tuple(dict.fromkeys(i for i in (self.tokenizer.eos_token_id, *ids) if i is not None))

    @property
    def placeholder_ids(self) -> tuple[int, ...]:
        """Return the ids that stand for images and videos: an answer that held one couldn't be fed back."""
        found = (getattr(self.model.config, name, None) for name in ("image_token_id", "video_token_id"))
        return tuple(sorted({i for i in found if isinstance(i, int)}))


def load_policy(
    folder: str | Path,
    *,
    dtype: str = "float32",
    device: str = "auto",
    trust_remote_code: bool = False,
    revision: str | None = None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
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

    Raises:
        MissingExtra: torch or transformers isn't installed.
        ConfigError: There is no model at ``folder``.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtra("a policy through transformers", "train") from error

    source = str(folder)
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if revision is not None:
        options["revision"] = revision
    try:
        config = transformers.AutoConfig.from_pretrained(source, **options)
    except (OSError, ValueError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"no model can be loaded: {first_line}",
            where=source,
            hint="name a folder that save_pretrained wrote",
        ) from error
    sees = type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING
    auto = transformers.AutoModelForImageTextToText if sees else transformers.AutoModelForCausalLM
    model: Any = auto.from_pretrained(source, dtype=getattr(torch, dtype), **options)
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device).eval()
    processor = _load_processor(source, config.model_type, options) if sees else None
    if processor is not None and (min_pixels or max_pixels):
        _limit_pixels(processor.image_processor, min_pixels, max_pixels)
    tokenizer = (
        processor.tokenizer if processor else transformers.AutoTokenizer.from_pretrained(source, **options)
    )
    return Policy(model, tokenizer, processor, source)


def qwen_vl_processor(image_processor: Any, tokenizer: Any, chat_template: str | None) -> Any:
    """Make a Qwen2.5-VL processor for images only, which needs no torchvision.

    It is saved under transformers' own class name, so that plain ``AutoProcessor`` reads it too.
    """
    from transformers.models.qwen2_5_vl import processing_qwen2_5_vl as module
    from transformers.processing_utils import ProcessorMixin

    class Qwen2_5_VLProcessor(module.Qwen2_5_VLProcessor):  # type: ignore[misc, valid-type]
        # transformers reads the parts of a processor from this signature: no video, no video processor.
        def __init__(
            self, image_processor: Any, tokenizer: Any, chat_template: str | None = None, **_: Any
        ) -> None:
            self.image_token, self.video_token = "<|image_pad|>", "<|video_pad|>"
            self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
            self.video_token_id = tokenizer.convert_tokens_to_ids(self.video_token)
            mixin: Any = ProcessorMixin
            mixin.__init__(self, image_processor, tokenizer, chat_template=chat_template)

    return Qwen2_5_VLProcessor(image_processor, tokenizer, chat_template)


def _load_processor(source: str, model_type: str, options: dict[str, Any]) -> Any:
    import transformers

    if model_type not in _QWEN_VL:
        auto: Any = transformers.AutoProcessor
        return auto.from_pretrained(source, **options)
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
    images = Qwen2VLImageProcessorPil.from_pretrained(source, **options)
    return qwen_vl_processor(images, tokenizer, tokenizer.chat_template)


def _limit_pixels(image_processor: Any, min_pixels: int | None, max_pixels: int | None) -> None:
    size = dict(image_processor.size)
    if "shortest_edge" not in size or "longest_edge" not in size:
        raise ConfigError(
            f"{type(image_processor).__name__} takes no pixel limits, its size is {size}",
            hint="leave min_pixels and max_pixels out",
        )
    size["shortest_edge"] = min_pixels or size["shortest_edge"]
    size["longest_edge"] = max_pixels or size["longest_edge"]
    image_processor.size = size


def encode(policy: Policy, messages: Sequence[Message], images: Sequence[bytes] = ()) -> dict[str, Any]:
    """Turn chat messages and encoded screenshots into the inputs of one prompt, on the policy's device.

    Returns:
        Tensors by name; ``input_ids`` has shape (1, prompt length) and ends with the generation prompt.

    Raises:
        InputError: Images for a policy without eyes, or no chat template.
    """
    from PIL import Image

    if images and policy.processor is None:
        raise InputError(
            "the prompt holds an image but the policy reads text only",
            where=policy.name,
            hint="set prompt.observation: text, or use a vision-language model",
        )
    if policy.processor is None:
        plain = [{"role": m["role"], "content": _plain_text(m["content"])} for m in messages]
        text = _apply_template(policy.tokenizer, plain, policy.name)
        inputs = policy.tokenizer(text, add_special_tokens=False, return_tensors="pt")
    else:
        text = _apply_template(policy.processor, list(messages), policy.name)
        opened = [Image.open(io.BytesIO(data)).convert("RGB") for data in images]
        inputs = policy.processor(text=[text], images=opened or None, return_tensors="pt")
    return {name: value.to(policy.model.device) for name, value in inputs.items()}


def _plain_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _apply_template(owner: Any, messages: list[Any], name: str) -> str:
    if not getattr(owner, "chat_template", None):
        raise InputError(
            "the policy has no chat template", where=name, hint="put a chat_template.jinja into its folder"
        )
    text: str = owner.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return text


def answer_ids(policy: Policy, text: str) -> tuple[int, ...]:
    """Return the token ids of a whole answer: its text and the end-of-answer token."""
    ids = policy.tokenizer(text, add_special_tokens=False)["input_ids"]
    return (*ids, *policy.eos_ids[:1])


def answer_text(policy: Policy, token_ids: Sequence[int]) -> str:
    """Return the text of an answer's token ids, special tokens left out."""
    text: str = policy.tokenizer.decode(list(token_ids), skip_special_tokens=True)
    return text


def repeat_inputs(inputs: Mapping[str, torch.Tensor], n: int) -> dict[str, torch.Tensor]:
    """Repeat the inputs of one prompt n times, images included."""
    return {name: value.repeat(n, *[1] * (value.dim() - 1)) for name, value in inputs.items()}


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
    inputs = encode(policy, messages, images)
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
    batch = repeat_inputs(inputs, len(completions))
    tails = {"input_ids": answers, "attention_mask": present}
    for name in _PER_TOKEN:
        if name in batch:
            tail = tails.get(name, torch.zeros_like(answers))
            batch[name] = torch.cat([batch[name], tail.to(batch[name].dtype)], dim=1)
    with torch.inference_mode():
        logits = policy.model(**batch, use_cache=False, logits_to_keep=longest + 1).logits[:, :-1]
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
