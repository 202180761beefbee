"""Choose about 200 readable rows, with their screenshots, for the Hub's viewer."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from solar_rl.columns import action_of, polars_schema
from solar_rl.schema import SPLITS, TABLES
from solar_rl.store.parquet import TableWriter

if TYPE_CHECKING:
    from solar_rl.report.strip import Images

FIRST_EPISODES = 500


def write_preview(out: Path, rows: int, images: Images | None = None) -> None:
    """Write table ``preview`` from the other tables: the best and the worst trajectory of some episodes.

    Episodes are taken from the first few hundred in key order, so that one row group of each table holds
    them all, and among those in the order of their ids' hashes, so that the mix is a fair one.

    Args:
        out: Folder of the dataset, its other tables written.
        rows: Stop before the episode that would go beyond this many rows (at least one episode).
        images: Reads screenshots (default: from table ``images``, of which it may have to read a good part, since
            that is sorted by hash).
    """
    read = images or (lambda episodes, hashes: _images(out, hashes))
    split = next(s for s in SPLITS if any((out / "data" / "trajectories").glob(f"{s}-*.parquet")))
    with TableWriter(out, "preview", split) as writer:
        writer.write(_preview_rows(out, split, rows, read))


def _preview_rows(out: Path, split: str, rows: int, read: Images) -> pl.DataFrame:
    chosen = _choose(_scan(out, "trajectories", split), rows)
    ids = chosen["episode_id"].unique().sort()
    episodes = _of(out, "episodes", split, ids).select("episode_id", "goal")
    steps = _of(out, "steps", split, ids)
    candidates = _of(out, "candidates", split, ids).drop("completion", "token_ids", "sampling_logprobs")
    rewards = _of(out, "rewards", split, ids).drop("app", "action_type", "pred_action_type")
    keys = ["episode_id", "step_index"]
    table = (
        candidates.join(chosen, on=["episode_id", "candidate_index"])
        .join(rewards, on=[*keys, "candidate_index"])
        .join(steps, on=keys)
        .join(episodes, on="episode_id")
        .sort(TABLES["preview"].key)
    )
    images = read(ids.to_list(), table["image_sha256"].drop_nulls().unique().to_list())
    words = [
        {
            "expert": _words(row),
            "candidate": _words(row, "pred_"),
            "image": _image(images.get(row["image_sha256"])),
        }
        for row in table.iter_rows(named=True)
    ]
    schema = polars_schema("preview")
    added = pl.DataFrame(words, schema={name: schema[name] for name in ("expert", "candidate", "image")})
    return table.hstack(added).select(list(schema))


def _choose(trajectories: pl.LazyFrame, rows: int) -> pl.DataFrame:
    """Pick (episode, candidate) pairs: best and worst by R_traj, whole episodes, up to ``rows`` rows."""
    table = trajectories.select(
        "episode_id", "candidate_index", "ref_len", "trajectory_reward", "success"
    ).collect(engine="in-memory")
    first = table["episode_id"].unique().sort().head(FIRST_EPISODES)
    order = sorted(first, key=lambda i: hashlib.sha256(i.encode()).digest())
    lengths = dict(table.select("episode_id", "ref_len").unique().iter_rows())
    ids: list[str] = []
    used = 0
    for episode_id in order:
        used += 2 * lengths[episode_id]
        if used > rows and ids:
            break
        ids.append(episode_id)
    some = table.filter(pl.col("episode_id").is_in(ids))
    ranked = some.sort("episode_id", "trajectory_reward", "candidate_index", nulls_last=True)
    ends = pl.concat(
        [
            ranked.group_by("episode_id", maintain_order=True).head(1),
            ranked.group_by("episode_id", maintain_order=True).tail(1),
        ]
    )
    return ends.unique().drop("ref_len")


def _image(data: bytes | None) -> dict[str, Any] | None:
    return None if data is None else {"bytes": data, "path": None}


def _words(row: dict[str, Any], prefix: str = "") -> str:
    action = action_of(row, prefix)
    return action.describe() if action else f"unparsable: {row['parse_error']}"


def _images(out: Path, hashes: Collection[str]) -> dict[str, bytes]:
    """Read the screenshots of some hashes.

    Of the row groups, in which hashes are sorted, only those are read that hold one.
    """
    import pyarrow.parquet as pq

    wanted = set(hashes)
    found: dict[str, bytes] = {}
    for path in sorted((out / "data" / "images").glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            column = file.schema_arrow.names.index("sha256")
            for group in range(file.num_row_groups):
                known = file.metadata.row_group(group).column(column).statistics
                if not any(known.min <= each <= known.max for each in wanted):
                    continue
                there = file.read_row_group(group, columns=["sha256"])["sha256"].to_pylist()
                places = [at for at, each in enumerate(there) if each in wanted]
                if places:
                    rows = file.read_row_group(group, columns=["image"]).take(places)["image"].to_pylist()
                    found |= {there[at]: row["bytes"] for at, row in zip(places, rows, strict=True)}
    return found


def _of(out: Path, table: str, split: str, ids: pl.Series) -> pl.DataFrame:
    wanted = pl.col("episode_id")
    between = wanted.is_between(
        pl.lit(ids[0]), pl.lit(ids[-1])
    )  # skips row groups by their statistics; is_in doesn't
    rows = _scan(out, table, split).filter(between, wanted.is_in(ids.implode()))
    return rows.collect(engine="in-memory")


def _scan(out: Path, table: str, split: str) -> pl.LazyFrame:
    return pl.scan_parquet(sorted((out / "data" / table).glob(f"{split}-*.parquet")))
