"""What a section of the page is, and what its charts are made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from solar_rl.report.charts import Chart

if TYPE_CHECKING:
    from solar_rl.stats import Answers

Row = Mapping[str, Any]
MOST_BARS = 10
"""Bars that a ranking shows."""


@dataclass(frozen=True)
class Section:
    """One heading of the page with its charts."""

    anchor: str
    short: str
    title: str
    lede: str
    charts: tuple[Chart, ...]


def ask(answers: Answers, name: str) -> dict[str, list[dict[str, Any]]]:
    """Return a named statistic as rows by title."""
    return {title: table.rows(named=True) for title, table in answers.compute(name).items()}


def over(value: float, whole: float) -> float:
    """Return a share, 0 of nothing: a bar of no length."""
    return value / whole if whole else 0.0


def sentence(text: str) -> str:
    """Begin with a capital, as a sentence does."""
    return text[:1].upper() + text[1:]


def cut(rows: Sequence[Row]) -> str:
    """Say that a ranking was cut, if it was."""
    return f"; the first {MOST_BARS} of {len(rows)}" if len(rows) > MOST_BARS else ""
