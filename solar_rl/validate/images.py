"""Decode screenshots: all of them, or evenly spread ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from solar_rl.errors import RecordError
from solar_rl.store.parquet import table_files
from solar_rl.validate.check import Check, check

SAMPLED_IMAGES = 50


def images(folder: Path, every: bool) -> Iterator[Check]:
    """Decode screenshots, and compare their bytes with their key and their size with its columns."""
    faults = [fault for row in _image_rows(folder, every) if (fault := _image_fault(*row))]
    yield check("images_can_be_decoded" if every else f"{SAMPLED_IMAGES}_images_can_be_decoded", faults)


def _image_rows(folder: Path, every: bool) -> Iterator[tuple[str, dict[str, Any], int, int]]:
    """Yield (sha256, image, width, height): every row, or evenly spread ones, a row group at a time."""
    import pyarrow.parquet as pq

    files = [pq.ParquetFile(path) for path in table_files(folder, "images")]
    groups = [(file, i) for file in files for i in range(file.num_row_groups)]
    wanted = groups if every else groups[:: max(1, len(groups) // 10)]
    for file, index in wanted:
        rows = file.read_row_group(index)
        step = 1 if every else max(1, rows.num_rows * len(wanted) // SAMPLED_IMAGES)
        for row in rows.take(list(range(0, rows.num_rows, step))).to_pylist():
            yield row["sha256"], row["image"], row["width"], row["height"]


def _image_fault(sha256: str, image: dict[str, Any], width: int, height: int) -> str | None:
    from solar_rl.images import check_image, decode_image

    data = image["bytes"]
    if data is None or image["path"] is not None:
        return f"{sha256}: the bytes are not stored"
    if hashlib.sha256(data).hexdigest() != sha256:
        return f"{sha256}: the bytes have another hash"
    try:
        check_image(data)
        size = decode_image(data).size
    except RecordError as error:
        return f"{sha256}: {error.message}"
    return None if size == (width, height) else f"{sha256}: is {size}, said to be {(width, height)}"
