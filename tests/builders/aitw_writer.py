"""Write Android in the Wild's TFRecords as the release has them: one Example a step. Used by the tests."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from android_control_writer import blob, varint, write_shard

WIDTH, HEIGHT = 20, 40
TAP = {"results/action_type": [4], "results/yx_touch": [0.5, 0.25], "results/yx_lift": [0.5, 0.25]}
DONE = {"results/action_type": [10]}


def pixels(shade: int = 0, channels: int = 3) -> bytes:
    return bytes((shade, 90, 160, 255)[:channels]) * (WIDTH * HEIGHT)


def step(
    number: int = 0, *, episode: str = "77", length: int = 1, shade: int | None = None, **more: Any
) -> bytes:
    """Return a record; ``more`` replaces features, None leaves one out."""
    features: dict[str, Sequence[Any] | None] = {
        "android_api_level": [31],
        "current_activity": ["com.android.chrome/org.chromium.Main"],
        "device_type": ["pixel_4"],
        "episode_id": [episode],
        "episode_length": [length],
        "goal_info": ["open the clock"],
        "image/channels": [3],
        "image/encoded": [pixels(number if shade is None else shade)],
        "image/height": [HEIGHT],
        "image/width": [WIDTH],
        "image/ui_annotations_positions": [0.45, 0.2, 0.1, 0.1, 0.4, 0.1, 0.3, 0.6],
        "image/ui_annotations_text": ["Clock", ""],
        "image/ui_annotations_ui_types": ["TEXT", "ICON_TIME"],
        "results/action_type": [6],
        "results/type_action": [""],
        "results/yx_lift": [-1.0, -1.0],
        "results/yx_touch": [-1.0, -1.0],
        "step_id": [number],
        **more,
    }
    kept = ((name, values) for name, values in features.items() if values is not None)
    return blob(1, b"".join(blob(1, blob(1, name) + blob(2, _feature(values))) for name, values in kept))


def _feature(values: Sequence[Any]) -> bytes:
    if values and isinstance(values[0], float):
        return blob(2, blob(1, struct.pack(f"<{len(values)}f", *values)))
    if values and isinstance(values[0], int):
        return blob(3, blob(1, b"".join(varint(value) for value in values)))
    return blob(1, b"".join(blob(1, value) for value in values))


def episode(name: str, *actions: dict[str, Any], **more: Any) -> list[bytes]:
    """Return an episode's records in their order."""
    return [step(i, episode=name, length=len(actions), **{**more, **a}) for i, a in enumerate(actions)]


def write(root: Path, records: Iterable[bytes], name: str = "general-00000-of-00002") -> Path:
    """Write one shard, in a folder named after the set. Returns the root."""
    folder = root / name.partition("-")[0]
    folder.mkdir(parents=True, exist_ok=True)
    write_shard(folder / name, records)
    return root
