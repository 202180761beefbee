"""``ui_venus`` and ``ui_venus_1000``: think, action and conclusion in tags.

    <think>...</think>
    <action>Click(box=(546, 1204))</action>
    <conclusion>...</conclusion>

UI-Venus writes pixels of the smart-resized image, UI-Venus 1.5 0..1000 (``ui_venus_1000``). Text in quotes is
taken as it is: the family has no escapes. A Scroll with start and end is a finger path; with a direction
alone, that is the content's. CallUser speaks to the user in the middle of a task, which is no canonical
action. Source: the action names of UI-Venus' public prompt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from solar_rl.actions import Action, opposite
from solar_rl.errors import ParseError
from solar_rl.formats.base import Aside, Frame, cant_say
from solar_rl.formats.grid import THOUSAND, finger_direction, finger_path, grid_point, on_grid
from solar_rl.formats.reading import build, choice, point, shown, string, think_tag
from solar_rl.formats.spaces import Resized, Thousand

_TAG = "<action>"
_CALL = re.compile(r"\s*(\w+)\((.*?)\)\s*(?:</action>|$)", re.DOTALL)
_PLAIN = re.compile(r"""\s*(\w+)\s*=\s*(\([^()]*\)|'[^']*'|"[^"]*")\s*(?:,|$)""")
_TEXTS = {"Type": "content", "Finished": "content", "Launch": "app"}
_TEXT = re.compile(r"""\s*(\w+)\s*=\s*(['"])(.*)\2\s*""", re.DOTALL)
_URL = re.compile(r""",\s*url\s*=\s*(['"])[^'"]*\1\s*$""")
_BUTTONS = {"PressBack": "back", "PressHome": "home", "PressEnter": "enter", "PressRecent": "recent"}
_BUTTON_NAMES = {button: name for name, button in _BUTTONS.items()}
_DIRECTIONS = {way: way for way in ("up", "down", "left", "right")}


class UiVenus:
    """Reads and writes UI-Venus calls.

    Args:
        name: Name of the format.
        grid: What coordinates are divided by; None: the frame's pixels.
    """

    def __init__(self, name: str, grid: Frame | None) -> None:
        self.name = name
        self._fixed = grid
        self.space: type[Resized] | type[Thousand] = Thousand if grid else Resized

    def render(self, action: Action, frame: Frame) -> str:
        """Write one call in its tags, without a thought.

        Raises:
            ActionError: UI-Venus has no such action (giving up, double and right click, hover, hotkeys).
        """
        return f"{_TAG}{_written(action, self._fixed or frame)}</action>"

    def parse(self, text: str, frame: Frame) -> Action:
        """Read the call in the first action tag."""
        _, tag, rest = text.partition(_TAG)
        if not tag:
            raise ParseError(f"no {_TAG!r}")
        match = _CALL.match(rest)
        if not match:
            raise ParseError("the action is not a call")
        return _read(match[1], match[2], self._fixed or frame)

    def aside(self, text: str, action: Action) -> Aside:
        """Return what stands in the think tag; a direction without a path names the content."""
        told_by_path = action.action_type != "scroll" or action.x2 is not None
        return Aside(think_tag(text.partition(_TAG)[0]), direction="finger" if told_by_path else "content")


def _written(action: Action, grid: Frame) -> str:
    kind = action.action_type
    if kind in ("click", "long_press"):
        x, y = grid_point(action, grid)
        return f"{'Click' if kind == 'click' else 'LongPress'}(box=({x},{y}))"
    if kind == "scroll":
        x, y, x2, y2 = finger_path(action, grid)
        return f"Scroll(start=({x},{y}), end=({x2},{y2}))"
    if kind == "drag" and not (
        action.x is None or action.y is None or action.x2 is None or action.y2 is None
    ):
        x, y, x2, y2 = on_grid((action.x, action.y, action.x2, action.y2), grid)
        return f"Drag(start=({x},{y}), end=({x2},{y2}))"
    if kind == "input_text":
        return f"Type(content='{action.text}')"
    if kind == "open_app":
        return f"Launch(app='{action.app_name}')"
    if kind == "wait":
        return "Wait()"
    if action.button is not None:
        return f"{_BUTTON_NAMES[action.button]}()"
    if action.status == "complete":
        return f"Finished(content='{action.text or ''}')"
    raise cant_say("UI-Venus", action)


def _read(name: str, inside: str, grid: Frame) -> Action:
    if name in _BUTTONS:
        return build("press", button=_BUTTONS[name])
    match name:
        case "Click" | "LongPress":
            x, y = _point(_arguments(name, inside), "box", name, grid)
            return build("click" if name == "Click" else "long_press", x=x, y=y)
        case "Drag":
            x, y, x2, y2 = _path(_arguments(name, inside), name, grid)
            return build("drag", x=x, y=y, x2=x2, y2=y2)
        case "Scroll":
            return _scroll(_arguments(name, inside), grid)
        case "Type":
            return build("input_text", text=_text(name, inside))
        case "Launch":
            return build("open_app", app_name=_text(name, inside))
        case "Finished":
            answer = _text(name, inside) if inside.strip() else ""
            return build("finished", status="complete", text=answer or None)
        case "Wait":
            return build("wait")
    raise ParseError(f"unknown action {shown(name)}")


def _text(name: str, inside: str) -> str:
    match = _TEXT.fullmatch(_URL.sub("", inside) if name == "Launch" else inside)
    if not match or match[1] != _TEXTS[name]:
        raise ParseError(f"{name} needs {_TEXTS[name]!r}")
    return match[3]


def _arguments(name: str, inside: str) -> dict[str, str]:
    arguments, at = {}, 0
    while at < len(inside):
        found = _PLAIN.match(inside, at)
        if not found:
            raise ParseError(f"the arguments of {name} can't be read")
        arguments[found[1]] = found[2]
        at = found.end()
    return arguments


def _scroll(arguments: Mapping[str, str], grid: Frame) -> Action:
    if "start" not in arguments and "direction" in arguments:
        word = {"direction": arguments["direction"][1:-1]}
        return build("scroll", direction=choice(word, "direction", _DIRECTIONS, "Scroll"))
    path = _path(arguments, "Scroll", grid)
    x, y, x2, y2 = path
    return build("scroll", direction=opposite(finger_direction(path)), x=x, y=y, x2=x2, y2=y2)


def _path(arguments: Mapping[str, str], owner: str, grid: Frame) -> tuple[float, float, float, float]:
    return (*_point(arguments, "start", owner, grid), *_point(arguments, "end", owner, grid))


def _point(arguments: Mapping[str, str], key: str, owner: str, grid: Frame) -> tuple[float, float]:
    x, y = point(string(arguments, key, owner), key)
    return x / grid.width, y / grid.height


UI_VENUS = UiVenus("ui_venus", None)
UI_VENUS_1000 = UiVenus("ui_venus_1000", THOUSAND)
