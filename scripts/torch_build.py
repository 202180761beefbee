"""Refuse a CUDA build of torch where there is no GPU, before and after it is installed.

Usage:
    pip install --dry-run --no-deps --report - torch | python scripts/torch_build.py planned
    python scripts/torch_build.py installed

Exit 0: fine. Exit 2: a CUDA build that no GPU here can use; one line says what to do.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from typing import Any

ADVICE = (
    "Set TORCH_INDEX_URL to the address of PyTorch's public index of CPU builds "
    "(its install page names it) and run the same command again."
)


def needs_cuda(requirements: Iterable[str]) -> bool:
    """Tell whether a build of torch that requires these is a CUDA build on this machine.

    A CUDA build of torch brings the CUDA libraries as packages of its own, behind a marker for the
    platforms that it is built for; a CPU build requires none.
    """
    from pip._vendor.packaging.requirements import Requirement  # there before anything is installed

    needed = (Requirement(text) for text in requirements)
    return any(
        one.name.startswith(("nvidia-", "cuda-"))
        and (one.marker is None or one.marker.evaluate({"extra": ""}))
        for one in needed
    )


def planned_torch(report: dict[str, Any]) -> tuple[str, bool] | None:
    """Return version and CUDA or not of the torch in pip's report; None: nothing would be installed."""
    for item in report["install"]:
        if item["metadata"]["name"] == "torch":
            version = item["metadata"]["version"]
            return version, needs_cuda(item["metadata"].get("requires_dist", []))
    return None


def installed_torch() -> tuple[str, bool]:
    """Return version and CUDA or not of the installed torch."""
    return metadata.version("torch"), needs_cuda(metadata.requires("torch") or [])


def has_gpu() -> bool:
    """Tell whether NVIDIA's driver answers and lists a GPU."""
    if shutil.which("nvidia-smi") is None:
        return False
    answer = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False)
    return answer.returncode == 0 and "GPU" in answer.stdout


def main(stage: str) -> int:
    """Check one stage, ``planned`` or ``installed``, and return the exit code."""
    found = planned_torch(json.load(sys.stdin)) if stage == "planned" else installed_torch()
    if found is None or not found[1] or has_gpu():
        return 0
    what = "would be installed" if stage == "planned" else "is installed"
    print(
        f"set-up: torch {found[0]} {what}: a CUDA build, and there is no GPU here. {ADVICE}", file=sys.stderr
    )
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
