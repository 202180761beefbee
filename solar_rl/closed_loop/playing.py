"""Play episodes in environments: several side by side, one answer each at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from solar_rl.actions import Action
from solar_rl.environment import Environment, Observation
from solar_rl.errors import InputError

MAX_STEPS = 40
StepLimit = int | Mapping[str, int]
"""Answers after which an episode is over: one number, or one a task."""


class Job(NamedTuple):
    """An episode to play: which task, and which episode of it."""

    task: str
    seed: int


@dataclass(frozen=True)
class Answer:
    """What an agent says.

    Args:
        action: The action; None where the answer can't be read, which passes a step and changes nothing.
        text: The answer as it was written, where a model wrote one.
        fault: Why it can't be read.
    """

    action: Action | None
    text: str | None = None
    fault: str | None = None


@dataclass(frozen=True)
class Turn:
    """It is an agent's turn.

    Args:
        slot: Which of the episodes side by side; a new one in the same slot begins with no history.
        job: The episode.
        goal: What is asked for.
        history: Earlier answers, oldest first.
        seen: What is seen now.
        environment: Where; None where it is none of ours.
    """

    slot: int
    job: Job
    goal: str
    history: tuple[Answer, ...]
    seen: Observation
    environment: Environment | None = None


class Player(Protocol):
    """Who plays: answers the turns of several episodes at once."""

    def answer(self, turns: Sequence[Turn]) -> Sequence[Answer]:
        """Return an answer to each turn, in their order."""
        ...


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
        ref_len: Actions that an expert needs from the start; None where it wasn't asked, as below.
        wrong: Answers that brought the goal no closer, by the expert's count of what is left.
        recovered: Those of them after which the goal came closer than it was before.
        answers: The answers as they were written; None for an agent that writes none.
        faults: Why unreadable answers couldn't be read.
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
    ref_len: int | None = None
    wrong: int | None = None
    recovered: int | None = None
    answers: tuple[str | None, ...] = ()
    faults: tuple[str | None, ...] = ()


def play(
    environments: Sequence[Environment],
    player: Player,
    jobs: Iterable[Job],
    *,
    max_steps: StepLimit = MAX_STEPS,
    recovery: bool = False,
) -> Iterator[Played]:
    """Play episodes, as many side by side as there are environments.

    Args:
        environments: At least one, all of a kind.
        player: Who.
        jobs: Which episodes; may be lazy.
        max_steps: Answers after which an episode is over.
        recovery: Ask the environment after each answer how much is left, to tell wrong ones.

    Yields:
        Each episode when it is over, which is not always in the order of the jobs.

    Raises:
        InputError: No such task, or a limit below 1.
    """
    rest = iter(jobs)
    live = [
        game
        for slot, (environment, job) in enumerate(zip(environments, rest, strict=False))
        if (game := _Game(slot, environment, job, max_steps, recovery))
    ]
    while live:
        over = [game for game in live if game.over]
        for game in over:
            yield game.played()
            job = next(rest, None)
            if job is None:
                live.remove(game)
            else:
                live[live.index(game)] = _Game(game.slot, game.environment, job, max_steps, recovery)
        if over or not live:
            continue
        for game, answer in zip(live, player.answer([game.turn for game in live]), strict=True):
            game.take(answer)


def limit_of(max_steps: StepLimit, task: str) -> int:
    """Return the limit of a task.

    Raises:
        InputError: It is below 1, or the task has none.
    """
    found = max_steps if isinstance(max_steps, int) else max_steps.get(task)
    if found is None:
        raise InputError(f"max_steps says nothing about task '{task}'")
    if found < 1:
        raise InputError(f"max_steps is {found}, expected at least 1")
    return found


class _Game:
    """One episode on its way."""

    def __init__(
        self, slot: int, environment: Environment, job: Job, max_steps: StepLimit, recovery: bool
    ) -> None:
        self.slot, self.environment, self.job = slot, environment, job
        self._limit = limit_of(max_steps, job.task)
        self._seen = environment.reset(*job)
        self._goal = self._seen.goal
        self._history: list[Answer] = []
        self._left = _Left() if recovery else None
        self._look_ahead()

    @property
    def over(self) -> bool:
        return self.environment.done or len(self._history) >= self._limit

    @property
    def turn(self) -> Turn:
        history = tuple(self._history)
        return Turn(self.slot, self.job, self._goal, history, self._seen, self.environment)

    def take(self, answer: Answer) -> None:
        self._history.append(answer)
        if answer.action is not None:
            self._seen = self.environment.act(answer.action)
        self._look_ahead()

    def _look_ahead(self) -> None:
        if self._left is not None:
            ended = self.environment.done
            self._left.note(
                (0 if self.environment.success else None) if ended else self.environment.steps_left
            )

    def played(self) -> Played:
        history, environment = self._history, self.environment
        last = history[-1].action if history else None
        said = last is not None and last.action_type == "finished"
        left = self._left.summed() if self._left is not None else {}
        return Played(
            self.job.task,
            self.job.seed,
            self._goal,
            environment.success,
            environment.progress,
            len(history),
            sum(answer.action is None for answer in history),
            "finished" if said else "environment" if environment.done else "max_steps",
            tuple(answer.action.describe() if answer.action else None for answer in history),
            answers=tuple(answer.text for answer in history),
            faults=tuple(answer.fault for answer in history),
            **left,
        )


@dataclass
class _Left:
    """How many actions an expert would still need: at the start, and after each answer."""

    counts: list[int | None] = field(default_factory=list)

    def note(self, count: int | None) -> None:
        self.counts.append(count)

    def summed(self) -> dict[str, int | None]:
        """Return ref_len, wrong and recovered; None where the environment can't tell."""
        if self.counts[0] is None:
            return {}
        # Where nobody can tell in the middle or at a failed end, nothing is within reach.
        known = [float("inf") if count is None else float(count) for count in self.counts]
        wrong = [t for t in range(len(known) - 1) if known[t + 1] >= known[t]]
        recovered = sum(min(known[t + 1 :]) < known[t] for t in wrong)
        return {"ref_len": self.counts[0], "wrong": len(wrong), "recovered": recovered}


Agent = Callable[[str, Sequence[Action | None], Observation], Action | None]
"""(goal, earlier answers oldest first, what is seen) to the next action, or None for an unreadable answer."""


@dataclass(frozen=True)
class Alone:
    """A player made of an agent: a function that is asked turn by turn."""

    agent: Agent

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Ask the agent about each turn."""
        told = ((turn.goal, tuple(each.action for each in turn.history), turn.seen) for turn in turns)
        return [Answer(self.agent(*each)) for each in told]
