"""Plain lines of UI-S1 as structs, decoded in C (android_control/plain.py says what plain means)."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from .android_control.plain import Edges, Number, Odd, Pair


class PlainContent(msgspec.Struct, gc=False):
    """What a step does."""

    action: Literal["click", "long_press", "swipe", "type", "open", "wait", "system_button", "terminate"]
    coordinate: Pair | UnsetType = UNSET
    coordinate2: Pair | UnsetType = UNSET
    text: str | None = None
    button: Literal["Back", "Home", "Enter"] | None = None
    status: Literal["success", "failure"] | None = None
    bbox: list[Number] = []


class PlainChecks(msgspec.Struct, gc=False):
    """What an answer is checked against, in lines for evaluation."""

    direction: Literal["up", "down", "left", "right"] | UnsetType = UNSET
    candidate_bbox: list[Edges] | UnsetType = UNSET


class PlainStep(msgspec.Struct, gc=False):
    """A step."""

    action_content: PlainContent
    screenshot: str | None = None
    step_instruction: str | None = None
    action_description: str | None = None
    thought: str | UnsetType | None = UNSET
    check_options: PlainChecks | UnsetType = UNSET


class PlainLine(msgspec.Struct, gc=False):
    """An episode."""

    goal: str
    steps: list[PlainStep]
    episode_id: int | str | UnsetType = UNSET
    is_successful: bool | None = None


PLAIN = msgspec.json.Decoder(PlainLine)
"""Decodes a plain line, and refuses any other."""
NO_CHECKS = PlainChecks()
"""Of a step that has none."""


def plain_boxes(content: PlainContent, checks: PlainChecks) -> list[Edges] | list[list[Number]]:
    """Return the boxes that a step names, in pixels.

    Raises:
        Odd: Its own box has not four edges.
    """
    if checks.candidate_bbox is not UNSET:
        return checks.candidate_bbox
    if content.bbox and len(content.bbox) != 4:
        raise Odd
    return [content.bbox] if content.bbox else []
