"""What the verb ``lab`` does: run the plan with a bar, then write the results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from solar_rl.commands import log, parse_overrides
from solar_rl.lab import load_plan


def lab(
    plan: str,
    overrides: Sequence[str],
    out: Path | None,
    results: Path | None,
    *,
    prepare_only: bool,
    report_only: bool,
    dry_run: bool,
) -> None:
    """Run a plan and write its results."""
    made = load_plan(plan, parse_overrides(overrides))
    root = out or Path("runs", "lab", made.name)
    if dry_run:
        print(f"{len(made.arms)} arms x {len(made.seeds)} seeds = {len(made.runs)} runs in {root}")
        print(f"arms: {', '.join(made.arms)}")
        return
    from solar_rl.lab.folder import Folder
    from solar_rl.lab.lab import run_lab
    from solar_rl.lab.results import write_results

    folder = Folder(root)
    if not report_only:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=log) as bar:
            task = bar.add_task("runs", total=len(made.runs))
            folder = run_lab(
                made,
                root,
                say=partial(log.print, soft_wrap=True),
                tick=lambda done, total: bar.update(task, completed=done, total=total),
                prepare_only=prepare_only,
            )
    if prepare_only:
        print(f"prepared: {root}")
        return
    command = " ".join(["solar-rl lab", plan, *overrides])
    written = write_results(made, folder, results or root / "results.md", command)
    print(f"results: {written}")
