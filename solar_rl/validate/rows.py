"""Check where rows lie: sorted by key, in the files of their split."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from solar_rl.schema import SPLITS, TABLES
from solar_rl.store.parquet import table_files
from solar_rl.validate.check import Check, check

if TYPE_CHECKING:
    import polars as pl


def order(folder: Path) -> Iterator[Check]:
    """Check that each file is sorted by key."""
    for name, table in TABLES.items():
        unsorted = [
            f"{path.relative_to(folder)}, row {row}"
            for path in table_files(folder, name)
            if (row := _first_out_of_order(path, table.key)) is not None
        ]
        yield check(f"{name}_are_sorted", unsorted)


def _first_out_of_order(path: Path, key: tuple[str, ...]) -> int | None:
    """Return the first row whose key is not above the one before it."""
    import polars as pl

    keys = pl.read_parquet(path, columns=list(key), glob=False)
    above: pl.Expr = pl.lit(False)
    for name in reversed(key):  # lexicographic: above here, or equal here and above in what follows
        above = (pl.col(name) > pl.col(name).shift(1)) | ((pl.col(name) == pl.col(name).shift(1)) & above)
    rows = keys.select(pl.arg_where(~above.fill_null(True))).to_series()
    return int(rows[0]) if rows.len() else None


def splits(folder: Path) -> Iterator[Check]:
    """Check that rows lie in the files of their episode's split, and images in the first that shows them."""
    import polars as pl

    episodes = _read(folder, "episodes", ["episode_id", "split"]).rename({"file_split": "in_file"})
    wrong = episodes.filter(pl.col("split") != pl.col("in_file")).get_column("episode_id").to_list()
    split_of = episodes.select("episode_id", "split")
    for name in ("steps", "candidates", "rewards", "trajectories", "preview"):
        rows = _read(folder, name, ["episode_id"]).unique().join(split_of, on="episode_id")
        strays = rows.filter(pl.col("split") != pl.col("file_split")).get_column("episode_id")
        wrong += [f"{name}: {episode}" for episode in strays.sort()]
    yield check("rows_lie_in_their_split", wrong)
    order = pl.col("split").replace_strict(
        {split: i for i, split in enumerate(SPLITS)}, return_dtype=pl.Int32
    )
    shown = _read(folder, "steps", ["episode_id", "image_sha256"]).join(split_of, on="episode_id")
    first = shown.sort(order, maintain_order=True).unique("image_sha256", keep="first", maintain_order=True)
    images = _read(folder, "images", ["sha256"]).join(first, left_on="sha256", right_on="image_sha256")
    strays = images.filter(pl.col("file_split") != pl.col("split")).get_column("sha256")
    yield check("images_lie_in_their_first_split", strays.sort())


def _read(folder: Path, table: str, columns: list[str]) -> pl.DataFrame:
    """Read columns of a table with the split of the file that each row lies in."""
    import polars as pl

    return pl.concat(
        pl.read_parquet(path, columns=columns, glob=False).with_columns(
            file_split=pl.lit(path.name.split("-")[0])
        )
        for path in table_files(folder, table)
    )
