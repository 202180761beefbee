"""Check a dataset from outside: files, schema, keys, every law of the method, and its screenshots."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from solar_rl.errors import InputError, RecordError
from solar_rl.schema import SPLITS, TABLES, Table, arrow_schema
from solar_rl.stats.laws import GROUP_LAWS, REWARD_LAWS, TRAJECTORY_LAWS
from solar_rl.stats.table_laws import KEY_LAWS, RECORD_LAWS, REWARD_TABLE_LAWS, shaping_laws
from solar_rl.store.features import parquet_metadata
from solar_rl.store.manifest import Manifest, list_files, read_manifest, sha256_file
from solar_rl.store.parquet import table_files

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.query import Connection

SAMPLED_IMAGES = 50
_TEXTS = ("manifest.json", "README.md", "views.sql", "rejects.jsonl")
# a path that starts at the root of somebody's machine, in the middle of any text
_MACHINE_PATH = re.compile(
    r"(?:^|[\s\"'=:(])(/(?:home|root|Users|tmp|var|mnt|work|data|opt|srv)/|[A-Za-z]:\\)"
)


class Check(NamedTuple):
    """One check: how many things break it, and the first of them in words."""

    name: str
    passed: bool
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks a check for
    detail: str = ""


def validate(folder: str | Path, *, all_images: bool = False) -> list[Check]:
    """Run every check on a dataset's folder, in an order in which later ones build on earlier ones.

    Args:
        folder: A dataset's folder.
        all_images: Decode every screenshot, not a sample of 50.

    Raises:
        InputError: No complete dataset lies there.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    checks = [*_files(folder, manifest), *_schemas(folder), *_manifest(folder, manifest)]
    if any(not check.passed for check in checks if check.name in ("files_exist", "schemas_are_exact")):
        return checks  # SQL over missing tables or columns would only say the same once more
    try:
        checks += [*_order(folder), *_splits(folder), *_laws(folder, manifest), *_images(folder, all_images)]
    except _unreadable() as error:
        checks.append(_check("tables_can_be_read", [str(error).splitlines()[0]]))
    return checks


def _unreadable() -> tuple[type[Exception], ...]:
    """Return what readers raise on damaged parquet pages."""
    import polars as pl
    import pyarrow as pa

    return (pl.exceptions.PolarsError, pa.ArrowException, OSError, InputError)


def _check(name: str, faults: Iterable[object]) -> Check:
    found = list(faults)
    return Check(name, not found, len(found), str(found[0]) if found else "")


def _files(folder: Path, manifest: Manifest) -> Iterator[Check]:
    """Compare the files with the manifest's list: present, of that size, of those bytes, and no others."""
    import pyarrow.parquet as pq

    there = [entry for entry in manifest.files if (folder / entry.path).is_file()]
    yield _check("files_exist", (e.path for e in manifest.files if e not in there))
    listed = {entry.path for entry in manifest.files}
    yield _check("files_are_listed", (path for path in list_files(folder) if path not in listed))
    sized = [entry for entry in there if (folder / entry.path).stat().st_size == entry.bytes]
    yield _check("file_sizes", (e.path for e in there if e not in sized))
    wrong = [entry for entry in sized if sha256_file(folder / entry.path) != entry.sha256]
    yield _check("file_hashes", (entry.path for entry in wrong))
    damaged = {entry.path for entry in there if entry not in sized or entry in wrong}
    counted = [e for e in there if e.rows is not None and e.path not in damaged]
    yield _check(
        "row_counts", (e.path for e in counted if pq.read_metadata(folder / e.path).num_rows != e.rows)
    )


def _schemas(folder: Path) -> Iterator[Check]:
    """Compare every parquet file with the one schema of its table, and its row groups with the table's."""
    wrong, uneven = [], []
    for name, table in TABLES.items():
        files = table_files(folder, name)
        if not files:
            wrong.append(f"data/{name} has no files")
        for path in files:
            fault = _schema_fault(path, table)
            if fault:
                wrong.append(f"{path.relative_to(folder)}: {fault}")
            elif not _row_groups_fit(path, table):
                uneven.append(str(path.relative_to(folder)))
    yield _check("schemas_are_exact", wrong)
    yield _check("row_groups_are_exact", uneven)


def _schema_fault(path: Path, table: Table) -> str | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        return f"no parquet file: {str(error).splitlines()[0]}"
    wanted = arrow_schema(table.name)
    if found.names != wanted.names:
        return f"columns are {', '.join(found.names)}"
    for name in wanted.names:
        if not found.field(name).equals(wanted.field(name)):
            return f"column {name} is {found.field(name)}, expected {wanted.field(name)}"
    if (
        found.metadata is None
        or found.metadata.get(b"huggingface") != parquet_metadata(table.name)[b"huggingface"]
    ):
        return "the features for load_dataset are missing or wrong"
    return None


def _row_groups_fit(path: Path, table: Table) -> bool:
    """Tell whether every row group but the last is full, none is too large, and the codec is zstd."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    full = all(group.num_rows == table.row_group for group in groups[:-1])
    packed = all(group.column(0).compression == "ZSTD" for group in groups)
    return full and packed and all(group.num_rows <= table.row_group for group in groups)


def _manifest(folder: Path, manifest: Manifest) -> Iterator[Check]:
    """Check that the build's own checks passed, and that nothing tells of the machine it ran on."""
    yield _check("build_checks_passed", (c.name for c in manifest.checks if not c.passed))
    rows = {name: sum(manifest.table_rows(name).values()) for name in TABLES}
    wrong = (
        f"{n}: {c} counted, {rows[n]} rows" for n, c in manifest.counts.items() if n in rows and rows[n] != c
    )
    yield _check("counts_are_rows", wrong)
    texts = [path for path in (folder / name for name in _TEXTS) if path.is_file()]
    paths = (
        f"{p.name}: {m.group(1)}" for p in texts if (m := _MACHINE_PATH.search(p.read_text(encoding="utf-8")))
    )
    yield _check("no_machine_paths", paths)
    rejects = folder / "rejects.jsonl"
    lines = rejects.read_text(encoding="utf-8").splitlines() if rejects.is_file() else []
    reasons = Counter(json.loads(line)["reason"] for line in lines)
    differing = sorted(set(reasons.items()) ^ set(manifest.rejects.items()))
    yield _check("rejects_are_counted", (f"{reason}: {count}" for reason, count in differing))


def _order(folder: Path) -> Iterator[Check]:
    """Check that each file is sorted by key."""
    for name, table in TABLES.items():
        unsorted = [
            f"{path.relative_to(folder)}, row {row}"
            for path in table_files(folder, name)
            if (row := _first_out_of_order(path, table.key)) is not None
        ]
        yield _check(f"{name}_are_sorted", unsorted)


def _first_out_of_order(path: Path, key: tuple[str, ...]) -> int | None:
    """Return the first row whose key is not above the one before it."""
    import polars as pl

    keys = pl.read_parquet(path, columns=list(key), glob=False)
    above: pl.Expr = pl.lit(False)
    for name in reversed(key):  # lexicographic: above here, or equal here and above in what follows
        above = (pl.col(name) > pl.col(name).shift(1)) | ((pl.col(name) == pl.col(name).shift(1)) & above)
    rows = keys.select(pl.arg_where(~above.fill_null(True))).to_series()
    return int(rows[0]) if rows.len() else None


def _splits(folder: Path) -> Iterator[Check]:
    """Check that rows lie in the files of their episode's split, and images in the first that shows them."""
    import polars as pl

    episodes = _read(folder, "episodes", ["episode_id", "split"]).rename({"file_split": "in_file"})
    wrong = episodes.filter(pl.col("split") != pl.col("in_file")).get_column("episode_id").to_list()
    split_of = episodes.select("episode_id", "split")
    for name in ("steps", "candidates", "rewards", "trajectories", "preview"):
        rows = _read(folder, name, ["episode_id"]).unique().join(split_of, on="episode_id")
        strays = rows.filter(pl.col("split") != pl.col("file_split")).get_column("episode_id")
        wrong += [f"{name}: {episode}" for episode in strays.sort()]
    yield _check("rows_lie_in_their_split", wrong)
    order = pl.col("split").replace_strict(
        {split: i for i, split in enumerate(SPLITS)}, return_dtype=pl.Int32
    )
    shown = _read(folder, "steps", ["episode_id", "image_sha256"]).join(split_of, on="episode_id")
    first = shown.sort(order, maintain_order=True).unique("image_sha256", keep="first", maintain_order=True)
    images = _read(folder, "images", ["sha256"]).join(first, left_on="sha256", right_on="image_sha256")
    strays = images.filter(pl.col("file_split") != pl.col("split")).get_column("sha256")
    yield _check("images_lie_in_their_first_split", strays.sort())


def _read(folder: Path, table: str, columns: list[str]) -> pl.DataFrame:
    """Read columns of a table with the split of the file that each row lies in."""
    import polars as pl

    return pl.concat(
        pl.read_parquet(path, columns=columns, glob=False).with_columns(
            file_split=pl.lit(path.name.split("-")[0])
        )
        for path in table_files(folder, table)
    )


def _laws(folder: Path, manifest: Manifest) -> Iterator[Check]:
    """Check every law in SQL."""
    from solar_rl.query import connect

    with connect(folder) as con:
        yield from _row_laws(con, "rewards", REWARD_LAWS)
        yield from _row_laws(con, "trajectories", TRAJECTORY_LAWS)
        for laws in (KEY_LAWS, RECORD_LAWS, REWARD_TABLE_LAWS, GROUP_LAWS, shaping_laws(manifest.config)):
            for name, sql in laws.items():
                (broken,) = _numbers(con, f"SELECT count(*) FROM ({sql})")
                yield _law(con, name, sql, broken)


def _row_laws(con: Connection, table: str, laws: dict[str, str]) -> Iterator[Check]:
    """Check laws of single rows, all of them in one pass."""
    counts = ", ".join(f"count(*) FILTER ({broken}) AS {name}" for name, broken in laws.items())
    for (name, broken), count in zip(
        laws.items(), _numbers(con, f"SELECT {counts} FROM {table}"), strict=True
    ):
        yield _law(con, name, f"SELECT * FROM {table} WHERE {broken}", count)


def _numbers(con: Connection, sql: str) -> tuple[int, ...]:
    from solar_rl.query import select

    return select(con, sql).row(0)


def _law(con: Connection, name: str, sql: str, count: int) -> Check:
    """Report a law with the number of rows that break it and, in words, the first of them."""
    from solar_rl.query import select

    if not count:
        return Check(name, True, 0)
    row = select(con, f"SELECT * FROM ({sql}) ORDER BY ALL LIMIT 1").row(0, named=True)
    return Check(
        name, False, count, ", ".join(f"{k} = {v}" for k, v in list(row.items())[:8] if v is not None)
    )


def _images(folder: Path, every: bool) -> Iterator[Check]:
    """Decode screenshots, and compare their bytes with their key and their size with its columns."""
    faults = [fault for row in _image_rows(folder, every) if (fault := _image_fault(*row))]
    yield _check("images_can_be_decoded" if every else f"{SAMPLED_IMAGES}_images_can_be_decoded", faults)


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
