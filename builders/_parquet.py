"""Read parquet files row by row in bounded memory: a few rows at a time, and only the columns that are asked for.

``ParquetBuilder`` is what every builder of such files shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from solar_rl.builder import Builder, Sign
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.peek import some_files

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_ROWS = 8
"""Rows decoded at a time; a row with a screenshot has a megabyte or more."""
_BUFFER = 1 << 20


class ParquetBuilder(Builder):
    """Reads a parquet file, or those right in a folder."""

    marks: ClassVar[tuple[str, ...]]
    """Columns that together no other format has; the first two name it in a sign."""

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        if not self.source_files():
            raise ConfigError("holds no .parquet file", where=f"source.path {self.path}")

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by its columns."""
        for file in [path] if path.suffix == ".parquet" else some_files(path, (".parquet",))[:3]:
            try:
                names = set(open_file(file).schema_arrow.names)
            except RecordError:
                continue
            if names.issuperset(cls.marks):
                return Sign(0.95, f"{file.name} has columns {cls.marks[0]} and {cls.marks[1]}")
        return None

    def source_files(self) -> list[Path]:
        """List the parquet files."""
        return some_files(self.path, (".parquet",)) if self.path.is_dir() else [self.path]


def open_file(file: Path) -> pq.ParquetFile:
    """Open a parquet file.

    Raises:
        RecordError: ``bad_parquet``: it is none, or its footer is damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER)
    except (pa.ArrowException, OSError) as error:
        raise RecordError("bad_parquet", f"the file is no parquet ({error})") from error


def read_rows(
    file: Path, columns: Sequence[str], row_groups: Sequence[int] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file, or of some of its row groups, as plain values.

    Args:
        file: The file.
        columns: Columns to read; those that it lacks are left out of the rows.
        row_groups: Which row groups (default: all).

    Raises:
        RecordError: ``bad_parquet``: the file is damaged from here on.
    """
    import pyarrow as pa

    opened = open_file(file)
    there = [name for name in columns if name in opened.schema_arrow.names]
    groups = range(opened.metadata.num_row_groups) if row_groups is None else row_groups
    try:
        for batch in opened.iter_batches(_ROWS, row_groups=list(groups), columns=there, use_threads=False):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise RecordError("bad_parquet", f"the file is damaged ({error})") from error


def image_bytes(value: Any, name: str) -> bytes:
    """Return the encoded bytes of an image column's value.

    Raises:
        RecordError: ``missing_image``: the row has only a path, or nothing.
    """
    data = value.get("bytes") if isinstance(value, dict) else value
    if not isinstance(data, bytes) or not data:
        raise RecordError("missing_image", f"{name} holds no image bytes")
    return data
