"""Share calls among servers of one model: to the least busy one that is up; one that fails rests for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

LONGEST_REST = 60.0
"""Seconds after which a server that keeps failing is tried again."""


@dataclass
class _Server:
    url: str
    busy: int = 0
    failures: int = 0
    rests_until: float = 0.0


class Endpoints:
    """Servers of one model.

    Args:
        urls: Their base addresses.
        clock: Tells seconds.
    """

    def __init__(self, urls: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._servers = {url: _Server(url) for url in dict.fromkeys(url.rstrip("/") for url in urls)}
        self._clock = clock

    @contextmanager
    def take(self) -> Iterator[str]:
        """Yield the address that the next call goes to; it counts as busy until the block ends."""
        server = min(self._servers.values(), key=lambda each: (self._rest(each), each.busy))
        server.busy += 1
        try:
            yield server.url
        finally:
            server.busy -= 1

    def works(self, url: str) -> None:
        """Note that a server has answered."""
        server = self._servers[url]
        server.failures, server.rests_until = 0, 0.0

    def failed(self, url: str, asked: float | None = None) -> float | None:
        """Let a server rest: for as long as it asks, or for a time that doubles each time in a row.

        Args:
            url: The server.
            asked: Seconds that it asks to be left alone.

        Returns:
            Seconds to wait before the call is made again: next to none where another server is up, else what
            was asked; None: not known.
        """
        server = self._servers[url]
        rest = min(0.5 * 2**server.failures, LONGEST_REST) if asked is None else asked
        server.failures = min(server.failures + 1, 16)
        server.rests_until = max(server.rests_until, self._clock() + rest)
        others_up = any(self._rest(each) == 0.0 for each in self._servers.values())
        return 0.01 if others_up and rest > 0 else asked

    def _rest(self, server: _Server) -> float:
        return max(0.0, server.rests_until - self._clock())
