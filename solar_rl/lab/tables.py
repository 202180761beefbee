"""The tables of a lab run, line by line in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from solar_rl.lab.arms import ARMS, BASELINES
from solar_rl.lab.figures import (
    Mean,
    Run,
    closed_loop,
    collapse,
    last,
    mean_t,
    paired,
    paired_closed_loop,
    press_back,
    rank_correlation,
)
from solar_rl.lab.plan import Plan
from solar_rl.schema import LENGTH_BUCKETS

Arms = Mapping[str, Sequence[Run]]
SHORT, LONG, SUPER_LONG = (name for _, name in LENGTH_BUCKETS["phone"])


class Metric(NamedTuple):
    """A figure of a run: in closed loop (by task), or on recorded steps (by bucket)."""

    name: str
    field: str
    task: str | None = None
    bucket: str | None = None
    closed: bool = True

    def of(self, runs: Sequence[Run]) -> Mean:
        """Return its mean over runs."""
        if self.closed:
            return closed_loop(runs, self.field, self.task)
        return mean_t([last(run, self.field, self.bucket) for run in runs])

    def less(self, runs: Sequence[Run], others: Sequence[Run]) -> Mean:
        """Return the paired difference of two arms."""
        if self.closed:
            return paired_closed_loop(runs, others, self.field, self.task)
        return paired(runs, others, lambda run: last(run, self.field, self.bucket))


PRIMARY = Metric("goal progress in closed loop, super long goals", "progress", "super_long")
"""What decides on the phone: method.md, section 4, says why success doesn't discriminate at this scale."""
_SUCCESS = Metric("success in closed loop, all", "success")
_STEPS = Metric("step accuracy, recorded", "step_accuracy", closed=False)
COMPARED = {
    "phone": (
        PRIMARY,
        Metric("goal progress in closed loop, all", "progress"),
        _SUCCESS,
        _STEPS,
        Metric("goal progress, recorded super long", "goal_progress", bucket=SUPER_LONG, closed=False),
    ),
    "miniwob": (_SUCCESS, _STEPS, Metric("goal progress, recorded", "goal_progress", closed=False)),
}
"""What arms are compared on, by world; the first decides. A page of MiniWoB++ tells success alone."""


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table, the first column on the left."""
    yield f"| {' | '.join(heads)} |"
    yield f"|---|{'---:|' * (len(heads) - 1)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def number(value: float | None, digits: int = 3) -> str:
    """Write a number, or nothing where there is none."""
    return "" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def main_table(plan: Plan, arms: Arms, start: Mapping[str, Any]) -> Iterator[str]:
    """Tell where each arm ends, on recorded steps and in closed loop."""
    lengths = ("short", "long", "super_long") if plan.world == "phone" else ()
    heads = (
        "arm", "seeds", "step accuracy", "progress, recorded", "success", "progress",
        *(length.replace("_", " ") for length in lengths), "recovered", "steps",
    )  # fmt: skip
    rows = [_ends("(start)", [_as_run(start)], "", lengths)]
    rows += [_ends(ARMS[arm].title, runs, str(len(runs)), lengths) for arm, runs in arms.items() if runs]
    yield from table(heads, rows)
    yield ""
    yield (
        "Step accuracy and the first progress: greedy answers to held-out recorded steps. The rest is in closed loop: success, "
        "progress (share of the goal that was reached) over all and by length, the share of wrong answers after which the goal came "
        "closer than before, and answers given."
    )


def _as_run(start: Mapping[str, Any]) -> dict[str, Any]:
    return {"curve": [{"updates": 0, **start["steps"]}], "closed_loop": start["closed_loop"], "seed": 0}


def _ends(title: str, runs: Sequence[Run], seeds: str, lengths: Sequence[str]) -> list[str]:
    recorded = [str(mean_t([last(run, name) for run in runs])) for name in ("step_accuracy", "goal_progress")]
    if len(runs) == 1:
        recorded = [number(last(runs[0], name)) for name in ("step_accuracy", "goal_progress")]
    played = [str(closed_loop(runs, "success")), str(closed_loop(runs, "progress"))]
    by_length = [number(closed_loop(runs, "progress", length).value) for length in lengths]
    return [
        title, seeds, *recorded, *played, *by_length, number(recovered(runs)), number(closed_loop(runs, "steps").value, 1)
    ]  # fmt: skip


def recovered(runs: Sequence[Run]) -> float:
    """Return the share of wrong answers after which the goal came closer than before."""
    episodes = [one for run in runs for one in run["closed_loop"] if one["wrong"] is not None]
    wrong = sum(one["wrong"] for one in episodes)
    return sum(one["recovered"] for one in episodes) / wrong if wrong else float("nan")


def differences(arms: Arms, base: str, metric: Metric) -> dict[str, Mean]:
    """Return each other arm's paired difference from one."""
    if not arms.get(base):
        return {}
    return {arm: metric.less(runs, arms[base]) for arm, runs in arms.items() if runs and arm != base}


def difference_table(plan: Plan, arms: Arms, start: Mapping[str, Any]) -> Iterator[str]:
    """Tell what each arm gains over its start and over the four baselines; intervals that exclude 0 are bold."""
    begun = [_as_run(start) | {"seed": seed} for seed in plan.seeds]
    for metric in COMPARED[plan.world]:
        found = {base: differences(arms, base, metric) for base in BASELINES if arms.get(base)}
        names = [arm for arm, runs in arms.items() if runs]
        yield f"{metric.name[0].upper()}{metric.name[1:]}:"
        yield ""
        rows = [
            [
                ARMS[arm].title,
                _difference(metric.less(arms[arm], begun)),
                *(_difference(found[base].get(arm)) for base in found),
            ]
            for arm in names
        ]
        yield from table(("arm", "less the start", *(f"less {ARMS[base].title}" for base in found)), rows)
        yield ""
    lacking = [ARMS[base].title for base in BASELINES if not arms.get(base)]
    if lacking:
        yield f"No claim can be made here: {', '.join(lacking)} not run in this plan."
        return
    named = ", ".join(ARMS[arm].title for arm in winners(arms, COMPARED[plan.world][0]))
    yield (
        f"Arms that beat all four baselines on the primary metric, every interval above 0: {named or 'none'}."
    )


def against_table(plan: Plan, arms: Arms, others: Arms, name: str) -> Iterator[str]:
    """Tell what a sweep's change brought: each arm less the same arm, as long, of the plan whose start it shares."""
    compared = COMPARED[plan.world]
    updates = {run["updates"] for runs in arms.values() for run in runs}
    alike = {arm: [run for run in runs if run["updates"] in updates] for arm, runs in others.items()}
    rows = [
        [ARMS[arm].title, *(_difference(metric.less(runs, alike[arm])) for metric in compared)]
        for arm, runs in arms.items()
        if runs and alike.get(arm)
    ]
    if not rows:
        yield f"No arm of this plan was run in `{name}` with one of its seeds and as many updates."
        return
    yield from table(("arm", *(metric.name for metric in compared)), rows)


def winners(arms: Arms, metric: Metric) -> list[str]:
    """List the arms whose difference from every baseline has an interval above 0."""
    found = {base: differences(arms, base, metric) for base in BASELINES}
    return [
        arm
        for arm in arms
        if arm not in BASELINES and all(arm in found[b] and found[b][arm].low > 0 for b in BASELINES)
    ]


def _difference(found: Mean | None) -> str:
    if found is None or np.isnan(found.value):
        return ""
    if np.isnan(found.low):
        return f"{found.value:+.3f} (one seed)"
    text = f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
    return f"**{text}**" if found.excludes_zero else text


def paper_table(arms: Arms, start: Mapping[str, Any]) -> Iterator[str]:
    """Put our step accuracy by length beside the figures that the paper gives for its own models."""

    def ours(arm: str, bucket: str) -> str:
        return (
            str(mean_t([last(run, "step_accuracy", bucket) for run in arms[arm]]))
            if arms.get(arm)
            else "not run"
        )

    rows = [
        ["sparse GRPO (the paper: two stages)", "0.66 to 0.67", "0.58 to 0.60", ours("sparse", LONG), ours("sparse", SUPER_LONG)],
        ["SOLAR (the paper: two stages)", "about 0.70", "about 0.66", ours("solar_paper", LONG), ours("solar_paper", SUPER_LONG)],
        ["SOLAR, `segments`", "", "", ours("solar_segments", LONG), ours("solar_segments", SUPER_LONG)],
        ["step_local", "not run by the paper", "", ours("step_local", LONG), ours("step_local", SUPER_LONG)],
    ]  # fmt: skip
    heads = ("arm", "paper: High Long", "paper: High Super Long", f"ours: {LONG}", f"ours: {SUPER_LONG}")
    yield from table(heads, rows)
    yield ""
    yield (
        "The paper's columns are the paper's: a 7B vision-language model on AndroidControl-High, its own buckets. Ours are step "
        "accuracy of a model of under 0.5 M weights on the simulated phone, without the atomic stage. They can't be "
        "compared across; what can be compared is which arm is ahead within each."
    )


def collapse_table(arms: Arms, start: Mapping[str, Any]) -> Iterator[str]:
    """Tell when each arm was best, how far it fell, and how many runs end below the start."""
    rows = []
    for arm, runs in arms.items():
        if runs:
            found = collapse(runs, start["steps"]["step_accuracy"])
            silent = sum(not run["learned"] for run in runs)
            below = f"{found.below_start} of {found.runs}" + (
                f" ({silent} had nothing to compare)" if silent else ""
            )
            rows.append([ARMS[arm].title, number(found.best_at, 0), number(found.drop), below])
    yield from table(
        ("arm", "updates until the best", "drop from the best", "runs that end below the start"), rows
    )


def probe_table(arms: Arms, start: Mapping[str, Any]) -> Iterator[str]:
    """Tell whether episodes grow, actions repeat, and the return still follows success."""
    base = _as_run(start)
    rows = [_probed("(start)", [base], "")]
    for arm, runs in arms.items():
        if runs:
            points = [(last(run, "return"), closed_loop([run], "progress").value) for run in runs]
            rows.append(_probed(ARMS[arm].title, runs, number(rank_correlation(points), 2)))
    yield from table(
        ("arm", "answers an episode", "same action twice in a row", "waits and backs", "return and progress"),
        rows,
    )
    yield ""
    yield (
        "The two shares are of all answers in closed loop. The last column is the rank correlation over seeds between R_traj of the "
        "greedy answers to held-out recorded steps and progress in closed loop: with five seeds it takes 0.9 to mean something."
    )


def _probed(title: str, runs: Sequence[Run], correlation: str) -> list[str]:
    episodes = [one for run in runs for one in run["closed_loop"]]
    answers = sum(one["steps"] for one in episodes) or 1
    shares = [number(sum(one[name] for one in episodes) / answers) for name in ("repeated", "safe")]
    return [title, number(answers / len(episodes), 1), *shares, correlation]


def unseen_table(arms: Arms, start: Mapping[str, Any]) -> Iterator[str]:
    """Tell the step accuracy on an app and on kinds of goals that training left out."""
    if not start["unseen"]:
        yield "Not measured in this plan."
        return
    names = {"unseen_apps": "unseen app", "unseen_templates": "unseen kinds of goals"}
    rows = [["(start)", *(number(start["unseen"][name]["step_accuracy"]) for name in names)]]
    for arm, runs in arms.items():
        if runs:
            means = [mean_t([run["unseen"][name]["step_accuracy"] for run in runs]) for name in names]
            rows.append([ARMS[arm].title, *map(str, means)])
    yield from table(("arm", *names.values()), rows)


def press_back_table(arms: Arms, start: Mapping[str, Any]) -> Iterator[str]:
    """Tell how many presses of back are right at each checkpoint, as the paper does for its primitive actions."""
    some = next(runs for runs in arms.values() if runs)
    points = [point["updates"] for point in some[0]["curve"]]
    rows = []
    for arm, runs in arms.items():
        if runs:
            means = [
                mean_t([press_back(p) for run in runs for p in run["curve"] if p["updates"] == at]).value
                for at in points
            ]
            rows.append(
                [ARMS[arm].title, number(press_back(start["steps"])), *(number(mean) for mean in means)]
            )
    yield from table(("arm", "start", *(f"{at} updates" for at in points)), rows)
