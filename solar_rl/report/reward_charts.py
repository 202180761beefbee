"""Chart the rewards and what is left to learn from: one finding a chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from solar_rl.report.charts import Bar, Bars, Columns, Part, Split, Stack
from solar_rl.report.section import Row, Section, ask, over, sentence
from solar_rl.report.words import decimal, integer, percent, plain, tiny

if TYPE_CHECKING:
    from solar_rl.stats import Answers

_OUTCOMES = {"kept": "valid", "no spread": "gone", "one candidate": "later", "nothing in play": "unscored"}
_POSITIONS = {"prefix": "valid", "breakdown": "invalid", "after": "gone"}
_ALIGNMENTS = {"aligned": "valid", "no_prefix": "invalid", "off": "gone"}


def rewards(answers: Answers) -> Section:
    """Lay out what rewards and returns look like, and how well the rewards sum to their target."""
    tables = ask(answers, "rewards")
    kinds = {row["answer"]: row for row in tables["Rewards of valid, invalid and unscored answers"]}
    charts = (
        _reward_histogram(tables["Distribution of rewards"], kinds),
        _return_histogram(tables["Distribution of R_traj"]),
        _returns_by_failure(tables["R_traj by first failure"]),
        _sums(tables["Sum of rewards against target"]),
    )
    lede = "Valid steps share the gap between a trajectory’s base rewards and its target; invalid ones are never positive."
    return Section("rewards", "Rewards", "What the rewards look like", lede, charts)


def _reward_histogram(rows: Sequence[Row], answers: Mapping[str, Row]) -> Columns:
    note = "No answer has a reward."
    if "valid" in answers and answers["valid"]["in_play"]:
        mean, odd, n = (answers["valid"][name] for name in ("mean_reward", "negative_advantages", "in_play"))
        note = f"Valid answers get {decimal(mean, sign=True)} on average; {percent(odd / n)} of them a negative advantage."
    stacks = tuple(
        _bin(row, "answers", "invalid" if row["at_least"] < 0 else "valid") for row in _filled(rows, 0.1)
    )
    legend = (("invalid", "below 0"), ("valid", "0 and above"))
    return Columns(
        "Distribution of rewards", note, "reward", "answers", stacks, legend, edges=True, end=_end(rows)
    )


def _return_histogram(rows: Sequence[Row]) -> Columns:
    note = "No trajectory was scored."
    if rows:
        most = max(rows, key=lambda row: row["n"])
        note = f"Most often between {decimal(most['at_least'])} and {decimal(most['below'])} ({percent(most['share'])})."
    stacks = tuple(_bin(row, "trajectories", "accent") for row in _filled(rows, 0.05))
    axis = "trajectory reward R_traj"
    return Columns("Distribution of R_traj", note, axis, "trajectories", stacks, edges=True, end=_end(rows))


def _returns_by_failure(rows: Sequence[Row]) -> Columns:
    def stack(row: Row) -> Stack:
        step, tone = row["first_failure_step"], "valid" if row["first_failure_step"] is None else "accent"
        hint = f"{'no failure' if step is None else f't* = {step}'}: {integer(row['trajectories'])} trajectories, "
        hint += f"R_traj {decimal(row['least'])} to {decimal(row['largest'])}, "
        hint += f"mean reward a step {decimal(row['mean_reward_a_step'], sign=True)}"
        return Stack("✓" if step is None else str(step), (Part(row["mean_r_traj"] or 0, tone, hint),))

    note = "Failing later should pay more, finishing most; hover for the mean reward a step."
    axis = "first failure t* (✓: none)"
    return Columns("R_traj by first failure", note, axis, "mean R_traj", tuple(map(stack, rows)))


def _filled(rows: Sequence[Row], width: float) -> Iterable[Row]:
    """Put empty bins between the first and the last one, so that the axis is a true scale."""
    by_bin = {round(row["at_least"] / width): row for row in rows}
    for k in range(min(by_bin, default=0), max(by_bin, default=-1) + 1):
        yield {"at_least": k * width, "below": (k + 1) * width, "n": 0, "share": 0.0} | dict(
            by_bin.get(k, {})
        )


def _end(rows: Sequence[Row]) -> str:
    return decimal(rows[-1]["below"], 1) if rows else ""


def _bin(row: Row, what: str, tone: str) -> Stack:
    at_least, below = (decimal(row[name]) for name in ("at_least", "below"))
    hint = f"{at_least} to {below}: {integer(row['n'])} {what} ({percent(row['share'])})"
    return Stack(
        decimal(row["at_least"], 1 if abs(row["at_least"] * 10 % 1) < 1e-6 else 2),
        (Part(row["n"], tone, hint),),
    )


def _sums(rows: Sequence[Row]) -> Split:
    aligned = next((row for row in rows if row["alignment"] == "aligned"), None)
    note = "No trajectory claims that its rewards sum to a target."
    if aligned:
        note = f"Largest |sum − target| of aligned trajectories: {tiny(aligned['largest_difference'])}"
        note += f"; {integer(aligned['beyond_1e9'])} of them lie beyond 10⁻⁹."
    parts = tuple(
        (plain(row["alignment"]), Part(row["trajectories"], _ALIGNMENTS[row["alignment"]]), _means(row))
        for row in rows
    )
    axis = "trajectories by alignment, with the mean sum of their rewards and the mean target"
    return Split("Sum of rewards against target", note, axis, parts)


def _means(row: Row) -> str:
    sums = f"sum {decimal(row['mean_sum'], sign=True)}, target {decimal(row['mean_target'], sign=True)}"
    return f"{integer(row['trajectories'])} · {sums}"


def learning(answers: Answers) -> Section:
    """Lay out what is left to learn from: groups with spread, and answers that truncation spares."""
    groups, lost = ask(answers, "groups"), ask(answers, "truncation")
    charts = (
        _group_sizes(groups["Groups by number of valid candidates"]),
        _truncation(lost["Truncation loss by step"]),
        _lost_lengths(lost["Truncation loss by length"]),
        _group_outcomes(groups["Groups that teach, and those without spread"]),
        _places(lost["What this build does with them"]),
    )
    lede = "A group is one step’s candidates. Without spread its advantages are 0; truncation throws away what follows t*."
    return Section("learning", "Groups and truncation", "What is left to learn from", lede, charts)


def _group_outcomes(rows: Sequence[Row]) -> Split:
    total = sum(row["groups"] for row in rows)
    kept = sum(row["kept"] for row in rows)
    parts = tuple(
        (
            "with spread" if row["outcome"] == "kept" else row["outcome"],
            Part(row["groups"], _OUTCOMES[row["outcome"]]),
            f"{integer(row['groups'])} · {percent(row['groups'] / total)}",
        )
        for row in rows
    )
    note = f"{percent(over(kept, total))} of {integer(total)} groups have rewards that differ."
    return Split("Groups without spread", note, "groups (episode, step) by what they can teach", parts)


def _group_sizes(rows: Sequence[Row]) -> Columns:
    def stack(row: Row) -> Stack:
        dropped = row["groups"] - row["kept"]
        hint = f"{row['valid']} valid: {integer(row['groups'])} groups, {integer(dropped)} without spread"
        return Stack(str(row["valid"]), (Part(row["kept"], "valid", hint), Part(dropped, "gone", hint)))

    total = sum(row["groups"] for row in rows)
    none = sum(row["groups"] for row in rows if row["valid"] == 0)
    note = f"No candidate is valid in {percent(none / total)} of the groups."
    if not none:
        note = "Every group has a valid candidate."
    legend = (("valid", "with spread"), ("gone", "dropped"))
    axis = "valid candidates in the group"
    return Columns(
        "Groups by number of valid candidates", note, axis, "groups", tuple(map(stack, rows)), legend
    )


def _truncation(rows: Sequence[Row]) -> Columns:
    def stack(row: Row) -> Stack:
        lost = row["sampled"] - row["kept"]
        hint = f"step {row['step']}: {integer(lost)} of {integer(row['sampled'])} lie after t*"
        return Stack(str(row["step"]), (Part(row["kept"], "valid", hint), Part(lost, "gone", hint)))

    sampled, kept = (sum(row[name] for row in rows) for name in ("sampled", "kept"))
    note = f"Cut at t*, {percent(over(kept, sampled))} of {integer(sampled)} sampled answers survive."
    legend = (("valid", "up to t*"), ("gone", "after t*"))
    return Columns(
        "Truncation loss by step", note, "step", "sampled answers", tuple(map(stack, rows)), legend
    )


def _lost_lengths(rows: Sequence[Row]) -> Bars:
    bars = tuple(
        Bar(
            row["length"],
            row["lost_share"] or 0,
            percent(row["lost_share"]),
            integer(row["lost"]),
            "",
            "gone",
        )
        for row in rows
    )
    note = f"From short to long episodes: {', '.join(percent(row['lost_share']) for row in rows)}."
    return Bars(
        "Truncation loss by length", note, f"share lost, and lost answers; {rows[0]['buckets']} buckets", bars
    )


def _places(rows: Sequence[Row]) -> Split:
    total, in_play = (sum(row[name] for row in rows) for name in ("candidates", "in_play"))
    parts = tuple(
        (
            sentence(row["position"]),
            Part(row["candidates"], _POSITIONS.get(row["position"], "unscored")),
            f"{integer(row['candidates'])} · {percent(row['candidates'] / total)}",
        )
        for row in rows
    )
    note = f"In this build {percent(over(in_play, total))} of the answers carry a reward."
    return Split("Answers by place in their segment", note, "sampled answers", parts)
