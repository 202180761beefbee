"""Files with one episode a line: what every builder of them shares."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from solar_rl.builder import Builder
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.peek import first_objects, lines_about, some_files
from solar_rl.schema import Episode, Reject

from .plain import NOT_PLAIN, Odd
from .vocabulary import read_json, read_text


class JsonlBuilder(Builder):
    """Reads a .jsonl file, or each one of a folder, as one shard a file."""

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        if not self.shards():
            raise ConfigError("holds no .jsonl file", where=f"source.path {self.path}")

    def source_files(self) -> list[Path]:
        """List the files."""
        return [self._file(shard) for shard in self.shards()]

    def shards(self) -> list[str]:
        """List the files by name."""
        if not self.path.is_dir():
            return [self.path.name]
        return sorted(file.name for file in self.path.glob("*.jsonl") if file.is_file())

    def _file(self, shard: str) -> Path:
        return self.path / shard if self.path.is_dir() else self.path

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield each line of one file as an Episode, or as a Reject that says why not."""
        with self._file(shard).open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.isspace():
                    yield self._read_line(line, shard, number)

    def about(self, shard: str) -> int | None:
        """Count the lines of a file from the length of its first ones."""
        return lines_about(self._file(shard))

    def _read_line(self, line: bytes, file: str, number: int) -> Episode | Reject:
        try:
            if not line.isascii():
                line.decode()  # a struct skips what nobody asks for
            return self.plain_episode(line)
        except NOT_PLAIN:
            return self._read_object(line, file, number)

    def _read_object(self, line: bytes, file: str, number: int) -> Episode | Reject:
        episode_id = None
        try:
            row = read_json(line, "the line")
            episode_id = self.episode_id(row, number)
            return self.episode(row, episode_id)
        except RecordError as error:
            return Reject(file, f"line {number}", error.reason, str(error), episode_id)

    def plain_episode(self, line: bytes) -> Episode:
        """Read a line whose values are all as they should be, the quick way; see ``plain``.

        Raises:
            Odd: It isn't plain, or this builder has no quick way. So do the others of ``NOT_PLAIN``.
        """
        raise Odd

    def episode_id(self, row: dict[str, Any], number: int) -> str:
        """Return the id of an episode: the whole number of AndroidControl, as text.

        Args:
            row: The line, decoded.
            number: Number of the line, from 1.

        Raises:
            RecordError: ``missing_field``, ``empty_text`` or ``bad_text``.
        """
        value = row.get("episode_id")
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return read_text(row, "episode_id")

    @abstractmethod
    def episode(self, row: dict[str, Any], episode_id: str) -> Episode:
        """Read one line as an episode.

        Raises:
            RecordError: What is broken, and at which step.
        """


def first_rows(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the first lines of a file, or of the first files of a folder, each with its file's name."""
    files = [path] if path.is_file() else some_files(path, (".jsonl",))[:3]
    return [(file.name, row) for file in files for row in first_objects(file, 3)]


def read_list(row: dict[str, Any], name: str, kind: type) -> list[Any]:
    """Return a list whose items are all of one kind.

    Raises:
        RecordError: ``missing_field``, or ``bad_value`` with the item that is something else.
    """
    value = row.get(name)
    if value is None:
        raise RecordError("missing_field", f"{name} is missing")
    if not isinstance(value, list):
        raise RecordError("bad_value", f"{name} is {type(value).__name__}, expected a list")
    if kind is not object and set(map(type, value)) - {kind}:
        for index, item in enumerate(value):
            if not isinstance(item, kind):
                found = type(item).__name__
                raise RecordError("bad_value", f"{name}[{index}] is {found}, expected {kind.__name__}")
    return value
