"""The views over a dataset's tables, and which tables a question needs."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from solar_rl.schema import TABLES

VIEWS = ("scored", "failures", "grpo_groups")
"""Views made from the tables; each table is a view of its own name too."""
_ONLY_SHAPE = re.compile(r"\s*(DESCRIBE|DESC|SHOW)\b", re.IGNORECASE)


def views_sql() -> str:
    """Return the SQL of every view over relative paths: runs in plain DuckDB from the dataset's folder."""
    tables = [
        f"-- {table.doc}\nCREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('data/{name}/*.parquet');"
        for name, table in TABLES.items()
    ]
    head = (
        "-- The views of a solar-rl dataset. Run DuckDB in this folder, then: .read views.sql\n"
        "-- Screenshots are read only where you select images.image or preview.image.\n"
    )
    return "\n".join((head, *tables, "", derived_views()))


@cache
def derived_views() -> str:
    """Return the SQL of the views that are made from the tables."""
    return resources.files("solar_rl").joinpath("views.sql").read_text(encoding="utf-8")


def tables_in(sql: str) -> set[str]:
    """Name the tables that a statement may read: those that it names, itself or through a view.

    A name in a string or comment counts too: a table too many costs a download, one too few an error.
    Statements that only describe read none.

    >>> sorted(tables_in("SELECT app FROM failures"))
    ['candidates', 'rewards', 'trajectories']
    >>> tables_in("DESCRIBE images")
    set()
    """
    if _ONLY_SHAPE.match(sql):
        return set()
    words = set(re.findall(r"[a-z_]+", sql.lower()))
    found = words & set(TABLES)
    for view in words & set(VIEWS):
        found |= _read_by()[view]
    return found


@cache
def _read_by() -> dict[str, set[str]]:
    """Return the tables that each view reads, from the SQL that makes it."""
    parts = re.split(r"CREATE OR REPLACE VIEW (\w+) AS", derived_views())[1:]
    return {
        view: set(re.findall(r"(?:FROM|JOIN) (\w+)", body)) & set(TABLES)
        for view, body in zip(parts[::2], parts[1::2], strict=True)
    }
