"""Make a tiny Qwen2.5-VL on disk: random weights, a real tokenizer, the real image processor.

It learns nothing useful. It is what the demo and the tests train, so that the whole way from screenshots
to gradients runs on a CPU in seconds with no download. It is saved to a folder first, because TRL loads
the reference model (``beta > 0``) by the name of the folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from solar_rl.actions import ACTION_TYPES, BUTTONS, DIRECTIONS, STATUSES, Action
from solar_rl.config import PromptConfig
from solar_rl.errors import ActionError, MissingExtra
from solar_rl.formats import get_format
from solar_rl.formats.base import Frame
from solar_rl.prompts import messages_for

SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
VOCABULARY = 2000
"""Tokens of the byte-pair encoding, special ones included."""
TOKEN_LENGTH = 64
"""Longest token in bytes. Merges cross words here, so that the boilerplate of prompts and answers, which a
model of this size has no use for, costs few tokens and little time."""
FORMATS = ("qwen25vl_mobile_use", "json")
"""Formats whose prompts and answers the tokenizer is trained on by default."""

_FRAME = Frame(336, 672)
_WORDS = (
    "Open the Settings app and turn on Wi-Fi.",
    "Add a new contact named Alice Brown with the number 555 0101.",
    "Set an alarm for 07:30 and delete the note about milk.",
    "Buy two apples in the Shop and send a message to Bob.",
    "You are a helpful assistant.\nsystem\nuser\nassistant\nThe user query: \nTask progress: Step 1: ",
)


def make_tiny_policy(
    folder: str | Path,
    *,
    seed: int = 0,
    corpus: Iterable[str] | None = None,
    min_pixels: int = 28 * 28 * 4,
    max_pixels: int = 28 * 28 * 64,
) -> Path:
    """Make a randomly initialised vision-language policy of about 300,000 weights and save it.

    The same arguments give the same bytes: the weights come from their own seeded generator.

    Args:
        folder: Where it goes; made if it isn't there.
        seed: Seed of the weights.
        corpus: Texts that the tokenizer is trained on (default: ``default_corpus()``).
        min_pixels: Smallest image area after smart_resize, in pixels.
        max_pixels: Largest image area after smart_resize, in pixels.

    Returns:
        The folder.

    Raises:
        MissingExtra: torch, transformers or trl isn't installed.
    """
    try:
        import torch
        from transformers import Qwen2_5_VLForConditionalGeneration
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
    except ImportError as error:
        raise MissingExtra("a tiny policy", "train") from error

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(default_corpus() if corpus is None else corpus)
    config, generation = _configs(tokenizer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen2_5_VLForConditionalGeneration(config)
    model.generation_config = generation
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(min_pixels=min_pixels, max_pixels=max_pixels).save_pretrained(folder)
    return folder


def default_corpus() -> Iterator[str]:
    """Yield what a policy reads and writes: system prompts, goals, and actions as each format writes them."""
    yield from _WORDS * 8
    for name in FORMATS:
        output_format = get_format(name)
        chat = messages_for("", None, [], _FRAME, None, PromptConfig(format=name), screens=0)
        yield from [part["text"] for message in chat for part in message["content"]] * 20
        for action in _sample_actions():
            try:
                written = output_format.render(action, _FRAME)
            except ActionError:  # this family has no such action, so its policy never writes it
                continue
            yield written
            yield f"\n1. {' '.join(written.splitlines())}"  # as a prompt's history shows it


def _sample_actions() -> Iterator[Action]:
    grid = [k / 20 for k in range(21)]
    for kind, x, y in product(("click", "long_press"), grid, grid):
        yield Action(kind, x=x, y=y)
    for direction, k in product(DIRECTIONS, grid):
        yield Action("scroll", direction=direction)
        yield Action("scroll", direction=direction, x=0.5, y=k, x2=0.5, y2=1 - k)
    for text in (*_WORDS, "Alice", "milk", "555 0101", "hello"):
        yield Action("input_text", text=text)
    for app in ("Settings", "Contacts", "Clock", "Notes", "Shop", "Messages"):
        yield Action("open_app", app_name=app)
    yield from (Action("press", button=button) for button in BUTTONS)
    yield from (Action("finished", status=status) for status in STATUSES)
    assert "wait" in ACTION_TYPES
    yield Action("wait")


def _tokenizer(corpus: Iterable[str]) -> Any:
    """Train a byte-level BPE on the corpus and give it Qwen2.5-VL's special tokens and chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL_TOKENS),
        max_token_length=TOKEN_LENGTH,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(corpus, trainer)
    template = resources.files("trl").joinpath("chat_templates/qwen2_5_vl.jinja").read_text(encoding="utf-8")
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=bpe,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=[t for t in SPECIAL_TOKENS if t not in ("<|endoftext|>", "<|im_end|>")],
        padding_side="left",
        chat_template=template,
    )


def _configs(tokenizer: Any) -> tuple[Any, Any]:
    """Describe two layers of 64 for text and two of 32 for vision, in Qwen2.5-VL's own shape."""
    from transformers import GenerationConfig, Qwen2_5_VLConfig

    end, pad, image, video, start = tokenizer.convert_tokens_to_ids(
        ["<|im_end|>", "<|endoftext|>", "<|image_pad|>", "<|video_pad|>", "<|vision_start|>"]
    )
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,  # heads of 32: the smallest that vLLM runs on a CPU
        "num_key_value_heads": 1,
        "max_position_embeddings": 8192,
        "rope_parameters": {"rope_type": "default", "mrope_section": [4, 6, 6], "rope_theta": 10000.0},
        "bos_token_id": pad,
        "eos_token_id": end,
        "pad_token_id": pad,
    }
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 64,
        "window_size": 112,
        "fullatt_block_indexes": [1],
        "tokens_per_second": 2,
    }
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        tie_word_embeddings=False,
    )
    generation = GenerationConfig(eos_token_id=end, pad_token_id=pad)  # type: ignore[no-untyped-call]
    return config, generation


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(prog="python -m solar_rl.train.tiny", description="Make a tiny policy.")
    parser.add_argument("folder", help="where it goes")
    print(make_tiny_policy(parser.parse_args().folder))
