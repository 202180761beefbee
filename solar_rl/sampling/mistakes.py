"""The mistakes that the noisy expert makes, each drawn from a seeded source of numbers. All of it is ours.

A mistake is a kind of answer, not a verdict: some are near enough to pass.

* near_miss: the point moves by 1 to 2 sigma of the default click kernel (0.034, or half the target's box),
  in a random direction. A kernel score of 0.5 lies at 1.18 sigma, so about one in five still passes, and
  more where the box is large.
* far_miss: a random point at least a quarter of the screen away and outside the target's box.
* wrong_type: an action of another type.
* wrong_direction: a scroll in one of the three other directions.
* wrong_text: at least one word is dropped, or, of a single word, its end. The share that is kept is uniform.
* unparsable: the answer is cut off before it can be read, or is prose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from random import Random

from solar_rl.actions import ACTION_TYPES, DIRECTIONS, POINT_ACTIONS, Action, Box
from solar_rl.errors import ParseError
from solar_rl.formats.base import Format, Frame
from solar_rl.schema import Step

KINDS = ("near_miss", "far_miss", "wrong_type", "wrong_direction", "wrong_text", "unparsable")
PROSE = "I can't tell what to do on this screen."
_SIGMA = 0.034
_FAR = 0.25
_TRIES = 64

# Only Random.random() is used: it is the one method whose numbers Python keeps for all time.


def possible(action: Action) -> frozenset[str]:
    """Return the kinds of mistakes that an action can be turned into."""
    kinds = {"wrong_type", "unparsable"}
    if action.x is not None and action.action_type in (*POINT_ACTIONS, "drag"):
        kinds |= {"near_miss", "far_miss"}
    if action.action_type == "scroll":
        kinds.add("wrong_direction")
    if action.text or action.app_name:
        kinds.add("wrong_text")
    return frozenset(kinds)


def near_miss(step: Step, rng: Random) -> Action:
    """Move the point by 1 to 2 sigma; on the screen's edge it moves inward."""
    label, box = step.action, step.target_box
    assert label.x is not None and label.y is not None
    wide, high = (box.x2 - box.x1, box.y2 - box.y1) if box else (0.0, 0.0)
    reach, angle = 1.0 + rng.random(), 2.0 * math.pi * rng.random()
    dx = reach * math.cos(angle) * max(_SIGMA, 0.5 * wide)
    dy = reach * math.sin(angle) * max(_SIGMA, 0.5 * high)
    return replace(label, x=_moved(label.x, dx), y=_moved(label.y, dy))


def far_miss(step: Step, rng: Random) -> Action:
    """Put the point far from the target; the farthest corner where chance finds no place."""
    label = step.action
    assert label.x is not None and label.y is not None
    for _ in range(_TRIES):
        x, y = rng.random(), rng.random()
        if _is_far(x, y, label.x, label.y, step.target_box):
            return replace(label, x=x, y=y)
    return replace(label, x=float(label.x < 0.5), y=float(label.y < 0.5))


def wrong_direction(step: Step, rng: Random) -> Action:
    """Scroll one of the three other ways; the finger's path is left out, since it belongs to the label."""
    others = [way for way in DIRECTIONS if way != step.action.direction]
    return Action("scroll", direction=others[_index(rng, len(others))])


def wrong_text(step: Step, rng: Random) -> Action:
    """Drop words, or the end of a single word, of what is typed, answered or launched."""
    label = step.action
    if label.app_name:
        return replace(label, app_name=_shortened(label.app_name, rng))
    assert label.text
    return replace(label, text=_shortened(label.text, rng))


def wrong_type(step: Step, rng: Random) -> Action:
    """Take another type of action, all six that every family has being equally likely."""
    others = [make for name, make in _OTHERS.items() if name != step.action.action_type]
    return others[_index(rng, len(others))](rng)


def unparsable(right: str, fmt: Format, frame: Frame, rng: Random) -> str:
    """Cut the right answer off, or say prose; half of each."""
    if rng.random() < 0.5:
        cut = right[: 1 + _index(rng, max(1, len(right) - 1))]
        try:
            fmt.parse(cut, frame)
        except ParseError:
            return cut
    return PROSE


_OTHERS: dict[str, Callable[[Random], Action]] = {
    "click": lambda rng: Action("click", x=rng.random(), y=rng.random()),
    "long_press": lambda rng: Action("long_press", x=rng.random(), y=rng.random()),
    "scroll": lambda rng: Action("scroll", direction=DIRECTIONS[_index(rng, 4)]),
    "press": lambda rng: Action("press", button="back"),
    "wait": lambda rng: Action("wait"),
    "finished": lambda rng: Action("finished", status="complete"),
}
assert set(_OTHERS) <= set(ACTION_TYPES)
MOVES: dict[str, Callable[[Step, Random], Action]] = {
    "near_miss": near_miss,
    "far_miss": far_miss,
    "wrong_type": wrong_type,
    "wrong_direction": wrong_direction,
    "wrong_text": wrong_text,
}
"""What each kind but ``unparsable`` makes of a step."""


def _index(rng: Random, n: int) -> int:
    return int(rng.random() * n)


def _moved(value: float, by: float) -> float:
    there = value + by if 0.0 <= value + by <= 1.0 else value - by
    return min(1.0, max(0.0, there))


def _is_far(x: float, y: float, label_x: float, label_y: float, box: Box | None) -> bool:
    return math.hypot(x - label_x, y - label_y) >= _FAR and not (box and box.contains(x, y))


def _shortened(text: str, rng: Random) -> str:
    words = text.split()
    if len(words) < 2:
        return text[: 1 + _index(rng, len(text) - 1)] if len(text) > 1 else text * 2
    wanted = 1 + _index(rng, len(words) - 1)
    kept: list[str] = []
    for i, word in enumerate(words):  # each subset of that size is equally likely, the order stays
        if rng.random() * (len(words) - i) < wanted - len(kept):
            kept.append(word)
    return " ".join(kept)
