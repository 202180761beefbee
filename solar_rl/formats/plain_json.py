"""``json``: our plain format for text policies. Canonical names, integers 0..1000 of the screen. Ours.

    {"action": "click", "x": 512, "y": 87}

Integers 0..1000 rather than unit floats: they are short in every tokeniser, don't depend on the screen, and
are what several model families write. The scale is fixed: 1 means 0.001, never the far edge.
"""

from __future__ import annotations

import json
from typing import Any

from solar_rl.actions import ACTION_TYPES, Action
from solar_rl.errors import ParseError
from solar_rl.formats.base import Aside, Frame
from solar_rl.formats.grid import to_grid
from solar_rl.formats.reading import build, first_object, number, shown, storable, string, thought_of
from solar_rl.formats.spaces import Thousand

_SCALE = 1000
_POINTS = ("x", "y", "x2", "y2")
_WORDS = ("direction", "text", "app_name", "button", "status")
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


class PlainJson:
    """Reads and writes our plain JSON; it knows every canonical action."""

    name = "json"
    space = Thousand

    def render(self, action: Action, frame: Frame) -> str:
        """Write every field that the action has."""
        data: dict[str, Any] = {"action": action.action_type}
        for name in _POINTS:
            value = getattr(action, name)
            if value is not None:
                data[name] = to_grid(value, _SCALE)
        for name in (*_WORDS, "keys"):
            value = getattr(action, name)
            if value is not None:
                data[name] = value
        return _ENCODE(data)

    def parse(self, text: str, frame: Frame) -> Action:
        """Read the first JSON object of the answer; text around it is ignored, foreign keys too."""
        data = first_object(text)
        action_type = string(data, "action", "the answer")
        if action_type not in ACTION_TYPES:
            raise ParseError(f"unknown action {shown(action_type)}")
        fields: dict[str, Any] = {
            name: number(data[name], name) / _SCALE for name in _POINTS if data.get(name) is not None
        }
        fields.update(
            {name: string(data, name, action_type) for name in _WORDS if data.get(name) is not None}
        )
        if data.get("keys") is not None:
            fields["keys"] = _keys(data["keys"])
        return build(action_type, **fields)

    def aside(self, text: str, action: Action) -> Aside:
        """Return the object's thought, if it has one."""
        return Aside(thought_of(first_object(text)), direction="content")


def _keys(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(key, str) and storable(key) for key in value):
        raise ParseError("'keys' is not a list of strings")
    return tuple(value)
