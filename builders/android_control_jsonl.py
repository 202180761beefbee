"""AndroidControl's actions as plain JSON lines: no screenshots, no trees, no screen sizes.

A line is ``{"episode_id", "goal", "split", "actions": [...], "step_instructions": [...],
"candidate_bboxes": [[[left, top, right, bottom], ...], ...]}`` with one entry a step in each list, the
actions in AndroidControl's own vocabulary and pixels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solar_rl.builder import Sign
from solar_rl.errors import RecordError
from solar_rl.schema import Episode, Step

from .android_control import AndroidControl
from .android_control.jsonl import JsonlBuilder, first_rows, read_list
from .android_control.screen import LISTED, infer_screen, read_boxes, smallest_holding
from .android_control.vocabulary import each_step, optional_text, read_action, read_point, read_text


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
        return Episode(
            episode_id,
            source=self.name,
            platform="android",
            goal=read_text(row, "goal"),
            steps=steps,
            split=row.get("split") or "train",
            app=next(opened, None),
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


BUILDER = AndroidControlJsonl
