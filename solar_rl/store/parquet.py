"""Write a table's parquet files: the same rows give the same bytes, however they came in."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from solar_rl.errors import InputError
from solar_rl.schema import SPLITS, TABLES, arrow_schema
from solar_rl.store.features import parquet_metadata

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

ZSTD_LEVEL = 3
MAX_FILE_BYTES = 2 << 30
"""A new file is begun at the first row group that ends beyond this: well below what a Hub likes."""


class TableWriter:
    """Append rows of one table and split, in order, and leave finished parquet files or none.

    Rows are buffered to exact row groups, so the bytes depend on the rows alone. Files carry temporary
    names until all of them are complete and synced; then each is renamed to
    ``data/TABLE/SPLIT-00000-of-0000N.parquet`` and older files of the same table and split go.
    Leaving the ``with`` block by an exception leaves the old files as they were.

    Args:
        folder: The dataset's folder.
        table: A table of the schema.
        split: train, validation or test.
        max_file_bytes: Begin a new file at the first row group boundary beyond this size.
        part: Write file number ``part[0]`` of ``part[1]`` alone, whatever its size; the others are left to
            other writers, and none is deleted.

    Raises:
        InputError: No such table or split.
    """

    def __init__(
        self,
        folder: str | Path,
        table: str,
        split: str,
        *,
        max_file_bytes: int = MAX_FILE_BYTES,
        part: tuple[int, int] | None = None,
    ) -> None:
        if table not in TABLES:
            raise InputError(f"no table is named '{table}'", hint=f"there is: {', '.join(TABLES)}")
        if split not in SPLITS:
            raise InputError(f"no split is named '{split}'", hint=f"there is: {', '.join(SPLITS)}")
        self._table, self._split = TABLES[table], split
        self._folder = Path(folder) / "data" / table
        self._schema = arrow_schema(table).with_metadata(parquet_metadata(table))
        self._max_file_bytes, self._part = max_file_bytes, part
        self._pending: list[pa.Table] = []
        self._pending_rows = 0
        self._temporary: list[Path] = []
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0
        """Rows written so far."""
        self.files: list[Path] = []
        """The finished files, once the writer is closed."""

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self._discard()

    def write(self, rows: pl.DataFrame | pa.Table) -> None:
        """Append rows; their columns may come in any order and in any type that casts without loss.

        Raises:
            InputError: A column is missing or unknown, a value doesn't fit its type, or a key or other
                required column is null.
        """
        table = self._cast(rows)
        if not table.num_rows:
            return
        self._pending.append(table)
        self._pending_rows += table.num_rows
        self.rows += table.num_rows
        while self._pending_rows >= self._table.row_group:
            self._flush(self._table.row_group)

    def close(self) -> list[Path]:
        """Write what is buffered, sync, rename, and return the finished files (at least one)."""
        if self._pending_rows:
            self._flush(self._pending_rows)
        elif not self._temporary:
            self._begin_file()  # no row group at all: load_dataset breaks on an empty one
        self._end_file()
        for path in self._temporary:
            _sync(path)
        first, total = self._part or (0, len(self._temporary))
        if self._part is None:
            for old in self._folder.glob(f"{self._split}-*-of-*.parquet"):
                old.unlink()
        for index, path in enumerate(self._temporary, start=first):
            final = self._folder / f"{self._split}-{index:05d}-of-{total:05d}.parquet"
            path.replace(final)
            self.files.append(final)
        _sync(self._folder)
        return self.files

    def _cast(self, rows: pl.DataFrame | pa.Table) -> pa.Table:
        import pyarrow as pa

        table = rows if isinstance(rows, pa.Table) else rows.to_arrow()
        where = f"table {self._table.name}"
        missing = [name for name in self._table.names if name not in table.column_names]
        unknown = [name for name in table.column_names if name not in self._table.names]
        if missing or unknown:
            faults = [
                f"{what}: {', '.join(names)}"
                for what, names in (("missing", missing), ("unknown", unknown))
                if names
            ]
            raise InputError(f"columns don't fit ({'; '.join(faults)})", where=where)
        try:
            return table.select(list(self._table.names)).cast(self._schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
            raise InputError(f"rows don't fit the schema: {error}", where=where) from error

    def _flush(self, count: int) -> None:
        """Write the first ``count`` buffered rows as one row group."""
        import pyarrow as pa

        buffered = pa.concat_tables(self._pending)
        # one chunk per column: page boundaries then depend on the rows alone
        group = buffered.slice(0, count).combine_chunks()
        rest = buffered.slice(count)
        self._pending, self._pending_rows = ([rest], rest.num_rows) if rest.num_rows else ([], 0)
        writer = self._writer or self._begin_file()
        writer.write_table(group, row_group_size=count)
        if self._part is None and self._temporary[-1].stat().st_size >= self._max_file_bytes:
            self._end_file()

    def _begin_file(self) -> pq.ParquetWriter:
        import pyarrow.parquet as pq

        number = len(self._temporary) if self._part is None else self._part[0]
        path = self._folder / f".{self._split}-{number:05d}.parquet.tmp"
        self._temporary.append(path)
        # measured: floats without a dictionary are a fifth smaller and read a third faster
        words = [c.name for c in self._table.columns if c.dtype in ("string", "bool", "int32", "int64")]
        self._writer = pq.ParquetWriter(
            path,
            self._schema,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            use_dictionary=words,
            write_statistics=[c.name for c in self._table.columns if c.dtype != "image"],
        )
        return self._writer

    def _end_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _discard(self) -> None:
        self._end_file()
        for path in self._temporary:
            path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Make sure that the file or folder entry has reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def table_files(folder: str | Path, table: str) -> list[Path]:
    """List the finished parquet files of a table, sorted by name."""
    return sorted((Path(folder) / "data" / table).glob("*-*-of-*.parquet"))
