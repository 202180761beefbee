"""The noisy expert: it answers with the recorded action, or with a seeded mistake of a named kind.

It makes candidates of a known quality with no model at all: for the built-in phone, for tests, and as the
first round of a policy that can't act yet (``policy``).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from solar_rl.actions import ACTION_TYPES
from solar_rl.config import PromptConfig, ScriptedSampler
from solar_rl.errors import ActionError, ConfigError
from solar_rl.formats import get_format
from solar_rl.policy import Policy, answer_ids, batch_logprobs, load_policy
from solar_rl.sampling.base import Completion, Request
from solar_rl.sampling.mistakes import KINDS, MOVES, possible, unparsable

_Answer = tuple[str, float]
"""Its text, and the log-probability of its kind."""
_Tokens = tuple[tuple[int, ...], tuple[float, ...]]
"""Token ids and their log-probs."""


class _Odds(NamedTuple):
    """What may happen at a step: each kind with its chance and the log of it; the rest is the expert's."""

    kinds: tuple[tuple[str, float, float], ...]
    expert_logprob: float


class Scripted:
    """Answers requests from the script of ``ScriptedSampler``.

    Candidate k draws from a source of its own, seeded with ``request.seed + k``, so that one call for n
    candidates equals n calls. Answers hold no thought.

    Without ``policy`` the token ids are the UTF-8 bytes of the answer, and the log-probs are the script's
    own: the first byte carries the log-probability of the kind of answer that was drawn (recorded action,
    near miss, ...; the details of a mistake don't count), the others 0. They sum to it, and belong to no
    model. With ``policy`` both are that model's: ids with the end-of-answer token, log-probs from a
    teacher-forced pass over the same prompt, images included, at the sampling temperature.

    Args:
        config: The script.
        prompt: Names the format that answers are written in.

    Raises:
        ConfigError: Unknown kind of mistake or action type, a rate outside [0, 1] or a negative weight.
    """

    def __init__(self, config: ScriptedSampler, prompt: PromptConfig) -> None:
        _check(config)
        self._config = config
        self._format = get_format(prompt.format)
        self._odds: dict[tuple[str, frozenset[str]], _Odds] = {}
        self._policy: Policy | None = None
        if config.policy is not None:
            self._policy = load_policy(
                config.policy, min_pixels=prompt.min_pixels, max_pixels=prompt.max_pixels
            )
        named = config.model_copy(update={"policy": config.policy and Path(config.policy).name})
        self.sampler_id = f"scripted/{prompt.format}/{named.digest()[:12]}"

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yield the n answers of each request.

        Raises:
            ActionError: The recorded action can't be written in the format; names the episode and the step.
        """
        for request in requests:
            drawn = self._draw(request)
            tokens = self._tokens_of(request, drawn)
            yield [
                Completion(answer[0], seed, *tokens[answer])
                for seed, answer in enumerate(drawn, start=request.seed)
            ]

    def _draw(self, request: Request) -> list[_Answer]:
        step, frame = request.step, request.frame
        try:
            right = self._format.render(step.action, frame)
        except ActionError as error:
            where = f"episode {request.episode.episode_id}, step {step.step_index}"
            raise ActionError(error.message, where=where, hint=error.hint) from None
        odds = self._odds_of(step.action.action_type, possible(step.action))
        return [self._answer(request, right, odds, Random(request.seed + k)) for k in range(request.n)]

    def _answer(self, request: Request, right: str, odds: _Odds, rng: Random) -> _Answer:
        draw = rng.random()
        for kind, chance, logprob in odds.kinds:
            if draw < chance:
                return self._mistake(kind, request, right, rng), logprob
            draw -= chance
        return right, odds.expert_logprob

    def _mistake(self, kind: str, request: Request, right: str, rng: Random) -> str:
        if kind == "unparsable":
            return unparsable(right, self._format, request.frame, rng)
        return self._format.render(MOVES[kind](request.step, rng), request.frame)

    def _odds_of(self, action_type: str, kinds: frozenset[str]) -> _Odds:
        key = (action_type, kinds)
        if key not in self._odds:
            rate = self._config.error_rates.get(action_type, self._config.error_rate)
            weights = {k: w for k, w in self._config.errors.items() if k in kinds and w > 0}
            total = sum(weights.values())
            chances = {kind: rate * weight / total for kind, weight in weights.items() if rate > 0}
            logs = tuple((kind, chance, math.log(chance)) for kind, chance in chances.items())
            left = 1.0 - rate if chances else 1.0
            self._odds[key] = _Odds(logs, math.log(left) if left > 0 else -math.inf)
        return self._odds[key]

    def _tokens_of(self, request: Request, drawn: list[_Answer]) -> dict[_Answer, _Tokens]:
        distinct = dict.fromkeys(drawn)  # most candidates are the recorded action: worked out once
        if self._policy is None:
            return {answer: _as_bytes(*answer) for answer in distinct}
        ids = [answer_ids(self._policy, text) for text, _ in distinct]
        rows = batch_logprobs(
            self._policy,
            request.messages,
            request.images,
            ids,
            self._config.temperature or 1.0,
            batch_size=self._config.batch_size,
        )
        return {a: (i, tuple(row)) for a, i, row in zip(distinct, ids, rows, strict=True)}


def _as_bytes(text: str, logprob: float) -> _Tokens:
    ids = tuple(text.encode())
    return ids, (logprob, *(0.0,) * (len(ids) - 1))


def _check(config: ScriptedSampler) -> None:
    for kind, weight in config.errors.items():
        _must_be_known(kind, KINDS, f"sampler.errors.{kind}")
        if not 0 <= weight < math.inf:
            raise ConfigError(f"a weight is 0 or more, got {weight}", where=f"sampler.errors.{kind}")
    for action_type, rate in config.error_rates.items():
        _must_be_known(action_type, ACTION_TYPES, f"sampler.error_rates.{action_type}")
        if not 0 <= rate <= 1:
            raise ConfigError(
                f"a rate lies in [0, 1], got {rate}", where=f"sampler.error_rates.{action_type}"
            )


def _must_be_known(name: str, names: tuple[str, ...], where: str) -> None:
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(names)}"
        raise ConfigError(f"'{name}' is not known", where=where, hint=hint)
