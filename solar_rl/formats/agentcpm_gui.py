"""``agentcpm_gui``: one compact JSON object, points 0..1000, the finger's direction.

    {"thought":"...","POINT":[731,72]}

The family's schema is kept: integers 0..1000, known keys only, one action, nothing around the object but a
code fence. A POINT held for more than 200 ms is a long press. A stop status ends the task. CLEAR and DEEP_LINK
are no canonical actions, and neither are the statuses that interrupt or ask the user. Source: AgentCPM-GUI's
public action schema.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from solar_rl.actions import DIRECTIONS, Action, opposite
from solar_rl.errors import ActionError, ParseError
from solar_rl.formats.base import Aside, Frame, cant_say
from solar_rl.formats.grid import THOUSAND, finger_direction, finger_path, grid_point
from solar_rl.formats.reading import build, leading_object, rest_is_empty, shown, string, thought_of
from solar_rl.formats.spaces import Thousand

_KEYS = ("thought", "POINT", "to", "duration", "PRESS", "TYPE", "DEEP_LINK", "CLEAR", "STATUS")
_BUTTONS = {"BACK": "back", "HOME": "home", "ENTER": "enter", "APPSELECT": "recent"}
_BUTTON_NAMES = {button: name for name, button in _BUTTONS.items()}
_GOING_ON = ("continue", "start")
_ENDINGS = {"finish": "complete", "satisfied": "complete", "impossible": "infeasible"}
_NO_ACTION = ("interrupt", "need_feedback")
_ENDING_NAMES = {"complete": "finish", "infeasible": "impossible"}
_TAP_MS, _LONG_PRESS_MS, _WAIT_MS = 200, 1000, 3000
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class AgentCpmGui:
    """Reads and writes AgentCPM-GUI's compact JSON."""

    name = "agentcpm_gui"
    space = Thousand

    def render(self, action: Action, frame: Frame) -> str:
        """Write the object without a thought.

        Raises:
            ActionError: The family has no such action (open_app, drag, hotkeys, answers), or the point lies
                off the screen.
        """
        data = _written(action)
        if any(not 0 <= value <= 1000 for key in ("POINT", "to") for value in _numbers(data.get(key))):
            raise ActionError("AgentCPM-GUI can't write a point off the screen")
        return _ENCODE(data)

    def parse(self, text: str, frame: Frame) -> Action:
        """Read the object that the answer is."""
        data, end = leading_object(text)
        if not rest_is_empty(text, end):
            raise ParseError("something follows the JSON object")
        foreign = [key for key in data if key not in _KEYS]
        if foreign:
            raise ParseError(f"unknown key {shown(foreign[0])}")
        return _read(data)

    def aside(self, text: str, action: Action) -> Aside:
        """Return the thought, and how long a long press or a wait lasts."""
        data, _ = leading_object(text)
        lasts = data.get("duration") if action.action_type in ("long_press", "wait") else None
        return Aside(thought_of(data), lasts)


def _written(action: Action) -> dict[str, Any]:
    kind = action.action_type
    if kind == "click":
        return {"POINT": grid_point(action, THOUSAND)}
    if kind == "long_press":
        return {"POINT": grid_point(action, THOUSAND), "duration": _LONG_PRESS_MS}
    if kind == "scroll":
        return _swipe(action)
    if kind == "input_text":
        return {"TYPE": action.text}
    if kind == "wait":
        return {"duration": _WAIT_MS}
    if action.button is not None:
        return {"PRESS": _BUTTON_NAMES[action.button]}
    if action.status is not None and action.text is None:
        return {"STATUS": _ENDING_NAMES[action.status]}
    raise cant_say("AgentCPM-GUI", action)


def _swipe(action: Action) -> dict[str, Any]:
    if action.x2 is not None:
        x, y, x2, y2 = finger_path(action, THOUSAND)
        return {"POINT": (x, y), "to": (x2, y2)}
    start = (500, 500) if action.x is None else grid_point(action, THOUSAND)
    return {"POINT": start, "to": action.finger_direction}


def _numbers(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else ()


def _read(data: Mapping[str, Any]) -> Action:
    status = data.get("STATUS", "continue")
    if status not in (*_GOING_ON, *_ENDINGS, *_NO_ACTION):
        raise ParseError("'STATUS' is none of the family's")
    acts = [key for key in ("POINT", "PRESS", "TYPE", "CLEAR", "DEEP_LINK") if key in data]
    if len(acts) > 1:
        raise ParseError(f"{acts[0]} and {acts[1]} in one answer")
    if "to" in data and "POINT" not in data:
        raise ParseError("'to' needs 'POINT'")
    duration = _duration(data) if "duration" in data else None
    if status in _ENDINGS and not acts:
        return build("finished", status=_ENDINGS[status])
    if status not in _GOING_ON:
        raise ParseError(f"status {shown(str(status))} is no single canonical action")
    match acts:
        case ["POINT"]:
            return _read_point(data, duration)
        case ["PRESS"]:
            return _read_press(data)
        case ["TYPE"]:
            return build("input_text", text=string(data, "TYPE", "the answer"))
        case []:
            if duration is None:
                raise ParseError("no action")
            return build("wait")
    raise ParseError(f"{acts[0]} is no canonical action")


def _read_point(data: Mapping[str, Any], duration: int | None) -> Action:
    x, y = _location(data, "POINT")
    if "to" not in data:
        held = duration is not None and duration > _TAP_MS
        return build("long_press" if held else "click", x=x, y=y)
    to = data["to"]
    if isinstance(to, str):
        if to not in DIRECTIONS:
            raise ParseError(f"'to' is {shown(to)}, expected a direction or a point")
        return build("scroll", direction=opposite(to), x=x, y=y)
    x2, y2 = _location(data, "to")
    direction = opposite(finger_direction((x, y, x2, y2)))
    return build("scroll", direction=direction, x=x, y=y, x2=x2, y2=y2)


def _read_press(data: Mapping[str, Any]) -> Action:
    name = string(data, "PRESS", "the answer")
    if name not in _BUTTONS:
        raise ParseError(f"'PRESS' is {shown(name)}, expected one of {', '.join(_BUTTONS)}")
    return build("press", button=_BUTTONS[name])


def _duration(data: Mapping[str, Any]) -> int:
    value = data["duration"]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ParseError("'duration' is not a whole number of milliseconds")
    return value


def _location(data: Mapping[str, Any], key: str) -> tuple[float, float]:
    value = data[key]
    if not isinstance(value, list) or len(value) != 2:
        raise ParseError(f"{key!r} is not a point")
    if not all(type(part) is int and 0 <= part <= 1000 for part in value):
        raise ParseError(f"{key!r} is not two integers from 0 to 1000")
    return value[0] / 1000, value[1] / 1000


AGENTCPM_GUI = AgentCpmGui()
