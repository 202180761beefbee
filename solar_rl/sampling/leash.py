"""Let an engine's processes die with the sampler that started them, whenever and however it ends.

vLLM runs its engine in processes of its own, which wait for requests for ever when a kill takes away the one
that asks. They can't be told to watch over it: a kill may come while they still import. So a guard is started
before them, this very file as a script, in a session of its own. It waits for the end of its standard input, whose
other end only the sampler holds, and then kills every process that bears the sampler's mark in its environment,
or bore it earlier: a process that gives itself another title, as vLLM's do once they have imported, wipes it out.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path

MARK = "SOLAR_RL_ENGINE_OF"
"""Environment variable that engines and all that they start inherit."""
_QUIET_LOOKS = 3
_LOOK_S = 0.1
"""The guard ends when so many looks, so many seconds apart, find nobody: one may be about to be started."""
_WATCH_S = 0.5
_REST = 20
"""Until then it notes who bears the mark twice a second, or resting so many times as long as a look took."""
Process = tuple[int, bytes]
"""Its id and when it began: ids are given again."""


class Leash:
    """Holds what is started within ``marking`` until ``release``, or until this process ends. Linux only.

    >>> leash = Leash()
    >>> with leash.marking():
    ...     pass  # start processes here, by spawning: a forked one shows the environment of its parent
    >>> leash.release()
    """

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self._guard: subprocess.Popen[bytes] | None = None
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", __file__, f"{MARK}={self._mark}"]
            self._guard = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
            )

    @contextmanager
    def marking(self) -> Iterator[None]:
        """Put the mark into the environment while the block runs."""
        resource_tracker.ensure_running()  # else it is started within: it serves this process, and ends by itself
        before = os.environ.get(MARK)
        os.environ[MARK] = self._mark
        try:
            yield
        finally:
            if before is None:
                del os.environ[MARK]
            else:
                os.environ[MARK] = before

    def release(self) -> None:
        """End the guard, and whatever of the marked is still there."""
        if self._guard is not None:
            self._guard.communicate()


def _guard(mark: bytes) -> None:
    """Wait until the sampler is gone or has released its engines, then leave nothing of them."""
    seen: set[Process] = set()
    rest = 0.0
    while not select.select([sys.stdin], [], [], rest)[0]:
        began = time.monotonic()
        seen |= _marked(mark)
        rest = max(_WATCH_S, _REST * (time.monotonic() - began))
    quiet = 0
    while quiet < _QUIET_LOOKS:
        seen |= _marked(mark)
        alive = [process for process in seen if _began(process[0]) == process[1]]
        for pid, _ in alive:
            _kill(pid)
        quiet = 0 if alive else quiet + 1
        time.sleep(_LOOK_S)


def _marked(mark: bytes) -> set[Process]:
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            variables = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:  # it has ended, or is somebody else's
            continue
        began = _began(int(name))
        if began is not None and mark in variables.split(b"\0"):
            found.add((int(name), began))
    return found


def _began(pid: int) -> bytes | None:
    """Return when a process began, in the kernel's ticks; None: it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it has ended meanwhile
        return


if __name__ == "__main__":
    _guard(sys.argv[1].encode())
