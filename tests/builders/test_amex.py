from __future__ import annotations

import json

import pytest
from amex_writer import DONE, ELEMENTS, HEIGHT, TAP, WIDTH, instruction, write
from android_control_writer import png

from solar_rl.actions import Action, Box
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError
from solar_rl.schema import Episode, Reject

SMALL, LARGE = Box(40 / 108, 40 / 240, 80 / 108, 80 / 240), Box(0, 0, 1, 0.5)


@pytest.fixture
def read_all(tmp_path, read):
    def _read(*records, options=None, **layout):
        return read("amex", write(tmp_path, *records, **layout), **(options or {}))

    return _read


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        (TAP, Action("click", x=0.5, y=0.25)),
        (
            {"action": "SWIPE", "touch_coord": [54, 180], "lift_coord": [54, 60]},
            Action("scroll", 0.5, 0.75, 0.5, 0.25, direction="down"),
        ),
        (
            {"action": "SWIPE", "touch_coord": [27, 120], "lift_coord": [81, 120]},
            Action("scroll", 0.25, 0.5, 0.75, 0.5, direction="left"),
        ),
        ({"action": "TYPE", "type_text": "Käse "}, Action("input_text", text="Käse ")),
        ({"action": "PRESS_BACK"}, Action("press", button="back")),
        ({"action": "PRESS_HOME"}, Action("press", button="home")),
        ({"action": "PRESS_ENTER"}, Action("press", button="enter")),
        (DONE, Action("finished", status="complete")),
        ({"action": "TASK_IMPOSSIBLE"}, Action("finished", status="infeasible")),
    ],
)
def test_reads_every_action(read_all, fields, action):
    [episode] = read_all(instruction(fields))
    assert episode.steps[0].action == action


def test_reads_what_surrounds_the_actions(read_all):
    [episode] = read_all(instruction(TAP, DONE))
    assert (episode.episode_id, episode.goal, episode.app) == ("e8ba01", "Save the note", "Example Notes")
    assert (episode.split, episode.license, episode.recorded_success) == ("train", "cc-by-4.0", True)
    first, last = episode.steps
    assert (first.screen_width, first.screen_height, first.screen_size) == (WIDTH, HEIGHT, "stated")
    assert first.screenshot.data == png(0, (WIDTH, HEIGHT))
    assert (first.target_box, first.candidate_boxes) == (SMALL, (SMALL, LARGE))
    assert (first.box_rule, last.candidate_boxes, last.box_rule) == ("smallest_clickable", (), None)


def test_touches_count_the_devices_pixels_and_boxes_the_screenshots(read_all):
    [episode] = read_all(instruction({**TAP, "device_dim": [1080, 2400], "touch_coord": [540, 600]}))
    step = episode.steps[0]
    assert (step.action.x, step.action.y, step.target_box) == (0.5, 0.25, SMALL)
    assert (step.screen_width, step.screenshot.width) == (1080, WIDTH)
    for unstated in (None, []):
        [episode] = read_all(instruction({**TAP, "device_dim": unstated}))
        assert (episode.steps[0].action.x, episode.steps[0].screen_width) == (0.5, WIDTH)


def test_elements_may_be_missing_for_a_screen_or_left_out(read_all):
    [episode] = read_all(instruction(TAP), elements=None)
    assert episode.steps[0].candidate_boxes == ()
    [episode] = read_all(instruction(TAP), options={"elements": None})
    assert episode.steps[0].candidate_boxes == ()


def test_folders_can_be_one_in_the_other_and_lie_elsewhere(tmp_path, read):
    root = write(tmp_path, instruction(TAP), folder="instruction_anno/instruction_anno")
    (root / "screenshot").rename(root / "screenshots")
    [episode] = read("amex", root, screenshots="screenshots")
    assert episode.steps[0].screenshot is not None
    with pytest.raises(ConfigError, match=r"source\.options\.screenshots .*no such folder"):
        read("amex", root)


def test_splits_are_the_users(tmp_path, read):
    root = write(tmp_path / "amex", instruction(TAP), instruction(TAP, episode="f00"))
    (tmp_path / "split.json").write_text(json.dumps({"test": ["f00"]}))
    assert [e.split for e in read("amex", root, splits=str(tmp_path / "split.json"))] == ["train", "test"]


def test_source_files_are_what_is_read_besides_screenshots(tmp_path):
    write(tmp_path, instruction(TAP, DONE))
    files = load_builder(SourceConfig(builder="amex", path=str(tmp_path))).source_files()
    assert sorted(f.parent.name for f in files) == ["element_anno", "element_anno", "instruction_anno"]


def test_missing_screenshots(read_all):
    [kept] = read_all(instruction(TAP, DONE), missing=["2024_e8ba01-1.png"])
    assert kept.steps[0].screenshot is None and kept.steps[0].screen_width == WIDTH
    [reject] = read_all(
        instruction(TAP, DONE), missing=[], options={"screenshots": None, "missing_screenshots": "reject"}
    )
    assert reject.reason == "missing_image"


def test_order_and_gaps(read_all):
    made = instruction(DONE, TAP)
    made["steps"][0]["step_id"] = 9
    [episode] = read_all(made)
    assert [s.action.action_type for s in episode.steps] == ["click", "finished"]


BROKEN = {
    "half a file": (b"{", "bad_json", "no JSON"),
    "no episode": (b"[]", "bad_value", "the file is list"),
    "no id": (instruction(TAP, episode_id=None), "missing_field", "episode_id is missing"),
    "no goal": (instruction(TAP, instruction=""), "empty_text", "instruction is empty"),
    "no steps": (instruction(), "no_steps", "no steps"),
    "unknown action": (
        instruction(TAP, {"action": "PINCH"}),
        "unknown_action",
        "step 1: unknown action 'PINCH'",
    ),
    "no action": (instruction({}), "missing_field", "step 0: action is missing"),
    "an empty text": (instruction({"action": "TYPE"}), "empty_text", "type_text is empty"),
    "no point": (instruction({**TAP, "touch_coord": None}), "missing_field", "touch_coord is missing"),
    "a point of words": (instruction({**TAP, "touch_coord": "54"}), "bad_number", "touch_coord is '54'"),
    "off the screen": (instruction({**TAP, "touch_coord": [109, 5]}), "off_screen", "step 0"),
    "a swipe of no length": (instruction({**TAP, "action": "SWIPE"}), "bad_value", "begins and ends"),
    "no device": (instruction({**TAP, "device_dim": [0, 5]}), "bad_number", "device_dim is [0, 5]"),
    "one number twice": (instruction(TAP, {**TAP, "step_id": 1}), "repeated_step", "step_id 1"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_episode_is_rejected_alone(tmp_path, read, case):
    broken, reason, message = BROKEN[case]
    if not isinstance(broken, bytes):
        broken = json.dumps(broken).encode()
    write(tmp_path, instruction(TAP), broken)
    write(tmp_path, instruction(TAP, TAP))
    items = read("amex", tmp_path)
    [reject] = [item for item in items if isinstance(item, Reject)]
    assert reject.reason == reason and message in reject.message
    assert reject.file == "instruction_anno/broken1.json"
    assert [item.episode_id for item in items if isinstance(item, Episode)] == ["e8ba01"]


@pytest.mark.parametrize(
    ("elements", "reason"),
    [
        (b"{", "bad_json"),
        ([], "bad_value"),
        ({}, "missing_field"),
        ({"clickable_elements": [7]}, "bad_value"),
        ({"clickable_elements": [{"bbox": [1, 2]}]}, "bad_box"),
    ],
)
def test_broken_elements_are_told(read_all, elements, reason):
    [reject] = read_all(instruction(TAP), elements=elements)
    assert reject.reason == reason and "step 0" in reject.message


def test_empty_boxes_are_ignored(read_all):
    odd = {"clickable_elements": [{"bbox": [54, 60, 54, 60]}, {"bbox": [-9, -9, 200, 300]}, {"xml_desc": []}]}
    [episode] = read_all(instruction(TAP), elements={**ELEMENTS, **odd})
    assert episode.steps[0].candidate_boxes == (Box(0, 0, 1, 1),)


def test_no_screenshot_and_no_size(read_all):
    [reject] = read_all(instruction({**TAP, "device_dim": None}), missing=["2024_e8ba01-1.png"])
    assert reject.reason == "missing_image" and "device_dim isn't stated" in reject.message
