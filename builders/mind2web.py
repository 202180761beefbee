"""Mind2Web with screenshots (Multimodal-Mind2Web): web tasks, one action a row of its parquet files.

A screenshot shows the whole page, not a window of it. What is recorded is an element, not a point: the label is the
middle of the element's box. One recorded operation is one step: TYPE and SELECT, which mean "focus the element,
then give it this text", are ``input_text`` with the element's point and box kept beside the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from solar_rl.actions import Action, Box
from solar_rl.config import Config
from solar_rl.errors import RecordError
from solar_rl.schema import Alternative, Episode, Reject, Screenshot, Step

from ._parquet import ParquetBuilder, image_bytes, open_file, read_rows
from .android_control.screen import Screen, number
from .android_control.vocabulary import at_step, read_json, read_optional_text, read_text

CITATION = """@inproceedings{deng2023mind2web,
  title     = {Mind2Web: Towards a Generalist Agent for the Web},
  author    = {Deng, Xiang and Gu, Yu and Zheng, Boyuan and Chen, Shijie and Stevens, Sam and Wang, Boshi
               and Sun, Huan and Su, Yu},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2023}
}
@inproceedings{zheng2024seeact,
  title     = {GPT-4V(ision) is a Generalist Web Agent, if Grounded},
  author    = {Zheng, Boyuan and Gou, Boyu and Kil, Jihyung and Sun, Huan and Su, Yu},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}"""
COLUMNS = (
    "annotation_id", "action_uid", "target_action_index", "operation", "pos_candidates", "screenshot",
    "confirmed_task", "website", "domain", "subdomain", "target_action_reprs",
)  # fmt: skip
_PART = re.compile(r"^(?P<split>.+?)-\d+-of-\d+$")
ORIGINAL, MARKED = "original_target", "marked_element"


class Options(Config):
    """Options of builder ``mind2web``."""

    untargeted: Literal["reject", "cut"] = "reject"
    """A step none of whose right elements is on the page: reject the episode, or end it before that step (what is
    left out is told as a reject)."""
    select_as: Literal["input_text", "click"] = "input_text"
    """What SELECT is read as: the option's text, given to the element, or a click on the element alone."""


class Element(NamedTuple):
    """One right element: its box on the page and whether it is the very one that was recorded."""

    box: Box
    original: bool

    @property
    def middle(self) -> tuple[float, float]:
        """Return the middle of the box."""
        return (self.box.x1 + self.box.x2) / 2, (self.box.y1 + self.box.y2) / 2


class Mind2Web(ParquetBuilder):
    """Reads the parquet files of Multimodal-Mind2Web; a shard is a file, with its last task read to the end."""

    name = "mind2web"
    license = "openrail"
    homepage = "https://huggingface.co/datasets/osunlp/Multimodal-Mind2Web"
    citation = CITATION
    marks = ("annotation_id", "pos_candidates", "screenshot")
    Options = Options

    @cached_property
    def _parts(self) -> dict[str, list[Path]]:
        """Files of each split, in their order."""
        parts: dict[str, list[Path]] = {}
        for file in self.source_files():
            parts.setdefault(_split(file), []).append(file)
        return parts

    def shards(self) -> list[str]:
        """List the files by name."""
        return [file.name for file in self.source_files()]

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield each task that begins in a file as an Episode, or as a Reject that says why not.

        A task may go on in the next file, since files are cut by rows.
        """
        file = next(file for file in self.source_files() if file.name == shard)
        files = self._parts[_split(file)]
        place = files.index(file)
        try:
            begun = _last_task(files[place - 1]) if place else None
            for task, rows in groupby(_rows(files[place:]), key=lambda row: row[1].get("annotation_id")):
                collected = list(rows)
                if collected[0][0] != file:
                    return
                if task is None or task != begun:
                    yield from self._task(task, [row for _, row in collected], file)
        except RecordError as error:
            yield Reject(shard, "the file", error.reason, str(error))

    def _task(self, task: Any, rows: Sequence[Mapping[str, Any]], file: Path) -> Iterator[Episode | Reject]:
        record = f"task {task}"
        try:
            episode_id = read_text({"annotation_id": task}, "annotation_id")
            steps, left_out = self._steps(_in_order(rows))
            if left_out is not None:
                yield Reject(file.name, record, left_out.reason, str(left_out), episode_id)
            yield self._episode(episode_id, rows[0], steps, _split(file))
        except RecordError as error:
            yield Reject(file.name, record, error.reason, str(error), task if isinstance(task, str) else None)

    def _episode(self, episode_id: str, row: Mapping[str, Any], steps: Sequence[Step], split: str) -> Episode:
        kinds = (read_optional_text(row, name) for name in ("domain", "subdomain"))
        return Episode(
            episode_id,
            source=self.name,
            platform="web",
            goal=read_text(row, "confirmed_task"),
            steps=tuple(steps),
            split="test" if split.startswith("test") else "train",
            app=read_optional_text(row, "website"),
            license=self.license,
            category=" / ".join(kind for kind in kinds if kind) or None,
            subsplits=(split,) if split.startswith("test_") else (),
        )

    def _steps(self, rows: Sequence[Mapping[str, Any]]) -> tuple[list[Step], RecordError | None]:
        """Return the steps, and why they end early where they do."""
        steps: list[Step] = []
        for index, row in enumerate(rows):
            try:
                with at_step(index):
                    steps.append(self._step(index, row))
            except RecordError as error:
                if error.reason != "no_target" or self.options.untargeted == "reject" or not steps:
                    raise
                message = f"{error.message}; the episode ends before it"
                return steps, RecordError(error.reason, message, where=error.where)
        return steps, None

    def _step(self, index: int, row: Mapping[str, Any]) -> Step:
        data = image_bytes(row.get("screenshot"), "screenshot")
        shot = Screenshot.of(data)
        size = shot.encoded_size
        elements = _elements(row.get("pos_candidates"), Screen(*size))
        if not elements:
            message = "no right element has a box on the page"
            raise RecordError(
                "no_target", message, hint="source.options.untargeted cut ends the episode there"
            )
        target = next((element for element in elements if element.original), elements[0])
        action = self._action(read_json(row.get("operation") or "null", "operation"), target)
        around = tuple(element.box for element in elements if element.box.contains(*target.middle))
        return Step(
            index,
            action,
            *size,
            instruction=read_optional_text(row, "target_action_reprs"),
            screenshot=shot,
            target_box=target.box,
            candidate_boxes=around,
            box_rule=ORIGINAL if target.original else MARKED,
            alternatives=_others(elements, target, action),
        )

    def _action(self, operation: Mapping[str, Any], target: Element) -> Action:
        kind, (x, y) = operation.get("op"), target.middle
        if kind == "CLICK" or (kind == "SELECT" and self.options.select_as == "click"):
            return Action("click", x, y)
        if kind in ("TYPE", "SELECT"):
            return Action("input_text", x, y, text=read_text(operation, "value"))
        raise RecordError("unknown_action", f"unknown operation {kind!r}, expected CLICK, TYPE or SELECT")


def _split(file: Path) -> str:
    found = _PART.match(file.stem)
    return found["split"] if found else file.stem


def _rows(files: Sequence[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in files:
        for row in read_rows(file, COLUMNS):
            yield file, row


def _last_task(file: Path) -> Any:
    """Return the task of a file's last row."""
    last = None
    for row in read_rows(file, ["annotation_id"], [max(open_file(file).metadata.num_row_groups - 1, 0)]):
        last = row["annotation_id"]
    return last


def _in_order(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort a task's rows by their numbers; a gap is an action that the release left out."""
    numbered: dict[int, Mapping[str, Any]] = {}
    for row in rows:
        text = str(row.get("target_action_index"))
        if not text.isascii() or not text.isdigit():
            raise RecordError("bad_number", f"target_action_index is {row.get('target_action_index')!r}")
        if int(text) in numbered:
            raise RecordError("repeated_step", f"target_action_index {text} is there twice")
        numbered[int(text)] = row
    return [numbered[place] for place in sorted(numbered)]


def _elements(value: Any, page: Screen) -> list[Element]:
    """Return the right elements that have a box on the page, the recorded one first, then the smaller ones."""
    if value is not None and not isinstance(value, list):
        raise RecordError("bad_value", f"pos_candidates is {type(value).__name__}, expected a list")
    found = []
    for item in value or ():
        candidate = item if isinstance(item, dict) else read_json(item or "null", "a right element")
        box = _box(candidate, page)
        if box is not None:
            found.append(Element(box, candidate.get("is_original_target") is True))
    return sorted(
        dict.fromkeys(found), key=lambda element: (not element.original, element.box.area, element.box)
    )


def _box(candidate: Mapping[str, Any], page: Screen) -> Box | None:
    """Return an element's box; None for one that isn't drawn, or lies beside the page."""
    attributes = candidate.get("attributes") or "{}"
    if not isinstance(attributes, dict):
        attributes = read_json(attributes, "an element's attributes")
    rectangle = read_optional_text(attributes, "bounding_box_rect")
    if rectangle is None:
        return None
    try:
        edges = [number(float(edge), "an edge of a box") for edge in rectangle.split(",")]
    except ValueError as error:
        raise RecordError("bad_box", f"bounding_box_rect is {rectangle[:80]!r}") from error
    if len(edges) != 4:
        raise RecordError(
            "bad_box", f"bounding_box_rect is {rectangle[:80]!r}, expected left,top,width,height"
        )
    left, top, width, height = edges
    return page.box(left, top, left + width, top + height) if width > 0 and height > 0 else None


def _others(elements: Sequence[Element], target: Element, action: Action) -> tuple[Alternative, ...]:
    """Return the same operation on the other right elements that lie elsewhere on the page."""
    if action.action_type != "click":
        return ()
    beside = (element for element in elements if not element.box.contains(*target.middle))
    return tuple(Alternative(Action("click", *element.middle), element.box) for element in beside)


BUILDER = Mind2Web
