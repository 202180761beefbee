"""Run an agent in an environment and say how often it gets there: by task, with intervals.

An agent is a function of the goal, what was done so far, and what is seen now. It answers with an action, or
with None where its answer can't be read; that passes a step and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from solar_rl.actions import Action
from solar_rl.environment import Environment, Observation
from solar_rl.errors import InputError
from solar_rl.evaluate.bootstrap import Sums, intervals

Agent = Callable[[str, Sequence[Action | None], Observation], Action | None]
"""(goal, earlier answers oldest first, what is seen) to the next action, or None for an unreadable answer."""
MAX_STEPS = 40
ENDS = ("environment", "finished", "max_steps")
OVERALL = "all"
"""Name of the row over all tasks."""


@dataclass(frozen=True)
class Played:
    """One episode that was played.

    Args:
        task: Its task.
        seed: Its seed.
        goal: What was asked for.
        success: The environment's own verdict at the end.
        progress: Share of the goal that was reached; None where the environment can't tell.
        steps: Answers given, unreadable ones included.
        invalid: Unreadable answers.
        ended: environment (it ended the episode), finished (the agent said so), or max_steps.
        actions: The answers in words; None for an unreadable one.
    """

    task: str
    seed: int
    goal: str
    success: bool
    progress: float | None
    steps: int
    invalid: int
    ended: str
    actions: tuple[str | None, ...]


def run_episode(
    environment: Environment, agent: Agent, task: str, seed: int, *, max_steps: int = MAX_STEPS
) -> Played:
    """Play one episode from its start.

    Args:
        environment: Where.
        agent: Who.
        task: Which of the environment's tasks.
        seed: Which episode of it.
        max_steps: Answers after which it is over.

    Raises:
        InputError: No such task, or a limit below 1.
    """
    if max_steps < 1:
        raise InputError(f"max_steps is {max_steps}, expected at least 1")
    seen = environment.reset(task, seed)
    goal = seen.goal
    history: list[Action | None] = []
    while not environment.done and len(history) < max_steps:
        action = agent(goal, tuple(history), seen)
        history.append(action)
        if action is not None:
            seen = environment.act(action)
    last = history[-1] if history else None
    said = last is not None and last.action_type == "finished"
    ended = "finished" if said else "environment" if environment.done else "max_steps"
    words = tuple(action.describe() if action else None for action in history)
    return Played(
        task,
        seed,
        goal,
        environment.success,
        environment.progress,
        len(history),
        history.count(None),
        ended,
        words,
    )


@dataclass(frozen=True)
class Rate:
    """How a set of episodes went.

    Args:
        task: Which task, or ``all``.
        episodes: How many.
        success: Share that succeeded.
        low: Lower end of its 95 % bootstrap interval over episodes.
        high: Upper end.
        progress: Mean share of the goal that was reached; None where nobody can tell.
        steps: Mean number of answers.
        invalid: Share of answers that couldn't be read.
    """

    task: str
    episodes: int
    success: float
    low: float
    high: float
    progress: float | None
    steps: float
    invalid: float


@dataclass(frozen=True)
class SuiteResult:
    """A suite that was played: the rate over all episodes, that of each task, and every episode."""

    overall: Rate
    tasks: tuple[Rate, ...]
    episodes: tuple[Played, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return asdict(self)


def evaluate_suite(
    environment: Environment,
    agent: Agent,
    *,
    tasks: Sequence[str] | None = None,
    seeds: Iterable[int] = range(25),
    max_steps: int = MAX_STEPS,
    resamples: int = 1000,
    bootstrap_seed: int = 0,
    progress: Callable[[Played], None] = lambda played: None,
) -> SuiteResult:
    """Play every seed of every task.

    Args:
        environment: Where.
        agent: Who; the same for all episodes, told of a new one by an empty history.
        tasks: Which tasks (default: all that the environment names).
        seeds: Which episodes of each.
        max_steps: Answers after which an episode is over.
        resamples: Bootstrap samples; 0: the intervals are NaN.
        bootstrap_seed: Seed of the bootstrap.
        progress: Called after each episode.

    Raises:
        InputError: No task, no seed, or an unknown task.
    """
    names, numbers = tuple(environment.tasks if tasks is None else tasks), tuple(seeds)
    if not names or not numbers:
        raise InputError("a suite needs at least one task and one seed")
    played = []
    for name in names:
        for seed in numbers:
            played.append(run_episode(environment, agent, name, seed, max_steps=max_steps))
            progress(played[-1])
    return summarise(played, resamples=resamples, seed=bootstrap_seed)


def summarise(played: Sequence[Played], *, resamples: int = 1000, seed: int = 0) -> SuiteResult:
    """Turn played episodes into rates with intervals.

    Args:
        played: At least one episode.
        resamples: Bootstrap samples.
        seed: Seed of the bootstrap.
    """
    groups = {OVERALL: list(range(len(played)))}
    for index, episode in enumerate(played):
        groups.setdefault(f"task {episode.task}", []).append(index)
    sums = [_sums([played[i] for i in places], places) for places in groups.values()]
    ends = intervals(sums, len(played), resamples=resamples, seed=seed)
    rates = [
        _rate(name.removeprefix("task "), [played[i] for i in places], float(end.low[0]), float(end.high[0]))
        for (name, places), end in zip(groups.items(), ends, strict=True)
    ]
    return SuiteResult(rates[0], tuple(rates[1:]), tuple(played))


def _sums(played: Sequence[Played], places: Sequence[int]) -> Sums:
    top = np.array([[float(episode.success)] for episode in played])
    return Sums(np.array(places, dtype=np.int64), top, np.ones_like(top))


def _rate(task: str, played: Sequence[Played], low: float, high: float) -> Rate:
    count, answers = len(played), sum(episode.steps for episode in played)
    reached = [episode.progress for episode in played if episode.progress is not None]
    return Rate(
        task,
        count,
        sum(episode.success for episode in played) / count,
        low,
        high,
        sum(reached) / len(reached) if reached else None,
        answers / count,
        sum(episode.invalid for episode in played) / answers if answers else 0.0,
    )
