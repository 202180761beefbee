"""Read what a server of OpenAI's chat completions answers."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import msgspec

from solar_rl.sampling.base import Completion

_TOO_LONG = re.compile(
    r"context.{0,24}(length|size|window)|maximum (model|prompt|input) length|max_model_len|longer than the max"
    r"|prompt is too long|too many (input )?tokens|inputs? tokens.{0,40}must be",
    re.IGNORECASE | re.DOTALL,
)
"""How vLLM, SGLang, llama.cpp, TGI and hosted servers say that a prompt doesn't fit."""
_TOO_LONG_CODES = (400, 413, 422)


class _Message(msgspec.Struct, gc=False):
    content: str | None = None


class _Token(msgspec.Struct, gc=False):
    logprob: float


class _Logprobs(msgspec.Struct, gc=False):
    content: list[_Token] | None = None


class Choice(msgspec.Struct, gc=False):
    """One answer of a reply."""

    message: _Message
    index: int = 0
    logprobs: _Logprobs | None = None
    token_ids: list[int] | None = None
    finish_reason: str | None = None

    def completion(self, seed: int, dropped: int) -> Completion:
        """Return the answer as a candidate.

        Log-probs that can't be trusted are left out: of another number than the tokens, positive or not a number.
        """
        content = (self.logprobs.content if self.logprobs else None) or []
        logprobs = tuple([token.logprob for token in content])
        counted = self.token_ids is None or len(self.token_ids) == len(logprobs)
        sound = bool(logprobs) and counted and max(logprobs) <= 0 and not any(map(math.isnan, logprobs))
        return Completion(
            self.message.content or "",
            seed,
            None if self.token_ids is None else tuple(self.token_ids),
            logprobs if sound else None,
            self.finish_reason if self.finish_reason in ("stop", "length") else None,
            dropped,
        )


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Reply(msgspec.Struct, gc=False):
    """A whole chat completion: the fields that we read."""

    choices: list[Choice]
    usage: _Usage | None = None

    def in_order(self) -> list[Choice]:
        """Return the choices by index."""
        return sorted(self.choices, key=lambda choice: choice.index)


_REPLY = msgspec.json.Decoder(Reply, strict=False)


def read_reply(data: bytes) -> Reply | None:
    """Read a reply; None: it is no chat completion, or has no choice."""
    try:
        reply: Reply | None = _REPLY.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        reply = _read_loosely(data)
    return reply if reply is not None and reply.choices else None


def _read_loosely(data: bytes) -> Reply | None:
    """Read a reply that holds NaN or Infinity, which some servers send as log-probs and JSON doesn't have."""
    try:
        return msgspec.convert(json.loads(data), Reply, strict=False)
    except (ValueError, RecursionError, msgspec.ValidationError):
        return None


def said(response: Any, key: str | None) -> str:
    """Return what a server says of a call that it refuses, in one line, without the key."""
    try:
        message = response.json()["error"]["message"]
    except (ValueError, LookupError, TypeError):
        message = response.text
    text = " ".join(str(message).split())[:500]
    return text.replace(key, "[key]") if key else text


def too_long(status: int, text: str) -> bool:
    """Tell whether a refusal means that the prompt doesn't fit.

    >>> too_long(400, "This model's maximum context length is 2048 tokens. However, you requested 2100")
    True
    >>> too_long(400, "unknown field 'return_token_ids'")
    False
    """
    return status in _TOO_LONG_CODES and _TOO_LONG.search(text) is not None


def asked_wait(response: Any) -> float | None:
    """Read Retry-After in seconds; its form as a date is left to the growing wait."""
    try:
        seconds = float(response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return min(max(seconds, 0.0), 300.0) if math.isfinite(seconds) else None
