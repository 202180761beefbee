"""Write Android in the Zoo's folders as the release has them: lists are written as text. Used by the tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from android_control_writer import png

WIDTH, HEIGHT = 100, 200
NONE = "[-1.0, -1.0]"


def dual(touch: tuple[float, float], lift: tuple[float, float]) -> dict[str, Any]:
    """Return a gesture; points are (y, x), as they are written."""
    return {
        "result_action_type": 4,
        "result_touch_yx": json.dumps(list(touch)),
        "result_lift_yx": json.dumps(list(lift)),
    }


TAP = dual((0.5, 0.25), (0.5, 0.25))
DONE = {"result_action_type": 10}


def steps(
    *actions: dict[str, Any], episode: str = "GENERAL-5", category: str = "general"
) -> list[dict[str, Any]]:
    return [
        {
            "episode_id": episode.rpartition("-")[2],
            "episode_length": len(actions),
            "step_id": index,
            "instruction": 'open app "Clock"',
            "ui_positions": "[[90, 20, 20, 10], [80, 10, 60, 60], [190, 40, 5, 5]]",
            "ui_text": '["Clock", "", ""]',
            "ui_types": '["TEXT", "ICON_TIME", "TEXT"]',
            "result_action_type": 6,
            "result_action_text": "",
            "result_touch_yx": NONE,
            "result_lift_yx": NONE,
            "image_path": f"{category}/{episode}/{episode}_{index}.png",
            "image_full_path": f"android-in-the-wild/aitw_with_gpt/train/{category}/{episode}/{episode}_{index}.png",
            "coat_screen_desc": "a screen",
            "coat_action_think": f"thinking {index}",
            "coat_action_desc": f"do {index}",
            "coat_action_result": "it happened",
            **action,
        }
        for index, action in enumerate(actions)
    ]


def write(
    root: Path,
    rows: Sequence[Any] | bytes,
    *,
    episode: str = "GENERAL-5",
    folder: str = "train/general",
    missing: Sequence[int] = (),
) -> Path:
    """Write one episode's folder; bytes are written as they are. Returns the root."""
    place = root / folder / episode
    place.mkdir(parents=True, exist_ok=True)
    data = rows if isinstance(rows, bytes) else json.dumps(rows, indent=4, ensure_ascii=False).encode()
    (place / f"{episode}.json").write_bytes(data)
    for index in range(0 if isinstance(rows, bytes) else len(rows)):
        if index not in missing:
            (place / f"{episode}_{index}.png").write_bytes(png(index, (WIDTH, HEIGHT)))
    return root
