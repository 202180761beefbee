"""Turn chat messages and screenshots into a model's inputs: the same tokens and pixels wherever it runs.

Qwen2-VL and Qwen2.5-VL are read with transformers' PIL image processor and without the video part,
with or without torchvision: the same pixels everywhere, and no package that can't load beside a CPU torch.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from solar_rl.errors import ConfigError, InputError, MissingExtra
from solar_rl.formats.resize import smart_resize

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

Message = Mapping[str, Any]
_QWEN_VL = ("qwen2_vl", "qwen2_5_vl")


@dataclass(frozen=True)
class Reader:
    """What turns messages into a model's inputs, and answers back into text.

    Args:
        tokenizer: The model's tokenizer.
        processor: Its processor; None for a model that reads text only.
        eos_ids: Token ids that end an answer, the tokenizer's own first.
        placeholder_ids: Ids that stand for images and videos: an answer that held one couldn't be fed back.
        name: Where it was loaded from.
    """

    tokenizer: Any
    processor: Any | None
    eos_ids: tuple[int, ...]
    placeholder_ids: tuple[int, ...]
    name: str

    @property
    def sees(self) -> bool:
        """Return whether prompts may hold images."""
        return self.processor is not None


def load_reader(
    folder: str,
    *,
    trust_remote_code: bool = False,
    revision: str | None = None,
    min_pixels: int | None = None,
    max_pixels: int | None = None,
) -> Reader:
    """Load a model's tokenizer and, where it sees, its processor; not its weights.

    Args:
        folder: What ``save_pretrained`` wrote, or an id on the Hub.
        trust_remote_code: Run code that comes with the model.
        revision: Revision, where the model comes from the Hub.
        min_pixels: Smallest image area, as in ``PromptConfig`` (default: the processor's own).
        max_pixels: Largest image area.

    Raises:
        MissingExtra: transformers isn't installed.
        ConfigError: There is no model at ``folder``.
    """
    try:
        import transformers
    except ImportError as error:
        raise MissingExtra("a policy through transformers", "train") from error
    options = from_pretrained_options(trust_remote_code, revision)
    config = load_config(folder, options)
    processor = _load_processor(folder, config.model_type, options) if sees(config) else None
    if processor is not None and (min_pixels or max_pixels):
        _limit_pixels(processor.image_processor, min_pixels, max_pixels)
    auto: Any = transformers.AutoTokenizer
    tokenizer = processor.tokenizer if processor else auto.from_pretrained(folder, **options)
    return Reader(tokenizer, processor, _eos_ids(folder, tokenizer, options), _placeholders(config), folder)


def from_pretrained_options(trust_remote_code: bool, revision: str | None) -> dict[str, Any]:
    """Return the keyword arguments of every ``from_pretrained``."""
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    return options | ({"revision": revision} if revision is not None else {})


def load_config(folder: str, options: Mapping[str, Any]) -> Any:
    """Load a model's configuration.

    Raises:
        ConfigError: There is no model at ``folder``.
    """
    import transformers

    try:
        return transformers.AutoConfig.from_pretrained(folder, **options)
    except (OSError, ValueError) as error:
        first_line = str(error).strip().splitlines()[0]
        raise ConfigError(
            f"no model can be loaded: {first_line}",
            where=folder,
            hint="name a folder that save_pretrained wrote",
        ) from error


def sees(config: Any) -> bool:
    """Tell whether a model's configuration is that of a vision-language model."""
    import transformers

    return type(config) in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING


def _eos_ids(folder: str, tokenizer: Any, options: Mapping[str, Any]) -> tuple[int, ...]:
    import transformers

    try:
        config = transformers.GenerationConfig.from_pretrained(folder, **options).eos_token_id
    except OSError:  # a model may come without one
        config = None
    ids = config if isinstance(config, list) else [config]
    return tuple(dict.fromkeys(i for i in (tokenizer.eos_token_id, *ids) if i is not None))


def _placeholders(config: Any) -> tuple[int, ...]:
    found = (getattr(config, name, None) for name in ("image_token_id", "video_token_id"))
    return tuple(sorted({i for i in found if isinstance(i, int)}))


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


def prompt_text(reader: Reader, messages: Sequence[Message]) -> str:
    """Render chat messages with the model's own chat template, up to where the answer begins.

    Raises:
        InputError: The model has no chat template.
    """
    if reader.processor is not None:
        return _apply_template(reader.processor, list(messages), reader.name)
    plain = [{"role": m["role"], "content": _plain_text(m["content"])} for m in messages]
    return _apply_template(reader.tokenizer, plain, reader.name)


def open_images(reader: Reader, images: Sequence[bytes]) -> list[Image]:
    """Decode screenshots as the model is to see them.

    For Qwen2-VL and Qwen2.5-VL they are resized here, as transformers' PIL processor does it: an engine
    that resizes in another way then has nothing left to resize.

    Raises:
        InputError: Images for a model without eyes.
    """
    from PIL import Image

    if images and not reader.sees:
        raise InputError(
            "the prompt holds an image but the policy reads text only",
            where=reader.name,
            hint="set prompt.observation: text, or use a vision-language model",
        )
    opened = [Image.open(io.BytesIO(data)).convert("RGB") for data in images]
    limits = _qwen_limits(reader.processor)
    if limits is None:
        return opened
    return [image.resize(smart_resize(*image.size, **limits), Image.Resampling.BICUBIC) for image in opened]


def _qwen_limits(processor: Any) -> dict[str, int] | None:
    images: Any = getattr(processor, "image_processor", None)
    if type(images).__name__ != "Qwen2VLImageProcessorPil":
        return None
    limits = {"min_pixels": images.size["shortest_edge"], "max_pixels": images.size["longest_edge"]}
    return limits | {"factor": images.patch_size * images.merge_size}


def encode(
    reader: Reader, messages: Sequence[Message], images: Sequence[bytes] = (), *, device: Any = "cpu"
) -> dict[str, torch.Tensor]:
    """Turn chat messages and encoded screenshots into the inputs of one prompt.

    Returns:
        Tensors by name; ``input_ids`` has shape (1, prompt length) and ends with the generation prompt.

    Raises:
        InputError: Images for a model without eyes, or no chat template.
    """
    text, opened = prompt_text(reader, messages), open_images(reader, images)
    if reader.processor is None:
        inputs = reader.tokenizer(text, add_special_tokens=False, return_tensors="pt")
    else:
        inputs = reader.processor(text=[text], images=opened or None, return_tensors="pt")
    return {name: value.to(device) for name, value in inputs.items()}


def prompt_length(reader: Reader, messages: Sequence[Message], images: Sequence[bytes] = ()) -> int:
    """Return the number of tokens that ``encode`` gives; for Qwen2-VL and Qwen2.5-VL no pixel is read for it."""
    limits = _qwen_limits(reader.processor)
    if limits is None and images:
        return int(encode(reader, messages, images)["input_ids"].shape[1])
    from PIL import Image

    text = prompt_text(reader, messages)
    length = len(reader.tokenizer(text, add_special_tokens=False)["input_ids"])
    for data in images:
        assert limits is not None
        width, height = smart_resize(*Image.open(io.BytesIO(data)).size, **limits)
        length += width * height // limits["factor"] ** 2 - 1  # one placeholder becomes so many
    return length


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


def answer_ids(reader: Reader, text: str) -> tuple[int, ...]:
    """Return the token ids of a whole answer: its text and the end-of-answer token."""
    ids = reader.tokenizer(text, add_special_tokens=False)["input_ids"]
    return (*ids, *reader.eos_ids[:1])


def answer_text(reader: Reader, token_ids: Sequence[int]) -> str:
    """Return the text of an answer's token ids, special tokens left out."""
    text: str = reader.tokenizer.decode(list(token_ids), skip_special_tokens=True)
    return text
