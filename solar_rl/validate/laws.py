"""Check every law of the tables and of the method in SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solar_rl.stats.config_laws import config_laws
from solar_rl.stats.laws import GROUP_LAWS, REWARD_LAWS, TRAJECTORY_LAWS
from solar_rl.stats.table_laws import KEY_LAWS, RECORD_LAWS, REWARD_TABLE_LAWS
from solar_rl.store.manifest import Manifest
from solar_rl.validate.check import Check

if TYPE_CHECKING:
    from solar_rl.query import Connection


SAMPLED = ("episodes", "steps", "images", "candidates")
"""Tables of what was read and sampled: a re-shaped version keeps them."""


def laws(folder: Path, manifest: Manifest) -> Iterator[Check]:
    """Check every law in SQL."""
    from solar_rl.query import connect

    with connect(folder) as con:
        yield from laws_in(con, manifest.config)


def laws_in(con: Connection, config: Mapping[str, Any]) -> Iterator[Check]:
    """Check every law over a connection.

    Args:
        con: From ``query.connect``.
        config: The dataset's resolved config.
    """
    yield from quick_laws(con)
    for laws in (KEY_LAWS, RECORD_LAWS, REWARD_TABLE_LAWS, config_laws(dict(config))):
        yield from select_laws(con, laws)


def quick_laws(con: Connection) -> Iterator[Check]:
    """Check the laws of single rewards, trajectories and groups: one pass over each table, no join."""
    yield from _row_laws(con, "rewards", REWARD_LAWS)
    yield from _row_laws(con, "trajectories", TRAJECTORY_LAWS)
    yield from select_laws(con, GROUP_LAWS)


def sampled_laws(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the laws of what was read and sampled: they hold of a re-shaped version as they did before."""
    keys = {f"{table}_keys_are_unique": KEY_LAWS[f"{table}_keys_are_unique"] for table in SAMPLED}
    records = {name: sql for name, sql in RECORD_LAWS.items() if "reward" not in name}
    counted = {n: sql for n, sql in config_laws(dict(config)).items() if n == "steps_have_n_candidates"}
    return keys | records | counted


def select_laws(con: Connection, laws: Mapping[str, str]) -> Iterator[Check]:
    """Check laws that are a SELECT of the rows that break them, one by one."""
    for name, sql in laws.items():
        (broken,) = _numbers(con, f"SELECT count(*) FROM ({sql})")
        yield _law(con, name, sql, broken)


def _row_laws(con: Connection, table: str, laws: Mapping[str, str]) -> Iterator[Check]:
    """Check laws of single rows, all of them in one pass."""
    counts = ", ".join(f"count(*) FILTER ({broken}) AS {name}" for name, broken in laws.items())
    for (name, broken), count in zip(
        laws.items(), _numbers(con, f"SELECT {counts} FROM {table}"), strict=True
    ):
        yield _law(con, name, f"SELECT * FROM {table} WHERE {broken}", count)


def _numbers(con: Connection, sql: str) -> tuple[int, ...]:
    from solar_rl.query import select

    return select(con, sql).row(0)


def _law(con: Connection, name: str, sql: str, count: int) -> Check:
    """Report a law with the number of rows that break it and, in words, the first of them."""
    from solar_rl.query import select

    if not count:
        return Check(name, True, 0)
    row = select(con, f"SELECT * FROM ({sql}) ORDER BY ALL LIMIT 1").row(0, named=True)
    return Check(
        name, False, count, ", ".join(f"{k} = {v}" for k, v in list(row.items())[:8] if v is not None)
    )
