"""What a sweep takes over from the plan that it shares a start with: that policy, how long runs are, and whole runs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from solar_rl.errors import InputError
from solar_rl.lab.folder import Folder, read_json
from solar_rl.lab.plan import Plan

PILOT = "pilot.json"
"""Updates a run."""
CONFIG = "config.json"
"""The plan that a folder's results belong to."""
FREE = {"minutes", "workers", "seeds", "arms"}
"""Fields that may change between two starts on one folder: they change no run that is finished."""
_WORDS = {"name", "about", "shares"}
"""Fields that change no run at all."""


def take_over_start(plan: Plan, folder: Folder) -> None:
    """Copy the start policy of the plan that this one shares."""
    if folder.read("start.json") is not None:
        return
    other = _other(plan, folder)
    told = other.read("start.json")
    if told is None:
        raise InputError(
            "no start policy", where=str(other.root), hint=f"first run: solar-rl lab {plan.shares}"
        )
    shutil.copytree(other.start, folder.start, dirs_exist_ok=True)
    folder.write("start.json", told)


def shared_updates(plan: Plan, folder: Folder) -> int:
    """Return how many updates the runs of the shared plan have: otherwise the two couldn't be compared.

    Raises:
        InputError: The other plan has not been timed yet.
    """
    other = _other(plan, folder)
    given = (begun_with(other, plan) or {"train": {}})["train"].get("updates")
    found = given or (other.read(PILOT) or {}).get("updates")
    if found is None:
        raise InputError(
            "it isn't known yet how many updates a run has",
            where=str(other.root),
            hint=f"first run: solar-rl lab {plan.shares}",
        )
    return int(found)


def take_over_runs(plan: Plan, folder: Folder, updates: int) -> int:
    """Copy finished runs that both plans ask for, and return how many: the same arm, seed, updates and question.

    Args:
        plan: A plan that shares another's start.
        folder: Its folder.
        updates: Updates a run.
    """
    if not asks_the_same(plan, folder):
        return 0
    other, copied = _other(plan, folder), 0
    for arm, seed in plan.runs:
        theirs, ours = other.result(arm, seed), folder.result(arm, seed)
        known = read_json(theirs)
        if known is None or ours.is_file() or known["updates"] != updates:
            continue
        ours.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(theirs, ours)
        copied += 1
    return copied


def begun_with(folder: Folder, plan: Plan) -> dict[str, Any] | None:
    """Return the plan that a folder was begun with, as a config; fields that are newer have their defaults.

    Args:
        folder: A lab run's folder.
        plan: Whose free fields are put in: they belong to no folder.

    Raises:
        InputError: Another version wrote it, with fields that there are no more.
    """
    there = folder.read(CONFIG)
    if there is None:
        return None
    try:
        whole = Plan.model_validate(there | plan.model_dump(mode="json", include=FREE))
    except ValidationError as error:
        raise InputError(
            "another version of solar-rl began this lab run",
            where=str(folder.root),
            hint="use --out with another folder",
        ) from error
    return whole.model_dump(mode="json", exclude=FREE)


def asks_the_same(plan: Plan, folder: Folder) -> bool:
    """Tell whether the plan differs from the one that it shares in nothing that changes a run."""
    theirs = begun_with(_other(plan, folder), plan)
    return theirs is not None and _question(theirs) == _question(plan.model_dump(mode="json"))


def _question(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in FREE | _WORDS}


def _other(plan: Plan, folder: Folder) -> Folder:
    assert plan.shares is not None
    return Folder(folder.root.with_name(plan.shares))
