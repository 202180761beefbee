"""What a named statistic is made of: questions in SQL, each answered by one titled table or several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from solar_rl.schema import LENGTH_BUCKETS

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.query import Connection


def _cases(rule: str) -> str:
    *bounded, (_, longest) = LENGTH_BUCKETS[rule]
    cases = " ".join(f"WHEN ref_len <= {most} THEN '{name}'" for most, name in bounded)
    return f"CASE {cases} ELSE '{longest}' END"


_ON_PHONE = "(SELECT bool_and(source = 'phone') FROM episodes)"
BUCKETS = f"""
  CASE WHEN {_ON_PHONE} THEN {_cases("phone")} ELSE {_cases("androidcontrol")} END AS length,
  CASE WHEN {_ON_PHONE} THEN 'phone' ELSE 'androidcontrol' END AS buckets
"""
"""Length buckets by recorded steps and the rule's name: the simulated phone has its own, all else
AndroidControl's (method.md, section 5)."""


def mean(value: str) -> str:
    """Return SQL for a mean that is the same to the last bit in any order and on any number of threads.

    Floats are added up as integers of 1e-9, which commute exactly; the mean is right within 1e-9. Ours.

    >>> mean("reward")
    'sum((1e9 * (reward))::BIGINT) / 1e9 / nullif(count(reward), 0)'
    """
    return f"sum((1e9 * ({value}))::BIGINT) / 1e9 / nullif(count({value}), 0)"


def std(value: str) -> str:
    """Return SQL for the population's standard deviation, right within 1e-6 and as repeatable as ``mean``."""
    return f"round(sqrt(greatest(0, {mean(f'{value} * {value}')} - ({mean(value)}) ** 2)), 6)"


def share(of: str, whole: str) -> str:
    """Return SQL for a share in [0, 1], null of nothing."""
    return f"({of}) / nullif({whole}, 0)::DOUBLE"


def count(condition: str) -> str:
    """Return SQL that counts the rows which meet a condition, as a BIGINT (``count_if`` is wider)."""
    return f"count(*) FILTER ({condition})"


def answer(con: Connection, sql: str) -> pl.DataFrame:
    """Run SQL; sums of integers, which DuckDB makes 128 bits wide, come back as 64-bit integers."""
    import polars as pl

    rows: pl.DataFrame = con.sql(sql).pl()
    wide = [name for name, kind in rows.schema.items() if kind == pl.Decimal]
    return rows.with_columns(pl.col(wide).cast(pl.Int64)) if wide else rows


@dataclass(frozen=True)
class Question:
    """One SELECT and the title of its answer."""

    title: str
    sql: str

    def ask(self, con: Connection) -> dict[str, pl.DataFrame]:
        """Answer it."""
        return {self.title: answer(con, self.sql)}


@dataclass(frozen=True)
class Breakdown:
    """The same measures by one column after another, in a single pass over the rows.

    Args:
        titles: Column to group by, and the title of that table. Integer columns come in their own
            order, others with the largest group first.
        measures: SQL of the measures; the first is a count.
        source: What follows FROM.
        known_only: Columns whose null group is left out.
    """

    titles: dict[str, str]
    measures: str
    source: str
    known_only: tuple[str, ...] = ()

    def ask(self, con: Connection) -> dict[str, pl.DataFrame]:
        """Answer all of them."""
        columns = ", ".join(self.titles)
        sets = ", ".join(f"({column})" for column in self.titles)
        rows = answer(
            con,
            f"SELECT grouping({columns}) AS which, {columns}, {self.measures} "
            f"FROM {self.source} GROUP BY GROUPING SETS ({sets})",
        )
        return {title: self._table(rows, column) for column, title in self.titles.items()}

    def _table(self, rows: pl.DataFrame, column: str) -> pl.DataFrame:
        import polars as pl

        names = list(self.titles)
        # grouping() has a set bit for every column that is NOT grouped by, the first column's bit highest
        which = (1 << len(names)) - 1 - (1 << (len(names) - 1 - names.index(column)))
        table = rows.filter(pl.col("which") == which).drop(
            "which", *(name for name in names if name != column)
        )
        if column in self.known_only:
            table = table.drop_nulls(column)
        if table.schema[column].is_integer():
            return table.sort(column, nulls_last=True)
        return table.sort(table.columns[1], column, descending=[True, False], nulls_last=True)
