"""Write the interchange format's JSON schema, and the tables of its keys in docs/interchange.md.

Usage: python docs/refresh_interchange.py
"""

import json
import re
from pathlib import Path

import solar_rl.interchange
from solar_rl.interchange import json_schema
from solar_rl.interchange.reference import keys_markdown

PAGE = Path(__file__).parent / "interchange.md"
SCHEMA = Path(solar_rl.interchange.__file__).parent / "episode.schema.json"
_KEYS = re.compile(r"<!-- keys -->\n.*?<!-- end -->", re.DOTALL)


def refresh(text: str) -> str:
    """Return the page with the tables that the model gives now."""
    return _KEYS.sub(lambda _: f"<!-- keys -->\n{keys_markdown()}<!-- end -->", text)


if __name__ == "__main__":
    SCHEMA.write_text(json.dumps(json_schema(), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(refresh(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
