"""Run every query of docs/queries.md and print its answer below it.

Usage: solar-rl build datasets/phone/dataset.yaml --out runs/phone && python docs/refresh_queries.py runs/phone
"""

import re
import sys
from pathlib import Path

import solar_rl
from solar_rl.store.card import markdown_table

PAGE = Path(__file__).parent / "queries.md"
_QUERY = re.compile(r"```sql\n(?P<sql>.*?)```\n+<!-- answer -->.*?<!-- end -->", re.DOTALL)


def refresh(text: str, data: solar_rl.SolarDataset) -> str:
    """Return the page with each answer replaced by what the dataset says now."""

    def with_answer(match: re.Match[str]) -> str:
        answer = markdown_table(data.sql(match["sql"]), rows=12)
        return f"```sql\n{match['sql']}```\n\n<!-- answer -->\n{answer}\n<!-- end -->"

    return _QUERY.sub(with_answer, text)


if __name__ == "__main__":
    PAGE.write_text(
        refresh(PAGE.read_text(encoding="utf-8"), solar_rl.open_dataset(sys.argv[1])), encoding="utf-8"
    )
