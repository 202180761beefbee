"""Compare a dataset's files with its manifest, and its parquet files with the tables' schemas."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from solar_rl.schema import TABLES, Table, arrow_schema
from solar_rl.store.features import parquet_metadata
from solar_rl.store.fingerprint import schema_hash
from solar_rl.store.manifest import Manifest, list_files, sha256_file
from solar_rl.store.parquet import table_files
from solar_rl.validate.check import Check, check

_TEXTS = ("manifest.json", "README.md", "views.sql", "rejects.jsonl", "croissant.json")
# a path that starts at the root of somebody's machine, in the middle of any text
_MACHINE_PATH = re.compile(
    r"(?:^|[\s\"'=:(])(/(?:home|root|Users|tmp|var|mnt|work|data|opt|srv)/|[A-Za-z]:\\)"
)


def files(folder: Path, manifest: Manifest) -> Iterator[Check]:
    """Compare the files with the manifest's list: present, of that size, of those bytes, and no others."""
    import pyarrow.parquet as pq

    there = [entry for entry in manifest.files if (folder / entry.path).is_file()]
    yield check("files_exist", (e.path for e in manifest.files if e not in there))
    listed = {entry.path for entry in manifest.files}
    yield check("files_are_listed", (path for path in list_files(folder) if path not in listed))
    sized = [entry for entry in there if (folder / entry.path).stat().st_size == entry.bytes]
    yield check("file_sizes", (e.path for e in there if e not in sized))
    wrong = [entry for entry in sized if sha256_file(folder / entry.path) != entry.sha256]
    yield check("file_hashes", (entry.path for entry in wrong))
    damaged = {entry.path for entry in there if entry not in sized or entry in wrong}
    counted = [e for e in there if e.rows is not None and e.path not in damaged]
    yield check(
        "row_counts", (e.path for e in counted if pq.read_metadata(folder / e.path).num_rows != e.rows)
    )


def schemas(folder: Path, manifest: Manifest) -> Iterator[Check]:
    """Compare every parquet file with the one schema of its table, and its row groups with the table's."""
    wrong, uneven = [], []
    for name, table in TABLES.items():
        yield _recorded(folder, name, manifest)
        files = table_files(folder, name)
        if not files:
            wrong.append(f"data/{name} has no files")
        for path in files:
            fault = _schema_fault(path, table)
            if fault:
                wrong.append(f"{path.relative_to(folder)}: {fault}")
            elif not _row_groups_fit(path, table):
                uneven.append(str(path.relative_to(folder)))
    yield check("schemas_are_exact", wrong)
    yield check("row_groups_are_exact", uneven)


def _recorded(folder: Path, table: str, manifest: Manifest) -> Check:
    """Compare a table's files with the schema hash in the manifest; the hash is told either way."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    hashes = set()
    for path in table_files(folder, table):
        try:
            hashes.add(schema_hash(pq.read_schema(path)))
        except (pa.ArrowException, OSError):
            hashes.add("unreadable")
    found, recorded = ", ".join(sorted(hashes)), manifest.schemas.get(table)
    same = recorded is None or hashes == {recorded}
    return Check(
        f"schema_of_{table}", same, int(not same), found if same else f"{found}, recorded is {recorded}"
    )


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


def texts(folder: Path, manifest: Manifest) -> Iterator[Check]:
    """Check that the build's own checks passed, and that nothing tells of the machine it ran on."""
    yield check("build_checks_passed", (c.name for c in manifest.checks if not c.passed))
    rows = {name: sum(manifest.table_rows(name).values()) for name in TABLES}
    wrong = (
        f"{n}: {c} counted, {rows[n]} rows" for n, c in manifest.counts.items() if n in rows and rows[n] != c
    )
    yield check("counts_are_rows", wrong)
    texts = [path for path in (folder / name for name in _TEXTS) if path.is_file()]
    paths = (
        f"{p.name}: {m.group(1)}" for p in texts if (m := _MACHINE_PATH.search(p.read_text(encoding="utf-8")))
    )
    yield check("no_machine_paths", paths)
    rejects = folder / "rejects.jsonl"
    lines = rejects.read_text(encoding="utf-8").splitlines() if rejects.is_file() else []
    reasons = Counter(json.loads(line)["reason"] for line in lines)
    differing = sorted(set(reasons.items()) ^ set(manifest.rejects.items()))
    yield check("rejects_are_counted", (f"{reason}: {count}" for reason, count in differing))
