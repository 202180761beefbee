"""Refuse broken demonstrations before anything is built on them: the last check behind every builder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from solar_rl.actions import Box
from solar_rl.errors import InputError, RecordError
from solar_rl.schema import PLATFORMS, SCREEN_SIZES, SPLITS, Episode, Reject, Screenshot, Step


def checked(items: Iterable[Episode | Reject], *, file: str, seen: set[str]) -> Iterator[Episode | Reject]:
    """Pass good episodes on and turn broken ones into Rejects; the unit is the episode.

    Args:
        items: What a builder read from one shard.
        file: Name of the shard, for the reject.
        seen: Ids met so far in the whole build; grows.

    Yields:
        Each item in order, an Episode replaced by a Reject where a check fails.
    """
    for item in items:
        if isinstance(item, Reject):
            yield item
            continue
        if not isinstance(item, Episode):
            raise InputError(
                f"a builder yields Episode or Reject, not {type(item).__name__}", where=f"shard {file}"
            )
        try:
            check_episode(item, seen)
        except RecordError as error:
            record = f"episode {item.episode_id}" + (f", {error.where}" if error.where else "")
            yield Reject(file, record, error.reason, error.message, item.episode_id)
        except (TypeError, AttributeError, ValueError) as error:
            place = f"shard {file}, episode {item.episode_id!r}"
            raise InputError(f"the builder made a malformed episode: {error}", where=place) from error
        else:
            seen.add(item.episode_id)
            yield item


def check_episode(episode: Episode, seen: Iterable[str] = ()) -> None:
    """Check one episode: id, split, steps, actions, boxes and images.

    Raises:
        RecordError: The first thing found broken, with a short reason and the step.
    """
    if not episode.episode_id:
        raise RecordError("missing_field", "episode_id is empty")
    if episode.episode_id in seen:
        raise RecordError("duplicate_id", f"episode id {episode.episode_id!r} was already read")
    if episode.split not in SPLITS:
        raise RecordError("bad_split", f"split is {episode.split!r}, expected one of {', '.join(SPLITS)}")
    if episode.platform not in PLATFORMS:
        raise RecordError(
            "bad_platform", f"platform is {episode.platform!r}, expected one of {', '.join(PLATFORMS)}"
        )
    if not episode.goal.strip():
        raise RecordError("empty_text", "the goal is empty")
    if not episode.steps:
        raise RecordError("no_steps", "the episode has no steps")
    step, position = episode.steps[0], 0
    try:
        for position, step in enumerate(episode.steps):
            _check_step(step, position)
    except RecordError as error:
        where = f"step {step.step_index}"
        raise RecordError(error.reason, error.message, where=where, hint=error.hint) from error


def _check_step(step: Step, position: int) -> None:
    action, boxes, target = step.action, step.candidate_boxes, step.target_box
    if step.step_index != position:
        raise RecordError("step_gap", f"step {position} has index {step.step_index}")
    if step.screen_width <= 0 or step.screen_height <= 0:
        size = f"{step.screen_width}x{step.screen_height}"
        raise RecordError("bad_number", f"the screen measures {size} pixels")
    if step.screen_size not in SCREEN_SIZES:
        known = ", ".join(SCREEN_SIZES)
        raise RecordError("bad_value", f"screen_size is {step.screen_size!r}, expected one of {known}")
    if step.screen_size == "stated" and action.off_screen:
        point = (action.x, action.y)
        raise RecordError("off_screen", f"{action.action_type} at {point} lies outside the screen")
    if action.action_type == "input_text" and not action.text:
        raise RecordError("empty_text", "input_text has no text")
    if target is not None and target not in boxes:
        boxes = (*boxes, target)
    if boxes:
        _check_boxes(boxes)
    if step.screenshot is not None:
        _check_screenshot(step.screenshot)


def _check_boxes(boxes: Sequence[Box | None]) -> None:
    """Look at the sum of each box, and at its numbers only where that is wrong: a build has millions."""
    try:
        for x1, y1, x2, y2 in boxes:  # type: ignore[misc]
            if not isfinite(x1 + y1 + x2 + y2):
                break
        else:
            return
    except (TypeError, ValueError):  # one isn't there, or has not four numbers
        pass
    for box in boxes:
        if box is not None:
            _check_box(box)


def _check_box(box: Box) -> None:
    if len(box) != 4:
        raise RecordError("bad_value", f"a box has {len(box)} numbers, expected 4")
    if not isfinite(sum(box)) and not all(isfinite(edge) for edge in box):  # the sum may just be too large
        raise RecordError("bad_number", f"a box is {tuple(box)}")


def _check_screenshot(screenshot: Screenshot) -> None:
    size = screenshot.encoded_size
    if size != (screenshot.width, screenshot.height):
        stated = f"{screenshot.width}x{screenshot.height}"
        raise RecordError("bad_image", f"the image is {size[0]}x{size[1]}, stated is {stated}")
