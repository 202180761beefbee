"""Give each table's schema one short hash, so that two datasets can be told to have the same columns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from solar_rl.schema import TABLES

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = {"double": "float64", "float": "float32"}


def schema_hashes() -> dict[str, str]:
    """Return the hash of every table's schema, for ``Manifest.schemas``."""
    return {
        name: _digest((c.name, c.dtype, c.nullable) for c in table.columns) for name, table in TABLES.items()
    }


def schema_hash(schema: pa.Schema) -> str:
    """Return 16 hex digits of a parquet file's schema: names, types and nullability, in order.

    >>> from solar_rl.schema import arrow_schema
    >>> schema_hash(arrow_schema("steps")) == schema_hashes()["steps"]
    True
    """
    return _digest((field.name, _spell(field.type), field.nullable) for field in schema)


def _digest(columns: Iterable[tuple[str, str, bool]]) -> str:
    return hashlib.sha256(json.dumps(list(columns)).encode()).hexdigest()[:16]


def _spell(kind: Any) -> str:
    """Spell an Arrow type as ``schema.py`` does."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return f"list<{_spell(kind.value_type)}>"
    if pa.types.is_struct(kind) and [field.name for field in kind] == ["bytes", "path"]:
        return "image"
    return _NAMES.get(str(kind), str(kind))
