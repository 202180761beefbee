"""OpenCUA's desktop demonstrations: AgentNet's trajectories and AgentNetBench's tasks.

AgentNet is one trajectory a line, each step pyautogui code with points in 0..1; the code is parsed and never run.
AgentNetBench is one JSON file a task, each step with the actions that are right, their boxes, and other options
that are right too. Step numbers have gaps in both, by design.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from solar_rl.actions import Action
from solar_rl.builder import Builder, Sign
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.lines import lines_before, read_lines
from solar_rl.peek import first_objects, some_files
from solar_rl.schema import Episode, Reject, Screenshot, Step

from .._episode_files import Shelf, as_object, in_order
from .._hand import Hand, HandOptions, Point, one_step_each
from ..android_control.jsonl import read_list
from ..android_control.screen import LISTED, smallest_holding
from ..android_control.vocabulary import at_step, read_json, read_optional_text, read_text
from .bench import Right, others, read_sequence
from .code import perform

CITATION = """@article{wang2025opencua,
  title   = {OpenCUA: Open Foundations for Computer-Use Agents},
  author  = {Wang, Xinyuan and Wang, Bowen and Lu, Dunjie and Yang, Junlin and Xie, Tianbao and Wang, Junli
             and others},
  journal = {arXiv preprint arXiv:2508.09123},
  year    = {2025}
}"""
_GOALS = ("instruction", "user_task_description", "natural_language_task", "high_level_task_description")
_ASSUMED = (1920, 1080)
_LINES, _FILES = (".jsonl",), (".json",)


class Options(HandOptions):
    """Options of builder ``opencua``."""

    images: str | None = None
    """Folder of the screenshots (default: the folder ``images`` beside the files)."""
    goal: str | None = None
    """Field that holds the goal (default: instruction, else user_task_description, natural_language_task)."""
    split: Literal["train", "validation", "test"] | None = None
    """Split of every episode (default: train for trajectories, test for the bench)."""
    incorrect_steps: Literal["reject", "keep"] = "reject"
    """An episode with a step that the source calls incorrect: reject it, or keep the step as a label."""
    redundant_steps: Literal["reject", "keep"] = "keep"
    """An episode with a step that the source calls redundant: reject it, or keep the step as a label."""
    triple_click: Literal["reject", "double_click"] = "reject"
    """A triple click, which is no canonical action: reject the episode, or take it for a double click."""
    missing_screenshots: Literal["reject", "keep"] = "reject"
    """A step whose screenshot isn't there: reject the episode, or keep the step without one."""


class _Place(NamedTuple):
    """Where a recorded step goes: its first index, its screenshot, and the size of the others' where it has none."""

    first: int
    shot: Screenshot | None
    known: tuple[int, int, str]

    def step(self, instruction: str | None, thought: str | None) -> Step:
        """Make a step whose action isn't read yet."""
        shot = self.shot
        width, height, origin = (shot.width, shot.height, "stated") if shot else self.known
        return Step(
            self.first,
            _NOTHING,
            width,
            height,
            instruction=instruction,
            screenshot=shot,
            screen_size=origin,
            thought=thought,
        )


class OpenCua(Builder):
    """Reads AgentNet's JSON lines and AgentNetBench's JSON files."""

    name = "opencua"
    license = "mit"
    homepage = "https://github.com/xlang-ai/OpenCUA"
    citation = CITATION
    Options = Options
    shard_bytes = 64 << 20
    """A file of lines is read in ranges of so many bytes."""

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        if self.options.images is not None and not Path(self.options.images).is_dir():
            raise ConfigError("no such folder", where=f"source.options.images {self.options.images}")
        if not self.source_files():
            raise ConfigError("holds no .jsonl or .json file", where=f"source.path {self.path}")
        images = self.options.images or self._folder / "images"
        self._shelf = Shelf(Path(images))

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by its trajectories of code, or by its steps with ground truths."""
        files = [path] if path.is_file() else some_files(path, (*_LINES, *_FILES))
        for file in files[:3]:
            for row in first_objects(file, 1):
                steps = row.get("traj", row.get("steps"))
                step = steps[0] if isinstance(steps, list) and steps and isinstance(steps[0], dict) else {}
                value = step.get("value")
                if "ground_truth_actions" in step or (isinstance(value, dict) and "code" in value):
                    return Sign(0.95, f"{file.name} holds steps of OpenCUA")
        return None

    @property
    def _folder(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    def source_files(self) -> list[Path]:
        """List the files; screenshots are told by their own hashes."""
        return some_files(self.path, (*_LINES, *_FILES)) if self.path.is_dir() else [self.path]

    def shards(self) -> list[str]:
        """List the files, a large one of lines as several ranges of bytes, such as ``a.jsonl:0-67108864``."""
        return [shard for file in self.source_files() for shard in self._ranges(file)]

    def _ranges(self, file: Path) -> Iterator[str]:
        size = file.stat().st_size
        if file.suffix not in _LINES or size <= self.shard_bytes:
            yield file.name
            return
        for start in range(0, size, self.shard_bytes):
            yield f"{file.name}:{start}-{min(size, start + self.shard_bytes)}"

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield each trajectory or task as an Episode, or as a Reject that says why not."""
        if not shard.endswith(_FILES):
            name, _, place = shard.rpartition(":") if ":" in shard else (shard, "", "0-")
            start, _, end = place.partition("-")
            yield from self._read_lines(self._folder / name, int(start), int(end) if end else None)
            return
        file = self._folder / shard
        yield self._read(file.read_bytes(), "the file", shard, f"task {file.stem}")

    def _read_lines(self, file: Path, start: int, end: int | None) -> Iterator[Episode | Reject]:
        before = lines_before(file, start)
        for number, line in read_lines(file, start, end):
            record = f"line {before + number}"
            if isinstance(line, RecordError):
                yield Reject(file.name, record, line.reason, str(line))
            else:
                yield self._read(line, "the line", file.name, record)

    def _read(self, data: bytes, what: str, file: str, record: str) -> Episode | Reject:
        episode_id = None
        try:
            row = read_json(data, what)
            episode_id = read_text(row, "task_id")
            return self._episode(row, episode_id)
        except RecordError as error:
            return Reject(file, record, error.reason, str(error), episode_id)

    def _episode(self, row: Mapping[str, Any], episode_id: str) -> Episode:
        bench = "traj" not in row
        rows = in_order(
            read_list(dict(row), "steps" if bench else "traj", dict), "step_num" if bench else "index"
        )
        if not rows:
            raise RecordError("no_steps", "the episode has no steps")
        completed = row.get("task_completed")
        return Episode(
            episode_id,
            source=self.name,
            platform="desktop",
            goal=read_text(row, self._goal_field(row)),
            steps=self._steps(rows, bench),
            split=self.options.split or ("test" if bench else "train"),
            license=self.license,
            recorded_success=completed if isinstance(completed, bool) else None,
        )

    def _goal_field(self, row: Mapping[str, Any]) -> str:
        if self.options.goal is not None:
            return str(self.options.goal)
        return next((name for name in _GOALS if row.get(name)), _GOALS[0])

    def _steps(self, rows: Sequence[dict[str, Any]], bench: bool) -> tuple[Step, ...]:
        shots: list[Screenshot | None] = []
        for index, row in enumerate(rows):
            with at_step(index):
                shots.append(self._screenshot(row))
        known = next(
            ((shot.width, shot.height, "inferred") for shot in shots if shot), (*_ASSUMED, "assumed")
        )
        read = self._bench_steps if bench else self._steps_of
        steps: list[Step] = []
        pointer: Point | None = None
        for index, (row, shot) in enumerate(zip(rows, shots, strict=True)):
            with at_step(index):
                made, pointer = read(row, _Place(len(steps), shot, known), pointer)
            steps += made
        return tuple(steps)

    def _screenshot(self, row: Mapping[str, Any]) -> Screenshot | None:
        name = read_text(row, "image")
        shot = self._shelf.find(name)
        if shot is None and self.options.missing_screenshots == "reject":
            hint = "source.options.images says where they lie, missing_screenshots keep goes without"
            raise RecordError("missing_image", f"screenshot {name} isn't there", hint=hint)
        return shot

    def _steps_of(
        self, row: Mapping[str, Any], place: _Place, pointer: Point | None
    ) -> tuple[list[Step], Point | None]:
        """Read one step of a trajectory."""
        value = as_object(row.get("value"), "value")
        for flag, bad, option in (
            ("correct", False, self.options.incorrect_steps),
            ("redundant", True, self.options.redundant_steps),
        ):
            if value.get(f"last_step_{flag}") is bad and option == "reject":
                reason = "incorrect_step" if flag == "correct" else "redundant_step"
                hint = f"source.options.{reason}s keep takes it as it is"
                raise RecordError(reason, f"the source says last_step_{flag}: {json.dumps(bad)}", hint=hint)
        hand = Hand(pointer)
        perform(read_text(value, "code"), hand, self.options.triple_click)
        told = place.step(read_optional_text(value, "action"), read_optional_text(value, "thought"))
        return self._told(told, Right(hand.actions(), ()), ()), hand.pointer

    def _bench_steps(
        self, row: Mapping[str, Any], place: _Place, pointer: Point | None
    ) -> tuple[list[Step], Point | None]:
        """Read one step of the bench: its right actions, and the other options."""
        clicks = self.options.triple_click
        right, after = read_sequence(row.get("ground_truth_actions"), pointer, clicks)
        options = row.get("alternative_options") or []
        if not isinstance(options, list):
            raise RecordError(
                "bad_value", f"alternative_options is {type(options).__name__}, expected a list"
            )
        rest = [read_sequence(option, pointer, clicks)[0] for option in options]
        said = as_object(row.get("inner_monologue") or {}, "inner_monologue")
        told = place.step(
            read_optional_text(said, "low_level_instruction"), read_optional_text(said, "thought")
        )
        return self._told(told, right, rest), after

    def _told(self, told: Step, right: Right, options: Sequence[Right]) -> list[Step]:
        def make(place: int, action: Action) -> Step:
            index = told.step_index + place
            if place or not (right.boxes or options):
                return replace(told, step_index=index, action=action)
            target = smallest_holding(right.boxes, action.x, action.y)
            return replace(
                told,
                step_index=index,
                action=action,
                target_box=target,
                candidate_boxes=right.boxes,
                box_rule=LISTED if target else None,
                alternatives=others(right, list(options)),
            )

        return one_step_each(right.actions, self.options.several_actions, make)


_NOTHING = Action("wait")
"""Stands in a step until its action is read."""

BUILDER = OpenCua
