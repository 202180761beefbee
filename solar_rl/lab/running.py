"""Train and measure the runs of a lab, several processes side by side, each run once whatever is killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from filelock import FileLock, Timeout

from solar_rl.errors import CheckFailed
from solar_rl.lab.courses import follow
from solar_rl.lab.folder import Folder, write_json
from solar_rl.lab.measuring import Examiner
from solar_rl.lab.plan import Plan
from solar_rl.lab.worlds import WORLDS

PLAN, START, MADE = "plan.json", "start-measured.json", "made.json"


def run_one(
    plan: Plan, folder: Folder, arm: str, seed: int, updates: int, examiner: Examiner
) -> dict[str, Any]:
    """Train one arm with one seed, measure its checkpoints and its end, and keep the figures.

    Args:
        plan: The lab run.
        folder: Its folder, with the start policy and the dataset versions.
        arm: A key of ``ARMS``.
        seed: Seed of training: the order of the groups.
        updates: Updates.
        examiner: Who measures.
    """
    place = folder.run(arm, seed)
    shutil.rmtree(place, ignore_errors=True)
    began = time.monotonic()
    points = follow(plan, folder, arm, seed, updates)
    seconds = time.monotonic() - began
    curve = [{"updates": at, **examiner.steps(policy)} for at, policy in points]
    end = points[-1].policy
    result = {
        "arm": arm,
        "seed": seed,
        "updates": updates,
        "learned": end != folder.start,
        "seconds_training": seconds,
        "curve": curve,
        "unseen": {name: examiner.steps(end, name) for name in kept_out(plan)},
        "closed_loop": examiner.closed_loop(end),
        "seconds": time.monotonic() - began,
    }
    for _, policy in points:
        if policy != folder.start:
            shutil.rmtree(policy)
    write_json(folder.result(arm, seed), result)
    return result


def kept_out(plan: Plan) -> list[str]:
    """Return the options whose left-out goals are measured apart."""
    return [name for name in WORLDS[plan.world].unseen if plan.measure.unseen]


def measure_start(plan: Plan, folder: Folder) -> None:
    """Measure the policy that every arm starts from, once."""
    if folder.read(START) is not None:
        return
    examiner = Examiner(plan)
    found = examiner.steps(folder.start)
    unseen = {name: examiner.steps(folder.start, name) for name in kept_out(plan)}
    folder.write(START, {"steps": found, "unseen": unseen, "closed_loop": examiner.closed_loop(folder.start)})


def left(plan: Plan, folder: Folder) -> list[tuple[str, int]]:
    """Return the runs that have no result yet."""
    return [(arm, seed) for arm, seed in plan.runs if not folder.result(arm, seed).is_file()]


def work(plan: Plan, folder: Folder, updates: int) -> None:
    """Do runs that nobody else does, until none is left: what one process of several does."""
    examiner = Examiner(plan)
    for arm, seed in plan.runs:
        place = folder.run(arm, seed)
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(f"{place}.lock", timeout=0):
                if not folder.result(arm, seed).is_file():
                    run_one(plan, folder, arm, seed, updates, examiner)
        except Timeout:  # another process has it
            continue


@contextlib.contextmanager
def processes(folder: Folder, words: Sequence[Sequence[str]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start a process with one thread for each of the words, side by side; whatever happens, they end.

    Args:
        folder: The lab run's folder; its plan lies there.
        words: What each process is told beside the folder (``lab.worker``).
    """
    env = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-m", "solar_rl.lab.worker", str(folder.root)]
    with (folder.root / "workers.log").open("ab") as log:
        started = [subprocess.Popen([*command, *each], env=env, stdout=log, stderr=log) for each in words]
        try:
            yield started
        finally:
            for each in started:
                each.terminate()


def run_all(plan: Plan, folder: Folder, updates: int, tick: Callable[[int], None]) -> None:
    """Do what is left with as many processes as the plan says.

    Args:
        plan: The lab run.
        folder: Its folder.
        updates: Updates a run.
        tick: Told now and then how many runs are left.

    Raises:
        CheckFailed: A process ended with an error.
    """
    folder.write(PLAN, {"plan": plan.model_dump(mode="json"), "updates": updates})
    if plan.workers == 1:
        for arm, seed in left(plan, folder):
            run_one(plan, folder, arm, seed, updates, Examiner(plan))
            tick(len(left(plan, folder)))
        return
    with processes(folder, [[] for _ in range(plan.workers)]) as workers:
        while any(worker.poll() is None for worker in workers):
            tick(len(left(plan, folder)))
            time.sleep(1.0)
    tick(len(left(plan, folder)))
    if left(plan, folder):
        raise CheckFailed(
            "a process of the lab ended with an error",
            where=str(folder.root / "workers.log"),
            hint="run the same command again: it goes on with what is left",
        )
