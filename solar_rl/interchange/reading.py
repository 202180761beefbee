"""Turn a line of the interchange format into an Episode, its screenshots read from beside the file."""

from __future__ import annotations

import os
import re
from pathlib import Path

from solar_rl.actions import Action, Box, make_box
from solar_rl.errors import ActionError, RecordError
from solar_rl.interchange.decoding import parse_line
from solar_rl.interchange.model import (
    Edges,
    InterchangeAction,
    InterchangeEpisode,
    InterchangeStep,
)
from solar_rl.schema import Alternative, Episode, Screenshot, Step

SOURCE = "jsonl"
"""Name of a source that states none."""
_DRIVE = re.compile(r"[A-Za-z]:")


class Images:
    """Finds screenshots below one folder, and nowhere else: a line can't make a build read other files.

    Args:
        folder: Images are named relative to it.
        follow_links: Take symbolic links that lead out of the folder.
    """

    def __init__(self, folder: Path, follow_links: bool = False) -> None:
        self._folder, self._root, self._follow_links = str(folder), os.path.realpath(folder), follow_links
        self._known_inside: set[str] = set()

    def read(self, name: str) -> bytes:
        """Read one image.

        Raises:
            RecordError: ``bad_path``: the name is absolute, holds ``..`` or a backslash, or leads out of the
                folder; ``missing_image``: there is no such file, or it can't be read.
        """
        _check_name(name)
        path = f"{self._folder}/{name}"
        if not self._follow_links and self._leads_out(path):
            hint = "option follow_links allows that"
            raise RecordError("bad_path", f"{name!r} is a link that leads out of the folder", hint=hint)
        try:
            if not os.path.isfile(path):
                raise RecordError("missing_image", f"no such image: {name!r}")
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise RecordError("missing_image", f"image {name!r} can't be read: {error.strerror}") from error

    def _leads_out(self, path: str) -> bool:
        """Follow every link in a path; a folder that was found inside is not asked again."""
        folder = os.path.dirname(path)
        if folder in self._known_inside and not os.path.islink(path):
            return False
        if not self._is_inside(os.path.realpath(path)):
            return True
        if self._is_inside(os.path.realpath(folder)):
            self._known_inside.add(folder)
        return False

    def _is_inside(self, real: str) -> bool:
        return real == self._root or real.startswith(self._root.rstrip("/") + "/")


def _check_name(name: str) -> None:
    if not name or "\0" in name or name.startswith("/") or _DRIVE.match(name):
        raise RecordError("bad_path", f"{name!r} is no path relative to the file's folder")
    if "\\" in name:
        raise RecordError("bad_path", f"{name!r} holds a backslash", hint="write forward slashes")
    if ".." in name.split("/"):
        raise RecordError("bad_path", f"{name!r} leaves the file's folder")


def read_line(line: bytes | str, images: Images, license: str | None = None) -> Episode:
    """Read one line as an episode.

    Args:
        line: One JSON object (docs/interchange.md).
        images: Where its screenshots lie.
        license: Licence of an episode that states none.

    Raises:
        RecordError: What is broken; ``where`` is the key.
    """
    return to_episode(parse_line(line), images, license)


def to_episode(row: InterchangeEpisode, images: Images, license: str | None = None) -> Episode:
    """Turn a parsed line into an episode.

    Raises:
        RecordError: What is broken; ``where`` is the key.
    """
    episode_id = str(row.episode_id)
    if not row.steps:
        raise RecordError("no_steps", "the episode has no steps", where="steps")
    index, steps = 0, []
    try:
        for index, step in enumerate(row.steps):
            steps.append(_step(index, step, row, images))
    except RecordError as error:
        raise _within(f"steps.{index}", error) from error
    return Episode(
        episode_id,
        source=row.source or SOURCE,
        platform=row.platform,
        goal=row.goal,
        steps=tuple(steps),
        split=row.split,
        app=row.app,
        license=row.license or license,
        category=row.category,
        subsplits=row.subsplits,
        recorded_success=row.recorded_success,
    )


def _step(index: int, step: InterchangeStep, row: InterchangeEpisode, images: Images) -> Step:
    if step.step_index not in (None, index):
        raise RecordError("step_gap", f"is {step.step_index}, expected {index}", where="step_index")
    screenshot = _screenshot(step, images)
    width, height = _screen(step, row, screenshot)
    scale = (float(width), float(height)) if row.coordinates == "pixels" else (1.0, 1.0)
    action = _action(step.action, scale)
    if row.coordinates == "unit" and step.screen_size == "stated" and action.off_screen:
        message = f"{(action.x, action.y)} lies outside the unit square"
        hint = "are these pixels? then say coordinates: pixels"
        raise RecordError("off_screen", message, where="action", hint=hint)
    return Step(
        index,
        action,
        width,
        height,
        instruction=step.instruction,
        screenshot=screenshot,
        screen_text=step.screen_text,
        app=step.app,
        target_box=_named_box("target_box", step.target_box, scale),
        candidate_boxes=_boxes(step.candidate_boxes, scale) if step.candidate_boxes else (),
        screen_size=step.screen_size,
        box_rule=step.box_rule,
        thought=step.thought,
        alternatives=_alternatives(step, scale) if step.alternatives else (),
    )


def _screenshot(step: InterchangeStep, images: Images) -> Screenshot | None:
    if step.image is None:
        return None
    try:
        data = images.read(step.image)
        screenshot = Screenshot.of(data)
        if step.image_sha256 not in (None, screenshot.sha256):
            message = f"the image's sha256 is {screenshot.sha256}, stated is {step.image_sha256}"
            raise RecordError("image_changed", message)
    except RecordError as error:
        raise _within("image", error) from error
    return screenshot


def _screen(step: InterchangeStep, row: InterchangeEpisode, shot: Screenshot | None) -> tuple[int, int]:
    """Return the step's own size, else the episode's, else the image's; both numbers from one place."""
    width, height = step.screen_width, step.screen_height
    if width is None and height is None:
        width, height = row.screen_width, row.screen_height
    if width is None and height is None and shot is not None:
        width, height = shot.width, shot.height
    if width is not None and height is not None:
        return width, height
    if width is not None or height is not None:
        raise RecordError("missing_field", "screen_width and screen_height come together")
    raise RecordError("missing_field", "has neither an image nor screen_width and screen_height")


def _action(row: InterchangeAction, scale: tuple[float, float], where: str = "action") -> Action:
    x, y, x2, y2 = row.x, row.y, row.x2, row.y2
    width, height = scale
    try:
        return Action(
            row.action_type,
            None if x is None else x / width,
            None if y is None else y / height,
            None if x2 is None else x2 / width,
            None if y2 is None else y2 / height,
            row.direction,
            row.text,
            row.app_name,
            row.keys,
            row.button,
            row.status,
        )
    except ActionError as error:
        raise RecordError("bad_action", error.message, where=where) from None


def _alternatives(step: InterchangeStep, scale: tuple[float, float]) -> tuple[Alternative, ...]:
    found = []
    for index, row in enumerate(step.alternatives):
        where = f"alternatives.{index}"
        action = _action(row, scale, where)
        found.append(Alternative(action, _named_box(f"{where}.box", row.box, scale)))
    return tuple(found)


def _boxes(rows: tuple[Edges, ...], scale: tuple[float, float]) -> tuple[Box, ...]:
    try:
        return tuple([box for edges in rows if (box := _box(edges, scale)) is not None])
    except RecordError:  # say it again with the box's number
        for index, edges in enumerate(rows):
            _named_box(f"candidate_boxes.{index}", edges, scale)
        raise


def _named_box(key: str, edges: Edges | None, scale: tuple[float, float]) -> Box | None:
    if edges is None:
        return None
    try:
        return _box(edges, scale)
    except RecordError as error:
        raise _within(key, error) from error


def _box(edges: Edges, scale: tuple[float, float]) -> Box | None:
    """Clip a box to the screen; nothing is left of one that lies outside it."""
    x1, y1, x2, y2 = edges
    width, height = scale  # floats, as the edges are: whole numbers take three times as long to compare
    if not (0.0 <= x1 <= x2 <= width and 0.0 <= y1 <= y2 <= height):
        if x1 > x2 or y1 > y2:
            raise RecordError("bad_box", f"{list(edges)} is not x1 <= x2, y1 <= y2")
        if x2 < 0 or y2 < 0 or x1 > width or y1 > height:
            return None
        x1, y1, x2, y2 = max(0.0, x1), max(0.0, y1), min(width, x2), min(height, y2)
    return make_box((x1 / width, y1 / height, x2 / width, y2 / height))


def _within(key: str, error: RecordError) -> RecordError:
    """Put a key in front of where an error says it happened."""
    where = f"{key}.{error.where}" if error.where else key
    return RecordError(error.reason, error.message, where=where, hint=error.hint)
