"""UI-S1's lines: AndroidControl episodes in the vocabulary of Qwen's mobile_use tool.

There are three kinds. Lines for evaluation carry ``check_options`` with candidate boxes and a swipe's
direction, and end with the last recorded action; lines for training carry one box and end with
``terminate``; lines with thoughts carry a ``thought`` a step and end with ``terminate`` too. Screenshots are
named but lie elsewhere: option ``images`` says where.

A swipe is written as a path through the middle of the screen, which is the converter's and not the
expert's. The direction is what AndroidControl recorded: the content's. Paths don't agree with it in one
way: for evaluation and with thoughts vertical ones follow the finger and horizontal ones the content, for
training the vertical ones follow the content. Each path is turned so that it is the finger's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from solar_rl.actions import Action, opposite, path_direction
from solar_rl.builder import Sign
from solar_rl.config import Config, SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.schema import Episode, Screenshot, Step

from ._ui_s1_plain import NO_CHECKS, PLAIN, PlainChecks, PlainContent, PlainStep, plain_boxes
from .android_control import AndroidControl
from .android_control.jsonl import JsonlBuilder, first_rows, read_list
from .android_control.plain import Odd, plain_id, plain_text
from .android_control.screen import (
    LARGE,
    LISTED,
    Screen,
    infer_screen,
    number,
    place_boxes,
    read_boxes,
    smallest_holding,
)
from .android_control.vocabulary import (
    Point,
    each_step,
    point_action,
    read_direction,
    read_optional_text,
    read_text,
)

CITATION = """@article{lu2025uis1,
  title   = {UI-S1: Advancing GUI Automation via Semi-online Reinforcement Learning},
  author  = {Lu, Zhengxi and Ye, Jiabo and Tang, Fei and Shen, Yongliang and Xu, Haiyang and Zheng, Ziwei
             and Lu, Weiming and Yan, Ming and Huang, Fei and Xiao, Jun and Zhuang, Yueting},
  journal = {arXiv preprint arXiv:2509.11543},
  year    = {2025}
}"""

_POINTS = ("coordinate", "coordinate2")
Points = dict[str, Point]
"""Points of a step in pixels, by the names that they have in the line."""
Content = tuple[dict[str, Any], Points]
_BUTTONS = {"Back": "back", "Home": "home", "Enter": "enter"}
_STATUSES = {"success": "complete", "failure": "infeasible"}
_WAIT = Action("wait")
_PRESSES = {name: Action("press", button=button) for name, button in _BUTTONS.items()}
_ENDS = {name: Action("finished", status=status) for name, status in _STATUSES.items()}
_ACTIONS = ("click", "long_press", "swipe", "type", "open", "wait", "system_button", "terminate")


class Options(Config):
    """Options of builder ``ui_s1``."""

    images: str | None = None
    """Folder of the screenshots, named ``<episode>_<step>.png`` (default: none are read)."""
    variant: Literal["auto", "evaluation", "training", "thoughts"] = "auto"
    """Which kind of lines: decides how a swipe's path is read. auto: evaluation where a step has
    ``check_options``, thoughts where one has ``thought``, else training."""
    split: Literal["train", "validation", "test"] | None = None
    """Split of every episode (default: test for evaluation lines, train for the others)."""
    swipe_paths: bool = True
    """Keep a swipe's path. Off: a scroll is its direction alone, as AndroidControl recorded it."""
    unsuccessful: Literal["reject", "keep"] = "reject"
    """What becomes of a line with ``is_successful: false``: a reject, or an episode whose
    ``recorded_success`` is false."""
    descriptions: bool = False
    """Take ``action_description``, which a model wrote, as the instruction of a step that has none."""


class UiS1(JsonlBuilder):
    """Reads UI-S1's lines for evaluation, for training, and with thoughts."""

    name = "ui_s1"
    license = "mit"
    homepage = "https://github.com/X-PLUG/MobileAgent/tree/main/UI-S1"
    citation = CITATION + "\n" + AndroidControl.citation
    known_private = AndroidControl.known_private
    Options = Options

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        if self.options.images is not None and not Path(self.options.images).is_dir():
            raise ConfigError("no such folder", where=f"source.options.images {self.options.images}")

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by the objects ``action_content`` of its steps."""
        for name, row in first_rows(path):
            steps = row.get("steps")
            if (
                isinstance(steps, list)
                and steps
                and isinstance(steps[0], dict)
                and "action_content" in steps[0]
            ):
                return Sign(0.95, f"{name} holds lines whose steps have action_content")
        return None

    def episode_id(self, row: dict[str, Any], number: int) -> str:
        """Return the line's id; all but evaluation lines have it in their screenshots' names only."""
        if "episode_id" in row:
            return super().episode_id(row, number)
        names = [_screenshot_name(step) for step in read_list(row, "steps", dict)[:1]]
        return names[0].rpartition("_")[0] if names and "_" in names[0] else f"line-{number}"

    def episode(self, row: dict[str, Any], episode_id: str) -> Episode:
        """Read one line as an episode.

        Raises:
            RecordError: What is broken, and at which step.
        """
        success = row.get("is_successful")
        if success is not None and not isinstance(success, bool):
            raise RecordError("bad_value", f"is_successful is {success!r}, expected true or false")
        if success is False and self.options.unsuccessful == "reject":
            raise RecordError("unsuccessful", "the episode is marked as not successful")
        rows = read_list(row, "steps", dict)
        if not rows:
            raise RecordError("no_steps", "the episode has no steps")
        variant = self._variant(rows)
        return self._episode(episode_id, read_text(row, "goal"), self._steps(rows, variant), variant, success)

    def _episode(
        self, episode_id: str, goal: str, steps: list[Step], variant: str, success: bool | None
    ) -> Episode:
        return Episode(
            episode_id,
            source=self.name,
            platform="android",
            goal=goal,
            steps=tuple(steps),
            split=self.options.split or ("test" if variant == "evaluation" else "train"),
            app=next((step.action.app_name for step in steps if step.action.app_name), None),
            license=self.license,
            recorded_success=success,
        )

    def plain_episode(self, line: bytes) -> Episode:
        """Read a plain line of an episode whose screenshots aren't read, and that names its id."""
        row = PLAIN.decode(line)
        rows, success = row.steps, row.is_successful
        left_out = success is False and self.options.unsuccessful == "reject"
        if left_out or not rows or row.episode_id is UNSET or self.options.images is not None:
            raise Odd
        variant = self._plain_variant(rows)
        steps = self._plain_steps(rows, variant)
        return self._episode(plain_id(row.episode_id), plain_text(row.goal), steps, variant, success)

    def _plain_variant(self, rows: list[PlainStep]) -> str:
        if self.options.variant != "auto":
            return str(self.options.variant)
        if any(row.check_options is not UNSET for row in rows):
            return "evaluation"
        return "thoughts" if any(row.thought is not UNSET for row in rows) else "training"

    def _plain_steps(self, rows: list[PlainStep], variant: str) -> list[Step]:
        described = self.options.descriptions
        contents = [row.action_content for row in rows]
        screen = _infer([(content.coordinate, content.coordinate2) for content in contents])
        width, height, origin = screen
        steps = []
        for index, row in enumerate(rows):
            content, checks = contents[index], row.check_options or NO_CHECKS
            action = self._plain_action(content, checks, screen, variant)
            boxes, target = place_boxes(plain_boxes(content, checks), screen, action.x, action.y)
            instruction, thought = row.step_instruction, row.thought
            if not (instruction and instruction.strip()):
                instruction = row.action_description if described else None
            step = Step(
                index,
                action,
                width,
                height,
                instruction=instruction if instruction and instruction.strip() else None,
                target_box=target,
                candidate_boxes=boxes,
                screen_size=origin,
                box_rule=LISTED if target else None,
                thought=thought if thought and thought.strip() else None,
            )
            steps.append(step)
        return steps

    def _plain_action(
        self, content: PlainContent, checks: PlainChecks, screen: Screen, variant: str
    ) -> Action:
        kind, start, end = content.action, content.coordinate, content.coordinate2
        if kind == "click" or kind == "long_press":
            if start is UNSET:
                raise Odd
            return Action(kind, start[0] / screen.width, start[1] / screen.height)
        if kind == "swipe":
            if start is UNSET or end is UNSET:
                raise Odd
            return self._scroll(start, end, checks.direction or None, screen, variant)
        if kind == "type":
            return Action("input_text", text=plain_text(content.text))
        if kind == "open":
            return Action("open_app", app_name=plain_text(content.text))
        if kind == "wait":
            return _WAIT
        if kind == "system_button" and content.button is not None:
            return _PRESSES[content.button]
        if kind == "terminate" and content.status is not None:
            return _ENDS[content.status]
        raise Odd

    def _variant(self, rows: list[dict[str, Any]]) -> str:
        if self.options.variant != "auto":
            return str(self.options.variant)
        marks = {"check_options": "evaluation", "thought": "thoughts"}
        return next((kind for mark, kind in marks.items() if any(mark in row for row in rows)), "training")

    def _steps(self, rows: list[dict[str, Any]], variant: str) -> list[Step]:
        contents = each_step(rows, lambda _, row: _content(row))
        inferred = _infer([tuple(points.get(name, UNSET) for name in _POINTS) for _, points in contents])
        return each_step(rows, lambda index, row: self._step(index, row, contents[index], inferred, variant))

    def _step(
        self, index: int, row: dict[str, Any], content: Content, inferred: Screen, variant: str
    ) -> Step:
        screenshot = self._screenshot(row)
        screen = Screen(screenshot.width, screenshot.height) if screenshot else inferred
        fields, points = content
        checks = _object(row, "check_options") if "check_options" in row else {}
        action = self._action(fields, points, checks, screen, variant)
        boxes = read_boxes(checks.get("candidate_bbox", fields.get("bbox")), screen)
        target = smallest_holding(boxes, action.x, action.y)
        return Step(
            index,
            action,
            screen.width,
            screen.height,
            instruction=self._instruction(row),
            screenshot=screenshot,
            target_box=target,
            candidate_boxes=boxes,
            screen_size=screen.origin,
            box_rule=LISTED if target else None,
            thought=read_optional_text(row, "thought"),
        )

    def _instruction(self, row: dict[str, Any]) -> str | None:
        described = read_optional_text(row, "action_description") if self.options.descriptions else None
        return read_optional_text(row, "step_instruction") or described

    def _screenshot(self, row: dict[str, Any]) -> Screenshot | None:
        if self.options.images is None:
            return None
        file = Path(self.options.images, _screenshot_name(row))
        try:
            data = file.read_bytes()
        except OSError as error:
            raise RecordError("missing_image", f"screenshot {file.name} can't be read: {error}") from error
        return Screenshot.of(data)

    def _action(
        self, content: dict[str, Any], points: Points, checks: dict[str, Any], screen: Screen, variant: str
    ) -> Action:
        kind = content.get("action")
        if kind in ("click", "long_press"):
            return point_action(kind, *_given(points, "coordinate"), screen)
        if kind == "swipe":
            start, end = _given(points, "coordinate"), _given(points, "coordinate2")
            direction = read_direction(checks) if "direction" in checks else None
            return self._scroll(start, end, direction, screen, variant)
        if kind == "type":
            return Action("input_text", text=read_text(content, "text"))
        if kind == "open":
            return Action("open_app", app_name=read_text(content, "text"))
        if kind == "wait":
            return Action("wait")
        if kind == "system_button":
            return Action("press", button=_choice(content, "button", _BUTTONS))
        if kind == "terminate":
            return Action("finished", status=_choice(content, "status", _STATUSES))
        raise RecordError("unknown_action", f"unknown action {kind!r}, expected one of {', '.join(_ACTIONS)}")

    def _scroll(
        self, start: Point, end: Point, direction: str | None, screen: Screen, variant: str
    ) -> Action:
        along = path_direction(*start, *end)
        if direction is None:
            follows_finger = variant != "training" and along in ("up", "down")
            direction = opposite(along) if follows_finger else along
        if not self.options.swipe_paths:
            return Action("scroll", direction=direction)
        if along == direction:
            start, end = end, start
        (x, y), (x2, y2) = start, end
        width, height = screen.width, screen.height
        return Action("scroll", x / width, y / height, x2 / width, y2 / height, direction=direction)


def _object(row: dict[str, Any], name: str) -> dict[str, Any]:
    value = row.get(name)
    if value is None:
        raise RecordError("missing_field", f"{name} is missing")
    if not isinstance(value, dict):
        raise RecordError("bad_value", f"{name} is {type(value).__name__}, expected an object")
    return value


def _content(row: dict[str, Any]) -> Content:
    """Return what a step does, with the points that it names."""
    content = _object(row, "action_content")
    return content, {name: _point(content[name], name) for name in _POINTS if name in content}


def _point(value: Any, name: str) -> Point:
    if value is None:
        raise RecordError("missing_field", f"{name} is missing")
    if not isinstance(value, list) or len(value) != 2:
        raise RecordError("bad_number", f"{name} is {value!r}, expected [x, y]")
    return number(value[0], "x"), number(value[1], "y")


def _given(points: Points, name: str) -> Point:
    if name not in points:
        raise RecordError("missing_field", f"{name} is missing")
    return points[name]


def _choice(content: dict[str, Any], name: str, choices: dict[str, str]) -> str:
    value = read_text(content, name)
    if value not in choices:
        raise RecordError("bad_value", f"{name} is {value!r}, expected one of {', '.join(choices)}")
    return choices[value]


def _screenshot_name(row: dict[str, Any]) -> str:
    return read_text(row, "screenshot").rstrip("/").rpartition("/")[2]


def _infer(named: list[tuple[Point | UnsetType, ...]]) -> Screen:
    """Infer the size from the points, and from swipes: the two ends of a path add up to the screen."""
    points: list[Point] = []
    sums = set()
    for start, end in named:
        if start is not UNSET:
            points.append(start)
        if end is not UNSET:
            points.append(end)
            if start is not UNSET:
                sums.add((round(start[0] + end[0]), round(start[1] + end[1])))
    return LARGE if LARGE[:2] in sums else infer_screen(points)


BUILDER = UiS1
