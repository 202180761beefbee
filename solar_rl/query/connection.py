"""Open DuckDB over one dataset and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from solar_rl.errors import InputError
from solar_rl.query.views import derived_views, tables_in
from solar_rl.schema import TABLES, arrow_schema
from solar_rl.store.manifest import require_whole
from solar_rl.store.parquet import table_files

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

    Connection: TypeAlias = DuckDBPyConnection
else:
    Connection = Any

Settings: TypeAlias = dict[str, str | bool | int | float | list[str]]
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
    settings: Settings = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "temp_directory": "",
    }
    if memory_limit is not None:
        settings["memory_limit"] = memory_limit
    if threads is not None:
        settings["threads"] = threads
    if fetch is not None:
        return cast("Connection", FetchingConnection(Path(folder), settings, fetch))
    if not unfinished:
        require_whole(folder)
    return _open(folder, settings, TABLES)


class FetchingConnection:
    """A connection that brings a table when the first statement names it; all else is DuckDB's.

    Until then the table's view has the right columns and no readable row, so that DESCRIBE and SHOW
    work; whatever tries to read it all the same fails with its name. A connection's settings are locked,
    so one that may read more files is another one: opened anew for every table that comes.
    """

    def __init__(self, folder: Path, settings: Settings, fetch: Fetch) -> None:
        self._folder, self._settings, self._fetch = folder, settings, fetch
        self._here: set[str] = set()
        self._con = _open(folder, settings, self._here)

    def sql(self, query: str, **options: Any) -> DuckDBPyRelation:
        """Run a statement, once the tables that it names are here."""
        self.bring(query)
        return self._con.sql(query, **options)

    def bring(self, *queries: str) -> None:
        """Bring the tables that statements name."""
        wanted = set().union(*map(tables_in, queries)) - self._here
        if wanted:
            self._fetch(*sorted(wanted))
            self._here |= wanted
            self._con = _open(self._folder, self._settings, self._here)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._con, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._con.close()


def cursor_for(con: Connection, *queries: str) -> Connection:
    """Return a connection of its own for another thread, which may run these statements and none of other tables."""
    if isinstance(con, FetchingConnection):
        con.bring(*queries)
    return con.cursor()


def _open(folder: str | Path, settings: Settings, here: Container[str]) -> DuckDBPyConnection:
    """Open a locked connection with every view; those of tables that aren't here have no readable row."""
    import duckdb

    con = duckdb.connect(":memory:", config=settings)
    files = {name: _files(folder, name) for name in TABLES if name in here}
    views = {name: f"SELECT * FROM read_parquet({_sql_list(paths)})" for name, paths in files.items()}
    views |= {name: _unread(con, name) for name in TABLES if name not in here}
    con.execute(f"SET allowed_paths = {_sql_list(path for paths in files.values() for path in paths)}")
    con.execute("SET enable_external_access = false")
    for name in TABLES:
        try:
            con.execute(f"CREATE VIEW {name} AS {views[name]}")
        except duckdb.Error as error:
            raise InputError(
                f"table '{name}' can't be read: {first_lines(error)}",
                where=str(folder),
                hint="`solar-rl validate` lists what is damaged; build or download it again",
            ) from None
    con.execute(derived_views())
    con.execute("SET lock_configuration = true")
    return con


def columns(con: Connection, relation: str) -> list[str]:
    """List the columns of a table or view."""
    return list(con.table(relation).columns)


def _files(folder: str | Path, table: str) -> list[str]:
    """Return where a table's files really lie: what DuckDB compares with the paths that it may open.

    Raises:
        InputError: No files, or a link leads out of the dataset.
    """
    paths = [path.resolve() for path in table_files(folder, table)]
    if not paths:
        raise InputError(f"table '{table}' has no files in data/{table}", where=str(folder))
    homes = _homes(Path(folder).resolve())
    for path in paths:
        if not any(path.is_relative_to(home) for home in homes):
            raise InputError(
                f"a file of table '{table}' is a link that leads out of the dataset, to {path}",
                where=str(folder),
                hint="copy or hard-link the file itself into the dataset",
            )
    return [str(path) for path in paths]


def _homes(folder: Path) -> list[Path]:
    """Return the folders in which a dataset's files may lie: its own, and beside it in the Hub's cache."""
    if folder.parent.name == "snapshots":
        return [folder, folder.parent.parent / "blobs"]
    return [folder]


def _unread(con: DuckDBPyConnection, table: str) -> str:
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
