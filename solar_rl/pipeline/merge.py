"""Write the published tables from a build's finished units: globally sorted by key, memory flat.

Tables that have an ``episode_id`` are written in ranges of episodes, images by ascending hash. What ends
up in a file depends on the rows alone, never on how the units were cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import polars as pl

from solar_rl.columns import polars_schema
from solar_rl.images import check_image
from solar_rl.pipeline.work import Unit, Work
from solar_rl.schema import SPLITS, TABLES
from solar_rl.store.parquet import TableWriter

T = TypeVar("T")
EPISODES_AT_ONCE = 2_000
EPISODE_TABLES = ("episodes", "steps", "candidates", "rewards", "trajectories")


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


class _Place(NamedTuple):
    episode_id: str
    split: str
    unit: Unit


def write_tables(units: Sequence[Unit], work: Work, out: Path) -> None:
    """Write every table but preview into ``out/data``, one set of files a split.

    A split without episodes gets no file; a build without any gets empty ``train`` files.
    """
    places = _places(units)
    present = [split for split in SPLITS if any(p.split == split for p in places)] or ["train"]
    for split in present:
        chosen = [place for place in places if place.split == split]
        for table in EPISODE_TABLES:
            with TableWriter(out, table, split) as writer:
                for frame in _ranges(table, chosen):
                    writer.write(frame)
    _write_images(_image_splits(units), work, out, present)


def _places(units: Sequence[Unit]) -> list[_Place]:
    places = [
        _Place(episode_id, split, unit)
        for unit in units
        for episode_id, split in unit.scan("episodes").select("episode_id", "split").collect().iter_rows()
    ]
    return sorted(places, key=lambda place: place.episode_id)


def _ranges(table: str, places: Sequence[_Place]) -> Iterator[pl.DataFrame]:
    for chunk in _chunks(places, EPISODES_AT_ONCE):
        wanted = [place.episode_id for place in chunk]
        units = {place.unit.folder: place.unit for place in chunk}
        rows = pl.concat([u.scan(table).filter(pl.col("episode_id").is_in(wanted)) for u in units.values()])
        yield rows.collect(engine="in-memory").sort(TABLES[table].key, maintain_order=True)


def _image_splits(units: Sequence[Unit]) -> dict[str, list[str]]:
    """Give each image to the first split, in the order of SPLITS, that uses it."""
    used: dict[str, set[str]] = {split: set() for split in SPLITS}
    for unit in units:
        steps = unit.scan("steps").select("episode_id", "image_sha256").drop_nulls()
        rows = steps.join(unit.scan("episodes").select("episode_id", "split"), on="episode_id")
        for sha256, split in rows.select("image_sha256", "split").collect().iter_rows():
            used[split].add(sha256)
    taken: set[str] = set()
    owned = {}
    for split in SPLITS:
        owned[split] = sorted(used[split] - taken)
        taken |= used[split]
    return owned


def _write_images(owned: dict[str, list[str]], work: Work, out: Path, present: Sequence[str]) -> None:
    splits = [split for split in present if owned[split]] or present[:1]
    for split in splits:
        with TableWriter(out, "images", split) as writer:
            for chunk in _chunks(owned[split], TABLES["images"].row_group):
                writer.write(_image_rows(chunk, work))


def _image_rows(hashes: Iterable[str], work: Work) -> pl.DataFrame:
    rows = []
    for sha256 in hashes:
        data = work.image_path(sha256).read_bytes()
        width, height = check_image(data)
        rows.append((sha256, {"bytes": data, "path": None}, width, height))
    return pl.DataFrame(rows, schema=polars_schema("images"), orient="row")
