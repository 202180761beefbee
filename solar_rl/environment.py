"""A live screen that an agent acts on: what every environment offers, whoever wrote the world behind it.

The phone and MiniWoB++ are environments of this kind; ``solar_rl.closed_loop`` runs agents on them. A task
and a seed decide an episode; actions are canonical ones in the unit square of what is seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from solar_rl.actions import Action, Box
from solar_rl.schema import Screenshot


@dataclass(frozen=True)
class Observation:
    """What an agent sees.

    Args:
        goal: What the user asks for.
        screenshot: The screen; None where the environment was told to take none.
        screen_text: The same screen as text.
        width: Pixels of the screen.
        height: The same down the height.
        boxes: Places of what can be seen, in the unit square.
    """

    goal: str
    screenshot: Screenshot | None
    screen_text: str
    width: int
    height: int
    boxes: tuple[Box, ...] = ()


class Environment(ABC):
    """One live episode at a time: ``reset``, then ``act`` until ``done``; ``success`` tells how it went.

    An action that makes no sense on the screen passes time and changes nothing; it doesn't raise. After the
    end nothing changes any more. An environment that holds processes is closed, or used in a ``with`` block.
    """

    @property
    @abstractmethod
    def tasks(self) -> tuple[str, ...]:
        """Return the names of the tasks that ``reset`` takes."""

    @abstractmethod
    def reset(self, task: str, seed: int) -> Observation:
        """Start an episode; the same task and seed give the same one.

        Raises:
            InputError: No such task.
        """

    @abstractmethod
    def act(self, action: Action) -> Observation:
        """Do an action and return what is seen then."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Tell whether the episode is over."""

    @property
    @abstractmethod
    def success(self) -> bool:
        """Tell whether the goal is reached, as the environment itself judges."""

    @property
    def progress(self) -> float | None:
        """Return the share of the goal that is reached, in [0, 1]; None where nobody can tell."""
        return None

    @property
    def steps_left(self) -> int | None:
        """Return how many actions an expert would need from here; None where nobody can tell."""
        return None

    def close(self) -> None:
        """Let go of processes and files; closing twice is fine."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
