"""``qwen25vl_mobile_use`` and ``qwen3vl_mobile_use``: the mobile_use tool call of Qwen's phone agents.

    <tool_call>
    {"name": "mobile_use", "arguments": {"action": "click", "coordinate": [546, 1204]}}
    </tool_call>

Qwen2.5-VL speaks pixels of the smart-resized image, Qwen3-VL 0..1000. A swipe is a finger path, so its
content direction is the opposite one. Source: the tool's argument names as Qwen's models write them.
"""

from __future__ import annotations

import json
import re
from typing import Any

from solar_rl.actions import Action, opposite
from solar_rl.errors import ParseError
from solar_rl.formats.base import Aside, Frame, cant_say
from solar_rl.formats.grid import THOUSAND, finger_direction, finger_path, grid_point
from solar_rl.formats.reading import (
    build,
    choice,
    first_object,
    leading_object,
    member,
    point,
    rest_is_empty,
    shown,
    string,
    think_tag,
)
from solar_rl.formats.spaces import Resized, Thousand

_TAG, _END = "<tool_call>", "</tool_call>"
_TOOL = "mobile_use"
_THOUGHT = re.compile(r"^\s*Thought:(.*?)(?=^\s*Action:|\Z)", re.DOTALL | re.MULTILINE)
_BUTTONS = {"back": "back", "home": "home", "menu": "recent", "enter": "enter"}
_BUTTON_NAMES = {"back": "Back", "home": "Home", "recent": "Menu", "enter": "Enter"}
_STATUSES = {"success": "complete", "failure": "infeasible"}
_STATUS_NAMES = {"complete": "success", "infeasible": "failure"}
_SECONDS = 2
_LONGEST = 86_400  # seconds: a longer press or wait is no duration
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


class MobileUse:
    """Reads and writes mobile_use calls.

    Args:
        name: Name of the format.
        grid: What coordinates are divided by; None: the frame's pixels.
    """

    def __init__(self, name: str, grid: Frame | None = None) -> None:
        self.name = name
        self._fixed = grid
        self.space: type[Resized] | type[Thousand] = Thousand if grid else Resized

    def render(self, action: Action, frame: Frame) -> str:
        """Write one tool call.

        Raises:
            ActionError: mobile_use has no such action (drag, double and right click, hover, hotkeys), or a
                failure with an answer, which it can't say.
        """
        call = {"name": _TOOL, "arguments": _arguments(action, self._fixed or frame)}
        return f"{_TAG}\n{_ENCODE(call)}\n{_END}"

    def parse(self, text: str, frame: Frame) -> Action:
        """Read the first tool call; the tags may be lost, the JSON must be whole."""
        return _read(_called(_call(text)), self._fixed or frame)

    def aside(self, text: str, action: Action) -> Aside:
        """Return the thought (in a think tag, or after Qwen3-VL's ``Thought:``), and what a press or a wait lasts."""
        seconds = _called(_call(text)).get("time")
        lasts = None
        if action.action_type in ("long_press", "wait") and isinstance(seconds, (int, float)):
            lasts = 1000 * seconds if not isinstance(seconds, bool) and 0 <= seconds <= _LONGEST else None
        return Aside(_thought(text.partition(_TAG)[0]), lasts)


def _thought(before: str) -> str | None:
    found = None if (tagged := think_tag(before)) else _THOUGHT.search(before)
    return (found[1].strip() or None) if found else tagged


def _arguments(action: Action, grid: Frame) -> dict[str, Any]:
    kind = action.action_type
    if kind == "click":
        return {"action": kind, "coordinate": grid_point(action, grid)}
    if kind == "long_press":
        return {"action": kind, "coordinate": grid_point(action, grid), "time": _SECONDS}
    if kind == "scroll":
        x, y, x2, y2 = finger_path(action, grid)
        return {"action": "swipe", "coordinate": (x, y), "coordinate2": (x2, y2)}
    if kind == "input_text":
        return {"action": "type", "text": action.text}
    if kind == "open_app":
        return {"action": "open", "text": action.app_name}
    if kind == "wait":
        return {"action": kind, "time": _SECONDS}
    if action.button is not None:
        return {"action": "system_button", "button": _BUTTON_NAMES[action.button]}
    if action.keys is not None and len(action.keys) == 1:
        return {"action": "key", "text": action.keys[0]}
    if action.status is not None and action.text is None:
        return {"action": "terminate", "status": _STATUS_NAMES[action.status]}
    if action.status == "complete":
        return {"action": "answer", "text": action.text}
    raise cant_say("mobile_use", action)


def _call(text: str) -> dict[str, Any]:
    _, tag, rest = text.partition(_TAG)
    return _tagged(rest) if tag else first_object(text)


def _tagged(rest: str) -> dict[str, Any]:
    """Read the object in the tags: nothing else may stand there; the closing tag may be cut off."""
    call, end = leading_object(rest)
    inside, closed, _ = rest[end:].partition(_END)
    if not (rest_is_empty(inside, 0) or (not closed and _END.startswith(inside.strip()))):
        raise ParseError("something follows the JSON object")
    return call


def _called(call: dict[str, Any]) -> dict[str, Any]:
    name = string(call, "name", "the tool call")
    if name != _TOOL:
        raise ParseError(f"the tool is {shown(name)}, expected {_TOOL!r}")
    arguments = member(call, "arguments", "the tool call")
    if isinstance(arguments, str):
        arguments, _ = leading_object(arguments)
    if not isinstance(arguments, dict):
        raise ParseError("'arguments' is not a JSON object")
    return arguments


def _read(arguments: dict[str, Any], grid: Frame) -> Action:
    name = string(arguments, "action", "the tool call")
    match name:
        case "click" | "long_press":
            x, y = _unit_point(arguments, "coordinate", name, grid)
            return build(name, x=x, y=y)
        case "swipe":
            path = (
                *_unit_point(arguments, "coordinate", name, grid),
                *_unit_point(arguments, "coordinate2", name, grid),
            )
            x, y, x2, y2 = path
            direction = opposite(finger_direction(path))
            return build("scroll", x=x, y=y, x2=x2, y2=y2, direction=direction)
        case "type":
            return build("input_text", text=string(arguments, "text", name))
        case "open":
            return build("open_app", app_name=string(arguments, "text", name))
        case "system_button":
            return build("press", button=choice(arguments, "button", _BUTTONS, name))
        case "key":
            return build("press", keys=(string(arguments, "text", name),))
        case "wait":
            return build("wait")
        case "terminate":
            return build("finished", status=choice(arguments, "status", _STATUSES, name))
        case "answer":
            return build("finished", status="complete", text=string(arguments, "text", name))
    raise ParseError(f"unknown action {shown(name)}")


def _unit_point(arguments: dict[str, Any], key: str, owner: str, grid: Frame) -> tuple[float, float]:
    x, y = point(member(arguments, key, owner), key)
    return x / grid.width, y / grid.height


QWEN25VL = MobileUse("qwen25vl_mobile_use")
QWEN3VL = MobileUse("qwen3vl_mobile_use", THOUSAND)
