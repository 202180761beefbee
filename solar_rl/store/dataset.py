"""Read a finished dataset: tables as lazy frames, SQL, manifest, and Hugging Face datasets."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from solar_rl.errors import InputError
from solar_rl.schema import SPLITS, TABLES
from solar_rl.store.manifest import Manifest, read_manifest
from solar_rl.store.parquet import table_files

if TYPE_CHECKING:
    import polars as pl
    from datasets.dataset_dict import DatasetDict

    from solar_rl.query import Connection


class SolarDataset:
    """A dataset folder: every table as a polars lazy frame, and SQL over all of them.

    Args:
        path: The dataset's folder.

    Raises:
        InputError: No complete dataset lies there.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.manifest: Manifest = read_manifest(self.path)

    def __repr__(self) -> str:
        return f"SolarDataset({str(self.path)!r}, {self.manifest.name} {self.manifest.version})"

    def table(self, name: str, split: str | None = None) -> pl.LazyFrame:
        """Return a table as a lazy frame, all splits together or one of them.

        Rows come in the order of the files, each sorted by key. Collect with ``engine="in-memory"``
        where that order matters: polars' default engine doesn't keep it.

        Raises:
            InputError: No such table or split.
        """
        import polars as pl

        _require_table(name)
        if split is not None and split not in SPLITS:
            raise InputError(f"no split is named '{split}'", hint=f"there is: {', '.join(SPLITS)}")
        files = table_files(self.path, name)
        if not files:
            raise InputError(f"table '{name}' has no files in data/{name}", where=str(self.path))
        kept = [path for path in files if split is None or path.name.startswith(f"{split}-")]
        # polars would read brackets and stars in a folder's name as a pattern
        return pl.scan_parquet(kept, glob=False) if kept else pl.scan_parquet(files, glob=False).head(0)

    @property
    def episodes(self) -> pl.LazyFrame:
        """Return table ``episodes``."""
        return self.table("episodes")

    @property
    def steps(self) -> pl.LazyFrame:
        """Return table ``steps``."""
        return self.table("steps")

    @property
    def images(self) -> pl.LazyFrame:
        """Return table ``images``; ``image`` is a struct of bytes and path."""
        return self.table("images")

    @property
    def candidates(self) -> pl.LazyFrame:
        """Return table ``candidates``."""
        return self.table("candidates")

    @property
    def rewards(self) -> pl.LazyFrame:
        """Return table ``rewards``."""
        return self.table("rewards")

    @property
    def trajectories(self) -> pl.LazyFrame:
        """Return table ``trajectories``."""
        return self.table("trajectories")

    @property
    def preview(self) -> pl.LazyFrame:
        """Return table ``preview``."""
        return self.table("preview")

    def sql(self, query: str) -> pl.DataFrame:
        """Answer one SQL question over the tables and the views scored, failures and grpo_groups.

        Raises:
            InputError: The statement doesn't only read, or DuckDB refuses it.
        """
        from solar_rl.query import select

        return select(self._connection, query)

    def to_hf(self, table: str) -> DatasetDict:
        """Return a table as a Hugging Face ``DatasetDict``, with Image columns decoded on access.

        Raises:
            InputError: No such table, or one without any row, which ``datasets`` can't hold.
        """
        _require_table(table)
        if not sum(self.manifest.table_rows(table).values()):
            raise InputError(f"table '{table}' has no rows", where=str(self.path))
        from datasets.load import load_dataset

        return load_dataset(str(self.path), table)

    @cached_property
    def _connection(self) -> Connection:
        from solar_rl.query import connect

        return connect(self.path)


def _require_table(name: str) -> None:
    if name not in TABLES:
        raise InputError(f"no table is named '{name}'", hint=f"there is: {', '.join(TABLES)}")


def open_dataset(path_or_repo: str | Path, revision: str | None = None) -> SolarDataset:
    """Open a dataset: a folder of this machine, or a repository of the Hub.

    Args:
        path_or_repo: A folder, "owner/name", or "hf://datasets/owner/name@revision". A folder that exists
            wins over a repository of the same name.
        revision: Tag, branch or commit of a repository.

    Raises:
        InputError: No complete dataset there, or the Hub doesn't have it.
    """
    from solar_rl.store.hub import parse_repo, snapshot

    text = str(path_or_repo)
    if not text.startswith("hf://") and Path(text).exists():
        if revision is not None:
            raise InputError("revision goes with a repository of the Hub, not with a folder", where=text)
        return SolarDataset(text)
    repo = None if isinstance(path_or_repo, Path) else parse_repo(text)
    if repo is None:
        raise InputError("no such folder, and no owner/name of a Hub repository", where=text)
    name, named_revision = repo
    return SolarDataset(snapshot(name, revision or named_revision))
