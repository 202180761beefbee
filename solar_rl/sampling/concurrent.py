"""Keep many answers on their way at once, and hand them back in the order of the requests."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")
T = TypeVar("T")

AHEAD = 2
"""Requests read ahead, as a multiple of those at work: one slow answer then stops nobody."""


class Loop:
    """An event loop in a thread of its own, so that answers arrive while the caller scores and writes."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sampling", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for it."""
        return self.start(work).result()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def in_order(
    loop: Loop, requests: Iterable[Q], answer: Callable[[Q], Awaitable[A]], in_flight: int
) -> Iterator[A]:
    """Answer requests side by side and yield the answers in the requests' order.

    Requests are read in the caller's thread, lazily, at most ``AHEAD * in_flight`` before the answer that is
    due next. The first failure ends it, and what is still on its way is called off.

    Args:
        loop: Where ``answer`` runs.
        requests: May be lazy and endless.
        answer: Answers one request.
        in_flight: Answers at work at once.

    Raises:
        Exception: Whatever ``answer`` raises.
    """
    room = loop.run(_semaphore(in_flight))

    async def bounded(request: Q) -> A:
        async with room:
            return await answer(request)

    pending: deque[Future[A]] = deque()
    try:
        for request in requests:
            pending.append(loop.start(bounded(request)))
            while pending and (pending[0].done() or len(pending) >= AHEAD * in_flight):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()


async def _semaphore(size: int) -> asyncio.Semaphore:
    return asyncio.Semaphore(size)
