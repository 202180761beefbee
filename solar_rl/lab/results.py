"""Write what a lab run found as a section of a Markdown file, with its plots beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from solar_rl.errors import InputError
from solar_rl.lab.arms import ARMS, BASELINES
from solar_rl.lab.figures import Run, finished
from solar_rl.lab.folder import Folder
from solar_rl.lab.plan import Plan, load_plan
from solar_rl.lab.running import MADE, START
from solar_rl.lab.sharing import asks_the_same
from solar_rl.lab.tables import (
    COMPARED,
    against_table,
    collapse_table,
    difference_table,
    differences,
    main_table,
    paper_table,
    press_back_table,
    probe_table,
    unseen_table,
)
from solar_rl.lab.worlds import WORLDS

_WHERE = {"phone": "Phone", "miniwob": "MiniWoB++'s pages"}
_AS = {"text": "with screens as a list", "image": "with screenshots"}


def write_results(plan: Plan, folder: Folder, out: Path, command: str) -> Path:
    """Write the section of a plan; other sections of the file and text between them stay.

    Args:
        plan: The lab run.
        folder: Its folder; runs that are not finished are left out, and counted.
        out: A Markdown file; it is made if it isn't there.
        command: What made the figures.

    Returns:
        The file.

    Raises:
        InputError: No run is finished.
    """
    arms = finished(plan, folder)
    if not any(arms.values()):
        raise InputError("no run is finished", where=str(folder.root))
    images = out.parent / "images"
    _draw(plan, folder, arms, images)
    text = "\n".join(_section(plan, folder, arms, command))
    begin, end = f"<!-- lab {plan.name} -->", f"<!-- end of lab {plan.name} -->"
    block = f"{begin}\n{text}\n{end}"
    before = out.read_text(encoding="utf-8") if out.is_file() else ""
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    after = (
        pattern.sub(lambda _: block, before) if pattern.search(before) else f"{before.rstrip()}\n\n{block}\n"
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(after.lstrip("\n"), encoding="utf-8")
    return out


def _section(plan: Plan, folder: Folder, arms: dict[str, list[Run]], command: str) -> Iterator[str]:
    start = folder.read(START)
    done, all_runs = sum(map(len, arms.values())), len(plan.runs)
    yield f"## Lab run `{plan.name}`"
    yield ""
    if plan.about:
        yield f"{plan.about[0].upper()}{plan.about[1:]}."
        yield ""
    made = folder.read(MADE) or {"date": "date unknown", "commit": "unknown"}
    yield f"`{command}`, begun {made['date']} at commit {made['commit']}. {_what(plan, folder, arms)}"
    if done < all_runs:
        yield f"**Unfinished: {done} of {all_runs} runs.** Seeds that an arm lacks are missing from its rows."
    yield ""
    yield (
        f"The primary metric, written down before any run: {COMPARED[plan.world][0].name}. Intervals are 95 %. In closed loop they come from "
        "drawing seeds and episodes with replacement; on recorded steps they are Student's over the seeds. Every "
        "arm starts from one policy and reads one sampled dataset, so they tell nothing of another start or another sample."
    )
    paper = [("Beside the paper's ablation", paper_table(arms, start))] if plan.world == "phone" else []
    for title, table in (
        ("Where the arms end", main_table(plan, arms, start)),
        ("Differences, paired by seed and episode", difference_table(plan, arms, start)),
        *paper,
        ("Collapse", collapse_table(arms, start)),
        ("Does the policy cheat?", probe_table(arms, start)),
        ("What training left out", unseen_table(arms, start)),
        ("Presses of back that are right, over training", press_back_table(arms, start)),
    ):
        yield f"\n### {title}\n"
        yield from table
    if plan.shares is not None and plan.measure.first_seed == 0 and not asks_the_same(plan, folder):
        others = finished(load_plan(plan.shares), Folder(folder.root.with_name(plan.shares)))
        yield f"\n### Each arm less the same arm of `{plan.shares}`, paired by seed and episode\n"
        yield from against_table(plan, arms, others, plan.shares)
    yield ""
    yield f"![Step accuracy on held-out recorded steps over training, a panel an arm](images/lab_{plan.name}_curves.svg)"
    yield ""
    yield f"![Differences of the primary metric from each baseline](images/lab_{plan.name}_forest.svg)"


def _what(plan: Plan, folder: Folder, arms: dict[str, list[Run]]) -> str:
    from solar_rl.store.manifest import read_manifest

    counts = read_manifest(folder.dataset("segments")).counts
    updates = max(run["updates"] for runs in arms.values() for run in runs)
    chosen = folder.read("start.json")["chosen"]
    seconds = [run["seconds"] for runs in arms.values() for run in runs]
    groups = plan.train.rows // plan.n
    return (
        f"{_WHERE[plan.world]} {_AS[plan.observation]}; warm start by SFT on {plan.demonstrations} demonstrations for {chosen['updates']} "
        f"updates of {plan.warm.rows} steps, to {chosen['step_accuracy']:.3f} held-out step accuracy; then "
        f"{plan.n} candidates for each of {counts['steps']:,} recorded steps, sampled once. Each run: {updates} updates of "
        f"{plan.train.rows} candidates from {groups} contexts (SFT: the {groups} contexts alone), {len(plan.seeds)} "
        f"seeds, {np.mean(seconds):.0f} s a run on one core with its measuring. In closed loop "
        f"{len(WORLDS[plan.world].jobs(plan))} held-out episodes, greedy."
    )


def _draw(plan: Plan, folder: Folder, arms: dict[str, list[Run]], images: Path) -> None:
    from solar_rl.lab.figures import mean_t
    from solar_rl.report.lab_charts import Curve, Difference, draw_curves, draw_forest

    metric = COMPARED[plan.world][0]
    start = folder.read(START)["steps"]["step_accuracy"]
    curves = []
    for arm, runs in arms.items():
        if not runs:
            continue
        points: Sequence[float] = sorted({point["updates"] for run in runs for point in run["curve"]})
        means = [
            mean_t([p["step_accuracy"] for run in runs for p in run["curve"] if p["updates"] == at])
            for at in points
        ]
        means = [
            each._replace(low=each.value, high=each.value) if np.isnan(each.low) else each for each in means
        ]
        curves.append(
            Curve(
                ARMS[arm].title,
                [0, *points],
                [start, *(m.value for m in means)],
                [start, *(m.low for m in means)],
                [start, *(m.high for m in means)],
            )
        )
    draw_curves(curves, start, "step accuracy", images / f"lab_{plan.name}_curves.svg")
    shown = [
        Difference(ARMS[base].title, ARMS[arm].title, *found)
        for base in BASELINES
        for arm, found in differences(arms, base, metric).items()
        if not np.isnan(found.value)
    ]
    if shown:
        draw_forest(shown, metric.name, images / f"lab_{plan.name}_forest.svg")
