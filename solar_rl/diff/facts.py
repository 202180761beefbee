"""Compare what two manifests say: config, versions, columns, counts and rejects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from solar_rl.diff.rows import Row, differs, merged, pair, pairs
from solar_rl.schema import SPLITS, TABLES
from solar_rl.store.manifest import Manifest


def compare_facts(a: Manifest, b: Manifest) -> dict[str, list[Row]]:
    """Return the sections that need no look at the data."""
    return {
        "config": _changed(pairs("field", dict(_dotted(a.config)), dict(_dotted(b.config)))),
        "versions": _changed(pairs("what", _versions(a), _versions(b))),
        "schema": _changed(pairs("table", a.schemas, b.schemas)),
        "counts": list(_counts(a, b)),
        "rejects": pairs("reason", a.rejects, b.rejects, 0),
    }


def _changed(rows: list[Row]) -> list[Row]:
    return [row for row in rows if differs(row)]


def _dotted(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Flatten a config into (dotted field, value); lists are values."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _dotted(inner, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, value


def _versions(manifest: Manifest) -> dict[str, Any]:
    schema = {"schema version": manifest.schema_version}
    # several stages rest on the same module: it is named once
    code = {name.split(" ", 1)[-1]: version for name, version in manifest.code.items()}
    return schema | code | {f"library {name}": v for name, v in manifest.libraries.items()}


def _counts(a: Manifest, b: Manifest) -> Iterator[Row]:
    for table in TABLES:
        mine, theirs = a.table_rows(table), b.table_rows(table)
        yield pair(sum(mine.values()), sum(theirs.values()), table=table, split="all")
        splits = [split for split in SPLITS if split in merged(mine, theirs)]
        if len(splits) > 1:
            for split in splits:
                yield pair(mine.get(split, 0), theirs.get(split, 0), table=table, split=split)
