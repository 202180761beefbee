"""Read parquet files row by row in bounded memory: a few rows at a time, and only the columns that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solar_rl.errors import RecordError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_ROWS = 8
"""Rows decoded at a time; a row with a screenshot has a megabyte or more."""
_BUFFER = 1 << 20


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
