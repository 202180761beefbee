"""Answer SQL that may come from strangers: one statement that only reads, within limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from solar_rl.errors import InputError
from solar_rl.query.connection import Connection, columns, connect, first_lines
from solar_rl.query.limits import Deadline, deadline, too_large
from solar_rl.query.views import VIEWS
from solar_rl.schema import TABLES

if TYPE_CHECKING:
    import polars as pl

_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(ANALYZE\s+)?", re.IGNORECASE)
_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*([A-Za-z_]+)", re.DOTALL)
_PIVOT = re.compile(r"\s*(UN)?PIVOT\b|\s*(FROM|WITH|SELECT)\b", re.IGNORECASE)
BATCH_ROWS = 10_000


def select(con: Connection, sql: str, *, timeout: float | None = None) -> pl.DataFrame:
    """Run one statement that only reads: SELECT, FROM, WITH, VALUES, PIVOT, DESCRIBE, SHOW, EXPLAIN.

    Args:
        con: From ``connect``.
        sql: The statement.
        timeout: Seconds after which it is stopped (default: never).

    Raises:
        InputError: It is no such statement, takes too long, or DuckDB refuses it; with DuckDB's message
            and, for an unknown table or column, with what exists.
    """
    _require_reading(con, sql)
    with deadline(con, timeout) as limit, _clear_errors(con, sql, limit):
        answer: pl.DataFrame = con.sql(sql).pl()
    return answer


def stream(
    con: Connection,
    sql: str,
    *,
    timeout: float | None = None,
    give_up: Callable[[Deadline], None] | None = None,
) -> Generator[pl.DataFrame, None, None]:
    """Run one statement that only reads, and yield its rows in frames of at most 10,000, at least one.

    Rows that nobody takes are never made, so an answer may be larger than memory. Close the iterator
    (or read it to the end) before the connection is used again.

    Args:
        con: From ``connect``.
        sql: The statement.
        timeout: Seconds for all of it, the time in which the caller uses a frame included.
        give_up: See ``limits.deadline``.

    Raises:
        InputError: As ``select``.
    """
    import polars as pl

    _require_reading(con, sql)
    with deadline(con, timeout, give_up) as limit, _clear_errors(con, sql, limit):
        reader = con.sql(sql).to_arrow_reader(BATCH_ROWS)
        empty = True
        for batch in reader:
            limit.check()
            empty = False
            yield pl.DataFrame(pl.from_arrow(batch))
        if empty:
            yield pl.DataFrame(pl.from_arrow(reader.schema.empty_table()))
        limit.check()


def run(folder: str | Path, sql: str, *, timeout: float | None = None) -> pl.DataFrame:
    """Answer one SQL question over the tables and views of a dataset's folder.

    Raises:
        InputError: No complete dataset there, or the SQL is wrong.
    """
    con = connect(folder)
    try:
        return select(con, sql, timeout=timeout)
    finally:
        con.close()


@contextmanager
def _clear_errors(con: Connection, sql: str, limit: Deadline) -> Iterator[None]:
    """Turn what DuckDB raises into one line."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException:
        raise limit.error() from None
    except (duckdb.OutOfMemoryException, MemoryError):
        raise too_large() from None
    except OSError as error:  # what goes wrong while rows are read comes through Arrow's reader
        limit.check()
        if "Out of Memory" in str(error):
            raise too_large() from None
        raise InputError(first_lines(error), where="SQL") from None
    except duckdb.Error as error:
        limit.check()
        raise InputError(first_lines(error), where="SQL", hint=_what_exists(con, str(error), sql)) from None


def _require_reading(con: Connection, sql: str) -> None:
    """Refuse anything but one reading statement: COPY could overwrite the very files that are readable."""
    import duckdb

    try:
        statements = con.extract_statements(sql)
    except duckdb.Error as error:
        raise InputError(first_lines(error), where="SQL") from None
    if len(statements) != 1:
        raise InputError(f"expected one SQL statement, found {len(statements)}", where="SQL")
    kind = statements[0].type
    if kind == duckdb.StatementType.EXPLAIN:
        return _require_reading(con, _EXPLAIN.sub("", sql, count=1))
    pivot = kind == duckdb.StatementType.MULTI and _PIVOT.match(sql)
    if kind != duckdb.StatementType.SELECT and not pivot:
        raise InputError(
            f"this connection only reads, and {_first_word(sql)} is no reading statement",
            where="SQL",
            hint="start with SELECT, FROM, WITH, PIVOT, DESCRIBE, SHOW or EXPLAIN",
        )


def _first_word(sql: str) -> str:
    """Name a statement as its writer does: DuckDB calls INSTALL a LOAD."""
    found = _FIRST_WORD.match(sql)
    return found[1].upper() if found else "this"


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
