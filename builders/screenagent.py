"""ScreenAgent's sessions: a desktop over VNC, worked by mouse and keyboard, one JSON file a turn of the agent.

A turn plans, acts or judges; only what acts is a step. A session is a folder of such files and their
screenshots, and an episode. Files named ``..._neg_...`` are made-up wrong turns and are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from solar_rl.actions import Action, Box
from solar_rl.builder import Builder, Sign
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.peek import first_objects, some_files
from solar_rl.schema import Episode, Reject, Screenshot, Step

from ._episode_files import Shelf, as_object
from ._hand import Hand, HandOptions, Point, one_step_each
from .android_control.jsonl import read_list
from .android_control.screen import LISTED, Screen, number, smallest_holding
from .android_control.vocabulary import at_step, read_json, read_optional_text, read_text

CITATION = """@inproceedings{niu2024screenagent,
  title     = {ScreenAgent: A Vision Language Model-driven Computer Control Agent},
  author    = {Niu, Runliang and Li, Jindong and Wang, Shiqi and Fu, Yali and Hu, Xiyu and Leng, Xueyuan
               and Kong, He and Chang, Yi and Wang, Qi},
  booktitle = {Proceedings of the Thirty-Third International Joint Conference on Artificial Intelligence},
  year      = {2024}
}"""
_NEGATIVE = "_neg_"
_TALK = ("PlanAction", "EvaluateSubTaskAction")
_BLOCK = re.compile(r"```.*?(```|\Z)", re.DOTALL)
_SIDES = re.compile(r"_[LR]$")
_NOTHING = Action("wait")


class Options(HandOptions):
    """Options of builder ``screenagent``."""

    language: Literal["en", "zh", "original"] = "en"
    """Language of goals and thoughts; where a file has it in one only, in that one."""
    split: Literal["train", "validation", "test"] | None = None
    """Split of every session (default: test below a folder of that name, else train)."""


class ScreenAgent(Builder):
    """Reads a folder of sessions, one session, or the whole data set; a shard is a session."""

    name = "screenagent"
    license = "apache-2.0"
    homepage = "https://github.com/niuzaisheng/ScreenAgent"
    citation = CITATION
    Options = Options

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        if not self._sessions:
            raise ConfigError(
                "holds no session: a folder with JSON files beside a folder images",
                where=f"source.path {self.path}",
            )

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by a session's turns."""
        for folder in [path, *(sorted(path.iterdir())[:3] if path.is_dir() else ())]:
            for file in some_files(folder, (".json",))[:1]:
                for row in first_objects(file, 1):
                    if {"video_width", "video_height", "saved_image_name", "actions"} <= row.keys():
                        return Sign(0.95, f"{file.name} is a turn of ScreenAgent")
        return None

    @cached_property
    def _sessions(self) -> dict[str, list[Path]]:
        """Name of each session, its folder relative to the path, and the files of its turns."""
        folders = sorted(Path(folder) for folder, below, _ in os.walk(self.path) if "images" in below)
        turns = ((folder.relative_to(self.path).as_posix(), _turns(folder)) for folder in folders)
        return {name: files for name, files in turns if files}

    def source_files(self) -> list[Path]:
        """List the sessions' files but the negatives; screenshots are told by their own hashes."""
        return [file for files in self._sessions.values() for file in files]

    def shards(self) -> list[str]:
        """List the sessions."""
        return list(self._sessions)

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield one session as an Episode, or as a Reject that says why not."""
        files = self._sessions[shard]
        folder = files[0].parent.resolve()
        name = folder.name
        try:
            yield self._episode(files, folder)
        except RecordError as error:
            yield Reject(shard, f"session {name}", error.reason, str(error), name)

    def _episode(self, files: Sequence[Path], folder: Path) -> Episode:
        turns = []
        for file in files:
            with _in_file(file):
                row = read_json(file.read_bytes(), "the file")
                turns.append((file, row, read_list(row, "actions", dict)))
        acting = [turn for turn in turns if any(_kind(action) not in _TALK for action in turn[2])]
        if not acting:
            raise RecordError("no_steps", "no turn of the session acts")
        split = "test" if folder.parent.name == "test" else "train"
        return Episode(
            folder.name,
            source=self.name,
            platform="desktop",
            goal=self._goal(acting[0][1]),
            steps=self._steps(acting, Shelf(folder / "images")),
            split=self.options.split or split,
            license=self.license,
            recorded_success=_judgement(turns),
        )

    def _goal(self, row: Mapping[str, Any]) -> str:
        return self._told(row, "task_prompt") or read_text(row, "task_prompt")

    def _told(self, row: Mapping[str, Any], name: str) -> str | None:
        if self.options.language != "original":
            told = read_optional_text(row, f"{name}_{self.options.language}")
            if told is not None:
                return told
        return read_optional_text(row, name)

    def _steps(
        self, turns: Sequence[tuple[Path, dict[str, Any], list[dict[str, Any]]]], shelf: Shelf
    ) -> tuple[Step, ...]:
        steps: list[Step] = []
        pointer: Point | None = None
        for index, (_, row, actions) in enumerate(turns):
            with at_step(index):
                made, pointer = self._turn(row, actions, shelf, pointer)
            steps += made
        return tuple(replace(step, step_index=place) for place, step in enumerate(steps))

    def _turn(
        self, row: Mapping[str, Any], actions: Sequence[dict[str, Any]], shelf: Shelf, pointer: Point | None
    ) -> tuple[list[Step], Point | None]:
        shot = _screenshot(row, shelf)
        screen, hand = Screen(shot.width, shot.height), Hand(pointer)
        acting = [action for action in actions if _kind(action) not in _TALK]
        for action in acting:
            _perform(action, screen, hand)
        area = _area(acting, screen)
        said = self._told(row, "LLM_response_editer") or ""
        told = Step(
            0,
            _NOTHING,
            shot.width,
            shot.height,
            instruction=read_optional_text(row, "current_task"),
            screenshot=shot,
            thought=_BLOCK.sub(" ", said).strip() or None,
        )

        def make(place: int, action: Action) -> Step:
            boxes = (area,) if area is not None and place == 0 else ()
            target = smallest_holding(boxes, action.x, action.y)
            return replace(
                told,
                action=action,
                target_box=target,
                candidate_boxes=boxes,
                box_rule=LISTED if target else None,
            )

        return one_step_each(hand.actions(), self.options.several_actions, make), hand.pointer


def _turns(folder: Path) -> list[Path]:
    names = (name for name in sorted(os.listdir(folder)) if name.endswith(".json") and _NEGATIVE not in name)
    return [folder / name for name in names]


def _kind(action: Mapping[str, Any]) -> Any:
    return action.get("action_type")


def _judgement(turns: Sequence[tuple[Path, dict[str, Any], list[dict[str, Any]]]]) -> bool | None:
    """Tell how the session's last turn judges it; None where it doesn't end with a judgement."""
    last = turns[-1][2][-1] if turns[-1][2] else {}
    if _kind(last) != "EvaluateSubTaskAction":
        return None
    return last.get("situation") in ("sub_task_success", "goal_success")


def _screenshot(row: Mapping[str, Any], shelf: Shelf) -> Screenshot:
    name = read_text(row, "saved_image_name")
    shot = shelf.find(name)
    if shot is None:
        raise RecordError("missing_image", f"screenshot {name} isn't there")
    stated = row.get("video_width"), row.get("video_height")
    if stated != (shot.width, shot.height):
        found = f"{shot.width}x{shot.height}"
        raise RecordError("bad_image", f"the screenshot is {found}, stated is {stated[0]}x{stated[1]}")
    return shot


def _perform(action: Mapping[str, Any], screen: Screen, hand: Hand) -> None:
    kind = _kind(action)
    if kind == "MouseAction":
        _mouse(action, screen, hand)
    elif kind == "KeyboardAction":
        _keyboard(action, hand)
    elif kind == "WaitAction":
        hand.wait()
    else:
        raise RecordError("unknown_action", f"unknown action {kind!r}, expected one of {', '.join(_ACTING)}")


def _mouse(action: Mapping[str, Any], screen: Screen, hand: Hand) -> None:
    kind, button = action.get("mouse_action_type"), action.get("mouse_button")
    point = None
    if action.get("mouse_position") is not None:
        point = _unit(action["mouse_position"], "mouse_position", screen)
    if kind in ("move", "drag") and point is None:
        raise RecordError("missing_field", "mouse_position is missing")
    if kind == "move":
        hand.move(point or (0, 0))
    elif kind in ("scroll_up", "scroll_down"):
        hand.scroll(str(kind).removeprefix("scroll_"), point)
    elif kind == "click" and button == "right":
        hand.click("right_click", point)
    elif kind in ("click", "double_click") and button in ("left", None):
        hand.click(str(kind), point)
    elif kind == "drag" and button in ("left", None):
        hand.drag_to(point or (0, 0))
    elif kind == "down" and button in ("left", None):
        hand.button_down(point)
    elif kind == "up" and button in ("left", None):
        hand.button_up(point)
    else:
        raise RecordError("unknown_action", f"{kind!r} of the {button!r} mouse button is no canonical action")


def _keyboard(action: Mapping[str, Any], hand: Hand) -> None:
    key, kind = action.get("keyboard_key"), action.get("keyboard_action_type")
    if kind is None:
        kind = "text" if key is None else "press"
    if kind in ("text", "input"):
        hand.type(read_text(action, "keyboard_text" if "keyboard_text" in action else "keyboard_input"))
    elif kind == "press":
        hand.press(_keys(action))
    elif kind in ("down", "up"):
        for name in _keys(action):
            (hand.key_down if kind == "down" else hand.key_up)(name)
    else:
        raise RecordError(
            "unknown_action", f"unknown keyboard action {kind!r}, expected press, text, down or up"
        )


def _keys(action: Mapping[str, Any]) -> list[str]:
    """Return the names of keys such as "Ctrl+A" or Control_L, without the side of the keyboard."""
    value = action.get("keyboard_key")
    if isinstance(value, list):
        names = [read_text({"keyboard_key": name}, "keyboard_key") for name in value]
    elif value == " ":
        names = ["space"]
    else:
        text = read_text(action, "keyboard_key")
        names = [text] if text.strip() == "+" else [name.strip() or "space" for name in text.split("+")]
    if not names:
        raise RecordError("missing_field", "keyboard_key is empty")
    return [_SIDES.sub("", name) for name in names]


def _unit(value: Any, what: str, screen: Screen) -> Point:
    position = as_object(value, what)
    x, y = number(position.get("width"), f"{what}.width"), number(position.get("height"), f"{what}.height")
    return x / screen.width, y / screen.height


def _area(actions: Sequence[Mapping[str, Any]], screen: Screen) -> Box | None:
    """Return the area that counts as right for the first action that has one, clipped to the screen."""
    given = next((action["clickable_area"] for action in actions if action.get("clickable_area")), None)
    if given is None:
        return None
    area = as_object(given, "clickable_area")
    (left, top), (right, bottom) = (
        _unit(area.get(f"{corner}_position"), f"{corner}_position", screen)
        for corner in ("upper_left", "lower_right")
    )
    return Screen(1, 1).box(left, top, right, bottom)


@contextmanager
def _in_file(file: Path) -> Iterator[None]:
    """Name the file in every RecordError that is raised within."""
    try:
        yield
    except RecordError as error:
        raise RecordError(error.reason, str(error), where=file.name) from error


_ACTING = ("MouseAction", "KeyboardAction", "WaitAction", *_TALK)
BUILDER = ScreenAgent
