"""AndroidWorld's json_action, read into canonical actions.

Facts from android_world/env: json_action.py (names and keys), actuation.py (what each does to the device) and
representation_utils.py (which nodes of a forest are elements, in which order).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from solar_rl.actions import Action, Box
from solar_rl.errors import RecordError

from ..android_control.messages import parse_forest
from ..android_control.screen import Screen, number
from ..android_control.vocabulary import point_action, read_direction, read_text

Rectangle = tuple[float, float, float, float]
"""left, top, right and bottom in pixels, as they are: a part may lie off the screen."""

STATUSES = ("complete", "infeasible")
_POINTED = {"click": "click", "double_tap": "double_click", "long_press": "long_press"}
_BUTTONS = {"navigate_home": "home", "navigate_back": "back", "keyboard_enter": "enter"}
_CONTENT = {"up": "down", "down": "up", "left": "left", "right": "right"}
"""Direction of a swipe to the content's: its up and down are the finger's, its left and right the content's.
Source: actuation.py, where left draws the finger from the left edge to the right one."""
_KEY_BUTTONS = {"BACK": "back", "HOME": "home", "APP_SWITCH": "recent", "ENTER": "enter"}
_KEY_NAMES = {"DEL": "backspace", "FORWARD_DEL": "delete", "MOVE_HOME": "home", "MOVE_END": "end"}


class Done(NamedTuple):
    """An action and, where it names an element, the element's box on the screen."""

    action: Action
    box: Box | None = None


def read_elements(value: Any) -> list[Rectangle | None]:
    """Read the elements that the agent was shown, in their order.

    Args:
        value: A list of [left, top, right, bottom] in pixels, or null for an element without a box.

    Raises:
        RecordError: ``bad_value`` or ``bad_box``.
    """
    if not isinstance(value, list):
        raise RecordError("bad_value", f"elements is {type(value).__name__}, expected a list")
    found: list[Rectangle | None] = []
    for row in value:
        if row is not None and (not isinstance(row, list) or len(row) != 4):
            raise RecordError("bad_box", f"an element is {row!r}, expected [left, top, right, bottom]")
        found.append(
            None if row is None else _rectangle(*(number(edge, "an element's edge") for edge in row))
        )
    return found


def elements_of(forest: bytes) -> list[Rectangle | None]:
    """List a forest's elements as AndroidWorld does: visible nodes that are leaves, described or scrollable.

    Raises:
        RecordError: ``bad_tree``.
    """
    nodes = (node for window in parse_forest(forest).windows for node in window.tree.nodes)
    rects = [
        node.bounds_in_screen
        for node in nodes
        if node.is_visible_to_user and (not node.child_ids or node.content_description or node.is_scrollable)
    ]
    return [_rectangle(rect.left, rect.top, rect.right, rect.bottom) for rect in rects]


def _rectangle(left: float, top: float, right: float, bottom: float) -> Rectangle:
    return left, top, right, bottom


def read_action(fields: Mapping[str, Any], screen: Screen, elements: Sequence[Rectangle | None]) -> Done:
    """Read one action.

    Args:
        fields: The JSON object, such as ``{"action_type": "click", "index": 3}``.
        screen: The screen that its pixels belong to.
        elements: What an index counts.

    Raises:
        RecordError: ``unknown_action``; ``bad_index``: no such element; and what is wrong with an argument.
    """
    kind = fields.get("action_type")
    if kind is None:
        raise RecordError("missing_field", "action_type is missing")
    if not isinstance(kind, str):
        raise RecordError("unknown_action", f"action_type is {kind!r}, expected a name")
    if kind in _POINTED:
        x, y, box = _must_place(fields, screen, elements)
        return Done(point_action(_POINTED[kind], x, y, screen), box)
    if kind == "input_text":
        return _input_text(fields, screen, elements)
    if kind == "scroll":
        return _scroll(fields, screen, elements)
    if kind == "swipe":
        return Done(Action("scroll", direction=_CONTENT[read_direction(fields)]))
    if kind in _BUTTONS:
        return Done(Action("press", button=_BUTTONS[kind]))
    if kind == "press_keyboard":
        return Done(_press(read_text(fields, "keycode")))
    if kind == "open_app":
        return Done(Action("open_app", app_name=read_text(fields, "app_name")))
    if kind == "wait":
        return Done(Action("wait"))
    if kind == "status":
        return Done(Action("finished", status=_status(fields)))
    if kind == "answer":
        return Done(Action("finished", status="complete", text=read_text(fields, "text")))
    raise RecordError("unknown_action", f"unknown action {kind!r}, expected one of {', '.join(_ACTIONS)}")


def _place(
    fields: Mapping[str, Any], screen: Screen, elements: Sequence[Rectangle | None]
) -> tuple[float, float, Box | None] | None:
    """Return the pixel that is meant, an element's middle, and the element's box; None where there is neither."""
    index = fields.get("index")
    if index is None:
        if fields.get("x") is None and fields.get("y") is None:
            return None
        return number(fields.get("x"), "x"), number(fields.get("y"), "y"), None
    if isinstance(index, str) and index.isascii() and index.isdigit():
        index = int(index)
    if isinstance(index, bool) or not isinstance(index, int):
        raise RecordError("bad_number", f"index is {index!r}, expected a whole number")
    if not 0 <= index < len(elements):
        raise RecordError("bad_index", f"index is {index}, the screen has {len(elements)} elements")
    rectangle = elements[index]
    if rectangle is None:
        raise RecordError("bad_index", f"element {index} has no box")
    left, top, right, bottom = rectangle
    return int((left + right) / 2), int((top + bottom) / 2), screen.box(*rectangle)


def _must_place(
    fields: Mapping[str, Any], screen: Screen, elements: Sequence[Rectangle | None]
) -> tuple[float, float, Box | None]:
    place = _place(fields, screen, elements)
    if place is None:
        raise RecordError("missing_field", f"{fields['action_type']} has neither index nor x and y")
    return place


def _input_text(fields: Mapping[str, Any], screen: Screen, elements: Sequence[Rectangle | None]) -> Done:
    """Read typed text; AndroidWorld taps the place first, which is kept beside the text."""
    text, place = read_text(fields, "text"), _place(fields, screen, elements)
    if place is None:
        return Done(Action("input_text", text=text))
    x, y, box = place
    tapped = point_action("click", x, y, screen)
    return Done(Action("input_text", tapped.x, tapped.y, text=text), box)


def _scroll(fields: Mapping[str, Any], screen: Screen, elements: Sequence[Rectangle | None]) -> Done:
    """Read a scroll: its direction is the content's, its place the middle of the element that is named."""
    direction, place = read_direction(fields), _place(fields, screen, elements)
    if place is None or place[2] is None:
        return Done(Action("scroll", direction=direction))
    box = place[2]
    return Done(Action("scroll", (box.x1 + box.x2) / 2, (box.y1 + box.y2) / 2, direction=direction), box)


def _press(keycode: str) -> Action:
    key = keycode.removeprefix("KEYCODE_")
    if key in _KEY_BUTTONS:
        return Action("press", button=_KEY_BUTTONS[key])
    return Action("press", keys=(_KEY_NAMES.get(key, key.removeprefix("DPAD_").lower()),))


def _status(fields: Mapping[str, Any]) -> str:
    status = fields.get("goal_status")
    if status is None:
        raise RecordError("missing_field", "goal_status is missing")
    if status not in STATUSES:
        raise RecordError("bad_value", f"goal_status is {status!r}, expected one of {', '.join(STATUSES)}")
    return str(status)


_ACTIONS = (
    *_POINTED, "scroll", "swipe", "input_text", *_BUTTONS, "press_keyboard", "open_app", "wait", "answer", "status",
)  # fmt: skip
