"""Chart what is odd about the labels themselves, and where directions part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from solar_rl.report.charts import Bar, Bars
from solar_rl.report.section import Row, Section, ask, over
from solar_rl.report.words import integer, percent

if TYPE_CHECKING:
    from solar_rl.stats import Answers

_MOST = 16
_LARGEST = "clicks, box from "
"""Rows not charted: an accessibility tree's root holds every point, so that they tell nothing of most sources."""


def labels(answers: Answers) -> Section:
    """Lay out what to know about the labels before a score on them is believed."""
    truths = ask(answers, "oddities")["What to know about these labels"]
    directions = ask(answers, "directions")
    charts = (
        _truths([row for row in truths if not row["what"].startswith(_LARGEST)]),
        _directions(directions["Scrolls: predicted direction against the label's"]),
        _wording(directions["Scrolls: the instruction's words against the label"]),
    )
    lede = "What is odd about the recorded data, not about the build; each can move a score before any model does."
    return Section("labels", "Labels", "What to know about the labels", lede, charts)


def _truths(rows: Sequence[Row]) -> Bars:
    found = [row for row in rows if row["cases"]]
    bars = tuple(
        Bar(
            row["what"],
            row["share"],
            integer(row["cases"]),
            percent(row["share"]),
            f"{integer(row['cases'])} of {integer(row['of'])}, such as episode {row['example']}",
        )
        for row in found
    )
    note = f"{len(found)} of {len(rows)} kinds occur." if found else "None of the known oddities occurs."
    return Bars("Oddities of the labels", note, "cases, share of such steps or episodes", bars)


def _directions(rows: Sequence[Row]) -> Bars:
    """Rank the pairs of label and predicted direction, the wrong ones marked."""
    total = sum(row["candidates"] for row in rows)
    wrong = sum(row["candidates"] for row in rows if row["label"] != row["predicted"])
    ranked = sorted(rows, key=lambda row: -row["candidates"])
    bars = tuple(
        Bar(
            f"label {row['label']}, predicted {row['predicted']}",
            over(row["candidates"], ranked[0]["candidates"]),
            integer(row["candidates"]),
            percent(over(row["candidates"], total)),
            tone="valid" if row["label"] == row["predicted"] else "invalid",
        )
        for row in ranked[:_MOST]
    )
    note = (
        f"{percent(over(wrong, total))} of scrolls go another way than the label." if total else "No scrolls."
    )
    return Bars("Scroll directions", note, "candidates, share of scrolls on scrolls", bars)


def _wording(rows: Sequence[Row]) -> Bars:
    """Rank what instructions say against what the label does; contradictions are marked."""
    total = sum(row["steps"] for row in rows)
    against = sum(row["steps"] for row in rows if not row["words"].endswith(row["label"]))
    bars = tuple(
        Bar(
            f"“{row['words']}”, label {row['label']}",
            over(row["steps"], rows[0]["steps"]),
            integer(row["steps"]),
            percent(over(row["steps"], total)),
            f"such as episode {row['example']}",
            "valid" if row["words"].endswith(row["label"]) else "invalid",
        )
        for row in rows[:_MOST]
    )
    note = f"The label goes another way than the words in {percent(over(against, total))}."
    return Bars("Scroll instructions", note if total else "None names a direction.", "steps", bars)
