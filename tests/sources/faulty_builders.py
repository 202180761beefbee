"""Builders that each break one promise, and one that breaks none: what the conformance test must tell apart."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from solar_rl.actions import Action, Box
from solar_rl.builder import Builder, Sign
from solar_rl.config import Config, SourceConfig
from solar_rl.errors import RecordError
from solar_rl.peek import first_objects
from solar_rl.schema import Episode, Reject, Screenshot, Step

_COUNTER = itertools.count()


class Good(Builder):
    """Reads FOLDER/*.txt, a JSON object an episode."""

    name = "good"
    license = "mit"
    homepage = "https://example.org"

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        rows = [row for file in sorted(path.glob("*.txt")) for row in first_objects(file, 1)]
        return Sign(0.9, "goals") if rows and "wish" in rows[0] else None

    def source_files(self) -> list[Path]:
        return sorted(self.path.glob("*.txt"))

    def shards(self) -> list[str]:
        return [file.name for file in self.source_files()]

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        try:
            row = json.loads((self.path / shard).read_bytes())
            yield self.episode(shard, row["wish"])
        except (ValueError, KeyError, TypeError) as error:
            yield Reject(shard, "the file", "bad_json", str(error) or "?")

    def episode(self, shard: str, goal: str) -> Episode:
        """Make an episode of one click."""
        box = Box(0.4, 0.4, 0.6, 0.6)
        step = Step(0, Action("click", x=0.5, y=0.5), 90, 160, target_box=box)
        return Episode(shard, self.name, "android", goal, (step,))


class Changed(Good):
    """A good builder whose only step is changed by ``change``."""

    change: dict[str, Any] = {}

    def episode(self, shard: str, goal: str) -> Episode:
        episode = super().episode(shard, goal)
        return replace(episode, steps=(replace(episode.steps[0], **self.change),))


class Nameless(Good):
    name = "two words"


class Homeless(Good):
    homepage = None


class PlainOptions(Good):
    class Options(Config):
        silent: int = 1


class Deaf(Good):
    """Takes any options and any path."""

    def __init__(self, source: SourceConfig) -> None:
        self.source, self.options = source, None


class Twice(Good):
    def shards(self) -> list[str]:
        return super().shards() * 2


class Unstable(Good):
    def shards(self) -> list[str]:
        return super().shards()[:: 1 if next(_COUNTER) % 2 else -1]


class Unlisted(Good):
    def source_files(self) -> list[Path]:
        return []

    def shards(self) -> list[str]:
        return sorted(file.name for file in self.path.glob("*.txt"))


class Lost(Good):
    def source_files(self) -> list[Path]:
        return [*super().source_files(), self.path / "gone"]

    def shards(self) -> list[str]:
        return [file.name for file in super().source_files()]


class Greedy(Good):
    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        return Sign(1.0, "everything")


class Timid(Good):
    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        return Sign(0.9, path.read_text()) if path.is_file() else Sign(0.9, "a folder")


class Lister(Good):
    def read(self, shard: str) -> Any:
        return list(super().read(shard))


class Stranger(Good):
    def read(self, shard: str) -> Any:
        yield from super().read(shard)
        yield {"goal": 1}


class Pixels(Changed):
    change = {"action": Action("click", x=45, y=80)}


class PixelBoxes(Changed):
    change = {"target_box": Box(36, 64, 54, 96)}


class Gap(Changed):
    change = {"step_index": 3}


class BrokenImage(Changed):
    change = {"screenshot": Screenshot(b"\x89PNG", 90, 160)}


class Shouting(Good):
    def read(self, shard: str) -> Iterator[Episode | Reject]:
        yield from super().read(shard)
        yield Reject(shard, "line 2", "It Is Broken!", "no")


class Raising(Good):
    def read(self, shard: str) -> Iterator[Episode | Reject]:
        raise RecordError("bad_json", "broken")
        yield


class Fragile(Good):
    def read(self, shard: str) -> Iterator[Episode | Reject]:
        yield self.episode(shard, json.loads((self.path / shard).read_bytes())["wish"])


class Silent(Good):
    def read(self, shard: str) -> Iterator[Episode | Reject]:
        yield from (item for item in super().read(shard) if isinstance(item, Episode))


class Counting(Good):
    """Numbers its episodes over everything it has ever read."""

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        for item in super().read(shard):
            yield replace(item, episode_id=f"{next(_COUNTER)}") if isinstance(item, Episode) else item


class Remembering(Good):
    """Leans on the shard before."""

    last = ""

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        for item in super().read(shard):
            yield replace(item, category=self.last) if isinstance(item, Episode) else item
        self.last = shard if shard != self.shards()[-1] else ""


class Hashing(Good):
    """Hangs on the order of a set, which another process has differently."""

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        for item in super().read(shard):
            words = tuple({f"word {n}" for n in range(40)})
            yield replace(item, subsplits=words) if isinstance(item, Episode) else item


class Littering(Good):
    def read(self, shard: str) -> Iterator[Episode | Reject]:
        (self.path / "cache.tmp").write_text("x")
        yield from super().read(shard)


def make_local() -> type[Builder]:
    """Return a class that no other process can import."""

    class Local(Good):
        pass

    return Local


Local = make_local()
