"""GUI-R1's parquet files: single steps on phones, desktops and web pages, each with its screenshot.

A row is one decision and so an episode of one step: nothing in the files tells which rows belong together. Points
and boxes are shares of the screen in some files and pixels in others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from solar_rl.actions import DIRECTIONS, Action, Box
from solar_rl.config import Config
from solar_rl.errors import RecordError
from solar_rl.schema import Episode, Reject, Screenshot, Step

from ._parquet import ParquetBuilder, image_bytes, open_file, read_rows
from .android_control.screen import LISTED, Screen, number
from .android_control.vocabulary import read_optional_text, read_text

CITATION = """@article{luo2025guir1,
  title   = {GUI-R1: A Generalist R1-Style Vision-Language Action Model For GUI Agents},
  author  = {Luo, Run and Wang, Lu and He, Wanwei and Chen, Longze and Li, Jiaming and Xia, Xiaobo},
  journal = {arXiv preprint arXiv:2504.10458},
  year    = {2025}
}"""
COLUMNS = (
    "id", "image", "history", "instruction", "gt_action", "gt_bbox", "gt_input_text", "group", "ui_type", "task_type",
)  # fmt: skip
_POINTED = {
    "click": "click",
    "long_press": "long_press",
    "moveto": "hover",
    "doubleclick": "double_click",
    "rightclick": "right_click",
}
_BUTTONS = {"press_back": "back", "press_home": "home", "press_recent": "recent", "enter": "enter"}
_NO_TEXT = ("", "no input text")
_NO_HISTORY = ("", "none")
_PLATFORMS = {
    "android": ("android", "mobile", "phone", "odyssey", "aitw"),
    "web": ("web", "browser"),
    "desktop": ("desktop", "windows", "mac", "linux", "ubuntu", "omniact"),
}


class Options(Config):
    """Options of builder ``gui_r1``."""

    platform: Literal["auto", "android", "desktop", "web"] = "auto"
    """Platform of the rows. auto: by the words of column group, then of ui_type."""
    coordinates: Literal["auto", "unit", "pixels"] = "auto"
    """Whether gt_bbox is in shares of the screen or in pixels. auto: shares where no number is above 1."""
    split: Literal["train", "validation", "test"] | None = None
    """Split of every row (default: test for files named so, else train)."""
    history: bool = False
    """Add the row's history to the goal; the actions before a row are known in these words only."""
    select_as: Literal["input_text", "reject"] = "input_text"
    """What select, which names an option of a list, is read as."""


class GuiR1(ParquetBuilder):
    """Reads parquet files; a shard is a row group."""

    name = "gui_r1"
    homepage = "https://github.com/ritzz-ai/GUI-R1"
    citation = CITATION
    marks = ("gt_action", "gt_bbox", "instruction", "image")
    Options = Options

    def shards(self) -> list[str]:
        """List the row groups of the files, such as ``train.parquet:0``; a damaged file is one shard."""
        return [f"{file.name}:{group}" for file in self.source_files() for group in _groups(file)]

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield each row as an Episode of one step, or as a Reject that says why not."""
        name, _, group = shard.rpartition(":")
        file = self.path / name if self.path.is_dir() else self.path
        row_number = 0
        try:
            row_number = _rows_before(file, int(group))
            for row in read_rows(file, COLUMNS, [int(group)]):
                yield self._read_row(row, file, row_number)
                row_number += 1
        except RecordError as error:
            yield Reject(name, f"row {row_number}", error.reason, str(error))

    def _read_row(self, row: Mapping[str, Any], file: Path, number_: int) -> Episode | Reject:
        episode_id = f"{file.stem}-{number_}"
        try:
            return self._episode(row, episode_id, file)
        except RecordError as error:
            return Reject(file.name, f"row {number_}", error.reason, str(error), episode_id)

    def _episode(self, row: Mapping[str, Any], episode_id: str, file: Path) -> Episode:
        goal, history = read_text(row, "instruction"), read_optional_text(row, "history")
        if self.options.history and history is not None and history.strip().lower() not in _NO_HISTORY:
            goal = f"{goal}\nDone so far: {history}"
        return Episode(
            episode_id,
            source=self.name,
            platform=self._platform(row),
            goal=goal,
            steps=(self._step(row),),
            split=self.options.split or ("test" if "test" in file.stem.lower() else "train"),
            category=read_optional_text(row, "group"),
        )

    def _platform(self, row: Mapping[str, Any]) -> str:
        if self.options.platform != "auto":
            return str(self.options.platform)
        said = [(read_optional_text(row, name) or "").lower() for name in ("group", "ui_type")]
        for words in said:
            for platform, marks in _PLATFORMS.items():
                if any(mark in words for mark in marks):
                    return platform
        found = f"group {row.get('group')!r} and ui_type {row.get('ui_type')!r} tell no platform"
        raise RecordError("bad_platform", found, hint="source.options.platform says which it is")

    def _step(self, row: Mapping[str, Any]) -> Step:
        data = image_bytes(row.get("image"), "image")
        shot = Screenshot.of(data)
        size = shot.encoded_size
        point, box = self._place(row.get("gt_bbox"), Screen(*size))
        action = self._action(row, point)
        box = box if action.action_type in _POINTED.values() else None
        return Step(
            0,
            action,
            *size,
            instruction=read_optional_text(row, "instruction") if row.get("task_type") == "low" else None,
            screenshot=shot,
            target_box=box,
            candidate_boxes=(box,) if box else (),
            box_rule=LISTED if box else None,
        )

    def _place(self, value: Any, screen: Screen) -> tuple[tuple[float, float] | None, Box | None]:
        """Return the point that is meant, a box's middle, and the box; nothing for [-100, -100]."""
        if value is None or not isinstance(value, list) or len(value) not in (2, 4):
            raise RecordError(
                "bad_box", f"gt_bbox is {value!r}, expected [x, y] or [left, top, right, bottom]"
            )
        edges = [number(edge, "an edge of gt_bbox") for edge in value]
        if all(edge < 0 for edge in edges):
            return None, None
        in_pixels = self.options.coordinates == "pixels"
        if self.options.coordinates == "auto":
            in_pixels = max(edges) > 1
        width, height = (screen.width, screen.height) if in_pixels else (1, 1)
        if len(edges) == 2:
            return (edges[0] / width, edges[1] / height), None
        box = Screen(width, height).box(*edges)
        if box is None:
            raise RecordError("bad_box", f"gt_bbox {value} is empty or lies outside the screen")
        return ((box.x1 + box.x2) / 2, (box.y1 + box.y2) / 2), box

    def _action(self, row: Mapping[str, Any], point: tuple[float, float] | None) -> Action:
        kind = read_text(row, "gt_action").strip().lower()
        if kind in _POINTED:
            if point is None:
                raise RecordError("missing_field", f"{kind} has no place in gt_bbox")
            if not all(0 <= value <= 1 for value in point):
                raise RecordError(
                    "off_screen", f"{kind} at {point} lies outside the screen (the unit square)"
                )
            return Action(_POINTED[kind], *point)
        if kind in _BUTTONS:
            return Action("press", button=_BUTTONS[kind])
        if kind == "wait":
            return Action("wait")
        if kind in ("complete", "impossible"):
            return Action("finished", status="complete" if kind == "complete" else "infeasible")
        if kind == "scroll":
            return Action("scroll", direction=_direction(row))
        if kind == "type" or (kind == "select" and self.options.select_as == "input_text"):
            return Action("input_text", text=_text(row, kind))
        if kind == "open_app":
            return Action("open_app", app_name=_text(row, kind))
        if kind == "hotkey":
            return Action("press", keys=tuple(key.strip() or "+" for key in _text(row, kind).split("+")))
        raise RecordError("unknown_action", f"unknown action {kind!r}, expected one of {', '.join(_ACTIONS)}")


def _text(row: Mapping[str, Any], kind: str) -> str:
    text = read_text(row, "gt_input_text")
    if text.strip().lower() in _NO_TEXT:
        raise RecordError("empty_text", f"{kind} has gt_input_text {text!r}")
    return text


def _direction(row: Mapping[str, Any]) -> str:
    """Return a scroll's direction, which is the content's, as in AndroidControl that most rows are from."""
    direction = read_text(row, "gt_input_text").strip().lower()
    if direction not in DIRECTIONS:
        message = f"gt_input_text of a scroll is {direction!r}, expected one of {', '.join(DIRECTIONS)}"
        raise RecordError("bad_value", message)
    return direction


def _groups(file: Path) -> range:
    try:
        return range(open_file(file).metadata.num_row_groups)
    except RecordError:
        return range(1)  # read says what is wrong with it


def _rows_before(file: Path, group: int) -> int:
    metadata = open_file(file).metadata
    return sum(metadata.row_group(before).num_rows for before in range(group))


_ACTIONS = (
    *_POINTED,
    *_BUTTONS,
    "wait",
    "complete",
    "impossible",
    "scroll",
    "type",
    "select",
    "open_app",
    "hotkey",
)
BUILDER = GuiR1
