"""One of the processes of a lab run: ``python -m solar_rl.lab.worker FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

from solar_rl.config import validate_config
from solar_rl.lab.folder import Folder
from solar_rl.lab.plan import Plan
from solar_rl.lab.running import PLAN, work


def main(root: Path) -> None:
    """Do the runs of the plan that lies in the folder."""
    folder = Folder(root)
    told = folder.read(PLAN)
    work(validate_config(Plan, told["plan"], where=str(root / PLAN)), folder, told["updates"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
