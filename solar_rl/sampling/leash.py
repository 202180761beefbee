"""Let an engine's processes die with the sampler that started them.

vLLM runs its engine in processes of its own, which wait for requests for ever when a kill takes away the one
that asks. vLLM calls ``die_with_the_sampler`` in each of them: it is a plugin, named in our package's metadata.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys

OWNER = "SOLAR_RL_ENGINE_OWNER"
"""Environment variable that holds the process id of a sampler; engines of others are left alone."""
_PR_SET_PDEATHSIG = 1


def hold() -> None:
    """Note that engines which this process starts from now on are to die with it."""
    os.environ[OWNER] = str(os.getpid())


def die_with_the_sampler() -> None:
    """Ask the kernel to kill this process when the one that started it ends; Linux only.

    Does nothing in a process that isn't the direct child of a sampler: vLLM itself looks after those below.
    """
    parent = multiprocessing.parent_process()
    if sys.platform != "linux" or parent is None or os.environ.get(OWNER) != str(parent.pid):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent.pid:  # it ended before the kernel was asked
        os.kill(os.getpid(), signal.SIGKILL)
