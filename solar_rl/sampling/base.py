"""What a sampler is: requests in, N completions each out, in the same order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from solar_rl.prompts import Request

__all__ = ["Completion", "Request", "Sampler", "candidate_seed"]


@dataclass(frozen=True)
class Completion:
    """One answer: its text and, where the sampler knows them, token ids and their log-probs."""

    text: str
    seed: int
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None


class Sampler(Protocol):
    """Answers requests; ``sampler_id`` names model and settings and is stored with every candidate."""

    sampler_id: str

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yield the ``n`` completions of each request, in the requests' order."""
        ...


def candidate_seed(build_seed: int, episode_id: str, step_index: int) -> int:
    """Return the seed of candidate 0 of a step: a hash with its low 6 bits cleared, below 2**62.

    Candidate k takes ``seed + k``, so one call for n candidates equals n calls. Ours.

    >>> candidate_seed(0, "e", 0) % 64
    0
    """
    digest = hashlib.sha256(f"{build_seed}\x00{episode_id}\x00{step_index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 2 & ~63
