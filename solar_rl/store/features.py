"""Say in Hugging Face's words what the columns are, without importing ``datasets`` (1 to 2 s)."""

from __future__ import annotations

import json
from typing import Any

from solar_rl.schema import TABLES


def _feature(dtype: str) -> dict[str, Any]:
    if dtype == "image":
        return {"_type": "Image"}
    if dtype.startswith("list<"):
        return {"feature": _feature(dtype[5:-1]), "_type": "List"}
    return {"dtype": dtype, "_type": "Value"}


def parquet_metadata(table: str) -> dict[bytes, bytes]:
    """Return the key-value metadata by which ``load_dataset`` knows the Image columns of a table.

    >>> parquet_metadata("images")[b"huggingface"][:42]
    b'{"info": {"features": {"sha256": {"dtype":'
    """
    features = {column.name: _feature(column.dtype) for column in TABLES[table].columns}
    return {b"huggingface": json.dumps({"info": {"features": features}}).encode()}


def _yaml_type(dtype: str) -> Any:
    return {"list": _yaml_type(dtype[5:-1])} if dtype.startswith("list<") else dtype


def yaml_features(table: str) -> list[dict[str, Any]]:
    """Return the ``features`` list of ``dataset_info`` in a card's YAML.

    >>> yaml_features("images")[1]
    {'name': 'image', 'dtype': 'image'}
    """
    entries: list[dict[str, Any]] = []
    for column in TABLES[table].columns:
        kind = _yaml_type(column.dtype)
        entry = kind if isinstance(kind, dict) else {"dtype": kind}
        entries.append({"name": column.name, **entry})
    return entries
