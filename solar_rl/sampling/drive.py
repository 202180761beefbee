"""Drive a sampler along episodes: requests out, parsed candidates back, in the episodes' order, lazily.

There are three ways. All steps at once, each with N candidates. Step by step, where a candidate's history
is its own. In two looks, a pilot first and the rest where it was wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from solar_rl.config import DatasetConfig
from solar_rl.formats import get_format, parse_completion
from solar_rl.privacy import make_masker
from solar_rl.prompts import Past, Request, build_request
from solar_rl.sampling.base import Completion, Sampler, candidate_seed
from solar_rl.sampling.judged import Judged
from solar_rl.schema import Candidate, Episode, Step

EPISODES_AT_ONCE = 64
"""Episodes that go side by side where later requests wait for earlier answers; changes no answer."""
Drawn = tuple[Episode, list[Candidate]]


class _Ask(NamedTuple):
    """A question to be put: ``n`` candidates of a step, from index ``first`` on."""

    episode: Episode
    step: Step
    first: int
    n: int
    past: tuple[Past, ...] | None = None


def draw(config: DatasetConfig, sampler: Sampler, episodes: Iterable[Episode]) -> Iterator[Drawn]:
    """Ask for candidates at every step of the episodes and parse the answers.

    Args:
        config: Prompt, sampler, validity and build seed.
        sampler: Who answers; it may pull requests of many episodes ahead.
        episodes: May be lazy; they are read as the sampler asks for more.

    Yields:
        Each episode in order, with its candidates sorted by step and index. With ``sampler.adaptive`` a
        step has one candidate, or N where the first is not valid.
    """
    if config.prompt.history == "candidate":
        return _step_by_step(config, sampler, episodes)
    if config.sampler.adaptive:
        return _pilots_first(config, sampler, episodes)
    return _all_at_once(config, sampler, episodes)


def _all_at_once(config: DatasetConfig, sampler: Sampler, episodes: Iterable[Episode]) -> Iterator[Drawn]:
    waiting: deque[Episode] = deque()

    def asks() -> Iterator[_Ask]:
        for episode in episodes:
            waiting.append(episode)
            yield from (_Ask(episode, step, 0, config.sampler.n) for step in episode.steps)

    found: list[Candidate] = []
    left = 0
    for _, candidates in _answers(config, sampler, asks()):
        left = left or len(waiting[0].steps)
        found += candidates
        left -= 1
        if not left:
            yield waiting.popleft(), found
            found = []


def _pilots_first(config: DatasetConfig, sampler: Sampler, episodes: Iterable[Episode]) -> Iterator[Drawn]:
    """Draw one candidate a step, then the others where it is not valid. Source: method.md, section 4b."""
    for block in _blocks(episodes):
        steps = [(episode, step) for episode in block for step in episode.steps]
        found = list(_answers(config, sampler, (_Ask(*at, 0, 1) for at in steps)))
        verdicts = Judged(config.validity, block).valid([pilot for _, (pilot,) in found])
        hard = [at for at, valid in zip(steps, verdicts, strict=True) if valid is False]
        more = config.sampler.n - 1
        if more:
            found += _answers(config, sampler, (_Ask(*at, 1, more) for at in hard))
        yield from _gathered(block, (c for _, candidates in found for c in candidates))


def _step_by_step(config: DatasetConfig, sampler: Sampler, episodes: Iterable[Episode]) -> Iterator[Drawn]:
    """Let each candidate go along the recorded screens with a history of its own."""
    for block in _blocks(episodes):
        judged, n = Judged(config.validity, block), config.sampler.n
        own: dict[tuple[str, int], tuple[Past, ...]] = {
            (e.episode_id, k): () for e in block for k in range(n)
        }
        found: list[Candidate] = []
        for t in range(max(len(episode.steps) for episode in block)):
            live = [episode for episode in block if t < len(episode.steps)]
            asks = (
                [_Ask(e, e.steps[0], 0, n) for e in live]  # nobody has a history yet
                if t == 0
                else [_Ask(e, e.steps[t], k, 1, own[e.episode_id, k]) for e in live for k in range(n)]
            )
            answered = [(ask, c) for ask, got in _answers(config, sampler, asks) for c in got]
            verdicts = judged.valid([candidate for _, candidate in answered])
            for (ask, candidate), valid in zip(answered, verdicts, strict=True):
                key = (candidate.episode_id, candidate.candidate_index)
                own[key] += (remembered(config, ask.step, candidate, valid),)
            found += (candidate for _, candidate in answered)
        yield from _gathered(block, found)


def remembered(config: DatasetConfig, step: Step, candidate: Candidate, valid: bool | None) -> Past:
    """Return what a candidate's own history says of a step that it answered.

    An answer that is no action can't be told, so the recorded action stands in for it.
    """
    action = candidate.action
    if action is None or (valid is False and config.prompt.after_mismatch == "expert"):
        return Past(step.action, step.thought)
    return Past(action, get_format(config.prompt.format).aside(candidate.completion, action).thought)


def _gathered(block: list[Episode], candidates: Iterable[Candidate]) -> Iterator[Drawn]:
    by_episode: dict[str, list[Candidate]] = {episode.episode_id: [] for episode in block}
    for candidate in candidates:
        by_episode[candidate.episode_id].append(candidate)
    for episode in block:
        rows = by_episode[episode.episode_id]
        yield episode, sorted(rows, key=lambda c: (c.step_index, c.candidate_index))


def _blocks(episodes: Iterable[Episode]) -> Iterator[list[Episode]]:
    rest = iter(episodes)
    while block := list(islice(rest, EPISODES_AT_ONCE)):
        yield block


def _answers(
    config: DatasetConfig, sampler: Sampler, asks: Iterable[_Ask]
) -> Iterator[tuple[_Ask, list[Candidate]]]:
    """Put questions to the sampler and pair each with its answers, however far ahead the sampler reads."""
    asked: deque[tuple[_Ask, Request]] = deque()

    def requests() -> Iterator[Request]:
        for ask in asks:
            seed = candidate_seed(config.seed, ask.episode.episode_id, ask.step.step_index) + ask.first
            request = build_request(
                ask.episode, ask.step, config.prompt, n=ask.n, seed=seed, past=ask.past, first=ask.first
            )
            asked.append((ask, request))
            yield request

    masker = make_masker(config.privacy, config.seed)
    for completions in sampler.sample(requests()):
        ask, request = asked.popleft()
        if masker is not None:
            completions = [masker.completion(completion) for completion in completions]
        yield (
            ask,
            [
                _candidate(config, sampler, request, index, completion)
                for index, completion in enumerate(completions, start=ask.first)
            ],
        )


def _candidate(
    config: DatasetConfig, sampler: Sampler, request: Request, index: int, completion: Completion
) -> Candidate:
    action, parse_error = parse_completion(config.prompt.format, completion.text, request.frame)
    return Candidate(
        episode_id=request.episode.episode_id,
        step_index=request.step.step_index,
        candidate_index=index,
        completion=completion.text,
        sampler_id=sampler.sampler_id,
        seed=completion.seed,
        action=action,
        parse_error=parse_error,
        token_ids=completion.token_ids,
        sampling_logprobs=completion.logprobs,
        finish_reason=completion.finish_reason,
        history_dropped=completion.history_dropped,
    )
