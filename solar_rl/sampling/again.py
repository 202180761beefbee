"""Say why calls are made again: a line a server now and then, however many of them fail together."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from stamina.instrumentation import RetryHook, get_on_retry_hooks, set_on_retry_hooks

SAY_EVERY = 10.0
"""Seconds between two lines about one server; ours, because a call waits up to 60."""
log = logging.getLogger(__name__)


class Passing(Exception):
    """A call failed for a reason that may pass.

    Args:
        url: The server.
        what: What happened, to follow its address.
        after: Seconds to wait before the next one; None: not known.
    """

    def __init__(self, url: str, what: str, after: float | None = None) -> None:
        super().__init__(f"{url}{what}")
        self.url, self.after = url, after


class Again:
    """Tells of calls that are made again, instead of stamina's bare line for each of them.

    Args:
        clock: Tells seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}
        self._untold: Counter[str] = Counter()
        _leave_passing_ones_to_us()

    @contextmanager
    def told(self, wait: float, *, last: bool) -> Iterator[None]:
        """Let a failure of the block through, and tell of it where another call follows.

        Args:
            wait: Seconds until then, unless the failure knows better.
            last: Whether no other call follows.
        """
        try:
            yield
        except Passing as error:
            if not last:
                self._tell(error, wait if error.after is None else error.after)
            raise

    def _tell(self, error: Passing, wait: float) -> None:
        now, url = self._clock(), error.url
        if now - self._said.get(url, -SAY_EVERY) < SAY_EVERY:
            self._untold[url] += 1
            return
        self._said[url] = now
        others = (
            f" ({others} more calls since the last such line)" if (others := self._untold.pop(url, 0)) else ""
        )
        log.warning("%s; trying again in %.1f s%s", error, wait, others)


@cache
def _leave_passing_ones_to_us() -> None:
    """Keep stamina's hooks, which are those of the whole process, away from our failures; once."""
    set_on_retry_hooks([_for_others(hook) for hook in get_on_retry_hooks()])


def _for_others(hook: RetryHook) -> RetryHook:
    return lambda details: None if isinstance(details.caused_by, Passing) else hook(details)
