"""A whole lab run: prepare, time, train and measure; each part is done once, whatever is killed."""

from __future__ import annotations

import datetime
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from solar_rl import __version__
from solar_rl.errors import InputError
from solar_rl.lab.folder import Folder
from solar_rl.lab.piloting import pilot
from solar_rl.lab.plan import Plan
from solar_rl.lab.preparing import prepare
from solar_rl.lab.running import MADE, left, measure_start, run_all
from solar_rl.lab.sharing import CONFIG, FREE, PILOT, begun_with, take_over_runs
from solar_rl.pipeline.work import locked
from solar_rl.shipped import in_checkout

_SPENT = "spent.json"


def run_lab(
    plan: Plan,
    root: Path,
    *,
    say: Callable[[str], None] = lambda line: None,
    tick: Callable[[int, int], None] = lambda done, total: None,
    prepare_only: bool = False,
) -> Folder:
    """Do a lab run, or what is left of it.

    Args:
        plan: What is done.
        root: Its folder.
        say: Told what begins.
        tick: Told how many runs are done, of how many.
        prepare_only: Stop before the pilot: nothing that is made so far depends on how fast the machine is.

    Raises:
        InputError: The folder holds another plan's results, or another process works there.
        CheckFailed: A run ended with an error; the same command goes on.
    """
    folder = Folder(root)
    with locked(root):
        root.mkdir(parents=True, exist_ok=True)
        _claim(plan, folder)
        began = time.monotonic()
        before = float(folder.read(_SPENT) or 0.0)
        prepare(plan, folder, say)
        measure_start(plan, folder)
        if prepare_only:
            return folder
        spent = before + time.monotonic() - began
        if folder.read(PILOT) is None:
            folder.write(_SPENT, spent)
        updates = pilot(plan, folder, spent, say)
        if plan.shares is not None and (known := take_over_runs(plan, folder, updates)):
            say(f"{known} runs are known from {plan.shares}")
        say(f"{len(left(plan, folder))} of {len(plan.runs)} runs to do, {updates} updates each")
        run_all(plan, folder, updates, lambda rest: tick(len(plan.runs) - rest, len(plan.runs)))
    return folder


def _claim(plan: Plan, folder: Folder) -> None:
    """Make sure that the folder is this plan's."""
    ours = plan.model_dump(mode="json", exclude=FREE)
    there = begun_with(folder, plan)
    if there is None:
        folder.write(CONFIG, ours)
        folder.write(MADE, {"date": datetime.date.today().isoformat(), "commit": _commit()})
    elif there != ours:
        names = ", ".join(sorted(key for key in ours | there if ours.get(key) != there.get(key)))
        raise InputError(
            f"the folder holds results of another plan: {names} differ",
            where=str(folder.root),
            hint="use --out with another folder",
        )


def _commit() -> str:
    """Return the commit of the checkout that runs, with a mark where files differ from it."""
    if not in_checkout():
        return f"of solar-rl {__version__}"
    words = ["git", "-C", str(Path(__file__).parents[2]), "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
