"""Run ranks in processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import traceback
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import forkserver

from solar_rl.errors import CheckFailed
from solar_rl.pipeline.phases import Job, Phase, Progress, Slate, logs, run_watched, slates, together

_LOOK_EVERY = 0.2
_LOADED_ONCE = ["solar_rl.pipeline.phases", "pyarrow.parquet", "PIL.Image"]
"""What workers of both phases need: loaded by the process that they are forked from, not by each of them."""


def get_ready() -> None:
    """Start the process that workers are forked from; it loads their modules while this one looks at the source."""
    multiprocessing.set_forkserver_preload(_LOADED_ONCE)
    forkserver.ensure_running()


def run_local(job: Job, phase: Phase, workers: int, progress: Progress) -> None:
    """Run a phase on several processes and wait for it; what stops one of them ends all.

    Raises:
        CheckFailed: A worker was killed.
        BaseException: What stopped a rank, as its slate tells it better.
    """
    get_ready()
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        tasks = [pool.submit(_run_rank, job, phase, rank, workers) for rank in range(workers)]
        try:
            left = set(tasks)
            while left and not any(task.exception() for task in tasks if task.done()):
                left = wait(tasks, _LOOK_EVERY, FIRST_EXCEPTION).not_done
                progress(together(Slate.read_all(slates(job, phase))))
        finally:
            stopped = [error for task in tasks if task.done() and (error := task.exception())]
            _end(tasks, job, phase)
    if not stopped:
        return
    if not isinstance(stopped[0], BrokenProcessPool):
        raise stopped[0]
    raise CheckFailed(
        "a worker was killed",
        where=str(job.out),
        hint="out of memory? use fewer workers; run the same command again to go on",
    ) from stopped[0]


def _run_rank(job: Job, phase: Phase, rank: int, world: int) -> None:
    """Do a rank's share; what libraries say, and an error's traceback, go to the rank's log."""
    with (logs(job, phase) / f"rank-{rank:05d}.err").open("a") as file, contextlib.redirect_stderr(file):
        try:
            run_watched(job, phase, rank, world)
        except Exception:
            traceback.print_exc()
            raise


def _end(tasks: list[Future[None]], job: Job, phase: Phase) -> None:
    """End the ranks that still run: the pool itself would wait for them."""
    while not all(task.done() for task in tasks):
        told = Slate.read_all(slates(job, phase))
        for rank, task in enumerate(tasks):
            standing = told.get(f"{rank:05d}")
            if standing is not None and not task.done():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(standing.pid, signal.SIGTERM)
        wait(tasks, _LOOK_EVERY)
