"""Check a dataset from outside: files, schema, keys, every law of the method, private strings, screenshots."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from solar_rl.errors import InputError
from solar_rl.store.manifest import read_manifest
from solar_rl.validate import files, images, laws, rows, texts
from solar_rl.validate.check import Check

__all__ = ["Check", "validate"]


def validate(folder: str | Path, *, all_images: bool = False, allow: Collection[str] = ()) -> list[Check]:
    """Run every check on a dataset's folder, in an order in which later ones build on earlier ones.

    Args:
        folder: A dataset's folder.
        all_images: Decode every screenshot, not a sample of 50.
        allow: Kinds of private strings (email, phone, secret) that texts may hold, beside those that the
            dataset's own config allows.

    Raises:
        InputError: No complete dataset lies there.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    checks = [
        *files.files(folder, manifest),
        *files.schemas(folder, manifest),
        *files.texts(folder, manifest),
    ]
    if any(not check.passed for check in checks if check.name in ("files_exist", "schemas_are_exact")):
        return checks  # SQL over missing tables or columns would only say the same once more
    try:
        checks += [*rows.order(folder), *rows.splits(folder), *laws.laws(folder, manifest)]
        checks += [*texts.texts(folder, manifest, allow), *images.images(folder, all_images)]
    except _unreadable() as error:
        checks.append(Check("tables_can_be_read", False, 1, str(error).splitlines()[0]))
    return checks


def _unreadable() -> tuple[type[Exception], ...]:
    """Return what readers raise on damaged parquet pages."""
    import polars as pl
    import pyarrow as pa

    return (pl.exceptions.PolarsError, pa.ArrowException, OSError, InputError)
