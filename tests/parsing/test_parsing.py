"""``solar-rl parse``: what each family says beside its action, and which lines are the user's mistake."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solar_rl.errors import ConfigError, InputError
from solar_rl.formats import FORMATS, get_format
from solar_rl.formats.base import Frame
from solar_rl.parsing import parse_lines, read_answer

SET = Path(__file__).parents[2].parent / "shared" / "oracles" / "parsing.jsonl"
PHONE = Frame(1092, 2408)


def rows():
    if not SET.exists():
        return [pytest.param(None, id="absent", marks=pytest.mark.skip(reason=f"{SET} is absent"))]
    found = [json.loads(line) for line in SET.read_text(encoding="utf-8").splitlines()]
    return [pytest.param(row, id=row["id"]) for row in found]


@pytest.mark.real_data
@pytest.mark.parametrize("row", rows())
def test_says_what_the_shared_set_expects(row):
    (said,) = parse_lines([json.dumps(row)], row["format"])
    expected = row["expected"]
    if expected.get("error"):
        assert said["error"] is True
        assert said["reason"]
        return
    assert said.keys() == expected.keys()
    for key, value in expected.items():
        assert said[key] == (pytest.approx(value, abs=1e-6) if isinstance(value, float) else value), key


def say(name: str, raw: str, **options) -> dict:
    return read_answer(get_format(name), raw, PHONE, **options)


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("agentcpm_gui", '{"duration":3000}', {"type": "wait", "duration_ms": 3000}),
        ("agentcpm_gui", '{"thought":" ","PRESS":"ENTER"}', {"type": "keyboard_enter"}),
        (
            "agentcpm_gui",
            '{"POINT":[500,500],"to":"up"}',
            {"type": "scroll", "x": 0.5, "y": 0.5, "finger_direction": "up"},
        ),
        ("agentcpm_gui", '{"STATUS":"finish"}', {"type": "status", "goal_status": "complete"}),
        (
            "qwen25vl_mobile_use",
            "<think>Hold it.</think><tool_call>"
            '{"name":"mobile_use","arguments":{"action":"long_press","coordinate":[546,1204],"time":1.5}}',
            {"type": "long_press", "x": 0.5, "y": 0.5, "duration_ms": 1500, "thought": "Hold it."},
        ),
        (
            "qwen3vl_mobile_use",
            '{"name":"mobile_use","arguments":{"action":"system_button","button":"Menu"}}',
            {"type": "navigate_recent"},
        ),
        (
            "ui_tars",
            "Thought: a\nb\nAction: finished(content='5 pm')",
            {"type": "status", "goal_status": "complete", "text": "5 pm", "thought": "a\nb"},
        ),
        (
            "ui_tars",
            "Action: scroll(start_box='(500,800)', end_box='(500,200)')",
            {"type": "scroll", "x": 0.5, "y": 0.8, "x2": 0.5, "y2": 0.2, "finger_direction": "up"},
        ),
        (
            "ui_venus",
            "<think></think><action>Scroll(direction='down')</action>",
            {"type": "scroll", "content_direction": "down", "finger_direction": "up"},
        ),
        ("ui_tars", "Action: hotkey(key='ctrl c')", {"type": "press", "keys": ["ctrl", "c"]}),
        ("json", '{"action":"double_click","x":10,"y":20}', {"type": "double_click", "x": 0.01, "y": 0.02}),
        ("os_atlas", "actions:\nSCROLL [LEFT]", {"type": "scroll", "direction_word": "left"}),
    ],
)
def test_says_what_stands_beside_the_action(name, raw, said):
    assert say(name, raw) == said


def test_canonical_names_are_those_of_the_action():
    raw = "Thought: t\nAction: scroll(direction='down')"
    assert say("ui_tars", raw, canonical=True) == {
        "action_type": "scroll",
        "direction": "down",
        "thought": "t",
    }


@given(st.sampled_from(sorted(FORMATS)), st.text())
def test_any_text_is_an_action_or_a_reason(name, raw):
    said = say(name, raw)
    assert "type" in said or (said["error"] is True and said["reason"])
    json.dumps(said, allow_nan=False).encode()
    assert ("type" in said) != bool(said.get("error") and said["reason"])


def test_empty_lines_and_foreign_keys_are_passed_over():
    lines = ["", '{"raw": "actions:\\nWAIT", "resized_w": "x"}', "  \n"]
    assert list(parse_lines(lines, "os_atlas")) == [{"type": "wait"}]


@pytest.mark.parametrize(
    ("line", "name", "told"),
    [
        ('{"raw": "x"', "ui_tars", "line 2: is no JSON"),
        ('{"raw": NaN}', "ui_tars", "line 2: is no JSON"),
        ("[1]", "ui_tars", "line 2: is no JSON object but list"),
        ("{}", "ui_tars", "line 2: 'raw' is missing"),
        ('{"raw": null}', "ui_tars", "line 2: 'raw' is NoneType"),
        ('{"raw": "x"}', "ui_venus", "line 2: ui_venus speaks pixels"),
        ('{"raw": "x", "resized_w": 28}', "ui_venus", "line 2: resized_w x resized_h is 28 x None"),
        (
            '{"raw": "x", "resized_w": 0, "resized_h": 5}',
            "ui_venus",
            "line 2: resized_w x resized_h is 0 x 5",
        ),
        ('{"raw": "x", "resized_w": true, "resized_h": 5}', "ui_venus", "line 2: resized_w x resized_h"),
    ],
)
def test_a_broken_line_is_named(line, name, told):
    good = json.dumps({"raw": "Action: wait()", "resized_w": 28, "resized_h": 28})
    answers = parse_lines([good, line], name)
    next(answers)
    with pytest.raises(InputError) as caught:
        next(answers)
    assert told in str(caught.value)


def test_half_a_surrogate_pair_is_an_answer_that_cant_be_read():
    (said,) = parse_lines([r'{"raw": "Thought: \ud800\nAction: wait()"}'], "ui_tars")
    assert said == {"error": True, "reason": "'raw' is not valid Unicode"}


def test_an_unknown_format_is_named():
    with pytest.raises(ConfigError, match="did you mean 'ui_tars'"):
        next(parse_lines([], "ui_tar"))


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
points = st.lists(st.integers(0, 1000), min_size=2, max_size=2)
qwen_arguments = st.fixed_dictionaries(
    {"action": st.sampled_from(["click", "long_press", "wait", "swipe"])},
    optional={"coordinate": points | values, "coordinate2": points, "time": values, "text": values},
)
agentcpm_objects = st.fixed_dictionaries(
    {},
    optional={
        "POINT": points | values,
        "duration": st.integers() | values,
        "to": points | values,
        "thought": values,
    },
)


@given(qwen_arguments)
def test_whatever_stands_beside_a_qwen_action_is_no_obstacle(arguments):
    call = json.dumps({"name": "mobile_use", "arguments": arguments})
    said = say("qwen25vl_mobile_use", f"<tool_call>{call}</tool_call>")
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert said.get("error") or said["type"] in {"click", "long_press", "wait", "scroll", "swipe"}
    if arguments["action"] == "wait":
        assert said["type"] == "wait"


@given(agentcpm_objects)
def test_whatever_stands_beside_an_agentcpm_action_is_no_obstacle(data):
    said = say("agentcpm_gui", json.dumps(data))
    assert json.loads(json.dumps(said, allow_nan=False)) == said
    assert ("type" in said) != bool(said.get("error") and said["reason"])


def test_a_time_that_is_no_duration_is_left_out():
    for time in ("2", None, True, -1, 1e308):
        call = {"name": "mobile_use", "arguments": {"action": "wait", "time": time}}
        assert say("qwen25vl_mobile_use", json.dumps(call)) == {"type": "wait"}
