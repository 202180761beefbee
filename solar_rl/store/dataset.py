"""Read a finished dataset: tables as lazy frames, SQL, manifest, and Hugging Face datasets.

Of a dataset on the Hub only those tables are downloaded that are asked for, once a commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from solar_rl.errors import InputError
from solar_rl.schema import SPLITS, TABLES
from solar_rl.store.manifest import MANIFEST, Manifest, read_manifest
from solar_rl.store.parquet import table_files

if TYPE_CHECKING:
    import polars as pl
    from datasets.dataset_dict import DatasetDict

    from solar_rl.query import Connection
    from solar_rl.store.hub import Snapshot

CARDS = (MANIFEST, "README.md")
"""Files that say what a dataset is made of: all that is downloaded at first."""


class SolarDataset:
    """A dataset: every table as a polars lazy frame, and SQL over all of them.

    Args:
        path: The dataset's folder.
        snapshot: Where the folder is filled from, for a dataset on the Hub.

    Raises:
        InputError: No complete dataset lies there.
    """

    def __init__(self, path: str | Path, snapshot: Snapshot | None = None) -> None:
        self._folder = Path(path)
        self._snapshot = snapshot
        self._fetched: set[str] = set()
        self._whole = False
        self.manifest: Manifest = read_manifest(self._folder)

    def __repr__(self) -> str:
        where = f"{self.repo}@{self.commit}" if self._snapshot else str(self._folder)
        return f"SolarDataset({where!r}, {self.manifest.name} {self.manifest.version})"

    @property
    def repo(self) -> str | None:
        """Return the Hub's name of the dataset; None for a folder."""
        return self._snapshot.repo if self._snapshot else None

    @property
    def commit(self) -> str | None:
        """Return the commit that is read; None for a folder."""
        return self._snapshot.commit if self._snapshot else None

    @property
    def folder(self) -> Path:
        """Return where the files lie; of the Hub's dataset, those fetched so far."""
        return self._folder

    @property
    def path(self) -> Path:
        """Return the folder with every file of the dataset: of the Hub's, whatever isn't here is downloaded."""
        if self._snapshot and not self._whole:
            top = {entry.path for entry in self.manifest.files if "/" not in entry.path}
            self._bring(self._snapshot, {*top, *CARDS, "data/*"}, ("",))
            self._whole = True
        return self._folder

    def fetch(self, *tables: str) -> None:
        """Make sure that these tables are on this machine; those of a folder always are.

        Raises:
            InputError: No such table, or offline and not in the cache.
            CheckFailed: The Hub can't be reached.
        """
        for name in tables:
            _require_table(name)
        missing = set(tables) - self._fetched
        if self._snapshot and not self._whole and missing:
            prefixes = tuple(f"data/{name}/" for name in missing)
            self._bring(self._snapshot, (f"{prefix}*" for prefix in prefixes), prefixes)
            self._fetched |= missing

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
        self.fetch(name)
        files = table_files(self._folder, name)
        if not files:
            raise InputError(f"table '{name}' has no files in data/{name}", where=str(self._folder))
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

    def _lacking(self, prefixes: tuple[str, ...]) -> str | None:
        """Return the first file of the manifest below these paths that isn't here in full."""
        for entry in self.manifest.files:
            path = self._folder / entry.path
            if entry.path.startswith(prefixes) and not (
                path.is_file() and path.stat().st_size == entry.bytes
            ):
                return entry.path
        return None

    def _bring(self, snapshot: Snapshot, patterns: Iterable[str], prefixes: tuple[str, ...]) -> None:
        """Download what isn't here yet, and make sure that the Hub had all of it."""
        if self._lacking(prefixes) is None:
            return  # asking huggingface_hub costs more than a look at the files
        snapshot.fetch(patterns)
        if (path := self._lacking(prefixes)) is not None:
            raise InputError(
                f"the repository lacks {path}, or has it in another size than its manifest says",
                where=f"{self.repo}@{self.commit}",
            )

    def sql(self, query: str, *, timeout: float | None = None) -> pl.DataFrame:
        """Answer one SQL question over the tables and the views scored, failures and grpo_groups.

        Args:
            query: One statement that reads.
            timeout: Seconds after which it is stopped (default: never).

        Raises:
            InputError: The statement doesn't only read, DuckDB refuses it, or it takes too long.
        """
        from solar_rl.query import select

        return select(self._connection, query, timeout=timeout)

    def connect(self, *, memory_limit: str | None = None, threads: int | None = None) -> Connection:
        """Open a locked DuckDB over the tables (``query.connect``); one of the Hub fetches what is asked for."""
        from solar_rl.query import connect

        fetch = self.fetch if self._snapshot else None
        return connect(self._folder, memory_limit=memory_limit, threads=threads, fetch=fetch)

    def to_hf(self, table: str) -> DatasetDict:
        """Return a table as a Hugging Face ``DatasetDict``, with Image columns decoded on access.

        Raises:
            InputError: No such table, or one without any row, which ``datasets`` can't hold.
        """
        _require_table(table)
        if not sum(self.manifest.table_rows(table).values()):
            raise InputError(f"table '{table}' has no rows", where=str(self._folder))
        from datasets.load import load_dataset

        if self._snapshot is None:
            return load_dataset(str(self._folder), table)
        self.fetch(table)  # then by its files: a config of a folder needs all the folder's tables
        splits = [split for split, rows in self.manifest.table_rows(table).items() if rows]
        paths = {
            split: [str(p) for p in table_files(self._folder, table) if p.name.startswith(f"{split}-")]
            for split in splits
        }
        return load_dataset("parquet", data_files=paths)

    @cached_property
    def _connection(self) -> Connection:
        return self.connect()


def _require_table(name: str) -> None:
    if name not in TABLES:
        raise InputError(f"no table is named '{name}'", hint=f"there is: {', '.join(TABLES)}")


def open_dataset(path_or_repo: str | Path, revision: str | None = None) -> SolarDataset:
    """Open a dataset: a folder of this machine, or a repository of the Hub.

    A repository's revision is resolved to one commit first, and everything is read from that commit. What
    was read once stays in the cache of ``huggingface_hub``, also for machines that are offline.

    Args:
        path_or_repo: A folder, "owner/name", or "hf://datasets/owner/name@revision". A folder that exists
            wins over a repository of the same name.
        revision: Tag, branch or commit of a repository (default: the newest).

    Raises:
        InputError: No complete dataset there, or the Hub doesn't have it.
        CheckFailed: The Hub can't be reached, and the cache doesn't have it.
    """
    from solar_rl.store.hub import open_snapshot, parse_repo

    text = str(path_or_repo)
    if not text.startswith("hf://") and Path(text).exists():
        if revision is not None:
            raise InputError("revision goes with a repository of the Hub, not with a folder", where=text)
        return SolarDataset(text)
    repo = None if isinstance(path_or_repo, Path) else parse_repo(text)
    if repo is None:
        raise InputError(
            "no such folder, and no owner/name of a Hub repository",
            where=text,
            hint="a repository is named owner/name or hf://owner/name@revision",
        )
    name, named_revision = repo
    if not text.startswith("hf://") and Path(text).parent.is_dir():  # a slip of the pen, not a repository
        raise InputError("no such folder", where=text, hint=f"hf://{text} would be a repository of the Hub")
    snapshot = open_snapshot(name, revision or named_revision, CARDS)
    if not (snapshot.folder / MANIFEST).is_file():
        raise InputError(
            "this repository has no manifest.json, so it is no dataset of solar-rl",
            where=f"{name}@{snapshot.commit[:12]}",
        )
    return SolarDataset(snapshot.folder, snapshot)
