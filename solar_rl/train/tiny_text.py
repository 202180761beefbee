"""Make a small policy that reads text: Qwen2's architecture, random weights, a byte-level tokenizer of its own.

It is for screens as text and answers in format ``json``: the boilerplate of an answer is a few tokens, a number
up to 1000 is usually one, so that a few hundred thousand weights can learn to operate the simulated phone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar_rl.actions import ACTION_TYPES, BUTTONS, DIRECTIONS, STATUSES, VERBS
from solar_rl.errors import MissingExtra

END, PAD, ACT = "<|end|>", "<|pad|>", "<|act|>"
"""End of an answer, padding, and what an answer begins after."""
_PIECES = (
    *(f'{{"action": "{kind}", "x":' for kind in ("click", "long_press")),
    ', "y":',
    '{"action": "input_text", "text": "',
    '{"action": "open_app", "app_name": "',
    *(f'{{"action": "scroll", "direction": "{word}"}}' for word in DIRECTIONS),
    *(f'{{"action": "press", "button": "{word}"}}' for word in BUTTONS),
    '{"action": "wait"}',
    *(f'{{"action": "finished", "status": "{word}"' for word in STATUSES),
    ', "text": "',
    '"}',
)
"""Boilerplate of answers, one token each."""
_ALOUD = (
    '{"thought": "',
    *(f'{{"thought": "{verb}' for verb in dict.fromkeys(VERBS.get(kind, kind) for kind in ACTION_TYPES)),
    *(f'", {piece[1:]}' for piece in _PIECES if piece.startswith("{")),
)
"""The same where a thought stands before the action."""
_NUMBERS = tuple(dict.fromkeys(f" {n:02d}" for n in (*range(60), *range(0, 1000, 10))))
"""What hours, minutes and places in hundredths of the screen look like: one token each."""
_OWN = re.compile("|".join(map(re.escape, sorted((*_PIECES, *_ALOUD, *_NUMBERS), key=len, reverse=True))))
_CHAT = (
    "{% for message in messages %}{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif %}{{ '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '" + ACT + "' }}{% endif %}"
)


@dataclass(frozen=True)
class Size:
    """How large a policy is.

    Args:
        width: Hidden size, a multiple of ``heads``.
        layers: Number of layers.
        heads: Attention heads.
        inner: Width of the feed-forward part.
        vocabulary: Tokens of the byte-pair encoding, without the boilerplate of answers.
    """

    width: int = 96
    layers: int = 3
    heads: int = 4
    inner: int = 208
    vocabulary: int = 1500


def make_text_policy(
    folder: str | Path, corpus: Iterable[str], *, size: Size = Size(), seed: int = 0
) -> Path:
    """Make a randomly initialised causal language model and save it; the same arguments give the same bytes.

    Args:
        folder: Where it goes; made if it isn't there.
        corpus: Texts that the tokenizer is trained on: prompts and answers.
        size: How large it is; the default has under 0.5 million weights.
        seed: Seed of the weights.

    Returns:
        The folder.

    Raises:
        MissingExtra: torch or transformers isn't installed.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtra("a small text policy", "train") from error
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer(corpus, size.vocabulary)
    ids = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    config = transformers.Qwen2Config(  # type: ignore[call-arg]  # it reads rope_theta too
        vocab_size=len(tokenizer),
        hidden_size=size.width,
        intermediate_size=size.inner,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        rope_theta=1e6,  # Qwen2's own
        initializer_range=size.width**-0.5,  # the usual 0.02 is for wide models
        bos_token_id=None,
        **ids,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = transformers.Qwen2ForCausalLM(config)
    generation: Any = transformers.GenerationConfig
    model.generation_config = generation(**ids)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(corpus: Iterable[str], vocabulary: int) -> Any:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast
    from transformers.models.qwen2.tokenization_qwen2 import PRETOKENIZE_REGEX

    # AutoTokenizer reads a Qwen2 model's tokenizer as Qwen2's own class, with its way to split words
    words = pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.Sequence([words, level])
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, END, ACT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator((_bare(text) for text in corpus), trainer)
    bpe.add_tokens([AddedToken(piece, normalized=False) for piece in (*_PIECES, *_ALOUD, *_NUMBERS)])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=bpe,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[ACT],
        padding_side="left",
        chat_template=_CHAT,
    )


def _bare(text: str) -> str:
    """Return a text without what has tokens of its own."""
    return _OWN.sub("\n", text)
