"""The quick way of reading a line gives what the reader of JSON objects gives, whatever the line holds."""

import copy
import json
from pathlib import Path

import pytest

from builders.android_control.plain import NOT_PLAIN
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.schema import Episode

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
ODD = (None, True, 0, -5, 3.5, 2000, 1e12, float("nan"), 10**400, "", " ", "x", "\ud800", "é", [], {}, [1, 2, 3],
       [1, 2], [1, 2, 3, 4], [[1, 2, 3, 4]], [["1", 2, 3, 4]], {"a": 1})  # fmt: skip
"""What stands in the place of each value of a line in turn."""
CONTROL = {
    "episode_id": 7,
    "goal": "Open the shop",
    "split": "test",
    "actions": [
        {"action_type": "click", "x": 10, "y": 20},
        {"action_type": "long_press", "x": 540.5, "y": 2399},
        {"action_type": "scroll", "direction": "down"},
        {"action_type": "input_text", "text": " milk "},
        {"action_type": "open_app", "app_name": "Shop"},
        {"action_type": "navigate_home"},
        {"action_type": "navigate_back"},
        {"action_type": "wait"},
    ],
    "step_instructions": ["tap", None, " ", "type", "open", "home", "back", "wait"],
    "candidate_bboxes": [[[-4, 0, 30, 40], [0, 0, 1080, 2400]], [[0, 0, 5, 5]], [], [], [], [], [], []],
}


def ui_s1(variant):
    """Return a line with every action; evaluation lines have checks, those with thoughts thoughts."""
    contents = [
        {"action": "click", "coordinate": [10, 20], "bbox": [0, 0, 30, 40]},
        {"action": "long_press", "coordinate": [10.5, 20], "bbox": [-5, 0, 30, 4000]},
        {"action": "swipe", "coordinate": [540, 1800], "coordinate2": [540, 600]},
        {"action": "swipe", "coordinate": [800, 1200], "coordinate2": [280, 1200]},
        {"action": "type", "text": "milk"},
        {"action": "open", "text": "Shop"},
        {"action": "wait"},
        {"action": "system_button", "button": "Back"},
        {"action": "terminate", "status": "success"},
    ]
    steps = [
        {"action_content": c, "screenshot": f"/a/9_{k}.png", "step_instruction": f"do {k}"}
        for k, c in enumerate(contents)
    ]
    steps[0] |= {"action_description": "described", "step_instruction": ""}
    if variant == "evaluation":
        steps[0]["check_options"] = {"candidate_bbox": [[0, 0, 30, 40], [5, 5, 20, 30]]}
        steps[2]["check_options"] = {"direction": "down"}
        steps[3]["check_options"] = {}
    if variant == "thoughts":
        steps[0]["thought"] = "I look for milk."
        steps[1]["thought"] = None
    return {"episode_id": 9, "goal": "Buy milk", "is_successful": True, "steps": steps}


def places(value, path=()):
    """Yield the path of each value within a line."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def changed(line, path, value):
    """Return the line with another value at a path; ``...``: without it."""
    line = copy.deepcopy(line)
    holder = line
    for key in path[:-1]:
        holder = holder[key]
    if value is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return line


def reader(name, folder, lines, **options):
    file = Path(folder, "lines.jsonl")
    file.write_text("\n".join(json.dumps(line) for line in lines))
    return load_builder(SourceConfig(builder=name, path=str(file), options=options))


def both(builder, line):
    data = json.dumps(line).encode()
    return builder._read_line(data, "lines.jsonl", 3), builder._read_object(data, "lines.jsonl", 3)


LINES = [
    ("android_control_jsonl", {}, CONTROL),
    *(("ui_s1", {}, ui_s1(variant)) for variant in ("evaluation", "training", "thoughts")),
    ("ui_s1", {"variant": "training", "descriptions": True}, ui_s1("evaluation")),
    ("ui_s1", {"swipe_paths": False, "unsuccessful": "keep"}, ui_s1("thoughts") | {"is_successful": False}),
]


@pytest.mark.parametrize(("name", "options", "line"), LINES)
def test_a_good_line_is_plain_and_gives_the_same_episode(tmp_path, name, options, line):
    builder = reader(name, tmp_path, [line], **options)
    quick, wordy = both(builder, line)
    assert isinstance(wordy, Episode)
    assert quick == wordy == builder.plain_episode(json.dumps(line).encode())


@pytest.mark.parametrize(("name", "options", "line"), LINES)
def test_whatever_a_value_is_replaced_by_both_ways_say_the_same(tmp_path, name, options, line):
    builder = reader(name, tmp_path, [line], **options)
    rejects = 0
    for path in places(line):
        for value in (*ODD, ...) if path else ():
            other = changed(line, path, value)
            quick, wordy = both(builder, other)
            # by their words: a NaN is not equal to itself
            assert repr(quick) == repr(wordy), (path, value)
            rejects += not isinstance(wordy, Episode)
    assert rejects > 50


def test_bytes_that_are_no_text_are_refused_wherever_they_stand(tmp_path):
    builder = reader("android_control_jsonl", tmp_path, [CONTROL])
    data = json.dumps(CONTROL | {"note": "@"}).encode().replace(b"@", b"\xff")
    assert builder._read_line(data, "lines.jsonl", 1).reason == "bad_json"


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "files"), [("android_control_jsonl", "androidcontrol_test_actions"), ("ui_s1", "ui_s1")]
)
def test_nearly_every_real_line_is_plain(name, files):
    if not (SHARED / files).is_dir():
        pytest.skip("needs the real episodes of the shared data folder")
    builder = load_builder(SourceConfig(builder=name, path=str(SHARED / files)))
    lines = [
        line for file in builder.source_files() for line in file.read_bytes().splitlines() if line.strip()
    ]
    plain = 0
    for number, line in enumerate(lines, start=1):
        wordy = builder._read_object(line, "file", number)
        assert builder._read_line(line, "file", number) == wordy
        try:
            plain += builder.plain_episode(line) == wordy
        except NOT_PLAIN:
            continue
    assert plain >= 0.9 * len(lines) > 100
