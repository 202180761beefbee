"""Draw from a pool and put names into a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random


def listed(words: Sequence[str]) -> str:
    """Join words as a sentence does.

    >>> listed(["milk", "eggs", "rice"])
    'milk, eggs and rice'
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def pick(rng: Random, pool: Sequence[str], count: int) -> list[str]:
    """Draw ``count`` different words, or all where there are fewer."""
    return rng.sample(list(pool), min(count, len(pool)))
