"""Turn a line of the interchange format into an Episode, its screenshots read from beside the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from solar_rl.actions import Action, Box
from solar_rl.errors import ActionError, RecordError
from solar_rl.images import check_image
from solar_rl.interchange.model import (
    Edges,
    InterchangeAction,
    InterchangeEpisode,
    InterchangeStep,
    parse_line,
)
from solar_rl.schema import Alternative, Episode, Screenshot, Step

SOURCE = "jsonl"
"""Name of a source that states none."""


@dataclass(frozen=True)
class Images:
    """Finds screenshots below one folder, and nowhere else: a line can't make a build read other files.

    Args:
        folder: Images are named relative to it.
        follow_links: Take symbolic links that lead out of the folder.
    """

    folder: Path
    follow_links: bool = False

    def read(self, name: str) -> bytes:
        """Read one image.

        Raises:
            RecordError: ``bad_path``: the name is absolute, holds ``..`` or a backslash, or leads out of the
                folder; ``missing_image``: there is no such file, or it can't be read.
        """
        path = self._inside(name)
        try:
            if not path.is_file():
                raise RecordError("missing_image", f"no such image: {name!r}")
            return path.read_bytes()
        except OSError as error:
            raise RecordError("missing_image", f"image {name!r} can't be read: {error.strerror}") from error

    def _inside(self, name: str) -> Path:
        windows = PureWindowsPath(name)
        if not name or "\0" in name or windows.drive or windows.root:
            raise RecordError("bad_path", f"{name!r} is no path relative to the file's folder")
        if "\\" in name:
            raise RecordError("bad_path", f"{name!r} holds a backslash", hint="write forward slashes")
        if ".." in name.split("/"):
            raise RecordError("bad_path", f"{name!r} leaves the file's folder")
        path = self.folder / name
        if not self.follow_links and not path.resolve().is_relative_to(self.folder.resolve()):
            hint = "option follow_links allows that"
            raise RecordError("bad_path", f"{name!r} is a link that leads out of the folder", hint=hint)
        return path


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
    steps = []
    for index, step in enumerate(row.steps):
        with _at(f"steps.{index}"):
            steps.append(_step(index, step, row, images))
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
    scale = (width, height) if row.coordinates == "pixels" else (1, 1)
    with _at("action"):
        action = _action(step.action, scale)
        if row.coordinates == "unit" and step.screen_size == "stated" and action.off_screen:
            hint = "are these pixels? then say coordinates: pixels"
            point = (action.x, action.y)
            raise RecordError("off_screen", f"{point} lies outside the unit square", hint=hint)
    return Step(
        index,
        action,
        width,
        height,
        instruction=step.instruction,
        screenshot=screenshot,
        screen_text=step.screen_text,
        app=step.app,
        target_box=_box("target_box", step.target_box, scale),
        candidate_boxes=_boxes(step.candidate_boxes, scale),
        screen_size=step.screen_size,
        box_rule=step.box_rule,
        thought=step.thought,
        alternatives=_alternatives(step, scale),
    )


def _screenshot(step: InterchangeStep, images: Images) -> Screenshot | None:
    if step.image is None:
        return None
    with _at("image"):
        data = images.read(step.image)
        screenshot = Screenshot(data, *check_image(data))
        if step.image_sha256 not in (None, screenshot.sha256):
            message = f"the image's sha256 is {screenshot.sha256}, stated is {step.image_sha256}"
            raise RecordError("image_changed", message)
    return screenshot


def _screen(step: InterchangeStep, row: InterchangeEpisode, shot: Screenshot | None) -> tuple[int, int]:
    """Return the step's own size, else the episode's, else the image's; both numbers from one place."""
    stated = [(step.screen_width, step.screen_height), (row.screen_width, row.screen_height)]
    for width, height in [*stated, (shot.width, shot.height)] if shot else stated:
        if width is not None and height is not None:
            return width, height
        if width is not None or height is not None:
            raise RecordError("missing_field", "screen_width and screen_height come together")
    raise RecordError("missing_field", "has neither an image nor screen_width and screen_height")


def _action(row: InterchangeAction, scale: tuple[float, float]) -> Action:
    width, height = scale
    try:
        return Action(
            row.action_type,
            x=None if row.x is None else row.x / width,
            y=None if row.y is None else row.y / height,
            x2=None if row.x2 is None else row.x2 / width,
            y2=None if row.y2 is None else row.y2 / height,
            direction=row.direction,
            text=row.text,
            app_name=row.app_name,
            keys=row.keys,
            button=row.button,
            status=row.status,
        )
    except ActionError as error:
        raise RecordError("bad_action", error.message) from None


def _alternatives(step: InterchangeStep, scale: tuple[float, float]) -> tuple[Alternative, ...]:
    found = []
    for index, row in enumerate(step.alternatives):
        with _at(f"alternatives.{index}"):
            found.append(Alternative(_action(row, scale), _box("box", row.box, scale)))
    return tuple(found)


def _boxes(rows: tuple[Edges, ...], scale: tuple[float, float]) -> tuple[Box, ...]:
    found = (_box(f"candidate_boxes.{index}", edges, scale) for index, edges in enumerate(rows))
    return tuple(box for box in found if box is not None)


def _box(name: str, edges: Edges | None, scale: tuple[float, float]) -> Box | None:
    """Clip a box to the screen; nothing is left of one that lies outside it."""
    if edges is None:
        return None
    x1, y1, x2, y2 = edges
    if x1 > x2 or y1 > y2:
        raise RecordError("bad_box", f"{list(edges)} is not x1 <= x2, y1 <= y2", where=name)
    width, height = scale
    if x2 < 0 or y2 < 0 or x1 > width or y1 > height:
        return None
    return Box(max(0, x1) / width, max(0, y1) / height, min(width, x2) / width, min(height, y2) / height)


@contextmanager
def _at(key: str) -> Iterator[None]:
    """Put a key in front of where a RecordError raised within says it happened."""
    try:
        yield
    except RecordError as error:
        where = f"{key}.{error.where}" if error.where else key
        raise RecordError(error.reason, error.message, where=where, hint=error.hint) from error
