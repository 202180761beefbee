"""One of the processes of a lab run: ``python -m solar_rl.lab.worker FOLDER [--pilot NAME]``."""

from __future__ import annotations

import sys
from pathlib import Path

from solar_rl.config import validate_config
from solar_rl.lab.folder import Folder
from solar_rl.lab.piloting import time_parts
from solar_rl.lab.plan import Plan
from solar_rl.lab.running import PLAN, work


def main(root: Path, pilot: str | None = None) -> None:
    """Do the runs of the plan that lies in the folder, or time one.

    Args:
        root: The folder.
        pilot: Time what a run takes, in the subfolder of this name.
    """
    folder = Folder(root)
    told = folder.read(PLAN)
    plan = validate_config(Plan, told["plan"], where=str(root / PLAN))
    if pilot is not None:
        time_parts(plan, folder, root / pilot)
    else:
        work(plan, folder, told["updates"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[3:])
