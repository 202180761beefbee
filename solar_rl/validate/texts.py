"""Look for private strings in every column of free text: e-mail addresses, phone numbers, access keys."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from solar_rl.config.privacy import PrivateKind
from solar_rl.privacy import PATTERNS, find
from solar_rl.schema import TABLES
from solar_rl.store.manifest import Manifest
from solar_rl.store.parquet import table_files
from solar_rl.validate.check import Check

if TYPE_CHECKING:
    import polars as pl

TEXT_COLUMNS = {
    "episodes": ("goal", "app", "category"),
    "steps": ("instruction", "text", "app_name", "screen_text", "thought", "alternatives"),
    "candidates": ("completion", "parse_error", "pred_text", "pred_app_name"),
    "rewards": ("matched_text",),
    "preview": ("goal", "instruction", "expert", "candidate"),
}
"""Columns that hold words of people or of models."""
NAMES: dict[PrivateKind, str] = {
    "email": "no_email_addresses",
    "phone": "no_phone_numbers",
    "secret": "no_access_keys",
}
"""Kind of private string to the name of its check."""


class Finding(NamedTuple):
    """Private strings of one kind in one column: how many, how many different ones, and where the first is."""

    kind: PrivateKind
    column: str
    strings: int
    different: int
    place: str


def texts(folder: Path, manifest: Manifest, allow: Collection[str] = ()) -> Iterator[Check]:
    """Check that no private strings are there but those of the kinds that are allowed."""
    reasons = dict.fromkeys(allow, "as asked") | manifest.config.get("privacy", {}).get("allow", {})
    yield from judge(scan(folder), reasons)


def judge(findings: list[Finding], reasons: dict[str, str]) -> Iterator[Check]:
    """Turn findings into one check a kind; the count is of strings, allowed or not.

    Args:
        findings: What ``scan`` found.
        reasons: Kinds that are allowed, and why.
    """
    for kind, name in NAMES.items():
        mine = [finding for finding in findings if finding.kind == kind]
        found = ", ".join(f"{f.column} {f.strings:,} ({f.different:,} different)" for f in mine)
        first = f"; first: {mine[0].place}" if mine else ""
        said = f"; allowed: {reasons[kind]}" if mine and kind in reasons else ""
        yield Check(name, not mine or kind in reasons, sum(f.strings for f in mine), found + first + said)


def scan(folder: Path, tables: Collection[str] = tuple(TEXT_COLUMNS)) -> list[Finding]:
    """List the private strings of a dataset's folder by kind and column; nothing private is quoted.

    Args:
        folder: A dataset's folder.
        tables: Tables to look into, beside rejects.jsonl.
    """
    found = [
        finding
        for table, columns in TEXT_COLUMNS.items()
        if table in tables
        for column in columns
        for finding in _scan_column(folder, table, column)
    ]
    return [*found, *_scan_rejects(folder)]


def _scan_column(folder: Path, table: str, column: str) -> Iterator[Finding]:
    import polars as pl

    key = list(TABLES[table].key)
    rows = pl.concat(_suspects(path, key, column) for path in table_files(folder, table))
    strings: dict[PrivateKind, Counter[str]] = {kind: Counter() for kind in PATTERNS}
    first: dict[PrivateKind, str] = {}
    distinct = rows.group_by("text", maintain_order=True).agg(pl.len(), pl.col(key).first())
    for text, count, *place in distinct.iter_rows():
        for private in find(text):
            strings[private.kind][private.text] += count
            first.setdefault(private.kind, ", ".join(f"{k} {v}" for k, v in zip(key, place, strict=True)))
    for kind, counts in strings.items():
        if counts:
            yield Finding(kind, f"{table}.{column}", counts.total(), len(counts), first[kind])


def _suspects(path: Path, key: list[str], column: str) -> pl.DataFrame:
    """Return the rows of a file whose text may hold something private: the fast sieve, in Rust."""
    import polars as pl

    frame = pl.read_parquet(path, columns=[*key, column], glob=False).rename({column: "text"})
    if frame.schema["text"] != pl.String:
        frame = frame.explode("text", empty_as_null=False)
    text = pl.col("text").str
    # a literal first: most texts have no such character
    email = text.contains("@", literal=True) & text.contains(PATTERNS["email"])
    return frame.filter(email | text.contains(PATTERNS["phone"]) | text.contains(PATTERNS["secret"]))


def _scan_rejects(folder: Path) -> Iterator[Finding]:
    path = folder / "rejects.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    strings: dict[PrivateKind, Counter[str]] = {kind: Counter() for kind in PATTERNS}
    first: dict[PrivateKind, str] = {}
    for number, line in enumerate(lines, start=1):
        record = json.loads(line)
        for private in find(f"{record['record']}\n{record['message']}"):
            strings[private.kind][private.text] += 1
            first.setdefault(private.kind, f"line {number}")
    for kind, counts in strings.items():
        if counts:
            yield Finding(kind, "rejects.jsonl", counts.total(), len(counts), first[kind])
