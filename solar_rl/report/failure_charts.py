"""Chart where trajectories fail first and which answers are valid: one finding a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from solar_rl.report.charts import Bar, Bars, Columns, Part, Stack
from solar_rl.report.section import MOST_BARS, Row, Section, ask, cut, over, sentence
from solar_rl.report.words import decimal, integer, percent, plain

if TYPE_CHECKING:
    from solar_rl.stats import Answers


def failures(answers: Answers) -> Section:
    """Lay out where trajectories fail first: by step, place, action type, app, reason and length."""
    tables = ask(answers, "first_failure")
    steps = tables["First failure by step"]
    tenths = tables["First failure by relative position (tenths of the recorded steps)"]
    charts = (
        _survival(steps),
        _tenths(tenths),
        _hazards(tables["First failure by action type"], "action_type", "action type of the label"),
        _hazards(tables["First failure by app"], "app", "app"),
        _reasons(tables["First failure by reason"]),
        _lengths(tables["Trajectories by length"]),
    )
    lede = "t* is the first step whose answer is not valid. Up to there a trajectory follows the expert."
    return Section("failures", "Failures", "Where trajectories fail first", lede, charts)


def _survival(rows: Sequence[Row]) -> Columns:
    def stack(row: Row) -> Stack:
        goes_on, failed = row["reached"] - row["failed"], row["failed"]
        hint = f"step {row['step']}: {integer(row['reached'])} reach it, {integer(failed)} fail here"
        hint += f" ({percent(row['failure_rate'])})"
        return Stack(str(row["step"]), (Part(goes_on, "valid", hint), Part(failed, "invalid", hint)))

    failed = sum(row["failed"] for row in rows)
    worst = max(rows, key=lambda row: row["failed"], default=None)
    note = "No trajectory fails."
    if failed and worst:
        note = f"Step {worst['step']} takes {percent(worst['failed'] / failed)} of all first failures."
    legend = (("valid", "valid here, goes on"), ("invalid", "fails first here"))
    stacks = tuple(map(stack, rows))
    return Columns("First failure by step", note, "step", "trajectories that reach it", stacks, legend)


def _tenths(rows: Sequence[Row]) -> Columns:
    total = sum(row["failed"] for row in rows)
    early = sum(row["failed"] for row in rows if row["tenth"] < 5)
    note = f"{percent(early / total)} of them lie in the first half." if total else "No trajectory fails."
    stacks = tuple(
        Stack(
            f"{10 * row['tenth']:.0f}%",
            (Part(over(row["failed"], total), "invalid", f"{integer(row['failed'])} first failures"),),
        )
        for row in rows
    )
    axis = "t* as a share of the recorded steps"
    title = "First failure by relative position"
    return Columns(title, note, axis, "share of first failures", stacks, shares=True, edges=True, end="100%")


def _hazards(rows: Sequence[Row], key: str, of: str) -> Bars:
    """Rank a column's values by the first failures they take, with the chance to fail beside it."""
    total = sum(row["failed"] for row in rows)
    most = max((row["failed"] for row in rows), default=0)
    bars = tuple(
        Bar(
            plain(row[key]),
            over(row["failed"], most),
            integer(row["failed"]),
            percent(row["failure_rate"]),
            f"{integer(row['failed'])} first failures in {integer(row['reached'])} steps reached",
            "invalid",
        )
        for row in rows[:MOST_BARS]
    )
    note = "No trajectory fails."
    if total:
        note = f"{sentence(plain(rows[0][key]))} takes {percent(rows[0]['failed'] / total)} of the first failures"
        note += f"{_riskiest(rows, key)}."
    axis = f"first failures, and the share of reached steps that fail{cut(rows)}"
    return Bars(f"First failure by {of}", note, axis, bars)


def _riskiest(rows: Sequence[Row], key: str) -> str:
    """Name the value that fails most often once reached, rare ones left aside."""
    risky = max(_common(rows, "reached"), key=lambda row: row["failure_rate"])
    rate = percent(risky["failure_rate"])
    if risky is rows[0]:
        return f" and fails most often once reached ({rate})"
    return f"; {plain(risky[key])} fails most often once reached ({rate})"


def _common(rows: Sequence[Row], key: str) -> list[Row]:
    """Leave out rows with less than 1 % of a count, but never the largest: of 100 equal rows each is common."""
    counts = [row[key] for row in rows]
    enough = min(sum(counts) / 100, max(counts))
    return [row for row in rows if row[key] >= enough]


def _reasons(rows: Sequence[Row]) -> Bars:
    most = max((row["failed"] for row in rows), default=0)
    bars = tuple(
        Bar(
            plain(row["failure_reason"]),
            over(row["failed"], most),
            integer(row["failed"]),
            percent(row["share"]),
            tone="invalid",
        )
        for row in rows[:MOST_BARS]
    )
    note = f"The first reason is “{bars[0].label}” ({bars[0].aside})." if bars else "No trajectory fails."
    return Bars("First failure by reason", note, f"first failures, and their share of all{cut(rows)}", bars)


def _lengths(rows: Sequence[Row]) -> Bars:
    bars = tuple(
        Bar(
            row["length"],
            row["success_rate"] or 0,
            percent(row["success_rate"]),
            integer(row["trajectories"]),
            f"goal progress {percent(row['goal_progress'])} (valid prefix / length)",
            "valid",
        )
        for row in rows
    )
    progress = ", ".join(percent(row["goal_progress"]) for row in rows)
    note = f"Goal progress from short to long: {progress}."
    return Bars(
        "Success by length",
        note,
        f"trajectories without a failure, and all; {rows[0]['buckets']} buckets",
        bars,
    )


def validity(answers: Answers) -> Section:
    """Lay out which answers are valid: by action type, step, place and app, and why others are not."""
    tables = ask(answers, "validity")
    charts = (
        _valid_shares(tables["Validity by action type"], "action_type", "action type of the label"),
        _valid_steps(tables["Validity by step"]),
        _valid_tenths(tables["Validity by relative position (tenths of the recorded steps)"]),
        _valid_shares(tables["Validity by app"], "app", "app"),
        _invalid_reasons(tables["Why answers are not valid"]),
    )
    lede = "Every sampled answer counts, whatever its trajectory did before."
    return Section("validity", "Validity", "Which answers are valid", lede, charts)


def _valid_shares(rows: Sequence[Row], key: str, of: str) -> Bars:
    scored = [row for row in rows if row["scored"]]
    bars = tuple(
        Bar(
            plain(row[key]),
            row["validity"],
            percent(row["validity"]),
            integer(row["scored"]),
            f"mean raw score {decimal(row['mean_score'])}",
            "valid",
        )
        for row in scored[:MOST_BARS]
    )
    note = "No answer was scored."
    if scored:
        low, high = (f(scored, key=lambda row: row["validity"]) for f in (min, max))
        note = f"From {percent(low['validity'])} ({plain(low[key])}) to {percent(high['validity'])} ({plain(high[key])})."
        if percent(low["validity"]) == percent(high["validity"]):
            note = f"About {percent(low['validity'])} everywhere."
    return Bars(f"Validity by {of}", note, f"valid share, and scored answers{cut(scored)}", bars)


def _valid_steps(rows: Sequence[Row]) -> Columns:
    note = "No answer was scored."
    if any(row["scored"] for row in rows):
        low = min(_common(rows, "scored"), key=lambda row: row["validity"])
        note = f"Lowest at step {low['step_index']} ({percent(low['validity'])} of {integer(low['scored'])})."
    stacks = tuple(_valid_stack(str(row["step_index"]), row) for row in rows)
    return Columns("Validity by step", note, "step", "valid share", stacks, shares=True)


def _valid_tenths(rows: Sequence[Row]) -> Columns:
    scored = [row for row in rows if row["scored"]]
    note = "No answer was scored."
    if scored:
        first, last = scored[0]["validity"], scored[-1]["validity"]
        note = f"{percent(first)} in the first tenth of an episode, {percent(last)} in the last."
    stacks = tuple(_valid_stack(f"{10 * row['tenth']:.0f}%", row) for row in rows)
    title, axis = "Validity by relative position", "share of the recorded steps"
    return Columns(title, note, axis, "valid share", stacks, shares=True, edges=True, end="100%")


def _valid_stack(label: str, row: Row) -> Stack:
    hint = f"{percent(row['validity'])} of {integer(row['scored'])} scored answers"
    return Stack(label, (Part(row["validity"] or 0, "valid", hint),))


def _invalid_reasons(rows: Sequence[Row]) -> Bars:
    most = max((row["candidates"] for row in rows), default=0)
    bars = tuple(
        Bar(
            f"{plain(row['failure_reason'])}, {plain(row['action_type'])}",
            over(row["candidates"], most),
            integer(row["candidates"]),
            percent(row["share"]),
            tone="invalid",
        )
        for row in rows[:MOST_BARS]
    )
    note = (
        f"“{sentence(bars[0].label)}” comes first ({bars[0].aside})."
        if bars
        else "Every scored answer is valid."
    )
    axis = f"answers by reason and action type of the label, and their share of all invalid ones{cut(rows)}"
    return Bars("Why answers are not valid", note, axis, bars)
