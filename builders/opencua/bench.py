"""Read AgentNetBench's steps: what is right at a step, with boxes, and the other things that are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from solar_rl.actions import POINT_ACTIONS, Action, Box
from solar_rl.errors import RecordError
from solar_rl.schema import Alternative

from .._episode_files import as_object
from .._hand import Hand, Point
from ..android_control.screen import Screen, number, smallest_holding
from .code import call, plain

_UNIT = Screen(1, 1)


class Right(NamedTuple):
    """One right way to do a step: its actions, and the boxes given for the first of them that has any."""

    actions: list[Action]
    boxes: tuple[Box, ...]


def read_sequence(value: Any, pointer: Point | None, triple_click: str) -> tuple[Right, Point | None]:
    """Read a list of recorded actions, done one after the other.

    Args:
        value: ``ground_truth_actions``, or one entry of ``alternative_options``.
        pointer: Where the mouse is before.
        triple_click: See ``code.perform``.

    Returns:
        What is right, and where the mouse is afterwards.

    Raises:
        RecordError: What is broken.
    """
    if not isinstance(value, list) or not value:
        raise RecordError("bad_value", f"a step's right actions are {value!r}, expected a list of them")
    hand, boxes = Hand(pointer), []
    for item in value:
        action = as_object(item, "a right action")
        call(_kind(action), _arguments(action), hand, triple_click)
        boxes.append(_boxes(action))
    return Right(hand.actions(), next((found for found in boxes if found), ())), hand.pointer


def others(label: Right, options: list[Right]) -> tuple[Alternative, ...]:
    """Return what else is right at the first action of a step, each once.

    A box that doesn't hold the recorded point is another place that counts, so it stands for an action of the
    same kind at its middle. Of an option with several actions, the first is what is right now.
    """
    found = [*_elsewhere(label)]
    for option in options:
        action = option.actions[0]
        found += [
            Alternative(action, smallest_holding(option.boxes, action.x, action.y)),
            *_elsewhere(option),
        ]
    return tuple(dict.fromkeys(each for each in found if each.action != label.actions[0]))


def _elsewhere(right: Right) -> list[Alternative]:
    action = right.actions[0]
    if action.action_type not in POINT_ACTIONS or action.x is None or action.y is None:
        return []
    beside = [box for box in right.boxes if not box.contains(action.x, action.y)]
    middles = ((Action(action.action_type, (b.x1 + b.x2) / 2, (b.y1 + b.y2) / 2), b) for b in beside)
    return [Alternative(at_middle, box) for at_middle, box in middles]


def _kind(action: Mapping[str, Any]) -> str:
    kind = action.get("type")
    if not isinstance(kind, str):
        raise RecordError("unknown_action", f"the type of a right action is {kind!r}")
    sideways = as_object(action.get("params", {}), "params").get("direction") in ("left", "right")
    return "hscroll" if plain(kind) == "scroll" and sideways else kind


def _arguments(action: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the bench's parameters to those of the calls that they stand for."""
    given = dict(as_object(action.get("params", {}), "params"))
    if given.get("position") is not None:
        given |= as_object(given.pop("position"), "position")
    for name, renamed in (
        ("text", "message"),
        ("content", "message"),
        ("amount", "clicks"),
        ("pixels", "clicks"),
    ):
        if given.get(name) is not None:
            given[renamed] = given[name]
    if given.get("clicks") is None and "scroll" in plain(_kind(action)):
        given["clicks"] = {"up": 1, "right": 1, "down": -1, "left": -1}.get(str(given.get("direction")))
    elif "scroll" not in plain(_kind(action)):
        given.pop("clicks", None)
    if given.get("key") is not None:
        given.setdefault("keys", given["key"])
    return given


def _boxes(action: Mapping[str, Any]) -> tuple[Box, ...]:
    metadata = as_object(action.get("metadata") or {}, "metadata")
    rows = metadata.get("bboxes") or []
    if not isinstance(rows, list):
        raise RecordError("bad_box", f"bboxes is {type(rows).__name__}, expected a list")
    boxes = []
    for row in rows:
        edges = as_object(row, "a box").get("rel_bbox")
        if not isinstance(edges, list) or len(edges) != 4:
            raise RecordError("bad_box", f"rel_bbox is {edges!r}, expected [left, top, width, height]")
        left, top, width, height = (number(edge, "an edge of a box") for edge in edges)
        boxes.append(_UNIT.box(left, top, left + width, top + height))
    return tuple(box for box in boxes if box is not None)
