"""The verb ``lab`` of the command line: does the method work, measured in closed loop?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from solar_rl.cli_options import DryRun, Out, Overrides


def lab(
    plan: str = "lab",
    /,
    *overrides: Overrides,
    out: Out = None,
    results: Path | None = None,
    prepare_only: Annotated[bool, Parameter(negative="")] = False,
    report_only: Annotated[bool, Parameter(negative="")] = False,
    dry_run: DryRun = False,
) -> None:
    """Train every arm from one start on one sampled dataset, measure in closed loop, and write what came of it.

    A small text policy on the built-in phone (full_miniwob: on web pages), CPU only, nothing is downloaded. A killed run goes on where it
    stopped when the same command is run again.

    Example: `solar-rl lab quick`

    Args:
        plan: A plan YAML, or the name of a shipped one: quick, lab, confirm, smollm2, full_... (docs/results.md).
        overrides: Fields of it, such as --seeds '[0]' or --train.updates 20.
        out: Folder of the run (default: runs/lab/NAME).
        results: Write the results as Markdown here too, plots beside it (default: in the folder alone).
        prepare_only: Stop before the timed pilot: start policy and dataset versions alone.
        report_only: Write the results of what is finished, and run nothing.
        dry_run: Print what would be run.
    """
    from solar_rl import commands_lab

    commands_lab.lab(
        plan, overrides, out, results, prepare_only=prepare_only, report_only=report_only, dry_run=dry_run
    )
