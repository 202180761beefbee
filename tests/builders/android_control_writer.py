"""Write AndroidControl's files byte for byte as the release has them, with nothing but struct and gzip.

Values are written although they are the default, child ids one by one, -1 in ten bytes: all of it differs
from what Python's protobuf writes. Used by the tests and by benchmarks/bench_android_control.py.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crc32c import crc32c
from PIL import Image

WIDTH, HEIGHT = 108, 240
APP_WINDOW, SYSTEM_WINDOW = 1, 3


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(int(value))


def blob(number: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def rect(box: Sequence[int]) -> bytes:
    return b"".join(integer(number, edge) for number, edge in enumerate(box, start=1))


def node(
    box: Sequence[int],
    *,
    unique_id: int = 0,
    class_name: str = "android.view.View",
    description: str = "",
    package: str = "com.example.notes",
    text: str = "",
    window_id: int = 5,
    clickable: bool = False,
    editable: bool = False,
    password: bool = False,
    visible: bool = True,
    actions: Sequence[int] = (4, 8, 64, 16908342),
    children: Sequence[int] = (),
    packed: bool = False,
    depth: int = 0,
) -> bytes:
    flags = {14: clickable, 15: editable, 16: True, 20: password, 23: visible}
    ids = (
        blob(25, b"".join(varint(c) for c in children))
        if packed
        else b"".join(integer(25, c) for c in children)
    )
    return b"".join(
        (
            integer(1, unique_id),
            blob(2, rect(box)),
            blob(3, class_name),
            blob(4, description),
            blob(5, ""),
            blob(6, package),
            blob(7, text),
            integer(8, -1),
            integer(9, -1),
            blob(10, ""),
            integer(11, window_id),
            *(integer(number, flags.get(number, False)) for number in range(12, 24)),
            *(blob(24, integer(1, action) + blob(2, "")) for action in actions),
            ids,
            integer(27, depth),
            integer(30, 0),
            blob(31, ""),
        )
    )


def window(nodes: Iterable[bytes], *, kind: int = APP_WINDOW, layer: int = 0, active: bool = True) -> bytes:
    tree = b"".join(blob(1, item) for item in nodes)
    return b"".join(
        (
            blob(1, rect((0, 0, WIDTH, HEIGHT))),
            integer(2, 0),
            integer(3, layer + 1),
            integer(4, layer),
            blob(5, ""),
            integer(6, kind),
            integer(7, 0),
            integer(8, active),
            integer(9, active),
            integer(10, 0),
            blob(11, tree),
        )
    )


def forest(*windows: bytes) -> bytes:
    return b"".join(blob(1, item) for item in windows)


def png(shade: int = 0, size: tuple[int, int] = (WIDTH, HEIGHT)) -> bytes:
    out = io.BytesIO()
    Image.new("RGBA", size, (shade % 256, 90, 160, 255)).save(out, "PNG")
    return out.getvalue()


def notes_screen() -> bytes:
    """Return a forest with a title, a button with its label inside, and a status bar."""
    bar = window(
        [node((0, 0, 20, 10), text="9:41", package="com.android.systemui")], kind=SYSTEM_WINDOW, active=False
    )
    app = window(
        [
            node(
                (0, 0, WIDTH, HEIGHT), unique_id=0, class_name="android.widget.FrameLayout", children=(1, 2)
            ),
            node((10, 20, 98, 40), unique_id=1, class_name="android.widget.TextView", text="My  notes"),
            node(
                (10, 100, 60, 130),
                unique_id=2,
                class_name="android.widget.Button",
                clickable=True,
                children=(3,),
            ),
            node((20, 110, 50, 120), unique_id=3, class_name="android.widget.TextView", text="Save"),
        ],
        layer=1,
    )
    return forest(bar, app)


@dataclass
class Recording:
    """One episode to be written; every list can be spoilt by a test before it is."""

    episode_id: int = 7
    goal: str | bytes = "Save the note"
    actions: list[Any] = field(
        default_factory=lambda: [{"action_type": "click", "x": 35, "y": 115}, {"action_type": "wait"}]
    )
    instructions: list[str | bytes] | None = None
    screenshots: list[bytes] | None = None
    trees: list[bytes] | None = None
    widths: list[int] | None = None
    heights: list[int] | None = None
    leave_out: tuple[str, ...] = ()

    def example(self) -> bytes:
        """Return the serialised tf.train.Example."""
        steps = len(self.actions)
        screens = steps + 1
        actions = [
            a if isinstance(a, (str, bytes)) else json.dumps(a, separators=(",", ":")) for a in self.actions
        ]
        features: dict[str, Sequence[Any]] = {
            "episode_id": [self.episode_id],
            "goal": [self.goal],
            "screenshots": self.screenshots
            if self.screenshots is not None
            else [png(i) for i in range(screens)],
            "accessibility_trees": self.trees if self.trees is not None else [notes_screen()] * screens,
            "screenshot_widths": self.widths if self.widths is not None else [WIDTH] * screens,
            "screenshot_heights": self.heights if self.heights is not None else [HEIGHT] * screens,
            "actions": actions,
            "step_instructions": self.instructions if self.instructions is not None else ["do it"] * steps,
        }
        return example({k: v for k, v in features.items() if k not in self.leave_out})


def example(features: Mapping[str, Sequence[Any]]) -> bytes:
    return blob(
        1, b"".join(blob(1, blob(1, name) + blob(2, _feature(values))) for name, values in features.items())
    )


def _feature(values: Sequence[Any]) -> bytes:
    if values and isinstance(values[0], int):
        return blob(3, blob(1, b"".join(varint(value) for value in values)))
    return blob(1, b"".join(blob(1, value) for value in values))


def masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + masked(length) + data + masked(data)


def write_shard(path: Path, records: Iterable[Recording | bytes], *, level: int = 1) -> Path:
    """Write a shard: each record framed, then gzipped; bytes are framed as they are."""
    raw = b"".join(frame(r.example() if isinstance(r, Recording) else r) for r in records)
    path.write_bytes(gzip.compress(raw, level, mtime=0))
    return path
