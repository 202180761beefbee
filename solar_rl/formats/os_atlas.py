"""``os_atlas``: an upper-case action on a line of its own, points 0..1000.

    thoughts:
    ...
    actions:
    CLICK <point>[[950, 87]]</point>

The SCROLL word has no fixed sense in the family's data; here it is the content's direction, as in its
AndroidControl data. Text stands in brackets without escapes, so it can't hold a line break. Source: the action
names of OS-Atlas' public prompts.
"""

from __future__ import annotations

import re

from solar_rl.actions import DIRECTIONS, Action
from solar_rl.errors import ActionError, ParseError
from solar_rl.formats.base import Aside, Frame, cant_say
from solar_rl.formats.grid import THOUSAND, grid_point
from solar_rl.formats.reading import NUMBER, build, number, shown
from solar_rl.formats.spaces import Thousand

_MARKER = re.compile(r"^[ \t]*actions[:：]", re.IGNORECASE | re.MULTILINE)
_THOUGHTS = re.compile(r"^[ \t]*thoughts[:：]", re.IGNORECASE | re.MULTILINE)
_SPECIAL = re.compile(r"<\|[^|<>]*\|>")
_WORD = re.compile(r"([A-Z_]+)(.*)")
_POINT = re.compile(rf"\s*(?:<point>)?\s*\[\[\s*({NUMBER})\s*,\s*({NUMBER})\s*\]\]\s*(?:</point>)?\s*")
_BRACKETS = re.compile(r"\s*\[(.*)\]\s*")
_POINTS = {"CLICK": "click", "LONG_PRESS": "long_press"}
_BUTTONS = {
    "PRESS_BACK": "back",
    "PRESS_HOME": "home",
    "PRESS_RECENT": "recent",
    "ENTER": "enter",
    "PRESS_ENTER": "enter",
}
_BUTTON_NAMES = {button: name for name, button in reversed(_BUTTONS.items())}
_ENDINGS = {"COMPLETE": "complete", "IMPOSSIBLE": "infeasible"}
_ENDING_NAMES = {status: name for name, status in _ENDINGS.items()}


class OsAtlas:
    """Reads and writes OS-Atlas actions."""

    name = "os_atlas"
    space = Thousand

    def render(self, action: Action, frame: Frame) -> str:
        """Write the action below its marker, without thoughts.

        Raises:
            ActionError: The family has no such action (drag, hotkeys, answers), or text has a line break.
        """
        return f"actions:\n{_written(action)}"

    def parse(self, text: str, frame: Frame) -> Action:
        """Read the first line after the marker."""
        marker = _MARKER.search(text)
        if not marker:
            raise ParseError("no 'actions:'")
        lines = _SPECIAL.sub("", text[marker.end() :]).strip().splitlines()
        match = _WORD.fullmatch(lines[0].strip()) if lines else None
        if not match:
            raise ParseError("no action after 'actions:'")
        return _read(match[1], match[2])

    def aside(self, text: str, action: Action) -> Aside:
        """Return the thoughts; a scroll's word has no fixed sense."""
        marker = _MARKER.search(text)
        before = text[: marker.start()] if marker else text
        begin = _THOUGHTS.search(before)
        return Aside((begin and before[begin.end() :].strip()) or None, direction="word")


def _written(action: Action) -> str:
    kind = action.action_type
    if kind in _POINTS.values():
        x, y = grid_point(action, THOUSAND)
        return f"{kind.upper()} <point>[[{x},{y}]]</point>"
    if kind == "scroll" and action.direction:
        return f"SCROLL [{action.direction.upper()}]"
    if kind == "input_text":
        return f"TYPE [{_one_line(action.text or '')}]"
    if action.app_name is not None:
        return f"OPEN_APP [{_one_line(action.app_name)}]"
    if kind == "wait":
        return "WAIT"
    if action.button is not None:
        return _BUTTON_NAMES[action.button]
    if action.status is not None and action.text is None:
        return _ENDING_NAMES[action.status]
    raise cant_say("OS-Atlas", action)


def _one_line(text: str) -> str:
    if text.splitlines() not in ([], [text]) or _SPECIAL.search(text):
        raise ActionError("OS-Atlas can't write text with a line break or a special token")
    return text


def _read(word: str, rest: str) -> Action:
    if word in _POINTS:
        match = _POINT.fullmatch(rest)
        if not match:
            raise ParseError(f"{word} needs a point")
        x, y = (number(float(part), word) / 1000 for part in match.groups())
        return build(_POINTS[word], x=x, y=y)
    if word in _BUTTONS:
        return build("press", button=_BUTTONS[word])
    if word in _ENDINGS:
        return build("finished", status=_ENDINGS[word])
    match word:
        case "TYPE":
            return build("input_text", text=_bracketed(word, rest))
        case "OPEN_APP":
            return build("open_app", app_name=_bracketed(word, rest))
        case "SCROLL":
            direction = _bracketed(word, rest).strip().lower()
            if direction not in DIRECTIONS:
                raise ParseError(f"SCROLL is {shown(direction)}, expected a direction")
            return build("scroll", direction=direction)
        case "WAIT":
            return build("wait")
    raise ParseError(f"unknown action {shown(word)}")


def _bracketed(word: str, rest: str) -> str:
    match = _BRACKETS.fullmatch(rest)
    if not match:
        raise ParseError(f"{word} needs text in brackets")
    return match[1]


OS_ATLAS = OsAtlas()
