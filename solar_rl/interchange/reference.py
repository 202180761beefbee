"""Spell the keys of the interchange format as tables, for docs/interchange.md."""

from __future__ import annotations

from typing import Any

from solar_rl.interchange.model import json_schema

_TITLES = (
    ("", "An episode: one line"),
    ("InterchangeStep", "A step"),
    ("InterchangeAction", "An action"),
    ("InterchangeAlternative", "An alternative: an action, and"),
)
_KINDS = {"integer": "whole number", "boolean": "true or false", "string": "text", "number": "number"}


def keys_markdown() -> str:
    """Return a table of keys for each kind of object in a line."""
    schema = json_schema()
    seen: set[str] = set()
    parts = []
    for name, title in _TITLES:
        part = schema["$defs"][name] if name else schema
        if name == "InterchangeAlternative":
            seen = set(schema["$defs"]["InterchangeAction"]["properties"])
        required = set(part.get("required", ()))
        rows = [
            f"| `{key}` | {_kind(value)} | {'yes' if key in required else ''} | {_words(value)} |"
            for key, value in part["properties"].items()
            if key not in seen
        ]
        parts += [f"### {title}", "", "| key | what | must | meaning |", "|---|---|---|---|", *rows, ""]
    return "\n".join(parts)


def _kind(value: dict[str, Any]) -> str:
    if "enum" in value:
        return ", ".join(str(each) for each in value["enum"] if each is not None)
    if "$ref" in value:
        return str(value["$ref"]).rpartition("/")[2].removeprefix("Interchange").lower()
    if "anyOf" in value:
        return " or ".join(_kind(each) for each in value["anyOf"] if each.get("type") != "null")
    if value.get("prefixItems"):
        return "[x1, y1, x2, y2]"
    if value.get("type") == "array":
        return f"list of {_kind(value['items'])}"
    return _KINDS[value["type"]]


def _words(value: dict[str, Any]) -> str:
    return " ".join(value["description"].split())
