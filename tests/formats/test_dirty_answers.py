"""What is unambiguous is read, everything else is a ParseError with a reason, nothing is guessed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solar_rl.actions import Action
from solar_rl.errors import ParseError
from solar_rl.formats import FORMATS, get_format, parse_completion
from solar_rl.formats.base import Frame

FRAME = Frame(1000, 2000)
QWEN = get_format("qwen25vl_mobile_use")
CLICK = Action("click", x=0.5, y=0.5)


def call(**arguments) -> str:
    return json.dumps({"name": "mobile_use", "arguments": arguments})


def tagged(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


GOOD = call(action="click", coordinate=[500, 1000])


@pytest.mark.parametrize(
    "text",
    [
        tagged(GOOD),
        GOOD,
        f"I tap the middle.\n{tagged(GOOD)}\nDone.",
        f"<tool_call>{GOOD}",
        f"<tool_call>\n```json\n{GOOD}\n```\n</tool_call>",
        f"```json\n{GOOD}\n```",
        tagged(GOOD) + tagged(call(action="wait")),
        tagged(call(action="click", coordinate="(500, 1000)")),
        tagged(call(action="click", coordinate="[500,1000]")),
        tagged(call(action="click", coordinate="500, 1000")),
        tagged(call(action="click", coordinate="（500，1000）")),
        tagged(GOOD.replace("]", ",]").replace("}", ", }")),
        tagged(call(action="click", coordinate=[500.0, 1000.0])),
        tagged(call(action="click", coordinate=[500, 1000], text=None, time=None)),
        tagged(json.dumps({"name": "mobile_use", "arguments": '{"action":"click","coordinate":[500,1000]}'})),
        tagged(
            '{"name": "mobile_use", "arguments": {"action": "click", "action": "click", "coordinate": [500, 1000]}}'
        ),
    ],
)
def test_unambiguous_clicks_are_read(text):
    assert QWEN.parse(text, FRAME) == CLICK


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ("I would tap the button.", "no JSON object"),
        (tagged(""), "no JSON object"),
        (tagged("click(500, 1000)") + GOOD, "no JSON object"),
        (tagged(GOOD[:-1]), "broken JSON"),
        (tagged(GOOD[:-9]), "broken JSON"),
        (tagged(GOOD.replace('"', "'")), "broken JSON"),
        (tagged(GOOD.replace("]", ",,]")), "broken JSON"),
        (tagged('{"name": "mobile_use"}'), "needs 'arguments'"),
        (tagged('{"arguments": {"action": "wait"}}'), "needs 'name'"),
        (tagged('{"name": "computer_use", "arguments": {"action": "wait"}}'), "the tool is 'computer_use'"),
        (tagged('{"name": "mobile_use", "arguments": []}'), "not a JSON object"),
        (tagged(call()), "needs 'action'"),
        (tagged(call(action="tap", coordinate=[1, 2])), "unknown action 'tap'"),
        (tagged(call(action=["click"])), "'action' is not a string"),
        (tagged(call(action="click")), "click needs 'coordinate'"),
        (tagged(call(action="click", coordinate=[500])), "not a point"),
        (tagged(call(action="click", coordinate=[1, 2, 3, 4])), "not a point"),
        (tagged(call(action="click", coordinate="(1, 2, 3, 4)")), "not a point"),
        (tagged(call(action="click", coordinate={"x": 1, "y": 2})), "not a point"),
        (tagged(call(action="click", coordinate=[True, 2])), "not a number"),
        (tagged(call(action="click", coordinate=["a", 2])), "not a number"),
        (tagged(call(action="click", coordinate=[float("nan"), 2])), "NaN is not a JSON number"),
        (
            tagged('{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [1e999, 2]}}'),
            "finite",
        ),
        (tagged(call(action="click", coordinate=[10**400, 2])), "finite"),
        (tagged(call(action="swipe", coordinate=[1, 2])), "swipe needs 'coordinate2'"),
        (tagged(call(action="swipe", coordinate=[1, 2], coordinate2=[1, 2])), "ends where it starts"),
        (tagged(call(action="type")), "type needs 'text'"),
        (tagged(call(action="type", text=5)), "'text' is not a string"),
        (tagged(call(action="open")), "open needs 'text'"),
        (tagged(call(action="system_button", button="Power")), "'button' is 'Power'"),
        (tagged(call(action="terminate")), "terminate needs 'status'"),
        (tagged(call(action="terminate", status="maybe")), "'status' is 'maybe'"),
        (
            tagged('{"name": "mobile_use", "arguments": {"action": "wait", "action": "click"}}'),
            "appears twice",
        ),
        (tagged(r'{"name": "mobile_use", "arguments": {"action": "type", "text": "\ud800"}}'), "Unicode"),
        ("{" * 100_000, "broken JSON"),
        ('{"a":' * 100_000, "broken JSON"),
        (f'{{"name": {"9" * 10_000}}}', "broken JSON"),
    ],
    ids=lambda value: value[:30],
)
def test_everything_else_has_a_reason(text, reason):
    with pytest.raises(ParseError) as caught:
        QWEN.parse(text, FRAME)
    assert reason in caught.value.message
    assert len(caught.value.message) < 150


def test_words_of_a_fixed_list_may_be_in_any_case():
    assert QWEN.parse(call(action="system_button", button="BACK"), FRAME) == Action("press", button="back")
    assert QWEN.parse(call(action="system_button", button="Menu"), FRAME).button == "recent"


def test_points_beyond_the_image_are_kept_for_the_judge():
    assert QWEN.parse(call(action="click", coordinate=[1100, -20]), FRAME).off_screen


def test_typed_text_may_hold_tags_braces_and_line_breaks():
    text = 'a </tool_call> {"b": "}"}\n<tool_call>'
    read = QWEN.parse(QWEN.render(Action("input_text", text=text), FRAME), FRAME)
    assert read.text == text


def test_reading_a_long_run_of_digits_takes_no_time():
    with pytest.raises(ParseError):
        QWEN.parse(call(action="click", coordinate="1" * 200_000), FRAME)


def test_json_takes_numbers_at_one_scale_only():
    fmt = get_format("json")
    assert fmt.parse('{"action": "click", "x": 1, "y": 0.5}', FRAME) == Action("click", x=0.001, y=0.0005)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"action": "tap", "x": 1, "y": 1}', "unknown action 'tap'"),
        ('{"action": "click", "x": 1}', "click needs 'y'"),
        ('{"action": "click", "x": "1", "y": 1}', "x is not a number"),
        ('{"action": "scroll", "direction": "sideways"}', "direction is 'sideways'"),
        ('{"action": "press"}', "press needs either"),
        ('{"action": "press", "keys": "ctrl"}', "not a list of strings"),
        ('{"action": "press", "keys": ["\\ud800"]}', "not a list of strings"),
        ('{"x": 1}', "needs 'action'"),
    ],
)
def test_json_reasons(text, reason):
    with pytest.raises(ParseError, match=reason.replace("[", r"\[")):
        get_format("json").parse(text, FRAME)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from(
    [
        "action",
        "coordinate",
        "coordinate2",
        "text",
        "button",
        "status",
        "x",
        "y",
        "keys",
        "direction",
        "POINT",
    ]
)
actions = st.sampled_from(
    ["click", "swipe", "type", "open", "system_button", "key", "terminate", "answer", "scroll", "press"]
)
almost = st.builds(
    lambda kind, rest: tagged(json.dumps({"name": "mobile_use", "arguments": {**rest, "action": kind}})),
    actions | values,
    st.dictionaries(names, values, max_size=5),
)
FRAGMENTS = """<tool_call>|</tool_call>|{|}|"action"|:|,|[|]|click|Action: |(|)|'|"|\\|start_box=
<action>|</action>|Click(box=|actions:\n|CLICK <point>[[""".replace("\n", "|").split("|")
pieces = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=25).map("".join)


@pytest.mark.parametrize("name", FORMATS)
@given(text=st.text() | almost | pieces)
def test_any_text_gives_a_storable_action_or_a_parse_error(name, text):
    try:
        action = get_format(name).parse(text, FRAME)
    except ParseError as error:
        assert error.message
        return
    assert isinstance(action, Action)
    for value in (action.text, action.app_name, *(action.keys or ())):
        assert value is None or value.encode()


def test_a_comma_inside_a_string_is_text() -> None:
    frame = Frame(1000, 2000)
    text = '{"name": "mobile_use", "arguments": {"action": "type", "text": "a,] \\",} b",},}'
    action, reason = parse_completion("qwen25vl_mobile_use", text, frame)
    assert reason is None
    assert action is not None
    assert action.text == 'a,] ",} b'


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ui_tars", "Thought：tap\nAction：click(start_box='（500，250）')"),
        ("os_atlas", "thoughts：tap\nactions：\nCLICK <point>[[500, 250]]</point>"),
    ],
)
def test_full_width_markers_and_brackets_mean_what_plain_ones_do(name: str, text: str) -> None:
    action, reason = parse_completion(name, text, Frame(1000, 2000))
    assert reason is None
    assert action == Action("click", x=0.5, y=0.25)


def test_full_width_characters_in_a_typed_text_are_kept() -> None:
    action, _ = parse_completion("ui_tars", "Action: type(content='Action：（你好）')", Frame(1000, 2000))
    assert action == Action("input_text", text="Action：（你好）")
