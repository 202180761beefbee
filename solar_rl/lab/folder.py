"""Where a lab run keeps what it makes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from solar_rl.pipeline.work import write_atomically


@dataclass(frozen=True)
class Folder:
    """The folder of a lab run.

    Args:
        root: The folder.
    """

    root: Path

    @property
    def demonstrations(self) -> Path:
        """Return the dataset of the warm start."""
        return self.root / "demonstrations"

    @property
    def random(self) -> Path:
        """Return the policy with random weights."""
        return self.root / "random"

    @property
    def warming(self) -> Path:
        """Return where the warm start trains."""
        return self.root / "warming"

    @property
    def start(self) -> Path:
        """Return the policy that every arm starts from."""
        return self.root / "start"

    def dataset(self, alignment: str) -> Path:
        """Return the version of the sampled dataset with this alignment."""
        return self.root / f"sampled-{alignment}"

    def run(self, arm: str, seed: int) -> Path:
        """Return the folder of one run."""
        return self.root / "runs" / f"{arm}-{seed}"

    def result(self, arm: str, seed: int) -> Path:
        """Return the file that tells of a finished run."""
        return self.run(arm, seed) / "result.json"

    def read(self, name: str) -> Any:
        """Return what a JSON file of the folder holds; None where there is none."""
        return read_json(self.root / name)

    def write(self, name: str, value: Any) -> None:
        """Write a JSON file of the folder, whole or not at all."""
        write_json(self.root / name, value)


def read_json(path: Path) -> Any:
    """Return what a JSON file holds; None where there is none."""
    return orjson.loads(path.read_bytes()) if path.is_file() else None


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, orjson.dumps(value, option=orjson.OPT_INDENT_2))
