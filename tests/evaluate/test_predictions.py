"""Predictions are read, or the line that can't be is named."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solar_rl.errors import ConfigError, InputError, SolarError
from solar_rl.evaluate.predictions import read_predictions
from solar_rl.formats.base import Frame

KEY = {"episode_id": "e1", "step_index": 0}


def read(*rows, **options):
    lines = [row if isinstance(row, (str, bytes)) else json.dumps(row) for row in rows]
    options = {"frame_of": {("e1", 0): Frame(1000, 2000)}.get} | options
    return read_predictions(lines, where="p.jsonl", **options)


def test_canonical_actions_and_unreadable_answers_become_candidates():
    found = read(
        KEY | {"step_index": 1, "parse_error": "cut off", "raw": "Acti"},
        "",
        KEY | {"action_type": "press", "keys": ["ctrl", "c"], "comment": 5},
        {"episode_id": 7, "step_index": 0, "action_type": "click", "x": 1, "y": 0.5},
    )
    kept = found.select("episode_id", "step_index", "pred_action_type", "pred_keys", "pred_x", "parse_error")
    assert kept.rows() == [
        ("7", 0, "click", None, 1.0, None),
        ("e1", 0, "press", ["ctrl", "c"], None, None),
        ("e1", 1, None, None, None, "cut off"),
    ]


def test_raw_answers_are_parsed_in_the_frame_of_their_step():
    raw = "<action>Click(box=(500,1000))</action>"
    by_data = read(KEY | {"raw": raw}, format_name="ui_venus")
    by_line = read(KEY | {"raw": raw, "resized_w": 500, "resized_h": 1000}, format_name="ui_venus")
    broken = read(KEY | {"raw": "Click"}, format_name="ui_venus")
    assert by_data.select("pred_x", "pred_y").row(0) == (0.5, 0.5)
    assert by_line.select("pred_x", "pred_y").row(0) == (1.0, 1.0)
    assert broken["parse_error"].to_list() == ["no '<action>'"]


def test_both_levels_of_a_step_may_be_in_one_file():
    wait = KEY | {"action_type": "wait"}
    found = read(wait | {"level": "low"}, wait | {"level": "high"}, wait)
    assert found["level"].to_list() == ["low", "high", None]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ('{"episode_id": "e1"', "p.jsonl:1: is no JSON"),
        ('{"episode_id": "e1", "step_index": 0, "action_type": "click", "x": NaN, "y": 0}', "is no JSON"),
        ({"step_index": 0, "action_type": "wait"}, "'episode_id' is missing"),
        ({"episode_id": "e1", "action_type": "wait"}, "'step_index' is missing"),
        (KEY | {"step_index": -1}, "'step_index' is no whole number"),
        (KEY | {"step_index": 1.0}, "'step_index' is no whole number"),
        (KEY | {"step_index": True}, "'step_index' is no whole number"),
        (KEY | {"episode_id": 1.5}, "'episode_id' is no string"),
        (KEY, "'action_type' is missing"),
        (KEY | {"action_type": None}, "'action_type' is missing"),
        (KEY | {"action_type": "tap", "x": 0, "y": 0}, "unknown action type 'tap'"),
        (KEY | {"action_type": "click", "x": 0.5}, "click needs 'y'"),
        (KEY | {"action_type": "click", "x": "0.5", "y": 0}, "'x' is no number"),
        (KEY | {"action_type": "click", "x": True, "y": 0}, "'x' is no number"),
        (KEY | {"action_type": "click", "x": 10**400, "y": 0}, "p.jsonl:1"),
        (KEY | {"action_type": "input_text", "text": 5}, "'text' is no string"),
        (KEY | {"action_type": ["wait"]}, "'action_type' is no string"),
        (KEY | {"action_type": "press", "keys": "ctrl"}, "'keys' is no list"),
        (KEY | {"action_type": "scroll", "direction": "Down"}, "direction is 'Down'"),
        (KEY | {"action_type": "wait", "level": "medium"}, "'level' is 'medium'"),
    ],
    ids=str,
)
def test_a_broken_line_is_named_and_never_a_wrong_answer(row, told):
    with pytest.raises(InputError) as caught:
        read(row)
    assert told in str(caught.value)
    assert "p.jsonl:1" in str(caught.value)


def test_duplicates_unknown_steps_and_empty_files_are_named():
    with pytest.raises(InputError, match=r"p.jsonl:2: step 0 of episode e1 is answered twice"):
        read(*[KEY | {"action_type": "wait"}] * 2)
    with pytest.raises(InputError, match="no step 9 of episode e1"):
        read(KEY | {"step_index": 9, "raw": "x"}, format_name="ui_venus")
    with pytest.raises(InputError, match="'raw' is missing"):
        read(KEY | {"action_type": "wait"}, format_name="ui_venus")
    with pytest.raises(InputError, match="resized_w x resized_h is 5 x None"):
        read(KEY | {"raw": "x", "resized_w": 5}, format_name="ui_venus")
    with pytest.raises(InputError, match="is 2000 x 1000, but the step's image is about 1000 x 2000"):
        read(KEY | {"raw": "x", "resized_w": 2000, "resized_h": 1000}, format_name="ui_venus")
    with pytest.raises(InputError, match="holds no predictions"):
        read("")
    with pytest.raises(ConfigError, match="no format is named"):
        read(KEY | {"raw": "x"}, format_name="venus")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
names = st.sampled_from(
    ["action_type", "x", "y", "direction", "text", "keys", "button", "level", "parse_error"]
)


@given(st.dictionaries(names, json_values))
def test_any_line_is_read_or_refused_in_our_words(fields):
    try:
        assert read(KEY | fields).height == 1
    except SolarError as error:
        assert "p.jsonl:1" in str(error)


@given(st.binary(max_size=30))
def test_any_bytes_are_refused_in_our_words(line):
    with pytest.raises(SolarError):
        read(line)
