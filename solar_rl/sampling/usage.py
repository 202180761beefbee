"""Count what a sampler read and wrote, for the lines that are printed at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from solar_rl.sampling.base import Completion


@dataclass
class Usage:
    """What a sampler did so far.

    Args:
        requests: Steps that were answered.
        candidates: Answers.
        prompt_tokens: Tokens read, each prompt once a call.
        completion_tokens: Tokens written.
        shortened: Steps whose prompt lost its oldest actions.
        calls: Calls to a server that were answered.
        retries: Calls that were made again.
        cost: Price of the tokens, where prices are set.
    """

    requests: int = 0
    candidates: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    shortened: int = 0
    calls: int = 0
    retries: int = 0
    cost: float = 0.0

    def answered(self, completions: Sequence[Completion]) -> None:
        """Count a step and its candidates."""
        self.requests += 1
        self.candidates += len(completions)
        self.shortened += any(completion.history_dropped for completion in completions)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts that aren't zero, by name."""
        return {name: value for name, value in asdict(self).items() if value}
