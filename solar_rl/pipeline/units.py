"""Keep a build's unfinished work where a killed run, or another rank, finds it: one folder a unit.

A unit is a run of ``shard_episodes`` good episodes of one source shard with their candidates and screenshots. It is
written under another name, synced and renamed, so it is whole or absent. A shard that was read to its end has a
marker that counts its units.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import polars as pl

from solar_rl.columns import candidates_frame, episodes_frame, steps_frame
from solar_rl.pipeline.work import sync, temporary_name, write_atomically
from solar_rl.schema import Candidate, Episode, Reject

if TYPE_CHECKING:
    import pyarrow as pa

UNIT_TABLES = ("episodes", "steps", "candidates")
SCREENS = "screens.bin"
"""File of a unit's encoded screenshots, one after the other: written as they are, and read by their places."""


@dataclass(frozen=True)
class Unit:
    """One finished unit.

    Args:
        folder: Where it lies.
        shard: Number of its source shard.
        part: Which unit of that shard.
        episodes: (episode_id, split) in the source's order.
        rejects: What was met on the way, each with the number of the unit's episodes before it.
    """

    folder: Path
    shard: int
    part: int
    episodes: tuple[tuple[str, str], ...]
    rejects: tuple[tuple[int, Reject], ...]

    @classmethod
    def read(cls, folder: Path) -> Unit:
        """Read a unit's marker."""
        shard, part = folder.name.split("-")
        data = orjson.loads((folder / "unit.json").read_bytes())
        episodes = tuple((str(i), str(split)) for i, split in data["episodes"])
        rejects = tuple((int(before), Reject(**fields)) for before, fields in data["rejects"])
        return cls(folder, int(shard), int(part), episodes, rejects)

    def scan(self, table: str) -> pl.LazyFrame:
        """Return one of the unit's tables as a lazy frame."""
        return pl.scan_parquet(self.folder / f"{table}.parquet", glob=False)

    @cached_property
    def images(self) -> pa.Table:
        """Return the unit's screenshots, memory-mapped: sha256, bytes, width, height; each hash once."""
        import pyarrow as pa

        index = pl.read_parquet(self.folder / "images.parquet", glob=False)
        screens = self.folder / SCREENS
        data = pa.memory_map(str(screens)).read_buffer() if index.height else pa.py_buffer(b"")
        ends = pl.concat([pl.Series([0]), index["size"].cum_sum()]).to_numpy()
        buffers = [None, pa.py_buffer(ends), data]
        images = pa.LargeBinaryArray.from_buffers(pa.large_binary(), index.height, buffers)
        columns = {"sha256": index["sha256"].to_arrow(), "bytes": images}
        return pa.table(columns | {name: index[name].to_arrow() for name in ("width", "height")})


class UnitStore:
    """The units of one build, below ``OUT/.build/KEY``.

    Args:
        root: The folder.
        shard_episodes: Good episodes a unit; units of another size are left alone.
        screens: Whether each episode's middle screen is hashed.
    """

    def __init__(self, root: Path, shard_episodes: int, *, screens: bool = True) -> None:
        self.size = shard_episodes
        self._screens = screens
        self._units = root / f"units-{shard_episodes}"
        self._shards = root / f"shards-{shard_episodes}"

    def make(self) -> None:
        """Create the folders."""
        for folder in (self._units, self._shards):
            folder.mkdir(parents=True, exist_ok=True)

    def finished_parts(self, shard: int) -> int | None:
        """Return how many units a shard has that was read to its end; None where it wasn't."""
        marker = self._shards / f"{shard:06d}.json"
        return int(orjson.loads(marker.read_bytes())["parts"]) if marker.exists() else None

    def finish_shard(self, shard: int, parts: int) -> None:
        """Mark a shard as read to its end."""
        write_atomically(self._shards / f"{shard:06d}.json", orjson.dumps({"parts": parts}))

    def parts(self, shard: int) -> list[Unit]:
        """Return the finished units of a shard, in order."""
        found: list[Unit] = []
        while (folder := self._folder(shard, len(found))).is_dir():
            found.append(Unit.read(folder))
        return found

    def units(self, shards: int) -> list[Unit]:
        """Return the units of every shard, which must all be finished, in order."""
        return [unit for shard in range(shards) for unit in self.parts(shard)]

    def unfinished(self, shards: int) -> list[int]:
        """Return the shards that weren't read to their end."""
        return [shard for shard in range(shards) if self.finished_parts(shard) is None]

    def count(self) -> int:
        """Return the number of finished units."""
        return sum(1 for path in self._units.glob("*-*") if not path.name.startswith("."))

    def bytes(self) -> int:
        """Return the size of all finished units."""
        return sum(path.stat().st_size for path in self._units.glob("[0-9]*/*"))

    def save(
        self,
        shard: int,
        part: int,
        episodes: Sequence[Episode],
        candidates: Sequence[Candidate],
        rejects: Sequence[tuple[int, Reject]],
    ) -> None:
        """Write a unit; one that another process finished meanwhile is kept in its place."""
        final = self._folder(shard, part)
        folder = temporary_name(final)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        tables = {
            "episodes": episodes_frame(episodes, screens=self._screens),
            "steps": steps_frame(episodes),
            "candidates": candidates_frame(candidates),
            "images": _write_screens(folder / SCREENS, episodes),
        }
        for name, frame in tables.items():
            buffer = BytesIO()  # polars tells of a full disk in no way that can be told from a fault of ours
            frame.write_parquet(buffer, compression="zstd", compression_level=1)
            (folder / f"{name}.parquet").write_bytes(buffer.getbuffer())
        marker = {
            "episodes": [(episode.episode_id, episode.split) for episode in episodes],
            "rejects": [(before, asdict(reject)) for before, reject in rejects],
        }
        for path in folder.iterdir():
            sync(path)
        write_atomically(folder / "unit.json", orjson.dumps(marker))
        sync(folder)
        try:
            folder.rename(final)
        except OSError:
            if not final.is_dir():
                raise
            shutil.rmtree(folder)
        sync(self._units)

    def _folder(self, shard: int, part: int) -> Path:
        return self._units / f"{shard:06d}-{part:06d}"


def _write_screens(path: Path, episodes: Sequence[Episode]) -> pl.DataFrame:
    """Write the screenshots of some episodes, each once, and return what finds them again."""
    shots = {s.screenshot.sha256: s.screenshot for e in episodes for s in e.steps if s.screenshot}
    with path.open("wb") as file:
        for shot in shots.values():
            file.write(shot.data)
    rows = [(sha256, len(shot.data), shot.width, shot.height) for sha256, shot in shots.items()]
    schema = {"sha256": pl.String, "size": pl.Int64, "width": pl.Int32, "height": pl.Int32}
    return pl.DataFrame(rows, schema=schema, orient="row")
