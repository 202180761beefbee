"""Train and measure the runs of a lab, several processes side by side, each run once whatever is killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from filelock import FileLock, Timeout

from solar_rl.errors import CheckFailed
from solar_rl.lab.arms import ARMS
from solar_rl.lab.courses import follow, training_keys
from solar_rl.lab.folder import Folder, write_json
from solar_rl.lab.measuring import Examiner
from solar_rl.lab.plan import Plan
from solar_rl.lab.training import train
from solar_rl.lab.worlds import WORLDS

PLAN, PILOT, START, MADE = "plan.json", "pilot.json", "start-measured.json", "made.json"
_PILOT_ARM = "step_local_anchor"
"""The dearest arm: candidates and recorded actions go through the model."""
_PILOT_UPDATES = (2, 2, 22)
"""The first run loads what later ones find loaded, and isn't counted."""
_PILOT_FOLDER = "pilot"
_SHARE = 0.92
"""Share of the time that is planned for; the rest is for what the pilot didn't see."""


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


def pilot(plan: Plan, folder: Folder, spent: float, say: Callable[[str], None]) -> int:
    """Return the updates a run that fit the plan's time, from a timed pilot; measured once a lab run.

    Args:
        plan: The lab run.
        folder: Its folder.
        spent: Seconds that preparing took.
        say: Told what was measured.
    """
    if plan.train.updates is not None:
        return plan.train.updates
    known = folder.read(PILOT)
    if known is not None:
        return int(known["updates"])
    update, begin = _training_seconds(plan, folder)
    examiner, place = Examiner(plan), folder.root / _PILOT_FOLDER
    examiner.steps(place)  # the first time reads the held-out episodes, which a run of several does once
    steps = _seconds(partial(examiner.steps, place))
    unseen = sum(_seconds(partial(examiner.steps, place, name)) for name in kept_out(plan))
    closed = _seconds(partial(examiner.closed_loop, place))
    shutil.rmtree(place)
    fixed = begin + plan.train.checkpoints * steps + unseen + closed
    each = (plan.minutes * 60 * _SHARE - spent) * plan.workers / len(plan.runs)
    fitting = int((each - fixed) / update)
    updates = min(max(fitting, plan.train.least), plan.train.most)
    updates -= updates % plan.train.checkpoints  # the last checkpoint is the end
    folder.write(
        PILOT,
        {
            "updates": updates,
            "fitting": fitting,
            "seconds": {"update": update, "begin": begin, "steps": steps, "unseen": unseen, "closed": closed},
            "preparing": spent,
        },
    )
    say(f"pilot: {update:.2f} s an update, {fixed:.0f} s a run beside them: {updates} updates a run")
    return updates


def _training_seconds(plan: Plan, folder: Folder) -> tuple[float, float]:
    """Return the seconds of an update and of what comes before the first one, from a short and a longer run."""
    place = folder.root / _PILOT_FOLDER

    def run(updates: int) -> None:
        shutil.rmtree(place, ignore_errors=True)
        keys = training_keys(plan, folder, _PILOT_ARM, 0, updates, place) | {"save_strategy": "no"}
        train(ARMS[_PILOT_ARM].recipe, keys, folder.root / "pilot.log")

    _, short, longer = (_seconds(partial(run, updates)) for updates in _PILOT_UPDATES)
    _, few, many = _PILOT_UPDATES
    # a machine that was busy with the short run tells nothing about an update: then all the time is theirs
    update = (longer - short) / (many - few) if longer > short else longer / many
    return update, max(0.0, short - few * update)


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


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
    env = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-m", "solar_rl.lab.worker", str(folder.root)]
    with (folder.root / "workers.log").open("ab") as log:
        workers = [subprocess.Popen(command, env=env, stdout=log, stderr=log) for _ in range(plan.workers)]
        try:
            while any(worker.poll() is None for worker in workers):
                tick(len(left(plan, folder)))
                time.sleep(1.0)
        finally:
            for worker in workers:
                worker.terminate()
    tick(len(left(plan, folder)))
    if left(plan, folder):
        raise CheckFailed(
            "a process of the lab ended with an error",
            where=str(folder.root / "workers.log"),
            hint="run the same command again: it goes on with what is left",
        )
