"""Ask a dataset in SQL: DuckDB over its parquet files, read-only and shut off from everything else."""

from __future__ import annotations

from solar_rl.query.answers import run, select, stream
from solar_rl.query.connection import Connection, columns, connect, cursor_for, preload
from solar_rl.query.limits import Deadline, memory_bytes, memory_ceiling
from solar_rl.query.views import VIEWS, derived_views, tables_in, views_sql

__all__ = [
    "VIEWS",
    "Connection",
    "Deadline",
    "columns",
    "connect",
    "cursor_for",
    "derived_views",
    "memory_bytes",
    "memory_ceiling",
    "preload",
    "run",
    "select",
    "stream",
    "tables_in",
    "views_sql",
]
