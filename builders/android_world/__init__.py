"""Recorded rollouts in AndroidWorld: json_actions, screenshots and accessibility forests, one episode a line.

AndroidWorld's own checkpoints are pickles, which run whatever they hold; so the container is ours: JSON lines, with
screenshots and forests as files beside them. ``docs/sources.md`` has the recipe that writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from solar_rl.builder import Sign
from solar_rl.config import Config, SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.interchange import Images
from solar_rl.peek import first_objects, some_files
from solar_rl.schema import Episode, Screenshot, Step

from .._episode_files import as_object
from ..android_control.forest import Forest, app_name
from ..android_control.jsonl import JsonlBuilder, read_list
from ..android_control.screen import Screen
from ..android_control.vocabulary import at_step, read_optional_text, read_text
from .actions import Done, Rectangle, elements_of, read_action, read_elements

CITATION = """@inproceedings{rawles2025androidworld,
  title     = {AndroidWorld: A Dynamic Benchmarking Environment for Autonomous Agents},
  author    = {Rawles, Christopher and Clinckemaillie, Sarah and Chang, Yifan and Waltz, Jonathan and Lau, Gabrielle
               and Fair, Marybeth and Li, Alice and Bishop, William and Li, Wei and Campbell-Ajala, Folawiyo
               and Toyama, Daniel and Berry, Robert and Tyamagundlu, Divya and Lillicrap, Timothy and Riva, Oriana},
  booktitle = {International Conference on Learning Representations},
  year      = {2025}
}"""
NAMED = "named_element"
"""What ``steps.box_rule`` calls the box of the element that an action names by its index."""


class Options(Config):
    """Options of builder ``android_world``."""

    files: str | None = None
    """Folder that the paths of screenshots and forests are relative to (default: that of the lines)."""
    unsuccessful: Literal["reject", "keep"] = "reject"
    """A rollout that didn't reach its goal: reject it, since it demonstrates no success, or keep it."""
    split: Literal["train", "validation", "test"] | None = None
    """Split of every rollout (default: the line's, else train)."""
    license: str | None = None
    """Licence of the rollouts, as the Hub spells it: they are yours."""


class AndroidWorld(JsonlBuilder):
    """Reads rollouts recorded in AndroidWorld, one a line; a shard is a file."""

    name = "android_world"
    homepage = "https://github.com/google-research/android_world"
    citation = CITATION
    Options = Options

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        if self.options.files is not None and not Path(self.options.files).is_dir():
            raise ConfigError("no such folder", where=f"source.options.files {self.options.files}")
        folder = self.path if self.path.is_dir() else self.path.parent
        self._files = Images(Path(self.options.files or folder))

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by steps that hold a json_action."""
        for file in [path] if path.is_file() else some_files(path, (".jsonl",))[:3]:
            for row in first_objects(file, 1):
                steps = row.get("steps")
                step = steps[0] if isinstance(steps, list) and steps and isinstance(steps[0], dict) else {}
                action = step.get("action")
                if (
                    isinstance(action, dict)
                    and "action_type" in action
                    and step.keys() & {"forest", "elements"}
                ):
                    return Sign(0.9, f"{file.name} holds steps with a json_action and a forest")
        return None

    def episode(self, row: dict[str, Any], episode_id: str) -> Episode:
        """Read one line as an episode.

        Raises:
            RecordError: What is broken, and at which step.
        """
        success = _success(row.get("success"))
        if success is False and self.options.unsuccessful == "reject":
            hint = "source.options.unsuccessful keep takes it as it is"
            raise RecordError("unsuccessful", "the rollout didn't reach its goal", hint=hint)
        rows = read_list(row, "steps", dict)
        if not rows:
            raise RecordError("no_steps", "the rollout has no steps")
        steps = _joined(self._steps(rows, row.get("screen")))
        split = self.options.split or row.get("split") or "train"
        return Episode(
            episode_id,
            source=self.name,
            platform="android",
            goal=read_text(row, "goal"),
            steps=steps,
            split=split if isinstance(split, str) else repr(split),
            app=next((s.action.app_name for s in steps if s.action.app_name), None)
            or _most_common_app(steps),
            license=self.options.license,
            category=read_optional_text(row, "task"),
            recorded_success=success,
        )

    def _steps(self, rows: Sequence[dict[str, Any]], size: Any) -> list[Step]:
        opened = [name for row in rows if isinstance(name := _fields(row).get("app_name"), str)]
        steps = []
        for index, row in enumerate(rows):
            with at_step(index):
                steps.append(self._step(index, row, size, opened))
        return steps

    def _step(self, index: int, row: Mapping[str, Any], size: Any, opened: Sequence[str]) -> Step:
        shot = self._screenshot(row)
        screen = Screen(shot.width, shot.height) if shot else _stated(size)
        data = self._files.read(name) if (name := read_optional_text(row, "forest")) else b""
        fields = as_object(row.get("action"), "action")
        done = read_action(fields, screen, _elements(row, fields, data))
        forest = Forest(data, screen)
        rule, boxes = _target(done, forest, screen)
        return Step(
            index,
            done.action,
            screen.width,
            screen.height,
            instruction=read_optional_text(row, "instruction"),
            screenshot=shot,
            screen_text=forest.text(),
            app=app_name(forest.package(), opened),
            target_box=boxes[0] if boxes else None,
            candidate_boxes=boxes,
            box_rule=rule,
            thought=read_optional_text(row, "thought"),
        )

    def _screenshot(self, row: Mapping[str, Any]) -> Screenshot | None:
        name = read_optional_text(row, "screenshot")
        if name is None:
            return None
        data = self._files.read(name)
        return Screenshot.of(data)


def _elements(row: Mapping[str, Any], fields: Mapping[str, Any], data: bytes) -> list[Rectangle | None]:
    """Return what an index counts: the recorded elements, else the forest's; nothing where there is no index."""
    if row.get("elements") is not None:
        return read_elements(row["elements"])
    return elements_of(data) if fields.get("index") is not None else []


def _target(done: Done, forest: Forest, screen: Screen) -> tuple[str | None, tuple[Any, ...]]:
    """Return which rule found the boxes of an action, and the boxes: the named element's, else the forest's."""
    if done.box is not None:
        return NAMED, (done.box,)
    x, y = done.action.x, done.action.y
    if x is None or y is None:
        return None, ()
    return forest.boxes(x * screen.width, y * screen.height)


def _joined(steps: list[Step]) -> tuple[Step, ...]:
    """Join an answer with the status right after it, which ends the episode: both are one ``finished``.

    Raises:
        RecordError: ``bad_value``: an answer or status that isn't the end.
    """
    if len(steps) > 1 and steps[-2].action.text is not None and _ends(steps[-2]) and _ends(steps[-1]):
        answer = replace(steps[-2].action, status=steps[-1].action.status)
        steps = [*steps[:-2], replace(steps[-2], action=answer)]
    for step in steps[:-1]:
        if _ends(step):
            raise RecordError(
                "bad_value", "an answer or status isn't the end", where=f"step {step.step_index}"
            )
    return tuple(steps)


def _ends(step: Step) -> bool:
    return step.action.action_type == "finished"


def _success(value: Any) -> bool | None:
    """Read is_successful: 1 is success, and less is none."""
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise RecordError(
            "bad_value", f"success is {value!r}, expected a number from 0 to 1, or true or false"
        )
    return value == 1


def _stated(size: Any) -> Screen:
    if size is None:
        raise RecordError("missing_field", "the step has no screenshot, and the rollout states no screen")
    whole = isinstance(size, list) and all(type(side) is int and 0 < side < 1 << 20 for side in size)
    if not whole or len(size) != 2:
        raise RecordError("bad_value", f"screen is {size!r}, expected [width, height]")
    return Screen(*size)


def _fields(row: Mapping[str, Any]) -> Mapping[str, Any]:
    action = row.get("action")
    return action if isinstance(action, dict) else {}


def _most_common_app(steps: Sequence[Step]) -> str | None:
    """Return the app that most steps are taken in, the earlier one when two tie."""
    counts = Counter(step.app for step in steps if step.app)
    return max(counts, key=lambda app: counts[app], default=None)


BUILDER = AndroidWorld
