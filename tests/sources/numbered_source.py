"""A source for the tests of mixing: episodes numbered from 0, every fact about them on request."""

from __future__ import annotations

import io
from collections.abc import Iterator

from PIL import Image

from solar_rl.actions import Action
from solar_rl.builder import Builder
from solar_rl.config import Config
from solar_rl.schema import Episode, Reject, Screenshot, Step


class NumberedOptions(Config):
    """Options of the numbered source."""

    count: int = 20
    """How many episodes."""
    shards: int = 2
    """Into how many shards they are cut."""
    broken: tuple[int, ...] = ()
    """Which are rejects."""
    license: str | None = "mit"
    """Licence of each episode."""
    backwards: bool = False
    """Read each shard from its end."""
    shots: bool = False
    """Show the same screen before every first step."""


def screen() -> Screenshot:
    """Return the one screen of this source."""
    data = io.BytesIO()
    Image.new("RGB", (9, 16), (10, 20, 30)).save(data, "PNG")
    return Screenshot(data.getvalue(), 9, 16)


class Numbered(Builder):
    """Episode n has n % 5 + 1 steps; every third failed, every third says nothing of its success."""

    name = "numbered"
    license = "mit"
    homepage = "https://example.org/numbered"
    citation = "@misc{numbered}"
    needs_path = False
    Options = NumberedOptions

    def shards(self) -> list[str]:
        return [f"part-{index}" for index in range(self.options.shards)]

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        first = int(shard.partition("-")[2])
        numbers = range(first, self.options.count, self.options.shards)
        for number in reversed(numbers) if self.options.backwards else numbers:
            if number in self.options.broken:
                yield Reject(shard, f"record {number}", "bad_json", "half a line", str(number))
            else:
                yield self._episode(number)

    def _episode(self, number: int) -> Episode:
        action = Action("wait") if number % 4 else Action("press", button="back")
        steps = tuple(
            Step(index, action, 9, 16, screenshot=screen() if self.options.shots and index == 0 else None)
            for index in range(number % 5 + 1)
        )
        return Episode(
            str(number),
            self.name,
            "android",
            f"目标 {number}" if number % 7 == 0 else f"goal {number}",
            steps,
            split="test" if number % 10 == 9 else "train",
            license=self.options.license,
            subsplits=("odd",) if number % 2 else (),
            recorded_success=(True, False, None)[number % 3],
        )


class Cousin(Numbered):
    """The same under another name and licence."""

    name = "cousin"
    license = "cc-by-4.0"
    homepage = "https://example.org/cousin"
    citation = "@misc{cousin}"


class Faulty(Numbered):
    """A builder of a user's that fails."""

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        raise ZeroDivisionError("oops")
