"""What a sampler is: requests in, N completions each out, in the same order."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from solar_rl.formats.base import Frame
from solar_rl.schema import Episode, Step


@dataclass(frozen=True)
class Request:
    """One step put to a policy.

    Args:
        episode: The demonstration the step belongs to.
        step: The recorded step; scripted samplers read its action, models must not.
        messages: Chat messages; an image part is {"type": "image"} and takes the next of ``images``.
        images: Encoded screenshots in the order of the messages' image parts.
        frame: Size of the last screenshot as the model sees it.
        n: Number of candidates.
        seed: Seed of candidate 0; candidate k has ``seed + k``.
    """

    episode: Episode
    step: Step
    messages: list[dict[str, Any]]
    images: tuple[bytes, ...]
    frame: Frame
    n: int
    seed: int


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
