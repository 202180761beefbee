"""Chart what the sampler answered: whether its groups have something to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from solar_rl.report.charts import Bar, Bars, Part, Split
from solar_rl.report.section import MOST_BARS, Row, Section, ask, cut, over, sentence
from solar_rl.report.words import decimal, integer, percent

if TYPE_CHECKING:
    from solar_rl.stats import Answers

_VERDICTS = {"good": "valid", "usable": "later", "bad": "invalid", "not known": "unscored"}
_OUTCOMES = {
    "mixed": "valid",
    "all wrong, scores differ": "accent",
    "all valid, scores differ": "accent",
    "one candidate": "later",
    "all wrong, all alike": "invalid",
    "all valid, all alike": "gone",
    "not judged": "unscored",
}
_ENDS = {"stop": "By themselves", "length": "Cut at the longest length", None: "Not known"}
_END_TONES = {"stop": "valid", "length": "invalid", None: "unscored"}


def sampling(answers: Answers) -> Section:
    """Lay out whether it is worth training on what was sampled."""
    tables = ask(answers, "sampling")
    whole = next(iter(tables["Pass@1 and pass@N"]), None)
    (different,) = _rows(tables, "Different actions in a group")
    (tokens,) = _rows(tables, "Tokens and log-probs")
    charts = (
        _signs(tables["Is it worth training on?"]),
        _outcomes(tables["What groups can teach, before any shaping"]),
        _passes(tables["Pass@1 and pass@N by action type"], whole),
        _errors(tables["Parse errors"]),
        _ends(_rows(tables, "How answers end")),
    )
    lede = "Equal candidates teach nothing, and what no candidate finds can’t be rewarded: look here before a GPU is paid for."
    return Section(
        "sampling", "Sampling", "Is it worth training on?", f"{lede} {_spread(different, tokens)}", charts
    )


def _rows(tables: Mapping[str, Sequence[Row]], title: str) -> Sequence[Row]:
    """Return a table by the beginning of its title."""
    return next(rows for name, rows in tables.items() if name.startswith(title))


def _spread(different: Row, tokens: Row) -> str:
    told = []
    if different["actions_a_step"] is not None:
        told.append(
            f"A group has {decimal(different['actions_a_step'], 1)} different actions on average"
            + ("" if different["entropy"] is None else f" (entropy {decimal(different['entropy'])} of 1)")
        )
    if tokens["tokens_an_answer"] is not None:
        told.append(f"an answer {decimal(tokens['tokens_an_answer'], 1)} tokens")
    if tokens["entropy_a_token"] is not None:
        told.append(f"a token an entropy of about {decimal(tokens['entropy_a_token'])} nats")
    return f"{', '.join(told)}." if told else ""


def _signs(rows: Sequence[Row]) -> Bars:
    bars = tuple(
        Bar(
            sentence(row["sign"]),
            row["share"] or 0,
            row["verdict"] if row["share"] is None else f"{percent(row['share'])} · {row['verdict']}",
            "",
            f"wanted: {row['wanted']}" + (f"; {row['advice']}" if row["advice"] else ""),
            _VERDICTS[row["verdict"]],
        )
        for row in rows
    )
    wrong = [row for row in rows if row["verdict"] == "bad"]
    weak = [row for row in rows if row["verdict"] == "usable"]
    note = "Every sign that is known is good."
    if wrong:
        note = f"Not yet: {sentence(wrong[0]['advice'])}."
    elif weak:
        note = f"Yes, but {weak[0]['advice']}."
    return Bars("Signs of health", note, "share; hover for what is wanted and what to do", bars)


def _outcomes(rows: Sequence[Row]) -> Split:
    contexts, samples = (sum(row[name] for row in rows) for name in ("contexts", "samples"))
    mixed = sum(row["contexts"] for row in rows if row["outcome"] == "mixed")
    parts = tuple(
        (
            sentence(row["outcome"]),
            Part(row["contexts"], _OUTCOMES[row["outcome"]]),
            f"{integer(row['contexts'])} · {percent(over(row['contexts'], contexts))}",
        )
        for row in rows
    )
    note = (
        f"{integer(contexts)} contexts were read and {integer(samples)} samples drawn; "
        f"{percent(over(mixed, contexts))} of the groups have valid and invalid candidates."
    )
    return Split(
        "What groups can teach", note, "groups (episode, step) by their verdicts, before any shaping", parts
    )


def _passes(rows: Sequence[Row], whole: Row | None) -> Bars:
    bars = tuple(
        Bar(
            row["action_type"],
            row["pass_at_n"] or 0,
            f"{percent(row['pass_at_1'])} → {percent(row['pass_at_n'])}",
            integer(row["steps"]),
            f"{row['action_type']}: {percent(row['mixed'])} of the groups are mixed, "
            f"{percent(row['parse_error_rate'])} of the answers no action",
        )
        for row in rows[:MOST_BARS]
    )
    note = "No step was judged."
    if whole and whole["pass_at_1"] is not None:
        note = (
            f"One candidate gets {percent(whole['pass_at_1'])} of the steps right, "
            f"the best of a group {percent(whole['pass_at_n'])}: the gap is what there is to learn."
        )
    return Bars("Pass@1 and pass@N by action type", note, f"pass@1 → pass@N, steps{cut(rows)}", bars)


def _errors(rows: Sequence[Row]) -> Bars:
    bars = tuple(
        Bar(
            row["parse_error"],
            over(row["candidates"], rows[0]["candidates"]),
            integer(row["candidates"]),
            percent(row["share"]),
            tone="invalid",
        )
        for row in rows[:MOST_BARS]
    )
    note = f"{percent(sum(row['share'] for row in rows))} of the answers are no action."
    return Bars("Parse errors by reason", note, f"answers, share of all{cut(rows)}", bars)


def _ends(rows: Sequence[Row]) -> Split:
    total = sum(row["candidates"] for row in rows)
    shortened = sum(row["with_history_dropped"] for row in rows)
    parts = tuple(
        (
            _ENDS[row["finish_reason"]],
            Part(row["candidates"], _END_TONES[row["finish_reason"]]),
            f"{integer(row['candidates'])} · {percent(over(row['candidates'], total))}",
        )
        for row in rows
    )
    note = f"{integer(shortened)} answers were given to a prompt that had lost its oldest actions."
    return Split("How answers end", note, "sampled answers", parts)
