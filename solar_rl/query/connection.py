"""Open DuckDB over one dataset and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from solar_rl.errors import InputError
from solar_rl.query.views import derived_views, tables_in
from solar_rl.schema import TABLES, arrow_schema
from solar_rl.store.manifest import read_manifest, require_whole
from solar_rl.store.parquet import table_files

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    Connection: TypeAlias = DuckDBPyConnection
else:
    Connection = Any

Fetch = Callable[..., None]
"""Brings tables, by name, onto this machine."""


def preload() -> None:
    """Import DuckDB, for a build that has a core to spare meanwhile."""
    import duckdb  # noqa: F401


def connect(
    folder: str | Path,
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    unfinished: bool = False,
    fetch: Fetch | None = None,
) -> Connection:
    """Open an in-memory DuckDB whose views read this dataset, and nothing else on this machine.

    The connection can open the dataset's parquet files alone, spills nothing to disk, loads no
    extension, sees no Python variable, and its settings are locked. It can't tell a query that writes
    from one that reads: give SQL of strangers to ``select``, ``stream`` or ``run``, which can.

    Args:
        folder: A dataset's folder.
        memory_limit: Such as "2GB" (default: DuckDB's, 80 % of the machine).
        threads: Default: one a core.
        unfinished: Accept a folder without manifest, as a build does for its own statistics.
        fetch: Brings tables that aren't here yet; called with their names when a statement names them.

    Raises:
        InputError: No complete dataset there, a table has no files, or a file lies outside.
    """
    import duckdb

    if not unfinished and fetch is None:
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
    files = {name: _listed(folder, name) if fetch else _files(folder, name) for name in TABLES}
    shapes = {name: _empty(con, name) for name in TABLES} if fetch else {}
    con.execute(f"SET allowed_paths = {_sql_list(path for paths in files.values() for path in paths)}")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")
    for name, paths in files.items():
        if fetch is None:
            _make_view(con, folder, name, paths)
        else:
            con.execute(f"CREATE VIEW {name} AS {shapes[name]}")
    con.execute(derived_views())
    if fetch is None:
        return con
    return cast("Connection", FetchingConnection(con, Path(folder), files, fetch))


class FetchingConnection:
    """A connection that brings a table when the first statement names it; all else is DuckDB's.

    Until then the table's view has the right columns and no readable row, so that DESCRIBE and SHOW
    work; whatever tries to read it all the same fails with its name.
    """

    def __init__(
        self, con: DuckDBPyConnection, folder: Path, files: dict[str, list[str]], fetch: Fetch
    ) -> None:
        self._con, self._folder, self._fetch = con, folder, fetch
        self._missing = files

    def sql(self, query: str, **options: Any) -> DuckDBPyRelation:
        """Run a statement, once the tables that it names are here."""
        wanted = sorted(tables_in(query) & set(self._missing))
        if wanted:
            self._fetch(*wanted)
        for name in wanted:
            require_own(self._folder, self._missing[name])
            _make_view(self._con, self._folder, name, self._missing.pop(name))
        return self._con.sql(query, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._con.close()


def columns(con: Connection, relation: str) -> list[str]:
    """List the columns of a table or view."""
    return list(con.table(relation).columns)


def require_own(folder: str | Path, paths: Iterable[str]) -> None:
    """Refuse files that a link leads out of the dataset; those of the Hub's cache lie beside its snapshots.

    Raises:
        InputError: A file lies elsewhere.
    """
    root = Path(folder).resolve()
    homes = [root]
    if root.parent.name == "snapshots":
        homes.append(root.parent.parent / "blobs")
    for path in paths:
        if not any(Path(path).resolve().is_relative_to(home) for home in homes):
            raise InputError(
                "this file is a link that leads out of the dataset",
                where=path,
                hint="copy or hard-link the file itself into the dataset",
            )


def _make_view(con: DuckDBPyConnection, folder: str | Path, name: str, paths: list[str]) -> None:
    import duckdb

    try:
        con.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet({_sql_list(paths)})")
    except duckdb.Error as error:
        raise InputError(
            f"table '{name}' can't be read: {first_lines(error)}",
            where=str(folder),
            hint="`solar-rl validate` lists what is damaged; build or download it again",
        ) from None


def _files(folder: str | Path, table: str) -> list[str]:
    paths = [os.path.abspath(path) for path in table_files(folder, table)]
    if not paths:
        raise InputError(f"table '{table}' has no files in data/{table}", where=str(folder))
    require_own(folder, paths)
    return paths


def _listed(folder: str | Path, table: str) -> list[str]:
    """Return where a table's files will lie once they are fetched."""
    listed = [entry.path for entry in read_manifest(folder).files]
    paths = sorted(path for path in listed if path.startswith(f"data/{table}/"))
    if not paths:
        raise InputError(f"the manifest lists no file of table '{table}'", where=str(folder))
    return [os.path.abspath(Path(folder) / path) for path in paths]


def _empty(con: DuckDBPyConnection, table: str) -> str:
    """Return a SELECT with a table's columns and types that fails when its rows are read."""
    shape = con.from_arrow(arrow_schema(table).empty_table())
    nulls = ", ".join(
        f'NULL::{kind} AS "{name}"' for name, kind in zip(shape.columns, shape.types, strict=True)
    )
    return f"SELECT {nulls} WHERE error('table {table} is read in a way that does not name it')"


def first_lines(error: Exception) -> str:
    """Return DuckDB's message without the echo of the query."""
    return " ".join(str(error).split("\n\nLINE")[0].split())


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _sql_list(texts: Iterable[str]) -> str:
    return "[" + ", ".join(map(_quote, texts)) + "]"
