"""The verb ``diff`` of the command line: what changed between two datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from solar_rl.cli_options import Json


def diff(
    a: str,
    b: str,
    /,
    *,
    html: Path | None = None,
    all: Annotated[bool, Parameter(negative="")] = False,
    rows: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 20,
    exit_code: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> None:
    """Say what changed between two datasets: config, counts, validity, failures, rewards, episodes.

    Shows the sections in which anything differs. Exit 0 whether or not the two differ, unless
    `--exit-code` is given.

    Example: `solar-rl diff runs/phone-1.0.0 runs/phone-1.0.1 --html diff.html`

    Args:
        a: The first dataset: a folder, OWNER/NAME or hf://datasets/OWNER/NAME@REVISION.
        b: The second.
        html: Also write the comparison as one self-contained page.
        all: Show every section and row, those that are the same too.
        rows: Changed episodes to show, the largest change first (--json has all of them).
        exit_code: Exit 1 when the two differ, as git diff does.
        json: Print everything as JSON.
    """
    from solar_rl import commands_diff

    commands_diff.diff(a, b, html=html, everything=all, rows=rows, exit_code=exit_code, as_json=json)
