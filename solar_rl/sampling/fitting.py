"""Shorten prompts that are too long: the oldest actions go first, counted, and nothing is cut silently."""

from __future__ import annotations

from collections.abc import Callable

from solar_rl.errors import ConfigError, InputError
from solar_rl.prompts import Request, without_oldest


def longest_prompt(context: int | None, answer: int, limit: int | None) -> int | None:
    """Return how long a prompt may be so that the longest answer still fits behind it.

    Args:
        context: Tokens that the model has places for; None: not known.
        answer: Longest answer in tokens.
        limit: Longest prompt that is wanted; None: no limit.

    Raises:
        ConfigError: The answer alone fills the context.

    >>> longest_prompt(2048, 128, None), longest_prompt(2048, 128, 1000), longest_prompt(None, 128, None)
    (1920, 1000, None)
    """
    if context is None:
        return limit
    room = context - answer
    if room < 1:
        raise ConfigError(
            f"the model's context holds {context} tokens, an answer may have {answer}",
            where="sampler.max_new_tokens",
        )
    return room if limit is None else min(room, limit)


def fit(request: Request, limit: int | None, length: Callable[[Request], int]) -> tuple[Request, int]:
    """Leave out as few of a prompt's oldest actions as make it fit.

    Args:
        request: The step.
        limit: Longest prompt in tokens; None: no limit.
        length: Tokens of a request's prompt.

    Returns:
        The request, shortened where it must be, and how many actions were left out.

    Raises:
        InputError: Even without any history it is too long; names the episode and the step.
    """
    if limit is None or length(request) <= limit:
        return request, 0
    # Fewer actions never make a longer prompt, so the smallest number that fits is found by halving.
    low, high = 1, request.shown
    while low < high:
        middle = (low + high) // 2
        if length(without_oldest(request, middle)) <= limit:
            high = middle
        else:
            low = middle + 1
    shorter = without_oldest(request, high) if high else request
    if not high or length(shorter) > limit:
        raise InputError(
            f"the prompt has {length(shorter)} tokens without any history, the limit is {limit}",
            where=f"episode {request.episode.episode_id}, step {request.step.step_index}",
            hint="allow more (sampler.max_prompt_tokens, sampler.max_model_len), or lower prompt.max_pixels",
        )
    return shorter, high
