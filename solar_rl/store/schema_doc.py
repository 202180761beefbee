"""Write docs/schema.md from the schema: ``python -m solar_rl.store.schema_doc > docs/schema.md``."""

from __future__ import annotations

from solar_rl.schema import SCHEMA_VERSION, TABLES, Table

_INTRO = f"""# Tables

Schema version {SCHEMA_VERSION}. Written by `python -m solar_rl.store.schema_doc`; edit `solar_rl/schema.py` instead.

A dataset is a folder with one parquet file or more for each table and split, `data/TABLE/SPLIT-00000-of-0000N.parquet`,
sorted by key. Coordinates lie in the unit square of the recorded screen; `step_index` and `candidate_index` count from 0.
Null means "does not apply" or "could not be judged", never 0. Types are Arrow's; `image` is a struct of encoded `bytes`
and an empty `path`, which `datasets` opens as an Image.

Three views are made from the tables, in `views.sql` and in every connection of ours: `scored` (every column of `rewards`
with goal, source, platform, split, ref_len, instruction and image_sha256), `failures` (one row per failed trajectory, with
the raw_score and completion of the step that broke it) and `grpo_groups` (one row per step: n candidates in play,
mean_reward, spread, and dropped_reason where the group teaches nothing).
"""


def schema_markdown() -> str:
    """Return docs/schema.md: every table with its key, its columns, their types and meanings."""
    return "\n".join([_INTRO, *map(_table_markdown, TABLES.values())])


def _table_markdown(table: Table) -> str:
    rows = [
        f"| `{column.name}` | {column.dtype} | {'yes' if column.nullable else ''} | {column.doc} |"
        for column in table.columns
    ]
    key = ", ".join(f"`{name}`" for name in table.key)
    head = (f"## {table.name}", "", f"{table.doc} Key: {key}. {table.row_group:,} rows a row group.", "")
    return "\n".join((*head, "| column | type | null | meaning |", "|---|---|---|---|", *rows, ""))


if __name__ == "__main__":
    print(schema_markdown(), end="")
