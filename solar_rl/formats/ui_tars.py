r"""``ui_tars`` and ``ui_tars_abs``: a thought, then one Python-like call.

    Thought: The search box is on top.
    Action: click(start_box='(500,87)')

UI-TARS writes 0..1000, UI-TARS-1.5 (``ui_tars_abs``) pixels of the smart-resized image. ``scroll(direction=)``
names the content's direction; a scroll with two boxes is a finger path. Content is escaped as in Python
(\\', \\", \\n). As in the family's own parser, what follows the last ``Action:`` counts, of several calls the
first, an unescaped quote is taken as text, a missing last bracket is added, and a box of four numbers means
its middle. ``call_user()`` is read as giving up. Source: the action names of UI-TARS' public prompts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from solar_rl.actions import Action, opposite
from solar_rl.errors import ParseError
from solar_rl.formats.base import Aside, Frame, cant_say
from solar_rl.formats.grid import THOUSAND, Path, finger_direction, grid_point, on_grid
from solar_rl.formats.reading import NUMBER, build, choice, narrow, number, shown, string
from solar_rl.formats.spaces import Resized, Thousand

_MARKER, _THOUGHT = "Action:", "Thought:"
_WIDE_MARKER = re.compile(r"^(\s*(?:Action|Thought))：", re.MULTILINE)
_LINE = re.compile(rf"^\s*{_MARKER}", re.MULTILINE)
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_ARGUMENT = re.compile(
    r"""\s*(\w+)\s*=\s*(['"])((?:\\.|[^\\])*?)\2\s*(?:,(?=\s*\w+\s*=\s*['"])|$)""", re.DOTALL
)
_TAGS = re.compile(r"<[^<>]*>")
_BOX = re.compile(rf"[\[(]?\s*({NUMBER}(?:[\s,]+{NUMBER})*)\s*[\])]?")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "'": "'", '"': '"', "\\": "\\"}
_DIRECTIONS = {way: way for way in ("up", "down", "left", "right")}
_POINTS = {
    "click": "click",
    "left_single": "click",
    "long_press": "long_press",
    "left_double": "double_click",
    "right_single": "right_click",
    "hover": "hover",
}
_POINT_NAMES = {canonical: name for name, canonical in reversed(_POINTS.items())}
_PRESSES = {
    "press_back": "back",
    "navigate_back": "back",
    "press_home": "home",
    "navigate_home": "home",
    "press_enter": "enter",
}
_KEY_BUTTONS = ("back", "home", "enter")


class UiTars:
    """Reads and writes UI-TARS calls.

    Args:
        name: Name of the format.
        grid: What coordinates are divided by; None: the frame's pixels.
    """

    def __init__(self, name: str, grid: Frame | None) -> None:
        self.name = name
        self._fixed = grid
        self.space: type[Resized] | type[Thousand] = Thousand if grid else Resized

    def render(self, action: Action, frame: Frame) -> str:
        """Write one call without a thought.

        Raises:
            ActionError: UI-TARS has no such action (the recent apps), or can't say it (giving up with an
                answer).
        """
        return f"{_MARKER} {_written(action, self._fixed or frame)}"

    def parse(self, text: str, frame: Frame) -> Action:
        """Read the first call after the last ``Action:``, one that begins a line before any other."""
        text = _WIDE_MARKER.sub(r"\1:", text)
        if _MARKER not in text:
            raise ParseError(f"no {_MARKER!r}")
        first = _halves(text)[1].strip().split(")\n\n")[0].rstrip()
        name, arguments = _call(first if first.endswith(")") else f"{first})")
        return _read(name, arguments, self._fixed or frame)

    def aside(self, text: str, action: Action) -> Aside:
        """Return the thought before the action; a scroll's direction= names the content."""
        _, marker, thought = _halves(_WIDE_MARKER.sub(r"\1:", text))[0].partition(_THOUGHT)
        told_by_path = action.action_type != "scroll" or action.x2 is not None
        return Aside((marker and thought.strip()) or None, direction="finger" if told_by_path else "content")


def _halves(text: str) -> tuple[str, str]:
    """Split an answer at its marker: what comes before, and the call."""
    marker = [*_LINE.finditer(text)]
    if marker:
        return text[: marker[-1].start()], text[marker[-1].end() :]
    before, _, after = text.rpartition(_MARKER)
    return before, after


def _written(action: Action, grid: Frame) -> str:
    kind = action.action_type
    if kind in _POINT_NAMES:
        x, y = grid_point(action, grid)
        return f"{_POINT_NAMES[kind]}(start_box='({x},{y})')"
    if kind == "scroll":
        return f"scroll({_start(action, grid)}direction='{action.direction}')"
    if action.x is not None and action.y is not None and action.x2 is not None and action.y2 is not None:
        x, y, x2, y2 = on_grid((action.x, action.y, action.x2, action.y2), grid)
        return f"drag(start_box='({x},{y})', end_box='({x2},{y2})')"
    if kind == "input_text":
        return f"type(content='{_quoted(action.text or '')}')"
    if action.app_name is not None:
        return f"open_app(app_name='{_quoted(action.app_name)}')"
    if kind == "wait":
        return "wait()"
    if kind == "press":
        return _press(action)
    if action.status == "complete":
        return f"finished(content='{_quoted(action.text)}')" if action.text else "finished()"
    if action.text is None:
        return "call_user()"
    raise cant_say("UI-TARS", action)


def _start(action: Action, grid: Frame) -> str:
    if action.x is None or action.y is None:
        return ""
    x, y = grid_point(action, grid)
    return f"start_box='({x},{y})', "


def _press(action: Action) -> str:
    if action.button in ("back", "home"):
        return f"press_{action.button}()"
    if action.button == "enter":
        return "hotkey(key='enter')"
    keys = action.keys or ()
    if not keys or any(not key or key.split() != [key] for key in keys):
        raise cant_say("UI-TARS", action)
    return f"hotkey(key='{_quoted(' '.join(keys))}')"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")


def _call(text: str) -> tuple[str, dict[str, str]]:
    match = _CALL.fullmatch(text)
    if not match:
        raise ParseError("the action is not a call")
    name, inside = match[1], match[2].strip()
    arguments, at = {}, 0
    while at < len(inside):
        found = _ARGUMENT.match(inside, at)
        if not found:
            raise ParseError(f"the arguments of {shown(name)} can't be read")
        arguments[found[1]] = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[0]), found[3])
        at = found.end()
    return name, arguments


def _read(name: str, arguments: Mapping[str, str], grid: Frame) -> Action:
    if name in _POINTS:
        x, y = _box(arguments, ("start_box", "point", "start_point"), name, grid)
        return build(_POINTS[name], x=x, y=y)
    if name in _PRESSES:
        return build("press", button=_PRESSES[name])
    match name:
        case "type":
            return build("input_text", text=string(arguments, "content", name))
        case "scroll":
            return _scroll(arguments, grid)
        case "drag" | "select":
            x, y, x2, y2 = _path(arguments, name, grid)
            return build("drag", x=x, y=y, x2=x2, y2=y2)
        case "open_app" | "open":
            return build("open_app", app_name=string(arguments, "app_name", name))
        case "hotkey":
            return _hotkey(string(arguments, "key", name).split())
        case "wait":
            return build("wait")
        case "finished":
            return build("finished", status="complete", text=arguments.get("content") or None)
        case "call_user":
            return build("finished", status="infeasible")
    raise ParseError(f"unknown action {shown(name)}")


def _scroll(arguments: Mapping[str, str], grid: Frame) -> Action:
    if "direction" not in arguments:
        path = _path(arguments, "scroll", grid)
        x, y, x2, y2 = path
        return build("scroll", direction=opposite(finger_direction(path)), x=x, y=y, x2=x2, y2=y2)
    direction = choice(arguments, "direction", _DIRECTIONS, "scroll")
    if not any(key in arguments for key in ("start_box", "point", "start_point")):
        return build("scroll", direction=direction)
    x, y = _box(arguments, ("start_box", "point", "start_point"), "scroll", grid)
    return build("scroll", direction=direction, x=x, y=y)


def _hotkey(keys: list[str]) -> Action:
    if len(keys) == 1 and keys[0].lower() in _KEY_BUTTONS:
        return build("press", button=keys[0].lower())
    return build("press", keys=tuple(keys))


def _path(arguments: Mapping[str, str], owner: str, grid: Frame) -> Path:
    start = _box(arguments, ("start_box", "start_point"), owner, grid)
    return (*start, *_box(arguments, ("end_box", "end_point"), owner, grid))


def _box(arguments: Mapping[str, str], keys: tuple[str, ...], owner: str, grid: Frame) -> tuple[float, float]:
    key = next((key for key in keys if key in arguments), keys[0])
    match = _BOX.fullmatch(narrow(_TAGS.sub("", string(arguments, key, owner)).strip()))
    values = [number(float(part), key) for part in re.split(r"[\s,]+", match[1])] if match else []
    if len(values) not in (2, 4):
        raise ParseError(f"{key!r} is not a point")
    x, y = (values[0] + values[-2]) / 2, (values[1] + values[-1]) / 2
    return x / grid.width, y / grid.height


UI_TARS = UiTars("ui_tars", THOUSAND)
UI_TARS_ABS = UiTars("ui_tars_abs", None)
