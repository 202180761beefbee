"""solar-rl's interchange format: anybody's demonstrations, one episode a line (docs/interchange.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from solar_rl.builder import Builder, Sign
from solar_rl.config import Config, SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.interchange import Images, read_line
from solar_rl.lines import is_gzip, lines_before, read_lines
from solar_rl.peek import first_objects, lines_about, some_files
from solar_rl.schema import Episode, Reject

_ENDINGS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


class Options(Config):
    """Options of builder ``jsonl``."""

    images: str | None = None
    """Folder that the images' paths are relative to (default: the folder of the file)."""
    follow_links: bool = False
    """Take images behind symbolic links that lead out of the folder, as a Hub cache has them."""
    license: str | None = None
    """Licence of the episodes that state none, as the Hub spells it."""


class Jsonl(Builder):
    """Reads files in the interchange format; a large one is several shards, each a range of bytes."""

    name = "jsonl"
    Options = Options
    shard_bytes = 64 << 20
    """A plain file is read in ranges of so many bytes, a gzipped one whole."""

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        if self.options.images is not None and not Path(self.options.images).is_dir():
            raise ConfigError("no such folder", where=f"source.options.images {self.options.images}")
        if not self.source_files():
            endings = ", ".join(_ENDINGS)
            raise ConfigError(f"holds no file {endings}", where=f"source.path {self.path}")

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by the keys that a line must have."""
        for file in [path] if path.is_file() else _files_in(path)[:3]:
            for row in first_objects(file, 3):
                if {"episode_id", "goal", "steps", "coordinates"} <= row.keys():
                    return Sign(0.95, f"{file.name} holds lines with goal, coordinates and steps")
        return None

    def source_files(self) -> list[Path]:
        """List the files; images are told by ``image_sha256`` in the lines."""
        return _files_in(self.path) if self.path.is_dir() else [self.path]

    def shards(self) -> list[str]:
        """List the files, a large one as several ranges of bytes, such as ``a.jsonl:0-67108864``."""
        return [shard for file in self.source_files() for shard in self._ranges(file)]

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield each line as an Episode, or as a Reject that names the line and the key."""
        file, start, end = self._place(shard)
        images = Images(Path(self.options.images or file.parent), self.options.follow_links)
        before: int | None = None
        for number, line in read_lines(file, start, end):
            item = self._read_line(line, images)
            if isinstance(item, Episode):
                yield item
                continue
            before = lines_before(file, start) if before is None else before
            yield Reject(file.name, f"line {before + number}", item.reason, str(item))

    def about(self, shard: str) -> int | None:
        """Count the lines of a shard from the length of its file's first ones."""
        file, start, end = self._place(shard)
        whole, size = lines_about(file), file.stat().st_size
        return round(whole * ((end or size) - start) / size) if whole is not None and size else whole

    def _read_line(self, line: bytes | RecordError, images: Images) -> Episode | RecordError:
        if isinstance(line, RecordError):
            return line
        try:
            return read_line(line, images, self.options.license)
        except RecordError as error:
            return error

    def _ranges(self, file: Path) -> Iterator[str]:
        size = file.stat().st_size
        if size <= self.shard_bytes or is_gzip(file):
            yield file.name
            return
        for start in range(0, size, self.shard_bytes):
            yield f"{file.name}:{start}-{min(size, start + self.shard_bytes)}"

    def _place(self, shard: str) -> tuple[Path, int, int | None]:
        """Find the file and the range that a shard's name tells."""
        for file in self.source_files():
            if shard == file.name:
                return file, 0, None
            if shard.startswith(f"{file.name}:"):
                start, _, end = shard.rpartition(":")[2].partition("-")
                return file, int(start), int(end)
        raise ConfigError("no such shard", where=shard)


def _files_in(folder: Path) -> list[Path]:
    return some_files(folder, _ENDINGS)


BUILDER = Jsonl
