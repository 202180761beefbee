"""Write GUI-Odyssey's folders as the release has them. Used by the tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from android_control_writer import png

WIDTH, HEIGHT = 108, 240
CLICK = {"action": "CLICK", "info": [[500, 250], [500, 250]], "sam2_bbox": [400, 200, 600, 300]}
DONE = {"action": "COMPLETE", "info": "", "ps": "it is done"}


def step(index: int, fields: dict[str, Any], *, episode: str) -> dict[str, Any]:
    return {
        "step": index,
        "screenshot": f"{episode}_{index}.png",
        "action": "CLICK",
        "info": "",
        "ps": "",
        "description": f"screen {index}",
        "intention": f"because {index}",
        "context": "",
        "low_level_instruction": f"do {index}",
        "sam2_bbox": [],
        **fields,
    }


def annotation(*actions: dict[str, Any], episode: str = "0001", **fields: Any) -> dict[str, Any]:
    return {
        "episode_id": episode,
        "device_info": {"product": "p", "release_version": "13", "sdk_version": "33", "h": HEIGHT, "w": WIDTH}
        | {"device_name": "Small Phone"},
        "task_info": {
            "category": "Multi_Apps",
            "app": ["Keep Notes", "Chrome"],
            "meta_task": "Search {}.",
            "task": "Search cats.",
            "instruction": "Using Chrome, search cats.",
        },
        "step_length": len(actions),
        "steps": [step(index, fields, episode=episode) for index, fields in enumerate(actions)],
        **fields,
    }


def write(
    root: Path,
    annotations: Sequence[dict[str, Any] | bytes],
    *,
    splits: dict[str, dict[str, list[str]]] | None = None,
    missing: Sequence[str] = (),
    below: str = "",
) -> Path:
    """Write annotations, a screenshot a step, and the four splits.

    Args:
        root: Where to.
        annotations: One a file; bytes are written as they are.
        splits: Family to its lists; by default every episode is train in each.
        missing: Names of screenshots that aren't written.
        below: Subfolder of ``screenshots``, such as data_0.
    """
    for folder in ("annotations", "splits", f"screenshots/{below}"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    names = []
    for number, one in enumerate(annotations):
        name = f"broken{number}" if isinstance(one, bytes) else str(one["episode_id"])
        names.append(f"{name}.json")
        data = one if isinstance(one, bytes) else json.dumps(one, indent=4).encode()
        (root / "annotations" / names[-1]).write_bytes(data)
        rows = [] if isinstance(one, bytes) else [row for row in one["steps"] if isinstance(row, dict)]
        for index, row in enumerate(rows):
            if row["screenshot"] and row["screenshot"] not in missing:
                shot = root / "screenshots" / below / row["screenshot"]
                shot.write_bytes(png(number * 16 + index, (WIDTH, HEIGHT)))
    for family in ("random", "task", "device", "app"):
        lists = (splits or {}).get(family, {"train": names, "test": []})
        (root / "splits" / f"{family}_split.json").write_text(json.dumps(lists))
    return root
