"""What the verb query does: answer SQL within limits, and print or write rows as they come."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from solar_rl.commands import log, print_table
from solar_rl.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.query import Deadline

    Frames = Iterator[pl.DataFrame]

_GROUP_ROWS = 100_000
"""Rows of a row group of parquet that is written."""


def query(
    dataset: str,
    sql: str,
    *,
    format: str,
    out: Path | None,
    rows: int,
    timeout: float,
    memory: str,
) -> None:
    """Run one query and print or write its rows."""
    from solar_rl import query as sql_module
    from solar_rl.store.dataset import open_dataset

    if format == "parquet" and out is None:
        raise InputError("parquet can't be printed", hint="name a file with --out")
    if format == "table" and out is not None:
        raise InputError("a table is for the screen", hint="write a file with --format csv, json or parquet")
    limit = sql_module.memory_bytes(memory)
    data = open_dataset(dataset)
    if out is not None and out.resolve().is_relative_to(data.folder.resolve()):
        raise InputError("a query never writes into a dataset", where=str(out), hint="use --out elsewhere")
    data.fetch(*sql_module.tables_in(sql))  # a download doesn't count as the query's time
    with (
        data.connect(memory_limit=f"{limit}B") as con,
        sql_module.memory_ceiling(limit),
        closing(sql_module.stream(con, sql, timeout=timeout, give_up=_give_up)) as frames,
    ):
        if format == "table":
            _print_first(frames, rows)
        else:
            _write(frames, format, out)


def _give_up(limit: Deadline) -> None:
    """End the process: what runs can't be interrupted."""
    error = limit.error()
    print(f"solar-rl: {error}", file=sys.stderr, flush=True)
    os._exit(error.exit_code)


def _print_first(frames: Frames, rows: int) -> None:
    """Print at most ``rows`` rows, and take no more from the query than that."""
    import polars as pl

    taken: list[pl.DataFrame] = []
    for frame in frames:
        taken.append(frame)
        if sum(each.height for each in taken) > rows:
            break
    table = pl.concat(taken)
    print_table(table.head(rows))
    if table.height > rows:
        log.print(f"the first {rows} rows shown, there are more; --rows shows more, --format csv all")


def _write(frames: Frames, format: str, out: Path | None) -> None:
    """Write rows as they come: to stdout, or to a file that appears when it is whole."""
    write = {"csv": _write_csv, "json": _write_json, "parquet": _write_parquet}[format]
    if out is None:
        sys.stdout.flush()
        write(frames, sys.stdout.buffer)
        return
    with _whole_file(out) as file:
        write(frames, file)


@contextmanager
def _whole_file(out: Path) -> Iterator[IO[bytes]]:
    if out.exists() and not out.is_file():  # a pipe or a device
        with out.open("wb") as file:
            yield file
        return
    temporary = out.with_name(f".{out.name}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)


def _write_csv(frames: Frames, file: IO[bytes]) -> None:
    for number, frame in enumerate(frames):
        file.write(_flat(frame).write_csv(include_header=number == 0).encode())


def _write_json(frames: Frames, file: IO[bytes]) -> None:
    """Write one array of objects, as ``orjson`` would in one piece."""
    lead = b"[\n  "
    for frame in frames:
        for row in frame.iter_rows(named=True):
            text = orjson.dumps(row, default=_plain, option=orjson.OPT_INDENT_2)
            file.write(lead + text.replace(b"\n", b"\n  "))
            lead = b",\n  "
    file.write(b"[]\n" if lead.startswith(b"[") else b"\n]\n")


def _write_parquet(frames: Frames, file: IO[bytes]) -> None:
    import polars as pl
    import pyarrow.parquet as pq

    first = next(frames)
    pending = [first]
    with pq.ParquetWriter(file, first.to_arrow().schema, compression="zstd") as writer:
        for frame in frames:
            pending.append(frame)
            if sum(each.height for each in pending) >= _GROUP_ROWS:
                writer.write_table(pl.concat(pending).to_arrow())
                pending = []
        if pending:
            writer.write_table(pl.concat(pending).to_arrow())


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """Spell nested columns as JSON text, since CSV has no lists."""
    import polars as pl

    nested = [name for name, dtype in table.schema.items() if dtype.is_nested()]
    texts = [pl.Series(n, [_json_text(v) for v in table[n].to_list()], dtype=pl.String) for n in nested]
    return table.with_columns(texts)


def _json_text(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value, default=_plain).decode()


def _plain(value: Any) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
