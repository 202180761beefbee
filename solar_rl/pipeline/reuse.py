"""Make a new version from a finished one: what the change doesn't touch is linked, the rest is arithmetic.

Candidates and screenshots are never written again; rewards and trajectories only where validity or shaping
changed. Memory is that of one row group of candidates, whatever the size.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson
import polars as pl

from solar_rl.config import DatasetConfig
from solar_rl.errors import InputError
from solar_rl.pipeline.keys import STAGES, Keys, why
from solar_rl.pipeline.scoring import score_by_parts
from solar_rl.pipeline.tables import DERIVED, VERDICTS
from solar_rl.pipeline.work import sync, temporary_name
from solar_rl.schema import SCORE_COLUMNS, SPLITS, Reject
from solar_rl.shaping import Shaped, shape
from solar_rl.store.manifest import FileEntry, Manifest, first_damaged, read_manifest
from solar_rl.store.parquet import TableWriter

SAMPLED = ("episodes", "steps", "images", "candidates")
_SHAPED_FROM = ("episode_id", "step_index", "candidate_index", "app", "action_type", "pred_action_type")
_NEVER_SCORED = {
    "candidates": (
        *("completion", "token_ids", "sampling_logprobs"),
        *("sampler_id", "seed", "finish_reason", "history_dropped"),
    ),
    "steps": ("instruction", "image_sha256", "screen_text", "box_rule", "thought"),
}
"""Columns that no rule reads; a verifier may."""
_EPISODE_COLUMNS = ["episode_id", "goal", "ref_len"]


@dataclass(frozen=True)
class Base:
    """A finished dataset that a new version is made from.

    Args:
        folder: Where it lies.
        manifest: Its manifest.
    """

    folder: Path
    manifest: Manifest

    @classmethod
    def look(cls, folder: Path) -> Base | None:
        """Return the dataset in a folder; None where there is none, or none that this version can read."""
        try:
            return cls(folder, read_manifest(folder))
        except InputError:
            return None

    def same(self, keys: Keys, stage: str) -> bool:
        """Tell whether a stage of it is what the new version needs."""
        return self.manifest.stages.get(stage) == keys.stages[stage]

    def rejects(self) -> list[Reject]:
        """Return what it rejected."""
        lines = (self.folder / "rejects.jsonl").read_bytes().splitlines()
        return [Reject(**orjson.loads(line)) for line in lines]


def reuse_tables(base: Base, config: DatasetConfig, keys: Keys, staged: Path) -> dict[str, FileEntry]:
    """Write the tables of a new version into ``staged``; return the entries of those that were linked.

    Args:
        base: What is there; its stage ``sample`` is the new version's.
        config: The new version's.
        keys: The new version's.
        staged: Its folder.
    """
    shaped = base.same(keys, "shape")
    kept = (*SAMPLED, *DERIVED) if shaped else SAMPLED
    known = {}
    for entry in base.manifest.files:
        parts = entry.path.split("/")
        if parts[0] == "data" and parts[1] in kept:
            _link(base.folder / entry.path, staged / entry.path)
            known[entry.path] = entry
    if not shaped:
        for split in SPLITS:
            _shape_split(base, config, split, staged, scored=base.same(keys, "score"))
    return known


def _shape_split(base: Base, config: DatasetConfig, split: str, staged: Path, *, scored: bool) -> None:
    files = _files(base.folder, "episodes", split)
    for index, path in enumerate(files):
        episodes = pl.read_parquet(path, columns=_EPISODE_COLUMNS, glob=False)
        shaped = _shape_again if scored else partial(_score_again, staged.parent / VERDICTS)
        with ExitStack() as stack:
            part = (index, len(files))
            writers = [stack.enter_context(TableWriter(staged, name, split, part=part)) for name in DERIVED]
            threads = stack.enter_context(ThreadPoolExecutor(len(writers)))
            writing: list[Future[None]] = []
            for tables in shaped(base, config, split, part, episodes):
                for (
                    done
                ) in writing:  # a row group is packed while the next one is worked out, and no more wait
                    done.result()
                writing = [
                    threads.submit(writer.write, frame) for writer, frame in zip(writers, tables, strict=True)
                ]
            for done in writing:
                done.result()


def _shape_again(
    base: Base, config: DatasetConfig, split: str, part: tuple[int, int], episodes: pl.DataFrame
) -> Iterator[Shaped]:
    columns = [*_SHAPED_FROM, *(column.name for column in SCORE_COLUMNS)]
    for scored in _whole_episodes(base.folder, "rewards", split, part, episodes, columns):
        lengths = episodes.select("episode_id", "ref_len")
        with_length = scored.join(lengths, on="episode_id", how="left", maintain_order="left")
        yield shape(with_length, config.shaping, config.advantage)


def _score_again(
    kept: Path, base: Base, config: DatasetConfig, split: str, part: tuple[int, int], episodes: pl.DataFrame
) -> Iterator[Shaped]:
    steps_read, candidates_read = (
        None if config.validity.verifier else _scored_columns(base.folder, table, split)
        for table in ("steps", "candidates")
    )
    steps = pl.concat(_read(base.folder, "steps", split, part, episodes, steps_read))
    for candidates in _whole_episodes(base.folder, "candidates", split, part, episodes, candidates_read):
        ids = candidates["episode_id"].unique().implode()
        asked = steps.filter(pl.col("episode_id").is_in(ids))
        images = partial(_screenshots, base.folder)
        yield score_by_parts(config, candidates, asked, episodes, images, kept)


def _scored_columns(folder: Path, table: str, split: str) -> list[str]:
    schema = pl.read_parquet_schema(_files(folder, table, split)[0])
    return [name for name in schema if name not in _NEVER_SCORED[table]]


def _whole_episodes(
    folder: Path,
    table: str,
    split: str,
    part: tuple[int, int],
    episodes: pl.DataFrame,
    columns: list[str] | None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file's episodes, about a row group at a time, never half an episode."""
    rest: pl.DataFrame | None = None
    for rows in _read(folder, table, split, part, episodes, columns):
        rows = rows if rest is None else pl.concat([rest, rows])
        if not rows.height:
            continue
        at_end = rows["episode_id"] == rows["episode_id"][-1]
        rest = rows.filter(at_end)
        if (whole := rows.filter(~at_end)).height:
            yield whole
    if rest is not None:
        yield rest


def _read(
    folder: Path,
    table: str,
    split: str,
    part: tuple[int, int],
    episodes: pl.DataFrame,
    columns: list[str] | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield a table's rows for the episodes of file ``part``, row group by row group.

    Files that are cut as ours are belong together by number; of others every file is looked through.
    """
    import pyarrow.parquet as pq

    index, total = part
    files = _files(folder, table, split)
    aligned = len(files) == total
    wanted = pl.col("episode_id").is_in(episodes["episode_id"].implode())
    for path in files[index : index + 1] if aligned else files:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                rows = pl.DataFrame(pl.from_arrow(file.read_row_group(group, columns)))
                yield rows if aligned else rows.filter(wanted)


def _files(folder: Path, table: str, split: str) -> list[Path]:
    return sorted((folder / "data" / table).glob(f"{split}-*.parquet"))


def _screenshots(folder: Path, steps: pl.DataFrame) -> pl.DataFrame:
    """Read the screenshots of some steps: one that several splits share lies in the first of them alone."""
    files = sorted((folder / "data" / "images").glob("*.parquet"))
    wanted = pl.col("sha256").is_in(steps["image_sha256"].drop_nulls().unique().implode())
    image = pl.scan_parquet(files, glob=False).filter(wanted)
    found = image.select("sha256", screenshot=pl.col("image").struct.field("bytes"))
    return found.collect(engine="in-memory")


def _link(source: Path, target: Path) -> None:
    """Give a file a second name; across file systems, copy it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        temporary = temporary_name(target)
        shutil.copyfile(source, temporary)
        sync(temporary)
        temporary.replace(target)


def is_current(out: Path, manifest: Manifest | None, build_id: str) -> bool:
    """Tell whether a folder holds this very build, whole."""
    return manifest is not None and manifest.build_id == build_id and first_damaged(out, manifest) is None


def find_base(config: DatasetConfig, out: Path, keys: Keys, named: Path | None) -> Base | None:
    """Find a finished version with the same candidates: the one named, what lies in ``out``, or one beside it.

    Raises:
        InputError: The one that was named can't be used.
    """
    if named is not None:
        base = Base(named, read_manifest(named))
        if not base.same(keys, "sample") or first_damaged(named, base.manifest):
            reasons = why(keys, base.manifest)
            told = "; ".join(reasons["read"] + reasons["sample"]) or "a file is damaged"
            raise InputError(f"can't start from it: {told}", where=str(named), hint="leave --from out")
        return base
    beside = (Base.look(folder) for folder in (out, *sorted(out.parent.glob(f"{config.name}-*"))))
    found = [
        base
        for base in beside
        if base is not None
        and base.manifest.name == config.name
        and base.same(keys, "sample")
        and first_damaged(base.folder, base.manifest) is None
    ]
    return max(found, key=lambda base: sum(base.same(keys, stage) for stage in STAGES), default=None)
