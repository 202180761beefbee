"""Time what a run takes, so that a plan's runs fit its minutes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from solar_rl.errors import CheckFailed
from solar_rl.lab.arms import ARMS
from solar_rl.lab.courses import training_keys
from solar_rl.lab.folder import Folder, read_json, write_json
from solar_rl.lab.measuring import Examiner
from solar_rl.lab.plan import Plan
from solar_rl.lab.running import PLAN, kept_out, processes
from solar_rl.lab.sharing import PILOT, shared_updates
from solar_rl.lab.training import train

_ARM = "step_local_anchor"
"""The dearest arm: candidates and recorded actions go through the model."""
_UPDATES = (2, 2, 22)
"""The first run loads what later ones find loaded, and isn't counted."""
_SHARE = 0.92
"""Share of the time that is planned for; the rest is for what the pilot didn't see."""


def pilot(plan: Plan, folder: Folder, spent: float, say: Callable[[str], None]) -> int:
    """Return the updates a run that fit the plan's time, from a timed pilot; measured once a lab run.

    A plan that shares another's start has as many as that one: its minutes are no more than a forecast.

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
    if plan.shares is not None:
        return shared_updates(plan, folder)
    parts = _measured(plan, folder)
    fixed = parts["begin"] + plan.train.checkpoints * parts["steps"] + parts["unseen"] + parts["closed"]
    each = (plan.minutes * 60 * _SHARE - spent) * plan.workers / len(plan.runs)
    fitting = int((each - fixed) / parts["update"])
    updates = min(max(fitting, plan.train.least), plan.train.most)
    updates -= updates % plan.train.checkpoints  # the last checkpoint is the end
    folder.write(PILOT, {"updates": updates, "fitting": fitting, "seconds": parts, "preparing": spent})
    say(f"pilot: {parts['update']:.2f} s an update, {fixed:.0f} s a run beside them: {updates} updates a run")
    return updates


def _measured(plan: Plan, folder: Folder) -> dict[str, float]:
    """Time with as many processes side by side as will run: they slow each other down. The slowest counts."""
    places = [folder.root / f"pilot-{number}" for number in range(plan.workers)]
    if plan.workers == 1:
        time_parts(plan, folder, places[0])
    else:
        folder.write(PLAN, {"plan": plan.model_dump(mode="json"), "updates": None})
        with processes(folder, [["--pilot", place.name] for place in places]) as started:
            for each in started:
                each.wait()
    found = [read_json(place / PILOT) for place in places]
    if None in found:
        raise CheckFailed("the pilot ended with an error", where=str(folder.root / "workers.log"))
    for place in places:
        shutil.rmtree(place)
    return {name: max(each[name] for each in found) for name in found[0]}


def time_parts(plan: Plan, folder: Folder, place: Path) -> None:
    """Time the parts of a run, and leave the seconds of each in ``pilot.json``.

    Args:
        plan: The lab run.
        folder: Its folder.
        place: Where this pilot works.
    """
    update, begin = _training_seconds(plan, folder, place)
    examiner, policy = Examiner(plan), place / "policy"
    examiner.steps(policy)  # the first time reads the held-out episodes, which a run of several does once
    seconds = {
        "update": update,
        "begin": begin,
        "steps": _seconds(partial(examiner.steps, policy)),
        "unseen": sum(_seconds(partial(examiner.steps, policy, name)) for name in kept_out(plan)),
        "closed": _seconds(partial(examiner.closed_loop, policy)),
    }
    write_json(place / PILOT, seconds)


def _training_seconds(plan: Plan, folder: Folder, place: Path) -> tuple[float, float]:
    """Return the seconds of an update and of what comes before the first one, from a short and a longer run."""

    def run(updates: int) -> None:
        shutil.rmtree(place, ignore_errors=True)
        keys = training_keys(plan, folder, _ARM, 0, updates, place / "policy") | {"save_strategy": "no"}
        train(ARMS[_ARM].recipe, keys, place / "training.log")

    _, short, longer = (_seconds(partial(run, updates)) for updates in _UPDATES)
    _, few, many = _UPDATES
    # a machine that was busy with the short run tells nothing about an update: then all the time is theirs
    update = (longer - short) / (many - few) if longer > short else longer / many
    return update, max(0.0, short - few * update)


def _seconds(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began
