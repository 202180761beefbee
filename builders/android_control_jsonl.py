"""AndroidControl's actions as plain JSON lines: no screenshots, no trees, no screen sizes.

A line is ``{"episode_id", "goal", "split", "actions": [...], "step_instructions": [...],
"candidate_bboxes": [[[left, top, right, bottom], ...], ...]}`` with one entry a step in each list, the
actions in AndroidControl's own vocabulary and pixels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from solar_rl.actions import Action
from solar_rl.builder import Sign
from solar_rl.errors import RecordError
from solar_rl.schema import Episode, Step

from .android_control import AndroidControl
from .android_control.jsonl import JsonlBuilder, first_rows, read_list
from .android_control.plain import Edges, Number, Odd, plain_id, plain_text
from .android_control.screen import LISTED, infer_screen, place_boxes, read_boxes, smallest_holding
from .android_control.vocabulary import each_step, optional_text, read_action, read_point, read_text

_FIXED = {
    "navigate_home": Action("press", button="home"),
    "navigate_back": Action("press", button="back"),
    "wait": Action("wait"),
}


class _PlainAction(msgspec.Struct, gc=False):
    action_type: Literal[
        "click", "long_press", "scroll", "input_text", "open_app", "navigate_home", "navigate_back", "wait"
    ]
    x: Number | None = None
    y: Number | None = None
    direction: Literal["up", "down", "left", "right"] | None = None
    text: str | None = None
    app_name: str | None = None


class _PlainLine(msgspec.Struct, gc=False):
    episode_id: int | str
    goal: str
    actions: list[_PlainAction]
    step_instructions: list[str | None]
    candidate_bboxes: list[list[Edges]]
    split: str | None = None


_PLAIN = msgspec.json.Decoder(_PlainLine)


class AndroidControlJsonl(JsonlBuilder):
    """Reads episodes in AndroidControl's vocabulary, one a line.

    The screen's size isn't stated and so is inferred from the episode's points. A point that lies
    outside it all the same is kept; such a step stays unscored.
    """

    name = "android_control_jsonl"
    license = AndroidControl.license
    homepage = AndroidControl.homepage
    citation = AndroidControl.citation
    known_private = AndroidControl.known_private

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by its three lists of equal length."""
        keys = {"actions", "step_instructions", "candidate_bboxes"}
        fits = [name for name, row in first_rows(path) if keys <= row.keys()]
        return Sign(0.95, f"{fits[0]} holds lines with {', '.join(sorted(keys))}") if fits else None

    def episode(self, row: dict[str, Any], episode_id: str) -> Episode:
        """Read one line as an episode.

        Raises:
            RecordError: What is broken, and at which step.
        """
        steps = self._steps(row)
        opened = (step.action.app_name for step in steps if step.action.app_name)
        return self._episode(episode_id, read_text(row, "goal"), steps, row.get("split"), next(opened, None))

    def plain_episode(self, line: bytes) -> Episode:
        """Read a plain line."""
        row = _PLAIN.decode(line)
        if not len(row.actions) == len(row.step_instructions) == len(row.candidate_bboxes) != 0:
            raise Odd
        steps, app = _plain_steps(row)
        return self._episode(plain_id(row.episode_id), plain_text(row.goal), steps, row.split, app)

    def _episode(
        self, episode_id: str, goal: str, steps: tuple[Step, ...], split: str | None, app: str | None
    ) -> Episode:
        return Episode(
            episode_id,
            source=self.name,
            platform="android",
            goal=goal,
            steps=steps,
            split=split or "train",
            app=app,
            license=self.license,
        )

    def _steps(self, row: dict[str, Any]) -> tuple[Step, ...]:
        actions = read_list(row, "actions", dict)
        instructions = read_list(row, "step_instructions", object)
        boxes = read_list(row, "candidate_bboxes", list)
        if not actions:
            raise RecordError("no_steps", "the episode has no actions")
        if not len(actions) == len(instructions) == len(boxes):
            lengths = f"{len(actions)} actions, {len(instructions)} step_instructions"
            message = f"{lengths} and {len(boxes)} candidate_bboxes, expected the same number of each"
            raise RecordError("lengths_mismatch", message)
        points = each_step(actions, lambda _, fields: read_point(fields))
        screen = infer_screen(point for point in points if point)

        def step(index: int, fields: dict[str, Any]) -> Step:
            action = read_action(fields, points[index], screen)
            candidates = read_boxes(boxes[index], screen)
            target = smallest_holding(candidates, action.x, action.y)
            return Step(
                index,
                action,
                screen.width,
                screen.height,
                instruction=optional_text(instructions[index], "step_instruction"),
                target_box=target,
                candidate_boxes=candidates,
                screen_size=screen.origin,
                box_rule=LISTED if target else None,
            )

        return tuple(each_step(actions, step))


def _plain_steps(row: _PlainLine) -> tuple[tuple[Step, ...], str | None]:
    """Return the steps, and the first app that they open."""
    screen = infer_screen([(a.x or 0, a.y or 0) for a in row.actions])
    width, height, origin = screen
    steps, app = [], None
    for index, fields in enumerate(row.actions):
        action = _plain_action(fields, width, height)
        boxes, target = place_boxes(row.candidate_bboxes[index], screen, action.x, action.y)
        instruction = row.step_instructions[index]
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
        )
        steps.append(step)
        app = app or action.app_name
    return tuple(steps), app


def _plain_action(fields: _PlainAction, width: int, height: int) -> Action:
    kind, x, y = fields.action_type, fields.x, fields.y
    if kind == "click" or kind == "long_press":
        if x is None or y is None:
            raise Odd
        return Action(kind, x / width, y / height)
    if x is not None or y is not None:
        raise Odd  # the screen is inferred from points of clicks alone
    if kind == "scroll":
        return Action("scroll", direction=fields.direction)
    if kind == "input_text":
        return Action("input_text", text=plain_text(fields.text))
    if kind == "open_app":
        return Action("open_app", app_name=plain_text(fields.app_name))
    return _FIXED[kind]


BUILDER = AndroidControlJsonl
