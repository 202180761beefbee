"""What a sampler is: requests in, N completions each out, in the same order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from solar_rl.prompts import Request

__all__ = ["Completion", "Request", "Sampler", "candidate_seed", "close", "summary"]


@dataclass(frozen=True)
class Completion:
    """One answer.

    Args:
        text: The answer.
        seed: What it was drawn with.
        token_ids: Its tokens, where the sampler knows them.
        logprobs: Log-prob of each token at the sampling temperature, where known.
        finish_reason: stop, or length where it was cut; None: not known.
        history_dropped: Oldest actions that were left out of the prompt to fit the context.
    """

    text: str
    seed: int
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None
    finish_reason: str | None = None
    history_dropped: int = 0


class Sampler(Protocol):
    """Answers requests; ``sampler_id`` names model and settings and is stored with every candidate."""

    @property
    def sampler_id(self) -> str:
        """Return the name of model and settings."""
        ...

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yield the ``n`` completions of each request, in the requests' order.

        ``requests`` may be lazy and endless: a sampler takes as many ahead as it can work on at once.
        """
        ...


def close(sampler: Sampler) -> None:
    """Let a sampler give back what it holds, such as an engine or connections; most hold nothing."""
    give_back = getattr(sampler, "close", None)
    if give_back is not None:
        give_back()


def summary(sampler: Sampler) -> dict[str, Any]:
    """Return what a sampler counted so far, by name: tokens, calls, cost; most count nothing."""
    counted = getattr(sampler, "summary", None)
    return {} if counted is None else dict(counted())


def candidate_seed(build_seed: int, episode_id: str, step_index: int) -> int:
    """Return the seed of candidate 0 of a step: a hash with its low 6 bits cleared, below 2**62.

    Candidate k takes ``seed + k``, so one call for n candidates equals n calls. Ours.

    >>> candidate_seed(0, "e", 0) % 64
    0
    """
    digest = hashlib.sha256(f"{build_seed}\x00{episode_id}\x00{step_index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2 & ~63
