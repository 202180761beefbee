"""How a run is trained: directly, in two stages, or in rounds that sample anew with the newest policy."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from solar_rl.errors import NothingToCompare
from solar_rl.lab.arms import ARMS
from solar_rl.lab.folder import Folder
from solar_rl.lab.plan import Plan
from solar_rl.lab.preparing import checkpoints, sampled_config, updates_of
from solar_rl.lab.training import train
from solar_rl.pipeline import Options, build
from solar_rl.train.keys import read_settings
from solar_rl.train.launch import find_recipe

ATOMIC_SHARE = 0.3
"""Share of the updates that the atomic stage takes of an arm in two stages. [ours]"""
_STEPS_AN_EPISODE = 6
"""Recorded steps that an episode has at least on average; how many episodes a round samples follows from it. [ours]"""


class Point(NamedTuple):
    """A policy on the way: after how many updates, and its folder."""

    updates: int
    policy: Path


def follow(plan: Plan, folder: Folder, arm: str, seed: int, updates: int) -> list[Point]:
    """Train one arm with one seed, and return the policies on the way, the last at its end.

    An arm whose credit has nothing to compare on its dataset stays the start policy.

    Args:
        plan: The lab run.
        folder: Its folder.
        arm: A key of ``ARMS``.
        seed: Seed of training: the order of the groups.
        updates: Updates in all.
    """
    place = folder.run(arm, seed)
    if plan.rounds is not None:
        return _in_rounds(plan, folder, arm, seed, updates)
    start, before = folder.start, 0
    if ARMS[arm].first is not None:
        before = max(1, round(ATOMIC_SHARE * updates))
        output = place / "first"
        keys = training_keys(plan, folder, arm, seed, before, output)
        if train(str(ARMS[arm].first), keys | {"save_strategy": "no"}, place / "training.log"):
            start = output
    output = place / "policy"
    keys = training_keys(plan, folder, arm, seed, updates - before, output)
    keys["model_name_or_path"] = str(start)
    if not train(ARMS[arm].recipe, keys, place / "training.log"):
        return [Point(updates, start)]
    points = [Point(before + updates_of(point), point) for point in checkpoints(output)]
    return points if points[-1].updates == updates else [*points, Point(updates, output)]


def training_keys(
    plan: Plan, folder: Folder, arm: str, seed: int, updates: int, output: Path
) -> dict[str, Any]:
    """Return what a run says otherwise than its recipe: the budget, which is the same for every arm."""
    given, recipe = plan.train, ARMS[arm]
    rows = given.rows // plan.n if arm == "sft" else _rows(plan, folder, arm)
    every = max(1, math.ceil(updates / given.checkpoints))
    keys: dict[str, Any] = {
        "dataset": str(folder.dataset(recipe.alignment)),
        "model_name_or_path": str(folder.start),
        "output_dir": str(output),
        "rows_per_update": rows,
        "per_device_train_batch_size": rows,
        "max_steps": updates,
        "learning_rate": given.learning_rate,
        "seed": seed,
        "logging_steps": every,
        "save_strategy": "steps",
        "save_steps": every,
        "save_only_model": True,
    }
    thoughts = "recorded" if plan.thoughts else "none"
    if arm == "sft":
        keys["thoughts"] = thoughts
    else:
        keys["anchor_thoughts"] = thoughts
        keys |= {"num_generations": plan.n, "margin_groups": 0, "collapse": "warn"} | given.replay
    return keys | given.keys | recipe.keys


def _rows(plan: Plan, folder: Folder, arm: str) -> int:
    """Return the sequences of an update; more where truncation takes some out of play and the plan makes up for it."""
    if not plan.kept:
        return plan.train.rows
    from solar_rl.train.data import Crediting, load_replay

    recipe = read_settings(find_recipe(ARMS[arm].recipe), [])
    crediting = Crediting(recipe.get("credit", "solar"), recipe.get("advantage_weight", "none"))
    try:
        in_play = load_replay(folder.dataset(ARMS[arm].alignment), crediting).rows["in_play"]
    except NothingToCompare:
        return plan.train.rows  # nothing will be trained
    share = float(sum(in_play) / len(in_play))
    return plan.n * math.ceil(plan.train.rows / plan.n / share)


def _in_rounds(plan: Plan, folder: Folder, arm: str, seed: int, updates: int) -> list[Point]:
    """Sample, build a dataset version and train, again and again, each time from the newest policy."""
    assert plan.rounds is not None
    place, policy, points = folder.run(arm, seed), folder.start, list[Point]()
    count, alignment = math.ceil(updates / plan.rounds), ARMS[arm].alignment
    contexts = plan.rounds * plan.train.rows // plan.n
    measured = {math.ceil(count * (k + 1) / plan.train.checkpoints) for k in range(plan.train.checkpoints)}
    for number in range(1, count + 1):
        dataset = place / f"round-{number}"
        episodes = 2 + math.ceil(contexts / _STEPS_AN_EPISODE)
        config = sampled_config(plan, policy, alignment, episodes, 1000 * (seed + 1) + number)
        build(config, dataset, options=Options(cache=place / "cache"))
        output = place / f"policy-{number}"
        done = min(plan.rounds, updates - plan.rounds * (number - 1))
        keys = training_keys(plan, folder, arm, seed + number, done, output)
        keys |= {"dataset": str(dataset), "model_name_or_path": str(policy), "save_strategy": "no"}
        if train(ARMS[arm].recipe, keys, place / "training.log"):
            if policy.parent == place and policy not in {point.policy for point in points}:
                shutil.rmtree(policy)
            policy = output
        shutil.rmtree(dataset)
        if number in measured:
            points.append(Point(min(number * plan.rounds, updates), policy))
    shutil.rmtree(place / "cache", ignore_errors=True)
    return points
