"""Sources with one JSON file an episode and screenshots beside it: what every builder of them shares."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import orjson

from solar_rl.builder import Builder
from solar_rl.config import Config, SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.schema import Episode, Reject, Screenshot, Step

_BOM = b"\xef\xbb\xbf"
_SHARD_FILES = 64
"""Files in a shard: few enough that several workers have something to do, enough that each has a while."""


class EpisodeFileOptions(Config):
    """Options of every builder that reads one JSON file an episode."""

    missing_screenshots: Literal["keep", "cut", "reject"] = "keep"
    """A step whose screenshot isn't there: keep it without one, cut the episode before it, or reject the episode."""
    incomplete: Literal["reject", "keep"] = "reject"
    """An episode with fewer or more steps than the source says that it has: reject it, or keep what is there."""


class EpisodeFiles(Builder):
    """Reads JSON files, each of them one episode; a shard is a group of them."""

    Options = EpisodeFileOptions

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        if not self.path.is_dir():
            raise ConfigError("is a file, expected a folder", where=f"source.path {self.path}")
        if not self.files:
            raise ConfigError(
                f"holds no episode file ({self.looked_for})",
                where=f"source.path {self.path}",
                hint="name the folder that the data set was unpacked to",
            )

    @property
    @abstractmethod
    def looked_for(self) -> str:
        """Say which files are looked for, for the message when there are none."""

    @abstractmethod
    def find_files(self) -> list[Path]:
        """List the episodes' files in a fixed order."""

    @cached_property
    def files(self) -> list[Path]:
        """Return what ``find_files`` lists."""
        return self.find_files()

    @abstractmethod
    def episode(self, file: Path, value: Any) -> Episode:
        """Read the decoded JSON of one file as an episode.

        Raises:
            RecordError: What is broken, and at which step.
        """

    @cached_property
    def _groups(self) -> dict[str, list[Path]]:
        starts = range(0, len(self.files), _SHARD_FILES)
        groups = [self.files[start : start + _SHARD_FILES] for start in starts]
        return {_range_name([self._relative(file) for file in group]): group for group in groups}

    def source_files(self) -> list[Path]:
        """List the episodes' files. Screenshots are not hashed here: each is stored under its own hash."""
        return self.files

    def shards(self) -> list[str]:
        """List groups of files, each named by its first and last one."""
        return list(self._groups)

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield each file of a group as an Episode, or as a Reject that says why not."""
        for file in self._groups[shard]:
            yield self._read_file(file)

    def _read_file(self, file: Path) -> Episode | Reject:
        try:
            return self.episode(file, _decoded(file))
        except RecordError as error:
            name = self._relative(file)
            return Reject(name, f"episode {file.stem}", error.reason, str(error), file.stem)

    def _relative(self, file: Path) -> str:
        return file.relative_to(self.path).as_posix()

    def checked_rows(
        self, rows: Sequence[Any], number: str, stated: Any, length: str
    ) -> list[dict[str, Any]]:
        """Return an episode's steps in the order of their numbers; gaps between the numbers don't matter.

        Args:
            rows: The steps as they are written.
            number: Name of a step's number.
            stated: How many steps the source says there are; None where it doesn't.
            length: Name of that count.

        Raises:
            RecordError: ``no_steps``; ``bad_value`` or ``bad_number`` for a step or its number;
                ``repeated_step``: two of one number; ``missing_steps``: another count than is stated.
        """
        if not rows:
            raise RecordError("no_steps", "the episode has no steps")
        ordered = in_order(rows, number)
        if self.options.incomplete == "reject" and stated is not None and stated != len(rows):
            message = f"{len(rows)} steps are there, {length} is {stated!r}"
            raise RecordError(
                "missing_steps", message, hint="source.options.incomplete keep takes it as it is"
            )
        return ordered

    def with_policy(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        """Apply ``missing_screenshots`` to an episode's steps.

        Raises:
            RecordError: ``missing_image``: the option rejects such an episode, or nothing is left of it.
        """
        first = next((step.step_index for step in steps if step.screenshot is None), None)
        policy = self.options.missing_screenshots
        if first is None or policy == "keep":
            return tuple(steps)
        if policy == "reject" or first == 0:
            raise RecordError("missing_image", "the screenshot isn't there", where=f"step {first}")
        return tuple(steps[:first])


class Shelf:
    """Finds screenshots by their names in a folder, right in it or anywhere below.

    Args:
        folder: The folder; None where no screenshots are to be read.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    @cached_property
    def _below(self) -> dict[str, str]:
        """Name of each file in a subfolder and the subfolder; only looked up once something isn't right here."""
        found: dict[str, str] = {}
        assert self._folder is not None
        for folder, subfolders, names in os.walk(self._folder):
            subfolders.sort()
            if folder != str(self._folder):
                found |= {name: folder for name in names if name not in found}
        return found

    def find(self, path: str) -> Screenshot | None:
        """Read the screenshot of that name; None when it isn't there.

        Args:
            path: Name or path as the source writes it; only its last part counts, so that it leads nowhere else.

        Raises:
            RecordError: ``bad_image``: it is there and broken.
        """
        name = PurePosixPath(path).name
        if self._folder is None or not name or "\0" in name:
            return None
        data = _bytes(self._folder / name)
        if data is None and name in self._below:
            data = _bytes(Path(self._below[name], name))
        return None if data is None else Screenshot.of(data)


def _bytes(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:  # not there, a folder, or a name that no file can have
        return None


def _decoded(file: Path) -> Any:
    try:
        return orjson.loads(file.read_bytes().removeprefix(_BOM))
    except OSError as error:
        raise RecordError("unreadable", f"the file can't be read: {error}") from error
    except ValueError as error:
        raise RecordError("bad_json", f"the file is no JSON ({error})") from error


def _range_name(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]}..{names[-1]}"


def in_order(rows: Sequence[Any], name: str) -> list[dict[str, Any]]:
    """Sort an episode's steps by their numbers.

    Raises:
        RecordError: A step is no object, has no whole number, or has the number of another one.
    """
    numbered: dict[int, dict[str, Any]] = {}
    for place, row in enumerate(rows):
        if not isinstance(row, dict):
            raise RecordError("bad_value", f"step {place} is {type(row).__name__}, expected an object")
        number = row.get(name)
        if isinstance(number, bool) or not isinstance(number, int):
            raise RecordError(
                "bad_number", f"{name} is {number!r}, expected a whole number", where=f"step {place}"
            )
        if number in numbered:
            raise RecordError("repeated_step", f"{name} {number} is there twice", where=f"step {place}")
        numbered[number] = row
    return [numbered[number] for number in sorted(numbered)]


def as_object(value: Any, what: str) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        RecordError: ``missing_field`` or ``bad_value``.
    """
    if value is None:
        raise RecordError("missing_field", f"{what} is missing")
    if not isinstance(value, dict):
        raise RecordError("bad_value", f"{what} is {type(value).__name__}, expected an object")
    return value


def reached_goal(steps: Sequence[Step]) -> bool | None:
    """Tell from its last action whether a demonstration reached its goal; None where it says nothing of it."""
    last = steps[-1].action
    return last.status == "complete" if last.action_type == "finished" else None


def main_app(steps: Sequence[Step]) -> str | None:
    """Return the app that most steps are taken in, the earlier one when two tie."""
    counts = Counter(step.app for step in steps if step.app)
    return max(counts, key=lambda app: counts[app], default=None)
