"""Count what a sampler draws while it draws, and judge an episode now and then, to tell how it goes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from solar_rl.config import DatasetConfig
from solar_rl.sampling.judged import Judged
from solar_rl.schema import Candidate, Episode

if TYPE_CHECKING:
    from solar_rl.pipeline.phases import Standing

_REST = 20
"""Judging rests so many times as long as it took: it costs at most a twentieth of the time."""


class Watch:
    """Adds what is drawn to a standing.

    Args:
        config: The dataset description.
        standing: What is counted up.
    """

    def __init__(self, config: DatasetConfig, standing: Standing) -> None:
        self._config, self._standing = config, standing
        self._rest_until = 0.0

    def saw(self, episode: Episode, candidates: Sequence[Candidate]) -> None:
        """Count an episode's candidates."""
        standing = self._standing
        standing.drawn += 1
        standing.contexts += contexts(self._config, candidates)
        standing.candidates += len(candidates)
        standing.tokens += sum(len(candidate.token_ids or ()) for candidate in candidates)
        standing.unparsed += sum(candidate.action is None for candidate in candidates)
        # a verifier may be as costly as the sampler
        if self._config.validity.verifier is None and time.monotonic() >= self._rest_until:
            self._judge(episode, candidates)

    def _judge(self, episode: Episode, candidates: Sequence[Candidate]) -> None:
        began = time.monotonic()
        verdicts = Judged(self._config.validity, [episode]).valid(candidates)
        self._standing.judged += sum(verdict is not None for verdict in verdicts)
        self._standing.valid += sum(verdict is True for verdict in verdicts)
        took = time.monotonic() - began
        self._rest_until = began + (1 + _REST) * took


def contexts(config: DatasetConfig, candidates: Sequence[Candidate]) -> int:
    """Return how many different prompts were read for the candidates of whole episodes."""
    steps = Counter((c.episode_id, c.step_index) for c in candidates)
    if config.prompt.history != "candidate":
        return len(steps)
    return sum(count if step else 1 for (_, step), count in steps.items())
