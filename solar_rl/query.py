"""Ask a dataset in SQL: DuckDB over its parquet files, read-only and shut off from everything else."""

from __future__ import annotations

import os
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from solar_rl.errors import InputError
from solar_rl.schema import TABLES
from solar_rl.store.manifest import require_whole
from solar_rl.store.parquet import table_files

if TYPE_CHECKING:
    import polars as pl
    from duckdb import DuckDBPyConnection

    Connection: TypeAlias = DuckDBPyConnection

VIEWS = ("scored", "failures", "grpo_groups")
"""Views made from the tables; each table is a view of its own name too."""

_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s+)?", re.IGNORECASE)
_PIVOT = re.compile(r"\s*(UN)?PIVOT\b|\s*(FROM|WITH|SELECT)\b", re.IGNORECASE)


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
    return "\n".join((head, *tables, "", _derived_views()))


def _derived_views() -> str:
    return resources.files("solar_rl").joinpath("views.sql").read_text(encoding="utf-8")


def preload() -> None:
    """Import DuckDB, for a build that has a core to spare meanwhile."""
    import duckdb  # noqa: F401


def connect(
    folder: str | Path,
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    unfinished: bool = False,
) -> Connection:
    """Open an in-memory DuckDB whose views read this dataset, and nothing else on this machine.

    The connection can open the dataset's parquet files alone, spills nothing to disk, loads no
    extension, sees no Python variable, and its settings are locked. It can't tell a query that writes
    from one that reads: give SQL of strangers to ``select`` or ``run``, which can.

    Args:
        folder: A dataset's folder.
        memory_limit: Such as "2GB" (default: DuckDB's, 80 % of the machine).
        threads: Default: one a core.
        unfinished: Accept a folder without manifest, as a build does for its own statistics.

    Raises:
        InputError: No complete dataset there, or a table has no files.
    """
    import duckdb

    if not unfinished:
        require_whole(folder)
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "temp_directory": "",
    }
    if memory_limit is not None:
        settings["memory_limit"] = memory_limit
    if threads is not None:
        settings["threads"] = threads
    con = duckdb.connect(":memory:", config=settings)
    files = {name: _files(folder, name) for name in TABLES}
    con.execute(f"SET allowed_paths = {_sql_list([path for paths in files.values() for path in paths])}")
    con.execute("SET enable_external_access = false")
    for name, paths in files.items():
        try:
            con.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet({_sql_list(paths)})")
        except duckdb.Error as error:
            raise InputError(
                f"table '{name}' can't be read: {_first_lines(error)}",
                where=str(folder),
                hint="`solar-rl validate` lists what is damaged; build or download it again",
            ) from None
    con.execute(_derived_views())
    con.execute("SET lock_configuration = true")
    return con


def select(con: Connection, sql: str) -> pl.DataFrame:
    """Run one statement that only reads: SELECT, FROM, WITH, VALUES, PIVOT, DESCRIBE, SHOW, EXPLAIN.

    Raises:
        InputError: It is no such statement, or DuckDB refuses it; with DuckDB's message and, for an
            unknown table or column, with what exists.
    """
    import duckdb

    _require_reading(con, sql)
    try:
        answer: pl.DataFrame = con.sql(sql).pl()
    except duckdb.Error as error:
        hint = _what_exists(con, str(error), sql)
        raise InputError(_first_lines(error), where="SQL", hint=hint) from None
    return answer


def run(folder: str | Path, sql: str) -> pl.DataFrame:
    """Answer one SQL question over the tables and views of a dataset's folder.

    Raises:
        InputError: No complete dataset there, or the SQL is wrong.
    """
    con = connect(folder)
    try:
        return select(con, sql)
    finally:
        con.close()


def _files(folder: str | Path, table: str) -> list[str]:
    paths = [os.path.abspath(path) for path in table_files(folder, table)]
    if not paths:
        raise InputError(f"table '{table}' has no files in data/{table}", where=str(folder))
    return paths


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sql_list(texts: list[str]) -> str:
    return "[" + ", ".join(map(_quote, texts)) + "]"


def _require_reading(con: Connection, sql: str) -> None:
    """Refuse anything but one reading statement: COPY could overwrite the very files that are readable."""
    import duckdb

    try:
        statements = con.extract_statements(sql)
    except duckdb.Error as error:
        raise InputError(_first_lines(error), where="SQL") from None
    if len(statements) != 1:
        raise InputError(f"expected one SQL statement, found {len(statements)}", where="SQL")
    kind = statements[0].type
    if kind == duckdb.StatementType.EXPLAIN:
        return _require_reading(con, _EXPLAIN.sub("", sql, count=1))
    pivot = kind == duckdb.StatementType.MULTI and _PIVOT.match(sql)
    if kind != duckdb.StatementType.SELECT and not pivot:
        raise InputError(
            f"this connection only reads, and {kind.name} is no reading statement",
            where="SQL",
            hint="start with SELECT, FROM, WITH, PIVOT, DESCRIBE, SHOW or EXPLAIN",
        )


def _first_lines(error: Exception) -> str:
    """Return DuckDB's message without the echo of the query."""
    return " ".join(str(error).split("\n\nLINE")[0].split())


def _what_exists(con: Connection, message: str, sql: str) -> str | None:
    """Name the tables, or the columns of the tables, where the message says that one is unknown."""
    if "does not exist" in message and "Table" in message:
        return f"tables and views: {', '.join((*TABLES, *VIEWS))}"
    if "not found in FROM clause" in message or "does not have a column" in message:
        known = [name for name in (*TABLES, *VIEWS) if re.search(rf"\b{name}\b", sql, re.IGNORECASE)] or list(
            TABLES
        )
        return "; ".join(f"{name}: {', '.join(columns(con, name))}" for name in known)
    return None


def columns(con: Connection, relation: str) -> list[str]:
    """List the columns of a table or view."""
    return list(con.table(relation).columns)
