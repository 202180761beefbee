"""Stop a question that takes too long or too much: an interrupt, and a ceiling on the process's memory."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from solar_rl.errors import InputError

if TYPE_CHECKING:
    from solar_rl.query.connection import Connection

PATIENCE = 5.0
"""Seconds that an interrupted question gets to stop by itself."""
HEADROOM = 512 << 20
"""Bytes beyond DuckDB's limit, for threads and for rows on their way out."""
_UNITS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}


class Deadline:
    """Tells whether a question's time is up."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.expired = threading.Event()

    def error(self) -> InputError:
        """Say that it was stopped."""
        return InputError(
            f"stopped after {self.seconds:g} seconds",
            where="SQL",
            hint="ask for less, or allow more with --timeout SECONDS",
        )

    def check(self) -> None:
        """Raise once the time is up.

        Raises:
            InputError: It is.
        """
        if self.expired.is_set():
            raise self.error()


@contextmanager
def deadline(
    con: Connection, seconds: float | None, give_up: Callable[[Deadline], None] | None = None
) -> Iterator[Deadline]:
    """Interrupt whatever the connection does in the block once the time is up.

    Args:
        con: The connection.
        seconds: None: never.
        give_up: Called when the interrupt shows no effect within ``PATIENCE``: a single huge function call
            can't be interrupted, only the process can be ended.
    """
    limit, done = Deadline(seconds), threading.Event()
    if seconds is None:
        yield limit
        return

    def watch() -> None:
        if done.wait(seconds):
            return
        limit.expired.set()
        for _ in range(int(PATIENCE / 0.05)):
            con.interrupt()  # again and again: one that falls between two statements is lost
            if done.wait(0.05):
                return
        if give_up is not None:
            give_up(limit)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield limit
    finally:
        done.set()
        watcher.join()


def too_large() -> InputError:
    """Say that a question takes too much memory."""
    return InputError(
        "this takes more memory than it may have",
        where="SQL",
        hint="ask for less, or allow more with --memory, such as 16GB",
    )


def memory_bytes(text: str) -> int:
    """Read an amount of memory.

    >>> memory_bytes("4GB"), memory_bytes("512 MiB")
    (4000000000, 536870912)

    Raises:
        InputError: It isn't a number and a unit.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B)\s*", text.upper())
    if not match or match[2] not in _UNITS or float(match[1]) <= 0:
        raise InputError("this is no amount of memory", where=text, hint="such as 500MB or 4GB")
    return int(float(match[1]) * _UNITS[match[2]])


@contextmanager
def memory_ceiling(limit: int) -> Iterator[None]:
    """Let this process take ``limit`` bytes more than it has, and some headroom, while the block runs.

    DuckDB's own limit doesn't count the values of a single huge function call, such as repeat('x', 1e10).
    Where the system can't do it (only Linux can), DuckDB's limit stands alone.

    Raises:
        InputError: Python itself ran out of memory.
    """
    taken = _data_bytes()
    if taken is None:
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    ceiling = taken + limit + HEADROOM
    bounds = [bound for bound in (soft, hard) if bound != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([ceiling, *bounds]), hard))
    try:
        yield
    except MemoryError:
        raise too_large() from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int | None:
    """Return the writable memory that this process has mapped; None where Linux's /proc isn't there."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return None
    found = re.search(r"^VmData:\s+(\d+) kB", status.read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else None
