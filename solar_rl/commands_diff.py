"""What the verb ``diff`` does: compare, print as tables or JSON, and write the page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from solar_rl.commands import log, print_table
from solar_rl.diff import TITLES, Difference, compare
from solar_rl.diff.rows import Row, differs
from solar_rl.errors import CheckFailed, InputError

if TYPE_CHECKING:
    import polars as pl

_LONGEST_VALUE = 60


def diff(
    a: str, b: str, *, html: Path | None, everything: bool, rows: int, exit_code: bool, as_json: bool
) -> None:
    """Compare two datasets and tell what changed.

    Raises:
        CheckFailed: They differ, and ``exit_code`` asks to say so.
    """
    from solar_rl.store.dataset import open_dataset

    first, second = open_dataset(a), open_dataset(b)
    folders = [data.folder.resolve() for data in (first, second)]
    if html is not None and any(html.resolve().is_relative_to(folder) for folder in folders):
        raise InputError(
            "the page is never written into a dataset", where=str(html), hint="name another file"
        )
    found = compare(first, second)
    if html is not None:
        from solar_rl.report import write_diff

        log.print(f"wrote {write_diff(found, html)}")
    if as_json:
        print(orjson.dumps(found.as_dict(), option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode())
    else:
        _print(found, everything, rows)
    if exit_code and not found.same:
        raise CheckFailed(f"the two differ in {', '.join(found.changed)}", where=f"{a}, {b}")


def _print(found: Difference, everything: bool, rows: int) -> None:
    for side, manifest in (("a", found.a), ("b", found.b)):
        print(f"{side}: {manifest.name} {manifest.version}, build {manifest.build_id[:12]}")
    print()
    for name in TITLES:
        section = found.sections[name]
        if name == "counts" and not everything:
            section = [row for row in section if row["split"] == "all"]
        shown = (
            section
            if everything or name in ("validity", "episodes", "paired")
            else list(filter(differs, section))
        )
        if shown and (everything or name in found.changed):
            print_table(_frame(shown), title=TITLES[name])
    if found.episodes.height:
        print_table(
            _episodes(found.episodes), title="Episodes that differ, the largest change first", rows=rows
        )
    same = [TITLES[name].split(" (")[0].lower() for name in TITLES if name not in found.changed]
    if found.same:
        print("no difference")
    elif same and not everything:
        print(f"the same: {', '.join(same)}")


def _frame(rows: list[Row]) -> pl.DataFrame:
    """Make a frame of rows whose values may be of any type: numbers stay numbers, the rest is spelled out."""
    import polars as pl

    def column(values: list[Any]) -> pl.Series:
        if all(
            value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
            for value in values
        ):
            return pl.Series(values, strict=False)
        return pl.Series([None if value is None else _spelled(value) for value in values], dtype=pl.String)

    return pl.DataFrame({name: column([row[name] for row in rows]) for name in rows[0]})


def _spelled(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _episodes(episodes: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return episodes.select(
        "episode_id",
        pl.concat_str("status", pl.col("parts").list.join(" ").fill_null(""), separator=" ").alias("what"),
        *(f"{name}_{side}" for name in ("validity", "mean_reward", "success_rate") for side in "ab"),
        goal=pl.coalesce("goal_b", "goal_a").str.slice(0, 48),
    )
