"""Android in the Zoo (CoAT): a folder an episode, its steps as a JSON list with the screenshots beside it.

CAGUI, which AgentCPM-GUI is evaluated on, is written the same way, with the size of the image, boxes in
shares of it, and two more actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import orjson

from solar_rl.actions import Action
from solar_rl.builder import Sign
from solar_rl.errors import RecordError
from solar_rl.peek import first_objects
from solar_rl.schema import SPLITS, Episode, Screenshot, Step

from ._episode_files import EpisodeFileOptions, EpisodeFiles, Shelf, as_object, reached_goal
from ._touch import Point, read_pair
from .aitw.actions import coded_action
from .aitw.elements import BOX_RULE, Elements, read_elements
from .android_control.screen import Screen
from .android_control.vocabulary import at_step, read_optional_text, read_text

CITATION = """@misc{zhang2024android,
  title  = {Android in the Zoo: Chain-of-Action-Thought for GUI Agents},
  author = {Jiwen Zhang and Jihao Wu and Yihua Teng and Minghui Liao and Nuo Xu and Xiao Xiao and
            Zhongyu Wei and Duyu Tang},
  year   = {2024},
  eprint = {2403.02713},
  archivePrefix = {arXiv}
}"""


class Options(EpisodeFileOptions):
    """Options of builder ``aitz``."""

    split: Literal["train", "validation", "test"] | None = None
    """Split of every episode (default: the name of the folder above the category, or of that itself; else train)."""
    boxes: Literal["auto", "pixels", "unit"] = "auto"
    """What ui_positions count: pixels as in AITZ, or shares of the image as in CAGUI. auto: by their values."""
    thought: Literal["coat_action_think", "coat_screen_desc", "coat_action_result", "none"] = (
        "coat_action_think"
    )
    """Which text about a step becomes its thought."""


class Aitz(EpisodeFiles):
    """Reads Android in the Zoo, and CAGUI."""

    name = "aitz"
    license = "apache-2.0"
    homepage = "https://github.com/IMNearth/CoAT"
    citation = CITATION
    Options = Options
    looked_for = "EPISODE/EPISODE.json, at any depth"

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by the first JSON file that is named as its folder."""
        file = _first_episode(path.absolute(), 4) if path.is_dir() else None
        if file is None:
            return None
        for row in first_objects(file, 1, whole=True):
            if {"result_action_type", "result_touch_yx", "step_id"} <= row.keys():
                return Sign(0.95, f"{file.name} is a list of steps with result_action_type")
        return None

    def find_files(self) -> list[Path]:
        """List the JSON files that are named as their folder."""
        return sorted(file for file in self.path.rglob("*.json") if _folder(file).name == file.stem)

    def episode(self, file: Path, value: Any) -> Episode:
        """Read one file as an episode.

        Raises:
            RecordError: What is broken, and at which step.
        """
        if not isinstance(value, list):
            raise RecordError("bad_value", f"the file is {type(value).__name__}, expected a list of steps")
        first = as_object(value[0], "step 0") if value else {}
        rows = self.checked_rows(value, "step_id", first.get("episode_length"), "episode_length")
        goal = _shared(rows, "instruction")
        _shared(rows, "episode_id")
        steps = self.with_policy(self._steps(rows, Shelf(file.parent)))
        return Episode(
            file.stem,
            source=self.name,
            platform="android",
            goal=goal,
            steps=steps,
            split=self.options.split or _split(file),
            license=self.license,
            category=_folder(file).parent.name or None,
            recorded_success=reached_goal(steps),
        )

    def _steps(self, rows: Sequence[dict[str, Any]], shelf: Shelf) -> list[Step]:
        shots = []
        for index, row in enumerate(rows):
            with at_step(index):
                shots.append(shelf.find(read_text(row, "image_path")))
        usual = next((shot for shot in shots if shot is not None), None)
        steps = []
        for index, (row, shot) in enumerate(zip(rows, shots, strict=True)):
            with at_step(index):
                steps.append(self._step(index, row, shot, usual))
        return steps

    def _step(
        self, index: int, row: dict[str, Any], shot: Screenshot | None, usual: Screenshot | None
    ) -> Step:
        screen = _screen(row, shot, usual)
        action = _action(row)
        boxes, text = self._elements(row, screen, action)
        thought = None if self.options.thought == "none" else read_optional_text(row, self.options.thought)
        instruction = read_optional_text(row, "coat_action_desc") or read_optional_text(
            row, "low_instruction"
        )
        return Step(
            index,
            action,
            screen.width,
            screen.height,
            instruction=instruction,
            screenshot=shot,
            screen_text=text,
            target_box=boxes[0] if boxes else None,
            candidate_boxes=boxes,
            screen_size=screen.origin,
            box_rule=BOX_RULE if boxes else None,
            thought=thought,
        )

    def _elements(self, row: dict[str, Any], screen: Screen, action: Action) -> Elements:
        positions = _listed(row, "ui_positions")
        texts, kinds = _texts(row, "ui_text", len(positions)), _texts(row, "ui_types", len(positions))
        unit = self.options.boxes == "unit" or (self.options.boxes == "auto" and _within_one(positions))
        return read_elements(positions, texts, kinds, screen, action, unit=unit)


def _folder(file: Path) -> Path:
    return file.absolute().parent


def _first_episode(folder: Path, depth: int) -> Path | None:
    """Return the first file that is named as its folder, not too far below."""
    try:
        if (folder / f"{folder.name}.json").is_file():
            return folder / f"{folder.name}.json"
        below = sorted(one for one in folder.iterdir() if one.is_dir())[:3] if depth else []
    except OSError:
        return None
    return next((found for one in below if (found := _first_episode(one, depth - 1))), None)


def _split(file: Path) -> str:
    """Return the split that one of the two folders above the episode's is named after."""
    above = _folder(file).parents[:2]
    return next((folder.name for folder in above if folder.name in SPLITS), "train")


def _shared(rows: Sequence[dict[str, Any]], name: str) -> str:
    """Return a text that every step of an episode repeats."""
    texts = set()
    for index, row in enumerate(rows):
        with at_step(index):
            texts.add(str(row[name]) if isinstance(row.get(name), int) else read_text(row, name))
    if len(texts) > 1:
        raise RecordError("mixed_episodes", f"the steps differ in {name}: {', '.join(sorted(texts))[:200]}")
    return texts.pop()


def _screen(row: dict[str, Any], shot: Screenshot | None, usual: Screenshot | None) -> Screen:
    """Return the screenshot's size; without one what the step says, or the size of the episode's others."""
    if shot is not None:
        return Screen(shot.width, shot.height)
    size = row.get("image_width"), row.get("image_height")
    if all(type(side) is int and 0 < side < 1 << 20 for side in size):
        return Screen(*size)
    if usual is None:
        raise RecordError("missing_image", "no screenshot of the episode is there, and its size isn't stated")
    return Screen(usual.width, usual.height, "inferred")


def _action(row: dict[str, Any]) -> Action:
    def text() -> str:
        return read_text(row, "result_action_text")

    def points() -> tuple[Point, Point]:
        return _point(row, "result_touch_yx"), _point(row, "result_lift_yx")

    return coded_action(row.get("result_action_type"), text, points, cagui=True)


def _point(row: dict[str, Any], name: str) -> Point:
    y, x = read_pair(_listed(row, name), name)
    return x, y


def _listed(row: dict[str, Any], name: str) -> list[Any]:
    """Return a list that is written as text; nothing is an empty one."""
    value = row.get(name)
    if isinstance(value, str) and value.strip():
        try:
            value = orjson.loads(value)
        except ValueError as error:
            raise RecordError("bad_json", f"{name} is no JSON ({error})") from error
    if value is None or value == "":
        return []
    if not isinstance(value, list):
        raise RecordError("bad_value", f"{name} is {type(value).__name__}, expected a list")
    return value


def _texts(row: dict[str, Any], name: str, count: int) -> list[str]:
    values = _listed(row, name)
    odd = next((value for value in values if not isinstance(value, str)), None)
    if odd is not None or None in values:
        raise RecordError("bad_text", f"{name} holds {odd!r}, expected texts")
    read_optional_text({name: "".join(values)}, name)  # refuses what no file can hold
    return values or [""] * count


def _within_one(positions: Sequence[Any]) -> bool:
    """Tell whether all numbers are shares: no element is a pixel high and wide in the screen's corner."""
    values = [value for position in positions if isinstance(position, list) for value in position]
    return all(isinstance(value, (int, float)) and value <= 1 for value in values)


BUILDER = Aitz
