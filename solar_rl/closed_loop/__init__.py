"""Run an agent in an environment and say how often it gets there: by task, with intervals.

An agent is a function of the goal, what was done so far, and what is seen now. It answers with an action, or
with None where its answer can't be read; that passes a step and changes nothing. ``solar_rl.agents`` makes a
policy one that answers for several episodes at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from solar_rl.closed_loop.playing import (
    MAX_STEPS,
    Agent,
    Alone,
    Answer,
    Job,
    Played,
    Player,
    StepLimit,
    Turn,
    play,
)
from solar_rl.closed_loop.rates import ENDS, OVERALL, Rate, SuiteResult, summarise
from solar_rl.environment import Environment
from solar_rl.errors import InputError

__all__ = [
    "ENDS",
    "MAX_STEPS",
    "OVERALL",
    "Agent",
    "Alone",
    "Answer",
    "Job",
    "Played",
    "Player",
    "Rate",
    "StepLimit",
    "SuiteResult",
    "Turn",
    "evaluate_suite",
    "play",
    "run_episode",
    "summarise",
]


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
    return next(play([environment], Alone(agent), [Job(task, seed)], max_steps=max_steps))


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
    jobs = (Job(name, seed) for name in names for seed in numbers)
    for one in play([environment], Alone(agent), jobs, max_steps=max_steps):
        played.append(one)
        progress(one)
    return summarise(played, resamples=resamples, seed=bootstrap_seed)
