"""Every family says every phone action and reads it back within its grid."""

import pytest
from hypothesis import assume, given
from phone_actions import (
    assert_same,
    clicks,
    desktop_actions,
    frames,
    pathless_scrolls,
    phone_actions,
    scrolls,
)

from solar_rl.actions import BUTTONS, DIRECTIONS, Action
from solar_rl.errors import ActionError, ConfigError
from solar_rl.formats import FORMATS, get_format, parse_completion
from solar_rl.formats.base import Frame
from solar_rl.formats.grid import THOUSAND

PHONE = Frame(1092, 2408)
QWEN = get_format("qwen25vl_mobile_use")


def grid_of(name: str, frame: Frame) -> Frame:
    return frame if name in PIXELS else THOUSAND


PIXELS = {"qwen25vl_mobile_use", "ui_tars_abs", "ui_venus"}
OPEN, RECENT = Action("open_app", app_name="Zoho Meeting"), Action("press", button="recent")
GIVING_UP = Action("finished", status="infeasible")
ANSWER = Action("finished", status="complete", text="about 3 o'clock")
PHONE_ACTIONS = (
    Action("click", x=0.2, y=0.7),
    Action("long_press", x=0.2, y=0.7),
    *(Action("scroll", direction=way) for way in DIRECTIONS),
    Action("input_text", text="it's \\ [1], (2)"),
    OPEN,
    *(Action("press", button=button) for button in BUTTONS),
    Action("wait"),
    Action("finished", status="complete"),
    GIVING_UP,
    ANSWER,
)
LACKING = {
    ("ui_tars", RECENT),
    ("ui_tars_abs", RECENT),
    ("ui_venus", GIVING_UP),
    ("ui_venus_1000", GIVING_UP),
    ("agentcpm_gui", OPEN),
    ("agentcpm_gui", ANSWER),
    ("os_atlas", ANSWER),
}
"""What a family has no words for, read from its own prompts."""


@pytest.mark.parametrize("name", FORMATS)
@given(action=phone_actions | desktop_actions, frame=frames)
def test_what_a_family_can_say_survives(name, action, frame):
    fmt = get_format(name)
    try:
        fmt.render(action, frame)
    except ActionError as error:
        assert "no way to say" in error.message or "can't write" in error.message
        assume(False)
    assert_same(fmt.parse(fmt.render(action, frame), frame), action, grid_of(name, frame))


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("action", PHONE_ACTIONS, ids=lambda a: a.action_type)
def test_every_family_says_every_phone_action(name, action):
    fmt = get_format(name)
    if (name, action) in LACKING:
        with pytest.raises(ActionError, match="no way to say"):
            fmt.render(action, PHONE)
        return
    read = fmt.parse(fmt.render(action, PHONE), PHONE)
    assert_same(read, action, grid_of(name, PHONE))


@given(action=phone_actions, frame=frames)
def test_mobile_use_says_every_phone_action_there_can_be(action, frame):
    assert_same(QWEN.parse(QWEN.render(action, frame), frame), action, frame)


@given(action=desktop_actions, frame=frames)
def test_json_knows_desktop_actions_too(action, frame):
    fmt = get_format("json")
    assert_same(fmt.parse(fmt.render(action, frame), frame), action, THOUSAND)


@pytest.mark.parametrize("name", FORMATS)
@given(action=clicks, frame=frames)
def test_writing_what_was_read_changes_nothing(name, action, frame):
    fmt = get_format(name)
    once = fmt.render(action, frame)
    assert fmt.render(fmt.parse(once, frame), frame) == once


@given(action=scrolls, frame=frames)
def test_a_scroll_is_drawn_as_a_finger_path_against_the_content(action, frame):
    read = QWEN.parse(QWEN.render(action, frame), frame)
    dx, dy = read.x2 - read.x, read.y2 - read.y
    signed = {"up": -dy, "down": dy, "left": -dx, "right": dx}[read.finger_direction]
    assert signed > 0
    assert not read.off_screen


@given(action=pathless_scrolls, frame=frames)
def test_json_adds_no_path_to_a_scroll_without_one(action, frame):
    fmt = get_format("json")
    assert fmt.parse(fmt.render(action, frame), frame) == action


def test_a_recorded_finger_path_is_kept():
    action = Action("scroll", direction="left", x=0.25, y=0.5, x2=0.75, y2=0.51)
    read = QWEN.parse(QWEN.render(action, PHONE), PHONE)
    assert (read.x, read.y, read.x2, read.direction) == (0.25, 0.5, 0.75, "left")


def test_a_path_that_contradicts_its_direction_is_redrawn_from_its_start():
    action = Action("scroll", direction="down", x=0.5, y=0.25, x2=0.5, y2=0.75)
    read = QWEN.parse(QWEN.render(action, PHONE), PHONE)
    assert (read.y, read.y2, read.direction) == (0.25, 0.0, "down")


def test_numbers_are_read_exactly_as_pixels_over_the_frame():
    text = QWEN.render(Action("click", x=0.5, y=1.0), PHONE)
    assert '"coordinate": [546, 2408]' in text
    assert QWEN.parse(text, PHONE) == Action("click", x=0.5, y=1.0)


@pytest.mark.parametrize(
    "action",
    [
        Action("drag", x=0.1, y=0.1, x2=0.2, y2=0.2),
        Action("double_click", x=0.1, y=0.1),
        Action("right_click", x=0.1, y=0.1),
        Action("hover", x=0.1, y=0.1),
        Action("press", keys=("ctrl", "c")),
        Action("finished", status="infeasible", text="no such app"),
    ],
)
def test_what_mobile_use_can_not_say_is_an_error(action):
    with pytest.raises(ActionError, match="no way to say"):
        QWEN.render(action, PHONE)


def test_one_key_is_a_key_event():
    action = Action("press", keys=("volume_up",))
    assert QWEN.parse(QWEN.render(action, PHONE), PHONE) == action


def test_an_unknown_format_gets_a_suggestion():
    with pytest.raises(ConfigError, match="did you mean 'qwen25vl_mobile_use'"):
        get_format("qwen25_mobile_use")


def test_parse_completion_gives_an_action_or_a_reason():
    assert parse_completion("json", '{"action": "wait"}', PHONE) == (Action("wait"), None)
    assert parse_completion("json", "hm", PHONE) == (None, "no JSON object")
