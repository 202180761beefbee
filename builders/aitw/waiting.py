"""Steps that wait for the rest of their episode, in memory that doesn't grow with their number.

The steps of an episode mostly follow each other. Where another episode comes between, the screenshots that
wait go to a temporary file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import IO

from solar_rl.errors import RecordError
from solar_rl.schema import Screenshot, Step


@dataclass
class Waiting:
    """What is known of one episode so far.

    Args:
        episode_id: Its id.
        place: Number of the record that it began with.
        length: How many steps there are to be.
        goal: What the user wants.
        steps: Its steps by number.
        records: Records seen, broken ones included.
        error: The first thing that was broken.
    """

    episode_id: str
    place: int
    length: int
    goal: str
    steps: dict[int, Step] = field(default_factory=dict)
    records: int = 0
    error: RecordError | None = None
    spilled: dict[int, tuple[int, int, Screenshot]] = field(default_factory=dict)

    def fail(self, error: RecordError) -> None:
        """Note that the episode is broken; its steps aren't needed any more."""
        self.error = self.error or error
        self.steps.clear()
        self.spilled.clear()


class WaitingRoom:
    """Holds the episodes that aren't complete yet.

    Args:
        file: An empty temporary file, for screenshots that wait long.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._episodes: dict[str, Waiting] = {}
        self._last: str | None = None

    def enter(self, episode_id: str, place: int, length: int, goal: str) -> Waiting:
        """Return the episode that waits under this id, a new one where none does."""
        if self._last not in (None, episode_id) and self._last in self._episodes:
            self._spill(self._episodes[self._last])
        self._last = episode_id
        return self._episodes.setdefault(episode_id, Waiting(episode_id, place, length, goal))

    def leave(self, episode: Waiting) -> list[Step]:
        """Give up an episode's place and return its steps, renumbered from 0, screenshots included."""
        del self._episodes[episode.episode_id]
        steps = [self._restored(episode, number) for number in sorted(episode.steps)]
        if not any(other.spilled for other in self._episodes.values()):
            self._file.truncate(0)
        return [replace(step, step_index=index) for index, step in enumerate(steps)]

    def rest(self) -> Iterator[Waiting]:
        """Return the episodes that still wait, in the order in which they came."""
        return iter(list(self._episodes.values()))

    def _spill(self, episode: Waiting) -> None:
        for number, step in episode.steps.items():
            if step.screenshot is not None:
                start, size = self._file.seek(0, 2), self._file.write(step.screenshot.data)
                episode.spilled[number] = (start, size, replace(step.screenshot, data=b""))
                episode.steps[number] = replace(step, screenshot=None)

    def _restored(self, episode: Waiting, number: int) -> Step:
        step = episode.steps[number]
        if number not in episode.spilled:
            return step
        start, size, screenshot = episode.spilled[number]
        self._file.seek(start)
        return replace(step, screenshot=replace(screenshot, data=self._file.read(size)))
