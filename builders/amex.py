"""AMEX, level 3: instructions with chains of actions, one JSON file an episode, in pixels of the device.

The data set's card names the folders but no fields. The fields read here are those that two public programs
which process AMEX read (see docs/sources.md); no file of the release was at hand.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from solar_rl.actions import Action, Box
from solar_rl.builder import Sign
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.peek import first_objects, some_files
from solar_rl.schema import Episode, Screenshot, Step

from ._episode_files import EpisodeFileOptions, EpisodeFiles, Shelf, as_object, main_app, reached_goal
from ._touch import Point, holding, point_action, read_pair, swipe, unit_box
from .android_control.forest import app_name
from .android_control.jsonl import read_list
from .android_control.screen import Screen
from .android_control.splits import read_splits
from .android_control.vocabulary import at_step, read_optional_text, read_text

CITATION = """@misc{chai2024amexandroidmultiannotationexpo,
  title  = {AMEX: Android Multi-annotation Expo Dataset for Mobile GUI Agents},
  author = {Yuxiang Chai and Siyuan Huang and Yazhe Niu and Han Xiao and Liang Liu and Dingyu Zhang and
            Peng Gao and Shuai Ren and Hongsheng Li},
  year   = {2024},
  eprint = {2407.17490},
  archivePrefix = {arXiv}
}"""

_BUTTONS = {"PRESS_BACK": "back", "PRESS_HOME": "home", "PRESS_ENTER": "enter"}
_STATUSES = {"TASK_COMPLETE": "complete", "TASK_IMPOSSIBLE": "infeasible"}
_ACTIONS = ("TAP", "SWIPE", "TYPE", *_BUTTONS, *_STATUSES)


class Options(EpisodeFileOptions):
    """Options of builder ``amex``."""

    screenshots: str | None = "screenshot"
    """Folder of the screenshots, below source.path unless absolute. null: none are read."""
    elements: str | None = "element_anno"
    """Folder of the elements' boxes, below source.path unless absolute. null: no boxes are read."""
    splits: str | None = None
    """A JSON file with the lists train, validation and test of episode ids; the release has none. Others: train."""


class Amex(EpisodeFiles):
    """Reads AMEX's instructions, its elements and screenshots."""

    name = "amex"
    license = "cc-by-4.0"
    homepage = "https://huggingface.co/datasets/Yuxiang007/AMEX"
    citation = CITATION
    Options = Options
    looked_for = "instruction_anno/*.json"

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        self._splits_file = Path(self.options.splits) if self.options.splits else None
        self._split_of = read_splits(self._splits_file)
        self._shelf = Shelf(self._folder("screenshots"))
        self._elements_folder = self._folder("elements")

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by the touches in an instruction's steps."""
        folder = path / "instruction_anno"
        for file in (some_files(folder, (".json",)) or some_files(folder / folder.name, (".json",)))[:1]:
            for row in first_objects(file, 1, whole=True):
                steps = row.get("steps")
                first = steps[0] if isinstance(steps, list) and steps else None
                if isinstance(first, dict) and {"action", "touch_coord"} <= first.keys():
                    lacking = {"screenshots": "screenshot", "elements": "element_anno"}
                    options = {name: None for name, below in lacking.items() if not (path / below).is_dir()}
                    return Sign(0.95, f"{file.name} holds steps with touch_coord", options)
        return None

    def _folder(self, option: str) -> Path | None:
        name = getattr(self.options, option)
        if name is None:
            return None
        folder = self.path / name
        if not folder.is_dir():
            where = f"source.options.{option} {folder}"
            raise ConfigError("no such folder", where=where, hint="null reads none")
        return folder

    def find_files(self) -> list[Path]:
        """List the files of instruction_anno by name; some copies have the folder twice, one in the other."""
        return sorted((self.path / "instruction_anno").rglob("*.json"))

    def source_files(self) -> list[Path]:
        """List the instructions, the elements that they need, and the file of splits where there is one."""
        elements = sorted(self._element_files.values())
        return [*super().source_files(), *elements, *([self._splits_file] if self._splits_file else [])]

    @cached_property
    def _element_files(self) -> dict[str, Path]:
        folder = self._elements_folder
        return {file.stem: file for file in sorted(folder.rglob("*.json"))} if folder else {}

    def episode(self, file: Path, value: Any) -> Episode:
        """Read one file as an episode.

        Raises:
            RecordError: What is broken, and at which step.
        """
        record = as_object(value, "the file")
        episode_id = read_text(record, "episode_id")
        rows = self.checked_rows(read_list(record, "steps", object), "step_id", None, "")
        steps = []
        for index, row in enumerate(rows):
            with at_step(index):
                steps.append(self._step(index, row))
        kept = self.with_policy(steps)
        return Episode(
            episode_id,
            source=self.name,
            platform="android",
            goal=read_text(record, "instruction"),
            steps=kept,
            split=self._split_of.get(episode_id, "train"),
            app=main_app(kept),
            license=self.license,
            recorded_success=reached_goal(kept),
        )

    def _step(self, index: int, row: dict[str, Any]) -> Step:
        image = read_text(row, "image_path")
        shot = self._shelf.find(image)
        screen = _screen(row, shot)
        action = _action(row, screen)
        shown = Screen(shot.width, shot.height) if shot else screen
        boxes = holding(self._boxes(PurePosixPath(image).stem, shown), action)
        return Step(
            index,
            action,
            screen.width,
            screen.height,
            screenshot=shot,
            app=app_name(read_optional_text(row, "package_name")),
            target_box=boxes[0] if boxes else None,
            candidate_boxes=boxes,
            box_rule="smallest_clickable" if boxes else None,
        )

    def _boxes(self, name: str, screen: Screen) -> list[Box]:
        """Return the clickable boxes of a screenshot, whose pixels they count."""
        file = self._element_files.get(name)
        if file is None:
            return []
        try:
            value = orjson.loads(file.read_bytes())
        except (OSError, ValueError) as error:
            raise RecordError("bad_json", f"{file.name} of the elements can't be read ({error})") from error
        elements = read_list(as_object(value, file.name), "clickable_elements", dict)
        found = (_box(element["bbox"], screen) for element in elements if element.get("bbox"))
        return [box for box in found if box is not None]


def _box(edges: Any, screen: Screen) -> Box | None:
    if not isinstance(edges, list) or len(edges) != 4:
        raise RecordError("bad_box", f"an element's bbox is {edges!r}, expected [left, top, right, bottom]")
    return unit_box(edges, screen.width, screen.height)


def _screen(row: dict[str, Any], shot: Screenshot | None) -> Screen:
    """Return the device's size, else the screenshot's: touches count the device's pixels."""
    if row.get("device_dim"):
        width, height = read_pair(row["device_dim"], "device_dim")
        if min(width, height) < 1:
            raise RecordError("bad_number", f"device_dim is {row['device_dim']!r}, expected pixels")
        return Screen(int(width), int(height))
    if shot is None:
        raise RecordError("missing_image", "the screenshot isn't there, and device_dim isn't stated")
    return Screen(shot.width, shot.height)


def _action(row: dict[str, Any], screen: Screen) -> Action:
    def point(name: str) -> Point:
        x, y = read_pair(row.get(name), name)
        return x / screen.width, y / screen.height

    kind = read_text(row, "action")
    if kind == "TAP":
        return point_action("click", point("touch_coord"))
    if kind == "SWIPE":
        return swipe(point("touch_coord"), point("lift_coord"))
    if kind == "TYPE":
        return Action("input_text", text=read_text(row, "type_text"))
    if kind in _BUTTONS:
        return Action("press", button=_BUTTONS[kind])
    if kind in _STATUSES:
        return Action("finished", status=_STATUSES[kind])
    raise RecordError("unknown_action", f"unknown action {kind!r}, expected one of {', '.join(_ACTIONS)}")


BUILDER = Amex
