"""Agree with every row of the shared parsing set, for every family that we read."""

import json
from pathlib import Path

import pytest

from solar_rl.actions import Action, path_direction
from solar_rl.errors import ParseError
from solar_rl.formats import FORMATS, get_format
from solar_rl.formats.base import Frame

SET = Path(__file__).parents[2].parent / "shared" / "oracles" / "parsing.jsonl"
TYPES = {"press": {"back": "navigate_back", "home": "navigate_home", "enter": "keyboard_enter"}}
AFTERTHOUGHTS = {"thought", "duration_ms", "direction_word", "content_direction"}
pytestmark = pytest.mark.real_data


def rows():
    if not SET.exists():
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=f"{SET} is absent"))]
    found = [json.loads(line) for line in SET.read_text(encoding="utf-8").splitlines()]
    return [pytest.param(row, id=row["id"]) for row in found if row["format"] in FORMATS]


def in_androidcontrol_words(action: Action) -> dict:
    """Say a canonical action as the set does: its type names, the finger's direction, six decimals."""
    kind = action.action_type
    said = {"type": {"finished": "status"}.get(kind, kind)}
    if action.button:
        said["type"] = TYPES["press"][action.button]
    for name in ("x", "y", "x2", "y2"):
        if getattr(action, name) is not None:
            said[name] = round(getattr(action, name), 6)
    if action.text is not None:
        said["text"] = action.text
    if action.app_name is not None:
        said["app_name"] = action.app_name
    if action.status:
        said["goal_status"] = action.status
    if action.finger_direction:
        said["finger_direction"] = action.finger_direction
    if kind == "drag":
        said["finger_direction"] = path_direction(action.x, action.y, action.x2, action.y2)
    return said


@pytest.mark.parametrize("row", rows())
def test_row(row):
    frame = Frame(row.get("resized_w", 1092), row.get("resized_h", 2408))
    fmt, expected = get_format(row["format"]), row["expected"]
    if expected.get("error"):
        with pytest.raises(ParseError):
            fmt.parse(row["raw"], frame)
        return
    action = fmt.parse(row["raw"], frame)
    said = in_androidcontrol_words(action)
    for key in ("content_direction", "direction_word"):
        assert expected.get(key) in (None, action.direction)
    if "direction_word" in expected:  # the family's word has no fixed sense, so the set states none
        del said["finger_direction"]
    assert said == {key: value for key, value in expected.items() if key not in AFTERTHOUGHTS}
