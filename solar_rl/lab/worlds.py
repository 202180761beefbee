"""Where a lab takes place: the built-in phone, or MiniWoB++'s pages, which nobody here wrote."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from solar_rl.closed_loop import Job
from solar_rl.environment import Environment
from solar_rl.shipped import shipped_module

if TYPE_CHECKING:
    from solar_rl.lab.plan import Plan

Options = dict[str, Any]


class World(ABC):
    """What a lab needs of a world; ``plan.options`` are options of its builder."""

    builder: str
    unseen: Mapping[str, int] = {}
    """Options that keep something out of training, and the seed of what is measured on it."""
    side_by_side: int
    """Episodes in closed loop at once."""
    answer_tokens: int
    """Longest answer, without a thought."""

    @abstractmethod
    def recorded(self, plan: Plan, episodes: int, seed: int, only: Sequence[str] = ()) -> Options:
        """Return options for training episodes.

        Args:
            plan: The lab run.
            episodes: How many, about.
            seed: Different seeds give different episodes.
            only: What alone they may ask for (default: all that training has).
        """

    @abstractmethod
    def held_out(self, plan: Plan, unseen: str | None) -> Options:
        """Return options for recorded episodes to measure on: held-out ones, or of what training left out."""

    @abstractmethod
    def jobs(self, plan: Plan) -> list[Job]:
        """List the episodes in closed loop, the longest first."""

    @abstractmethod
    def limits(self, plan: Plan) -> dict[str, int]:
        """Return the answers after which an episode is over, by task."""

    def environments(self, options: Options, count: int) -> list[Environment]:
        """Make places to play in."""
        make = shipped_module("builders", self.builder).make_environment
        return [make(options) for _ in range(min(self.side_by_side, count))]


class PhoneWorld(World):
    """The built-in phone: goals of three lengths, apps and kinds of goals that training leaves out."""

    builder = "phone"
    unseen: Mapping[str, int] = {"unseen_apps": 900_003, "unseen_templates": 900_002}
    side_by_side = 32
    answer_tokens = 24  # the longest of the demonstrations take 17
    held_out_seed = 900_001

    def recorded(self, plan: Plan, episodes: int, seed: int, only: Sequence[str] = ()) -> Options:
        """Return options for goals of the training split."""
        more: Options = {"templates": list(only)} if only else {}
        return _options(plan, episodes=episodes, seed=seed, only="train", **more)

    def held_out(self, plan: Plan, unseen: str | None) -> Options:
        """Return options for held-out goals of what training has, or of one thing that it left out."""
        options = _options(plan, only="test")
        if unseen is None:
            seen = {"templates": self._seen(plan), "unseen_apps": [], "unseen_templates": []}
            return (
                options | seen | {"seed": self.held_out_seed + plan.seed, "episodes": plan.measure.episodes}
            )
        options |= {name: [] for name in self.unseen if name != unseen} | {"test_share": 0.0}
        options["templates"] = self._alone(plan, unseen)
        options["buckets"] = {"long": 0.5, "super_long": 0.5}  # some apps have no short goal
        return options | {"seed": self.unseen[unseen] + plan.seed, "episodes": plan.measure.unseen}

    def jobs(self, plan: Plan) -> list[Job]:
        """List held-out goals by length."""
        first, limits = plan.measure.first_seed, self.limits(plan)
        jobs = [Job(task, first + k) for task, count in plan.measure.closed.items() for k in range(count)]
        return sorted(jobs, key=lambda job: -limits[job.task])

    def limits(self, plan: Plan) -> dict[str, int]:
        """Return the plan's, by length."""
        return plan.measure.max_steps

    def _seen(self, plan: Plan) -> list[str]:
        """List the templates that training has: without unseen ones and those of unseen apps."""
        given = plan.options.get("templates") or list(shipped_module("builders", "phone").TEMPLATES)
        apps, out = set(plan.options.get("unseen_apps", ())), set(plan.options.get("unseen_templates", ()))
        return [name for name in given if name not in out and name.partition(".")[0] not in apps]

    def _alone(self, plan: Plan, unseen: str) -> list[str]:
        """List the templates that training has, and those that one option kept out."""
        given = plan.options.get("templates") or list(shipped_module("builders", "phone").TEMPLATES)
        out = set(plan.options.get(unseen, ()))
        added = [name for name in given if name in out or name.partition(".")[0] in out]
        return [*self._seen(plan), *added]


class MiniWobWorld(World):
    """MiniWoB++'s pages: a task's seeds are its episodes; training has others than measuring."""

    builder = "miniwob"
    side_by_side = 4  # each is a browser
    answer_tokens = 64  # some tasks have a sentence typed
    train_seed = 100_000
    each = "each"
    """The one key of the plan's ``closed`` and ``max_steps``: every task has as many."""

    def recorded(self, plan: Plan, episodes: int, seed: int, only: Sequence[str] = ()) -> Options:
        """Return options for training seeds of every task."""
        tasks = list(only) or self._tasks(plan)
        count = math.ceil(episodes / len(tasks))
        return self._split(plan, tasks, "train", self.train_seed + seed, count)

    def held_out(self, plan: Plan, unseen: str | None) -> Options:
        """Return options for test seeds of every task."""
        tasks = self._tasks(plan)
        count = math.ceil(plan.measure.episodes / len(tasks))
        return self._split(plan, tasks, "test", plan.measure.first_seed, count)

    def jobs(self, plan: Plan) -> list[Job]:
        """List test seeds of every task."""
        seeds = range(plan.measure.first_seed, plan.measure.first_seed + plan.measure.closed[self.each])
        return [Job(task, seed) for task in self._tasks(plan) for seed in seeds]

    def limits(self, plan: Plan) -> dict[str, int]:
        """Return the plan's for every task."""
        return dict.fromkeys(self._tasks(plan), plan.measure.max_steps[self.each])

    def _tasks(self, plan: Plan) -> list[str]:
        return list(plan.options.get("tasks") or shipped_module("builders", "miniwob").SUITE)

    def _split(self, plan: Plan, tasks: list[str], split: str, seed: int, count: int) -> Options:
        none = {f"{name}_episodes": 0 for name in ("train", "validation", "test")}
        given = {"tasks": tasks, f"{split}_seed": seed, f"{split}_episodes": count}
        return _options(plan, **none | given)


def _options(plan: Plan, **more: Any) -> Options:
    return {**plan.options, "thoughts": plan.thoughts, **more}


WORLDS: dict[str, World] = {"phone": PhoneWorld(), "miniwob": MiniWobWorld()}
"""Every world of a plan."""
