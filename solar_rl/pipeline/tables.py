"""Write the tables file by file: each file is a task of its own, for any rank, done when its note is there.

Files are cut in the source's order, by episodes or by bytes of images, and sorted by key inside. What ends up
in a file depends on the rows alone, never on how units were cut or on who writes. Memory is that of a few
thousand episodes, or of one row group of images.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
import polars as pl

from solar_rl.columns import polars_schema
from solar_rl.config import DatasetConfig
from solar_rl.pipeline.scoring import score_by_parts
from solar_rl.pipeline.settle import Settled
from solar_rl.pipeline.units import UNIT_TABLES, Unit
from solar_rl.pipeline.work import write_atomically
from solar_rl.schema import SPLITS, TABLES, arrow_schema
from solar_rl.store.manifest import FileEntry, file_entry
from solar_rl.store.parquet import TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
FILE_EPISODES = 20_000
"""Episodes a file: AndroidControl's training split is one, a million episodes are fifty."""
SMALLEST_IMAGE_FILE, LARGEST_IMAGE_FILE, IMAGE_FILES = 256 << 20, 4 << 30, 1_000
"""Bytes of images a file, encoded: a thousandth of them all, within these bounds, so that small sets have files
enough for several workers and large ones not too many for a Hub."""
EPISODES_AT_ONCE = 2_000
DERIVED = ("rewards", "trajectories")
VERDICTS = "verdicts"
"""Folder beside a version that is made, with what a verifier has said so far."""


@dataclass(frozen=True)
class FileTask:
    """One file of each table of a kind.

    Args:
        kind: ``episodes`` (every table that has an episode_id) or ``images``.
        split: train, validation or test.
        index: Number of the file within its split.
        total: Number of such files.
        rows: Columns unit and episode_id, or unit and sha256, in the order of that key.
    """

    kind: str
    split: str
    index: int
    total: int
    rows: pl.DataFrame

    @property
    def name(self) -> str:
        """Return the task's name among all tasks of a build."""
        return f"{self.kind}-{self.split}-{self.index:05d}-of-{self.total:05d}"


def plan_files(settled: Settled) -> list[FileTask]:
    """List the files of a build; a split without episodes has none, a build without any has empty train files."""
    tasks: list[FileTask] = []
    present = [split for split in SPLITS if (settled.episodes["split"] == split).any()] or ["train"]
    images = _images(settled)
    for split in present:
        rows = settled.episodes.filter(pl.col("split") == split).select("unit", "episode_id")
        tasks += _cut("episodes", split, rows, _every(rows.height, FILE_EPISODES), "episode_id")
    size = min(LARGEST_IMAGE_FILE, max(SMALLEST_IMAGE_FILE, int(images["bytes"].sum()) // IMAGE_FILES))
    shown = [split for split in present if (images["split"] == split).any()] or present[:1]
    for split in shown:
        rows = images.filter(pl.col("split") == split)
        starts = rows.select(pl.col("bytes").cum_sum().shift(1, fill_value=0) // size).to_series()
        tasks += _cut("images", split, rows.select("unit", "sha256"), starts, "sha256")
    return tasks


def write_file(task: FileTask, settled: Settled, config: DatasetConfig, folder: Path, notes: Path) -> None:
    """Write a task's files and then its note, which holds their hashes; a task with a note is left alone.

    Args:
        task: What to write.
        settled: The units.
        config: Validity, shaping and advantage.
        folder: The dataset's folder.
        notes: Folder of the notes.
    """
    note = notes / f"{task.name}.json"
    if note.exists():
        return
    written = _write_images if task.kind == "images" else _write_episodes
    files = written(task, settled, config, folder)
    entries = [file_entry(folder, path, rows) for path, rows in files]
    write_atomically(note, orjson.dumps([entry.model_dump() for entry in entries]))


def read_notes(notes: Path) -> dict[str, FileEntry]:
    """Return the files that were written, by path."""
    entries = (
        FileEntry(**e) for path in sorted(notes.glob("*.json")) for e in orjson.loads(path.read_bytes())
    )
    return {entry.path: entry for entry in entries}


def _every(rows: int, size: int) -> pl.Series:
    return pl.int_range(rows, eager=True) // size


def _cut(kind: str, split: str, rows: pl.DataFrame, file: pl.Series, key: str) -> list[FileTask]:
    parts = rows.with_columns(file=file).partition_by("file", maintain_order=True, include_key=False)
    parts = parts or [rows]
    return [FileTask(kind, split, i, len(parts), part.sort(key)) for i, part in enumerate(parts)]


def _images(settled: Settled) -> pl.DataFrame:
    """Give each image to the first split, in the order of SPLITS, that shows it, in the order of first use.

    Returns:
        Columns split, unit (one that holds it), sha256 and bytes.
    """
    used = [
        unit.scan("steps")
        .select("episode_id", "image_sha256")
        .drop_nulls()
        .with_columns(unit=pl.lit(number, pl.Int32))
        for number, unit in enumerate(settled.units)
    ]
    empty: dict[str, Any] = {
        "split": pl.Enum(SPLITS),
        "unit": pl.Int32,
        "sha256": pl.String,
        "bytes": pl.Int64,
    }
    if not used:
        return pl.DataFrame(schema=empty)
    order = settled.episodes.with_row_index("order")
    shown = (
        pl.concat(used)
        .rename({"image_sha256": "sha256"})
        .collect(engine="in-memory")
        .join(order, on=["unit", "episode_id"], how="inner")
        .sort(pl.col("split").to_physical(), "order", "sha256")
        .unique("sha256", keep="first", maintain_order=True)
    )
    sizes = [
        pl.DataFrame(_sizes(unit), orient="row", schema={"sha256": pl.String, "bytes": pl.Int64})
        for unit in settled.units
    ]
    known = pl.concat(sizes).unique("sha256")
    return shown.join(known, on="sha256", how="left", maintain_order="left").select(list(empty))


def _sizes(unit: Unit) -> list[tuple[str, int]]:
    import pyarrow.compute as pc

    table = unit.images
    return list(zip(table["sha256"].to_pylist(), pc.binary_length(table["bytes"]).to_pylist(), strict=True))


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


Written = list[tuple[Path, int]]
"""Files below the dataset's folder, with their rows."""


def _write_episodes(task: FileTask, settled: Settled, config: DatasetConfig, folder: Path) -> Written:
    part = (task.index, task.total)
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(TableWriter(folder, name, task.split, part=part))
            for name in (*UNIT_TABLES, *DERIVED)
        }
        for start in range(0, task.rows.height, EPISODES_AT_ONCE):
            rows = task.rows[start : start + EPISODES_AT_ONCE]
            found = {name: _rows_of(name, rows, settled.units) for name in UNIT_TABLES}
            images = partial(_screenshots, rows, settled.units)
            shaped = score_by_parts(config, **found, images=images, kept=folder.parent / VERDICTS)
            for name, frame in (*found.items(), *zip(DERIVED, shaped, strict=True)):
                writers[name].write(frame)
    return [(path, writer.rows) for writer in writers.values() for path in writer.files]


def _rows_of(table: str, rows: pl.DataFrame, units: Sequence[Unit]) -> pl.DataFrame:
    """Collect the rows of some episodes from the units that hold them, sorted by key."""
    frames = []
    for (number,), part in rows.partition_by("unit", as_dict=True).items():
        wanted = pl.col("episode_id").is_in(part["episode_id"].implode())
        frames.append(units[number].scan(table).filter(wanted))  # type: ignore[call-overload]
    if not frames:
        return pl.DataFrame(schema=polars_schema(table))
    found: pl.DataFrame = pl.concat(frames).collect(engine="in-memory")
    return found.sort(TABLES[table].key, maintain_order=True)


def _screenshots(rows: pl.DataFrame, units: Sequence[Unit], steps: pl.DataFrame) -> pl.DataFrame:
    """Return the screenshots of some steps, for a verifier that looks at them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    holders = rows.filter(pl.col("episode_id").is_in(steps["episode_id"].unique().implode()))["unit"]
    wanted = pa.array(steps["image_sha256"].drop_nulls().unique().to_list(), pa.string())
    tables = [
        table.filter(pc.is_in(table["sha256"], wanted))
        for table in (units[unit].images.select(["sha256", "bytes"]) for unit in holders.unique().sort())
    ]
    empty = pa.schema({"sha256": pa.string(), "bytes": pa.large_binary()}).empty_table()
    frame = pl.DataFrame(pl.from_arrow(pa.concat_tables([empty, *tables], promote_options="permissive")))
    return frame.unique("sha256", keep="first", maintain_order=True).rename({"bytes": "screenshot"})


def _write_images(task: FileTask, settled: Settled, config: DatasetConfig, folder: Path) -> Written:
    shelves = {number: _Shelf(settled.units[number]) for number in task.rows["unit"].unique().to_list()}
    with TableWriter(folder, "images", task.split, part=(task.index, task.total)) as writer:
        for chunk in _chunks(list(task.rows.iter_rows()), TABLES["images"].row_group):
            writer.write(_shown([shelves[number].row(sha256) for number, sha256 in chunk]))
    return [(path, writer.rows) for path in writer.files]


def read_images(settled: Settled, episodes: Collection[str], hashes: Collection[str]) -> dict[str, bytes]:
    """Read screenshots of some episodes from their units, of which nothing else is read.

    Args:
        settled: The units.
        episodes: Ids.
        hashes: SHA-256 of screenshots that they show.

    Returns:
        The encoded screenshots by hash.
    """
    holders = settled.episodes.filter(pl.col("episode_id").is_in(list(episodes)))["unit"].unique().sort()
    found: dict[str, bytes] = {}
    for shelf in (_Shelf(settled.units[number]) for number in holders):
        found |= {sha256: shelf.row(sha256)["bytes"][0].as_py() for sha256 in shelf.holds(hashes)}
    return found


def _shown(rows: list[pa.Table]) -> pa.Table:
    """Put rows of units together as rows of table ``images``; each screenshot is copied once."""
    import pyarrow as pa

    schema = arrow_schema("images")
    found = pa.concat_tables(rows).combine_chunks()
    data = found["bytes"].combine_chunks().cast(pa.binary())
    image = pa.StructArray.from_arrays(
        [data, pa.nulls(len(data), pa.string())], fields=list(schema.field("image").type)
    )
    return pa.table([found["sha256"], image, found["width"], found["height"]], schema=schema)


class _Shelf:
    """Finds a unit's images by hash."""

    def __init__(self, unit: Unit) -> None:
        self._table = unit.images
        self._row = {sha256: row for row, sha256 in enumerate(self._table["sha256"].to_pylist())}

    def holds(self, hashes: Collection[str]) -> list[str]:
        """Return those of the hashes that lie here."""
        return sorted(set(hashes) & self._row.keys())

    def row(self, sha256: str) -> pa.Table:
        """Return an image's row, still on the disk."""
        return self._table.slice(self._row[sha256], 1)
