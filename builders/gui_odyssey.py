"""GUI-Odyssey: cross-app tasks on six Android devices, one JSON file an episode, points in 0..1000.

The release of 2024 (OpenGVLab/GUI-Odyssey) and the later one (hflqf88888/GUIOdyssey, with boxes and low-level
instructions) are both read; what a file hasn't got stays empty.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from solar_rl.actions import Action
from solar_rl.builder import Sign
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.peek import first_objects, some_files
from solar_rl.schema import Episode, Screenshot, Step

from ._episode_files import EpisodeFileOptions, EpisodeFiles, Shelf, as_object, reached_goal
from ._touch import Point, holding, point_action, read_pair, swipe
from .android_control.jsonl import read_list
from .android_control.screen import Screen, read_boxes
from .android_control.splits import read_splits
from .android_control.vocabulary import at_step, read_optional_text, read_text

CITATION = """@misc{lu2024gui,
  title  = {GUI Odyssey: A Comprehensive Dataset for Cross-App GUI Navigation on Mobile Devices},
  author = {Quanfeng Lu and Wenqi Shao and Zitao Liu and Fanqing Meng and Boxuan Li and Botong Chen and
            Siyuan Huang and Kaipeng Zhang and Yu Qiao and Ping Luo},
  year   = {2024},
  eprint = {2406.08451},
  archivePrefix = {arXiv}
}"""

FAMILIES = ("random", "task", "device", "app")
BOX_RULE = "sam2_bbox"
"""What ``steps.box_rule`` says: the box is the source's, segmented by SAM 2 around the click."""

_GRID = Screen(1000, 1000)
_BUTTONS = {
    "KEY_HOME": "home",
    "KEY_BACK": "back",
    "KEY_APPSELECT": "recent",
    "HOME": "home",
    "BACK": "back",
}
_STATUSES = {"COMPLETE": "complete", "INCOMPLETE": "infeasible", "IMPOSSIBLE": "infeasible"}
_ACTIONS = ("CLICK", "LONG_PRESS", "SCROLL", "TEXT", "TYPE", "HOME", "BACK", *_STATUSES)


class Options(EpisodeFileOptions):
    """Options of builder ``gui_odyssey``."""

    split_family: Literal["random", "task", "device", "app", "none"] = "random"
    """Which of the four files in ``splits`` says what is train and what is test. none: everything is train."""
    goal: Literal["instruction", "task"] = "instruction"
    """The goal: the detailed instruction, which names the apps, or the plain task."""
    thought: Literal["intention", "description", "context", "none"] = "intention"
    """Which text about a step becomes its thought. Some texts of the release belong to another episode."""
    screenshots: str | None = "screenshots"
    """Folder of the screenshots, below source.path unless absolute. null: none are read."""
    reason: Literal["text", "thought"] = "text"
    """Where the note goes on why a task can't be done: the answer of ``finished``, which few formats can say, or
    that step's thought."""
    meta_task: bool = False
    """Add ``meta_task: TEXT`` to an episode's subsplits, to group by the template that it was made from."""


class GuiOdyssey(EpisodeFiles):
    """Reads GUI-Odyssey's annotations, splits and screenshots."""

    name = "gui_odyssey"
    license = "cc-by-4.0"
    homepage = "https://github.com/OpenGVLab/GUI-Odyssey"
    citation = CITATION
    Options = Options
    looked_for = "annotations/*.json"

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        self._split_of = {family: read_splits(file) for family, file in self._split_files.items()}
        self._shelf = Shelf(self._screenshots_folder())
        family = self.options.split_family
        if family != "none" and family not in self._split_files:
            raise ConfigError(
                f"no splits/{family}_split.json",
                where=f"source.path {self.path}",
                hint="source.options.split_family none makes everything train",
            )

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by the device, the task and the steps in an annotation."""
        for file in some_files(path / "annotations", (".json",))[:1]:
            for row in first_objects(file, 1, whole=True):
                if {"device_info", "task_info", "steps"} <= row.keys():
                    why = f"annotations/{file.name} holds device_info, task_info and steps"
                    return Sign(0.95, why, _options_for(path))
        return None

    @cached_property
    def _split_files(self) -> dict[str, Path]:
        files = {family: self.path / "splits" / f"{family}_split.json" for family in FAMILIES}
        return {family: file for family, file in files.items() if file.is_file()}

    def _screenshots_folder(self) -> Path | None:
        if self.options.screenshots is None:
            return None
        folder = self.path / self.options.screenshots
        if not folder.is_dir():
            raise ConfigError(
                "no such folder",
                where=f"source.options.screenshots {folder}",
                hint="null reads no screenshots",
            )
        return folder

    def find_files(self) -> list[Path]:
        """List annotations/*.json by name."""
        return sorted((self.path / "annotations").glob("*.json"))

    def source_files(self) -> list[Path]:
        """List the annotations and the splits."""
        return [*super().source_files(), *self._split_files.values()]

    def episode(self, file: Path, value: Any) -> Episode:
        """Read one annotation file as an episode.

        Raises:
            RecordError: What is broken, and at which step.
        """
        record = as_object(value, "the file")
        task = as_object(record.get("task_info"), "task_info")
        device = as_object(record.get("device_info"), "device_info")
        rows = self.checked_rows(
            read_list(record, "steps", object), "step", record.get("step_length"), "step_length"
        )
        steps = []
        for index, row in enumerate(rows):
            with at_step(index):
                steps.append(self._step(index, row, device))
        kept = self.with_policy(steps)
        splits = {
            family: found for family, ids in self._split_of.items() if (found := _split(ids, file.stem))
        }
        return Episode(
            read_text(record, "episode_id"),
            source=self.name,
            platform="android",
            goal=read_text(task, self.options.goal),
            steps=kept,
            split=splits.get(self.options.split_family, "train"),
            app=_apps(task),
            license=self.license,
            category=read_optional_text(task, "category"),
            subsplits=self._subsplits(splits, task),
            recorded_success=reached_goal(kept),
        )

    def _subsplits(self, splits: dict[str, str], task: dict[str, Any]) -> tuple[str, ...]:
        names = [f"{family}_{split}" for family, split in splits.items()]
        if self.options.meta_task and (meta_task := read_optional_text(task, "meta_task")):
            names.append(f"meta_task: {meta_task}")
        return tuple(names)

    def _step(self, index: int, row: dict[str, Any], device: dict[str, Any]) -> Step:
        screenshot = self._shelf.find(read_text(row, "screenshot"))
        width, height = _screen_size(device, screenshot)
        action, reason = _action(row), _reason(row)
        if self.options.reason == "text":
            action = replace(action, text=reason) if reason else action
        boxes = read_boxes(row.get("sam2_bbox"), _GRID)
        target = next(iter(holding(boxes, action)), None)
        return Step(
            index,
            action,
            width,
            height,
            instruction=read_optional_text(row, "low_level_instruction"),
            screenshot=screenshot,
            target_box=target,
            candidate_boxes=boxes,
            box_rule=None if target is None else BOX_RULE,
            thought=self._thought(row, reason),
        )

    def _thought(self, row: dict[str, Any], reason: str | None) -> str | None:
        if reason is not None and self.options.reason == "thought":
            return reason
        return None if self.options.thought == "none" else read_optional_text(row, self.options.thought)


def _options_for(path: Path) -> dict[str, Any]:
    """Return the options that a folder needs which lacks a part of the release."""
    found: dict[str, Any] = {} if (path / "screenshots").is_dir() else {"screenshots": None}
    families = [family for family in FAMILIES if (path / "splits" / f"{family}_split.json").is_file()]
    return found if "random" in families else found | {"split_family": next(iter(families), "none")}


def _split(ids: dict[str, str], episode: str) -> str | None:
    """Look an episode up by its file's name, which is how the splits name it; other copies leave out .json."""
    return ids.get(f"{episode}.json") or ids.get(episode)


def _apps(task: dict[str, Any]) -> str | None:
    """Return the apps of a task in the order in which the source names them, as one text."""
    names = read_list(task, "app", str) if task.get("app") is not None else []
    for name in names:
        read_optional_text({"app": name}, "app")  # refuses what no file can hold
    return ", ".join(name for name in names if name.strip()) or None


def _screen_size(device: dict[str, Any], screenshot: Screenshot | None) -> tuple[int, int]:
    """Return the device's pixels, turned the way the screenshot is held."""
    width, height = _pixels(device, "w"), _pixels(device, "h")
    turned = screenshot is not None and (screenshot.width - screenshot.height) * (width - height) < 0
    return (height, width) if turned else (width, height)


def _pixels(device: dict[str, Any], name: str) -> int:
    value = device.get(name)
    if value is None:
        raise RecordError("missing_field", f"device_info.{name} is missing")
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 1 << 20:
        raise RecordError("bad_number", f"device_info.{name} is {value!r}, expected pixels")
    return value


def _action(row: dict[str, Any]) -> Action:
    kind, info = read_text(row, "action"), row.get("info")
    if kind in ("HOME", "BACK") or (kind in ("CLICK", "LONG_PRESS") and isinstance(info, str)):
        return _press(kind if kind in _BUTTONS else info)
    if kind in ("CLICK", "LONG_PRESS"):
        return point_action(kind.lower(), _points(info, 1)[0])
    if kind == "SCROLL":
        return swipe(*_points(info, 2)[:2])
    if kind in ("TEXT", "TYPE"):
        return Action("input_text", text=read_text(row, "info"))
    if kind in _STATUSES:
        return Action("finished", status=_STATUSES[kind])
    raise RecordError("unknown_action", f"unknown action {kind!r}, expected one of {', '.join(_ACTIONS)}")


def _press(key: Any) -> Action:
    if key not in _BUTTONS:
        raise RecordError("unknown_action", f"unknown key {key!r}, expected one of {', '.join(_BUTTONS)}")
    return Action("press", button=_BUTTONS[key])


def _reason(row: dict[str, Any]) -> str | None:
    """Return the note on why a task can't be done; notes on done ones and scrolls say nothing to the user."""
    gives_up = _STATUSES.get(row["action"]) == "infeasible"
    return read_optional_text(row, "ps") if gives_up else None


def _points(info: Any, count: int) -> list[Point]:
    if not isinstance(info, list) or len(info) < count:
        raise RecordError("bad_value", f"info is {info!r}, expected {count} or more points")
    pairs = [read_pair(pair, "a point of info") for pair in info]
    return [(x / _GRID.width, y / _GRID.height) for x, y in pairs]


BUILDER = GuiOdyssey
