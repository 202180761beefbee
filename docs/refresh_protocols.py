"""Write the tables of docs/protocols.md anew from what the protocols say of themselves.

Usage: python docs/refresh_protocols.py
"""

import re
from pathlib import Path

from solar_rl.protocols import PROTOCOLS

PAGE = Path(__file__).parent / "protocols.md"
_TABLE = re.compile(r"<!-- table: (?P<name>\w+) -->.*?<!-- end -->", re.DOTALL)


def tables() -> dict[str, str]:
    """Return the tables by name: clicks, everything else, and faults with sources."""
    rows = [(f"`{protocol.name}`", protocol) for protocol in PROTOCOLS.values()]
    return {
        "clicks": _table(
            ("protocol", "kind", "click radius", "boxes"),
            [(name, p.kind, p.rules.radius, p.rules.boxes) for name, p in rows],
        ),
        "others": _table(
            ("protocol", "text", "scroll", "open_app", "wait, finish", "dropped steps"),
            [
                (name, p.rules.text, p.rules.scroll, p.rules.open_app, p.rules.wait_finish, p.rules.dropped)
                for name, p in rows
            ],
        ),
        "sources": _table(
            ("protocol", "version", "known faults, kept", "source"),
            [(name, str(p.version), p.rules.faults, p.source) for name, p in rows],
        ),
    }


def refresh(text: str) -> str:
    """Return the page with each table replaced."""
    made = tables()
    return _TABLE.sub(
        lambda match: f"<!-- table: {match['name']} -->\n{made[match['name']]}\n<!-- end -->", text
    )


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    PAGE.write_text(refresh(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
