"""docs/schema.md says what the schema says."""

from pathlib import Path

from solar_rl.schema import TABLES
from solar_rl.store.schema_doc import schema_markdown

ROOT = Path(__file__).parents[2]


def test_schema_md_is_current():
    written = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")
    assert written == schema_markdown(), "run: python -m solar_rl.store.schema_doc > docs/schema.md"


def test_every_column_of_every_table_is_described():
    text = schema_markdown()
    for table in TABLES.values():
        part = text.split(f"## {table.name}\n")[1].split("\n## ")[0]
        assert all(f"| `{name}` |" in part for name in table.names)
