"""Lay out a comparison of two datasets as one self-contained page in the report's look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from solar_rl.diff import TITLES, Difference
from solar_rl.diff.rows import Row, differs
from solar_rl.report.charts import BOTTOM, LEFT, RIGHT, TOP, Columns, Part, Rect, Split, Stack, nice_ceiling
from solar_rl.report.page import css, environment
from solar_rl.report.words import THIN, decimal, integer, percent, plain, shorten

if TYPE_CHECKING:
    from solar_rl.store.manifest import Manifest

_SHOWN_EPISODES = 50
_SIDES = ("before", "after")
_SHARES = (
    "validity",
    "success_rate",
    "goal_progress",
    "parse_error_rate",
    "pass_at_1",
    "pass_at_n",
    "all_valid",
)
_BETTER = {
    "validity": 1,
    "success_rate": 1,
    "goal_progress": 1,
    "mean_trajectory_reward": 1,
    "parse_error_rate": -1,
}


@dataclass(frozen=True)
class Paired(Columns):
    """Two distributions over the same bins: for each a column of the first and, beside it, one of the second."""

    @cached_property
    def top(self) -> float:
        """Return the value at the upper end of the vertical axis."""
        return nice_ceiling(max((part.value for stack in self.stacks for part in stack.parts), default=0.0))

    @cached_property
    def rects(self) -> list[Rect]:
        """Return every drawn column, pairs from left to right."""
        pitch = (RIGHT - LEFT) / max(1, len(self.stacks))
        gap = min(3.0, 0.18 * pitch)
        width = (pitch - gap) / 2
        return [
            Rect(
                LEFT + index * pitch + gap / 2 + side * width,
                BOTTOM - (BOTTOM - TOP) * part.value / self.top,
                width,
                max((BOTTOM - TOP) * part.value / self.top, 0.6),
                part.tone,
                part.hint,
            )
            for index, stack in enumerate(self.stacks)
            for side, part in enumerate(stack.parts)
            if part.value > 0
        ]


class Dumbbell(NamedTuple):
    """One measure on both sides: shares of the track, figures, and the change in words with its tone."""

    label: str
    a: float | None
    b: float | None
    figure_a: str
    figure_b: str
    change: str
    tone: str
    hint: str


class Card(NamedTuple):
    """One headline figure: its name, its value in the second dataset, what it was, and its tone."""

    name: str
    value: str
    more: str
    tone: str = ""


class Table(NamedTuple):
    """A plain table: title, head, and rows of texts."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str = ""


def render_diff(found: Difference) -> str:
    """Return the whole page as HTML: the same two datasets, the same bytes."""
    sections = found.sections
    return (
        environment()
        .get_template("diff.html.j2")
        .render(
            a=found.a,
            b=found.b,
            named=_name_of(found.a, found.b),
            summary=_summary(found),
            cards=_cards(sections["headline"], sections["paired"]),
            dumbbells=[_dumbbell(row) for row in sections["validity"]],
            charts=_charts(found),
            tables=list(_tables(found)),
            episodes=[_episode(row) for row in found.episodes.head(_SHOWN_EPISODES).iter_rows(named=True)],
            total=found.episodes.height,
            same=[TITLES[name].split(" (")[0].lower() for name in TITLES if name not in found.changed],
            css=css("page.css", "diff.css"),
        )
    )


def _name_of(a: Manifest, b: Manifest) -> tuple[str, str]:
    """Name the two as shortly as tells them apart."""
    if (a.name, a.version) == (b.name, b.version):
        return f"build {a.build_id[:8]}", f"build {b.build_id[:8]}"
    return (a.version, b.version) if a.name == b.name else (f"{a.name} {a.version}", f"{b.name} {b.version}")


def _summary(found: Difference) -> str:
    if found.same:
        return "The two are the same: config, data and figures."
    fields = len(found.sections["config"])
    config = (
        f"{integer(fields)} config {'field differs' if fields == 1 else 'fields differ'}"
        if fields
        else "The config is the same"
    )
    total = (
        sum(row["episodes"] for row in found.sections["episodes"] if row["what"] == "the same")
        + found.episodes.height
    )
    changed = f"{integer(found.episodes.height)} of {integer(total)} episodes differ"
    (paired,) = (row for row in found.sections["paired"] if row["figure"] == "validity")
    if not paired["episodes"] or paired["change"] is None:
        return f"{config}; {changed}."
    between = f" ± {100 * paired['within']:.1f}" if paired["within"] is not None else ""
    return (
        f"{config}; {changed}. Over the {integer(paired['episodes'])} episodes that both have, validity goes from "
        f"{percent(paired['a'], 1)} to {percent(paired['b'], 1)} ({_points(paired['change'])}{between} points)."
    )


def _cards(headline: Sequence[Row], paired: Sequence[Row]) -> list[Card]:
    figures = {row["figure"]: row for row in headline}
    shown: list[tuple[str, str, Callable[[Any], str]]] = [
        ("episodes", "Episodes", integer),
        ("candidates", "Answers", integer),
        ("validity", "Valid answers", lambda value: percent(value, 1)),
        ("parse_error_rate", "Unparsable answers", lambda value: percent(value, 1)),
        ("success_rate", "Success", lambda value: percent(value, 1)),
        ("goal_progress", "Goal progress", lambda value: percent(value, 1)),
        ("mean_trajectory_reward", "Mean R_traj", lambda value: decimal(value, 3)),
        ("groups_dropped_share", "Groups without spread", lambda value: percent(value, 1)),
    ]
    return [
        Card(
            title,
            _said(figures[name]["b"], say),
            f"was {_said(figures[name]['a'], say)}",
            _tone(name, figures[name]),
        )
        for name, title, say in shown
    ]


def _said(value: Any, say: Callable[[Any], str]) -> str:
    return "–" if value is None else say(value)


def _tone(name: str, row: Row) -> str:
    direction = _BETTER.get(name, 0) * (row["change"] or 0)
    return "valid" if direction > 0 else "invalid" if direction < 0 else ""


def _dumbbell(row: Row) -> Dumbbell:
    hint = f"{plain(row['action_type'])}: {integer(row['scored_a'])} scored answers, then {integer(row['scored_b'])}"
    change = "" if row["change"] is None else _points(row["change"])
    tone = "gone" if not row["change"] else "valid" if row["change"] > 0 else "invalid"
    figures = (percent(row["a"]), percent(row["b"]))
    return Dumbbell(plain(row["action_type"]), row["a"], row["b"], *figures, change, tone, hint)


def _points(change: float) -> str:
    return decimal(100 * change, 1, sign=True)


def _charts(found: Difference) -> list[Paired | Split]:
    sections = found.sections
    return [
        _paired(sections["first_failure"], "step", "First failure by step", "t* (✓: none)"),
        _paired(sections["rewards"], "at_least", "Rewards", "reward", width=0.1),
        _paired(sections["returns"], "at_least", "Trajectory reward R_traj", "R_traj", width=0.05),
        _split(sections["episodes"]),
    ]


def _paired(rows: Sequence[Row], key: str, title: str, axis: str, width: float | None = None) -> Paired:
    """Draw two histograms; the note says how much of the mass moved."""

    def label(row: Row) -> str:
        if row[key] is None:
            return "✓"
        return f"{row[key]:g}".replace("-", "−")

    stacks = tuple(
        Stack(
            label(row),
            tuple(
                Part(row[side], tone, f"{label(row)}, {name}: {percent(row[side], 1)}")
                for side, tone, name in (("a", "gone", "before"), ("b", "accent", "after"))
            ),
        )
        for row in rows
    )
    moved = sum(abs(row["b"] - row["a"]) for row in rows) / 2
    note = f"{percent(moved, 1)} of the mass lies elsewhere." if moved > 1e-9 else "The two are the same."
    legend = (("gone", "before"), ("accent", "after"))
    end = f"{rows[-1][key] + width:g}" if width and rows else ""
    return Paired(title, note, axis, "share", stacks, legend, shares=True, edges=bool(width), end=end)


def _split(rows: Sequence[Row]) -> Split:
    """Draw how many episodes are the same, changed, added, removed."""
    tones = {"the same": "gone", "changed": "accent", "added": "valid", "removed": "invalid"}
    parts = [row for row in rows if row["what"] in tones]
    by_part = [row for row in rows if row["what"] not in tones and row["episodes"]]
    found = ", ".join(f"{row['what'].removesuffix(' changed')} {integer(row['episodes'])}" for row in by_part)
    return Split(
        "Episodes, compared by content",
        f"What changed, in how many: {found}." if found else "No episode changed.",
        "episodes",
        tuple(
            (
                row["what"],
                Part(row["episodes"], tones[row["what"]]),
                f"{integer(row['episodes'])} ({percent(row['share'])})",
            )
            for row in parts
        ),
    )


def _tables(found: Difference) -> Iterator[Table]:
    """Lay out the sections without a picture; those in which nothing differs are left out."""
    names = _SIDES
    sections = found.sections
    if config := sections["config"]:
        yield Table(TITLES["config"], ("field", *names), [_texts(row, "field") for row in config])
    paired = [row for row in sections["paired"] if row["episodes"] and differs(row)]
    if paired:
        yield Table(
            "Paired over the episodes that both have",
            ("figure", *names, "change", "95 %"),
            [(*_numbers(row, "figure"), _within(row)) for row in paired],
            f"{integer(paired[0]['episodes'])} episodes; the interval is over episodes.",
        )
    if counts := [row for row in sections["counts"] if differs(row) and row["split"] == "all"]:
        yield Table("Rows", ("table", *names, "change"), [_numbers(row, "table") for row in counts])
    for name in ("headline", "sampler", "advantages"):
        if rows := [row for row in sections[name] if differs(row)]:
            yield Table(TITLES[name], ("figure", *names, "change"), [_numbers(row, "figure") for row in rows])
    if rejects := [row for row in sections["rejects"] if differs(row)]:
        yield Table(
            TITLES["rejects"], ("reason", *names, "change"), [_numbers(row, "reason") for row in rejects]
        )
    for name, key in (("versions", "what"), ("schema", "table")):
        if rows := sections[name]:
            yield Table(TITLES[name], (key, *names), [_texts(row, key) for row in rows])


def _texts(row: Row, key: str) -> tuple[str, ...]:
    return (str(row[key]), *(_spelled(row[side]) for side in "ab"))


def _spelled(value: Any) -> str:
    if value is None:
        return "–"
    return shorten(value if isinstance(value, str) else orjson.dumps(value).decode(), 80)


def _numbers(row: Row, key: str) -> tuple[str, ...]:
    name, share = row[key], row[key] in _SHARES or row[key].endswith(("_share", "_share_of_valid"))
    values = (_figure(row["a"], share), _figure(row["b"], share))
    change = row["change"]
    if change is None:
        return plain(name), *values, ""
    return plain(name), *values, f"{_points(change)} pts" if share else _signed(change)


def _figure(value: Any, share: bool) -> str:
    if value is None:
        return "–"
    if share:
        return percent(value, 1)
    return (
        integer(value) if float(value).is_integer() and abs(value) >= 1 else f"{value:.4g}".replace("-", "−")
    )


def _signed(change: float) -> str:
    text = f"{change:+,d}" if float(change).is_integer() and isinstance(change, int) else f"{change:+.3g}"
    return text.replace("-", "−").replace(",", THIN)


def _within(row: Row) -> str:
    if row["within"] is None:
        return ""
    return f"± {100 * row['within']:.1f}" if row["figure"] in _SHARES else f"± {row['within']:.3g}"


def _episode(row: Row) -> Row:
    """Say an episode's row in texts; what it has on one side alone is told by a dash."""
    sides = {
        f"{name}_{side}": percent(row[f"{name}_{side}"])
        for name in ("validity", "success_rate")
        for side in "ab"
    }
    rewards = {f"mean_reward_{side}": decimal(row[f"mean_reward_{side}"], 3, sign=True) for side in "ab"}
    return {
        "id": row["episode_id"],
        "goal": row["goal_b"] or row["goal_a"],
        "status": row["status"],
        "parts": ", ".join(row["parts"] or ()),
        **sides,
        **rewards,
    }
