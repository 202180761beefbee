"""Write AMEX's folders with the fields that public programs read of them. Used by the tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from android_control_writer import png

WIDTH, HEIGHT = 108, 240
TAP = {"action": "TAP", "touch_coord": [54, 60], "lift_coord": [54, 60]}
DONE = {"action": "TASK_COMPLETE"}
ELEMENTS = {
    "clickable_elements": [
        {"bbox": [40, 40, 80, 80], "xml_desc": ["Save"], "functionality": "saves"},
        {"bbox": [0, 0, 108, 120], "xml_desc": [], "functionality": ""},
    ],
    "scrollable_elements": [{"bbox": [50, 50, 60, 70], "xml_desc": [], "functionality": ""}],
}


def instruction(*actions: dict[str, Any], episode: str = "e8ba01", **more: Any) -> dict[str, Any]:
    return {
        "episode_id": episode,
        "instruction": "Save the note",
        "steps": [
            {
                "step_id": index + 1,
                "image_path": f"2024_{episode}-{index + 1}.png",
                "device_dim": [WIDTH, HEIGHT],
                "package_name": "com.example.notes",
                "touch_coord": [0, 0],
                "lift_coord": [0, 0],
                "type_text": "",
                **action,
            }
            for index, action in enumerate(actions)
        ],
        **more,
    }


def write(
    root: Path,
    *records: dict[str, Any] | bytes,
    missing: Sequence[str] = (),
    elements: Any = ELEMENTS,
    folder: str = "instruction_anno",
) -> Path:
    """Write instructions, and for each step a screenshot and its elements. Returns the root."""
    for name in (folder, "element_anno", "screenshot"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for number, record in enumerate(records):
        name = f"broken{number}" if isinstance(record, bytes) else f"2024_{record['episode_id']}"
        data = record if isinstance(record, bytes) else json.dumps(record).encode()
        (root / folder / f"{name}.json").write_bytes(data)
        for index, row in enumerate([] if isinstance(record, bytes) else record["steps"]):
            image = row.get("image_path") if isinstance(row, dict) else None
            if not image or image in missing:
                continue
            (root / "screenshot" / image).write_bytes(png(index, (WIDTH, HEIGHT)))
            if elements is not None:
                file = root / "element_anno" / Path(image).with_suffix(".json").name
                file.write_bytes(elements if isinstance(elements, bytes) else json.dumps(elements).encode())
    return root
