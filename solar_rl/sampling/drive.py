"""Drive a sampler along episodes: requests out, parsed candidates back, in the episodes' order, lazily."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from solar_rl.config import DatasetConfig
from solar_rl.formats import parse_completion
from solar_rl.prompts import Request, build_request
from solar_rl.sampling.base import Completion, Sampler, candidate_seed
from solar_rl.schema import Candidate, Episode


def draw(
    config: DatasetConfig, sampler: Sampler, episodes: Iterable[Episode]
) -> Iterator[tuple[Episode, list[Candidate]]]:
    """Ask for N candidates at every step of the episodes and parse the answers.

    Args:
        config: Prompt, sampler and build seed.
        sampler: Who answers; it may pull requests of many episodes ahead.
        episodes: May be lazy; they are read as the sampler asks for more.

    Yields:
        Each episode in order, with its candidates sorted by step and index.
    """
    waiting: deque[Episode] = deque()

    def requests() -> Iterator[Request]:
        for episode in episodes:
            waiting.append(episode)
            for step in episode.steps:
                seed = candidate_seed(config.seed, episode.episode_id, step.step_index)
                yield build_request(episode, step, config.prompt, n=config.sampler.n, seed=seed)

    found: list[Candidate] = []
    left = 0
    for request, completions in _answered(sampler, requests()):
        left = left or len(waiting[0].steps)
        found += _candidates(config, sampler, request, completions)
        left -= 1
        if not left:
            yield waiting.popleft(), found
            found = []


def _answered(sampler: Sampler, requests: Iterator[Request]) -> Iterator[tuple[Request, list[Completion]]]:
    """Pair each request with its completions, however far ahead the sampler reads."""
    asked: deque[Request] = deque()

    def remembered() -> Iterator[Request]:
        for request in requests:
            asked.append(request)
            yield request

    for completions in sampler.sample(remembered()):
        yield asked.popleft(), completions


def _candidates(
    config: DatasetConfig, sampler: Sampler, request: Request, completions: Sequence[Completion]
) -> Iterator[Candidate]:
    for index, completion in enumerate(completions):
        action, parse_error = parse_completion(config.prompt.format, completion.text, request.frame)
        yield Candidate(
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
