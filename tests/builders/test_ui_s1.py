from __future__ import annotations

import json

import pytest
from android_control_writer import png

from solar_rl.actions import Action, Box
from solar_rl.errors import ConfigError

WAIT = {"action": "wait", "time": 2}


def swipe(start, end):
    return {"action": "swipe", "coordinate": list(start), "coordinate2": list(end)}


def step(content, *, checks=None, index=0, **more):
    made = {"action_content": content, "screenshot": f"/datasets/AndroidControl/images/77_{index}.png"}
    return {**made, **({"check_options": checks} if checks is not None else {}), **more}


def evaluation(*contents, checks=None, **more):
    steps = [step(c, checks=checks or c, index=i, step_instruction="go") for i, c in enumerate(contents)]
    return {"goal": "buy a lamp", "is_successful": True, "episode_id": 77, "steps": steps, **more}


def training(*contents, **more):
    steps = [step(c, index=i) for i, c in enumerate(contents)]
    return {"goal": "buy a lamp", "is_successful": True, "steps": steps, **more}


@pytest.fixture
def read_rows(tmp_path, read):
    def _read(*rows, **options):
        lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in rows]
        (tmp_path / "lines.jsonl").write_bytes(b"\n".join(lines))
        return read("ui_s1", tmp_path / "lines.jsonl", **options)

    return _read


def action_of(items):
    [episode] = items
    return episode.steps[0].action


@pytest.mark.parametrize(
    ("content", "action"),
    [
        ({"action": "click", "coordinate": [540, 600]}, Action("click", x=0.5, y=0.25)),
        ({"action": "long_press", "coordinate": [108, 2400], "time": 2}, Action("long_press", x=0.1, y=1.0)),
        ({"action": "type", "text": "Käse "}, Action("input_text", text="Käse ")),
        ({"action": "open", "text": "Zoho Meeting"}, Action("open_app", app_name="Zoho Meeting")),
        (WAIT, Action("wait")),
        ({"action": "system_button", "button": "Back"}, Action("press", button="back")),
        ({"action": "system_button", "button": "Home"}, Action("press", button="home")),
        ({"action": "system_button", "button": "Enter"}, Action("press", button="enter")),
        ({"action": "terminate", "status": "success"}, Action("finished", status="complete")),
        ({"action": "terminate", "status": "failure"}, Action("finished", status="infeasible")),
    ],
)
def test_reads_every_action(read_rows, content, action):
    assert action_of(read_rows(evaluation(content))) == action


@pytest.mark.parametrize(
    ("start", "end", "direction"),
    [
        ((540, 1800), (540, 600), "down"),
        ((540, 600), (540, 1800), "up"),
        ((270, 1200), (810, 1200), "right"),
        ((810, 1200), (270, 1200), "left"),
    ],
)
@pytest.mark.parametrize("stated", [True, False])
def test_evaluation_swipes_become_the_content_direction_and_the_fingers_path(
    read_rows, start, end, direction, stated
):
    checks = {"action": "swipe", "direction": direction} if stated else {"action": "swipe"}
    scroll = action_of(read_rows(evaluation(swipe(start, end), checks=checks)))
    assert scroll.direction == direction
    finger = {"down": (0.5, 0.75, 0.5, 0.25), "up": (0.5, 0.25, 0.5, 0.75)}
    finger |= {"right": (0.75, 0.5, 0.25, 0.5), "left": (0.25, 0.5, 0.75, 0.5)}
    assert (scroll.x, scroll.y, scroll.x2, scroll.y2) == finger[direction]


def test_training_swipes_are_written_the_way_the_content_moves(read_rows):
    scroll = action_of(read_rows(training(swipe((540, 600), (540, 1800)))))
    assert scroll == Action("scroll", 0.5, 0.75, 0.5, 0.25, direction="down")


def test_options_choose_the_variant_the_split_and_whether_paths_are_kept(read_rows):
    lines = training(swipe((540, 600), (540, 1800)))
    [episode] = read_rows(lines, variant="evaluation", split="validation", swipe_paths=False)
    assert episode.steps[0].action == Action("scroll", direction="up") and episode.split == "validation"
    [episode] = read_rows(evaluation(swipe((540, 600), (540, 1800)), checks={"x": 1}), variant="training")
    assert episode.steps[0].action.direction == "down" and episode.split == "train"


def test_boxes_come_from_check_options_or_from_the_action(read_rows):
    click = {"action": "click", "coordinate": [540, 600]}
    many = evaluation(click, checks={"candidate_bbox": [[500, 500, 600, 700], [0, 0, 1080, 2400]]})
    flat = evaluation(click, checks={"candidate_bbox": [540, 600, 1080, 1200]})
    own = training({**click, "bbox": [540, 0, 1080, 2400]})
    icon = evaluation({"action": "open", "text": "ZARA"}, checks={"candidate_bbox": [[0, 0, 540, 1200]]})
    boxes = [e.steps[0] for e in read_rows(many, flat, own, icon)]
    small = Box(500 / 1080, 500 / 2400, 600 / 1080, 700 / 2400)
    assert boxes[0].candidate_boxes == (small, Box(0, 0, 1, 1)) and boxes[0].target_box == small
    assert boxes[1].candidate_boxes == (Box(0.5, 0.25, 1, 0.5),)
    assert boxes[2].target_box == Box(0.5, 0, 1, 1)
    assert boxes[3].candidate_boxes == (Box(0, 0, 0.5, 0.5),) and boxes[3].target_box is None


def test_swipes_through_the_middle_tell_a_large_screen(read_rows):
    [episode] = read_rows(
        evaluation(swipe((720, 2340), (720, 780)), {"action": "click", "coordinate": [720, 312]})
    )
    assert {(s.screen_width, s.screen_height, s.screen_size) for s in episode.steps} == {
        (1440, 3120, "inferred")
    }
    assert (episode.steps[1].action.x, episode.steps[1].action.y) == (0.5, 0.1)


def test_ids_come_from_the_line_or_from_the_screenshots_name(read_rows):
    named, unnamed = training(WAIT), training(WAIT)
    unnamed["steps"][0]["screenshot"] = "screen.png"
    assert [e.episode_id for e in read_rows(evaluation(WAIT, episode_id=8193), named, unnamed)] == [
        "8193",
        "77",
        "line-3",
    ]
    assert [e.split for e in read_rows(evaluation(WAIT), training(WAIT))] == ["test", "train"]


def test_screenshots_are_read_from_the_images_folder_and_state_the_size(tmp_path, read_rows):
    click = {"action": "click", "coordinate": [54, 120]}
    [episode] = read_rows(evaluation(click))
    assert episode.steps[0].screenshot is None
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "77_0.png").write_bytes(png(4))
    found, missing = read_rows(evaluation(click), evaluation(WAIT, WAIT), images=str(tmp_path / "images"))
    shown = found.steps[0]
    assert shown.screenshot.data == png(4) and (shown.screen_width, shown.screen_size) == (108, "stated")
    assert (shown.action.x, shown.action.y) == (0.5, 0.5)
    assert missing.reason == "missing_image" and "step 1: screenshot 77_1.png" in missing.message
    outside = {"action": "click", "coordinate": [540, 600]}
    (tmp_path / "images" / "77_1.png").write_bytes(b"no image")
    assert [
        i.reason
        for i in read_rows(evaluation(outside), evaluation(WAIT, WAIT), images=str(tmp_path / "images"))
    ] == [
        "off_screen",
        "bad_image",
    ]


def test_a_screenshots_name_never_leads_out_of_the_images_folder(tmp_path, read_rows):
    (tmp_path / "secret.png").write_bytes(png())
    (tmp_path / "images").mkdir()
    lines = evaluation(WAIT)
    lines["steps"][0]["screenshot"] = "../secret.png"
    [reject] = read_rows(lines, images=str(tmp_path / "images"))
    assert reject.reason == "missing_image"


CLICK = {"action": "click", "coordinate": [1, 2]}
BROKEN = {
    "half a line": (b'{"goal": "x", "steps": [{"acti', "bad_json", "the line is no JSON"),
    "unknown action": (
        evaluation(WAIT, {"action": "pinch"}),
        "unknown_action",
        "step 1: unknown action 'pinch'",
    ),
    "action of another kind": (evaluation({"action": {}}), "unknown_action", "step 0"),
    "no coordinate": (evaluation({"action": "click"}), "missing_field", "step 0: coordinate is missing"),
    "three numbers": (
        evaluation({"action": "click", "coordinate": [1, 2, 3]}),
        "bad_number",
        "expected [x, y]",
    ),
    "NaN": (evaluation({"action": "click", "coordinate": [float("nan"), 2]}), "bad_number", "x is nan"),
    "half a swipe": (evaluation({"action": "swipe", "coordinate": [1, 2]}), "missing_field", "coordinate2"),
    "direction": (evaluation(swipe((1, 2), (1, 9)), checks={"direction": "north"}), "bad_value", "'north'"),
    "empty text": (evaluation({"action": "type", "text": ""}), "empty_text", "step 0: text is empty"),
    "button": (evaluation({"action": "system_button", "button": "Power"}), "bad_value", "button is 'Power'"),
    "status": (evaluation({"action": "terminate", "status": "maybe"}), "bad_value", "status is 'maybe'"),
    "a box of three": (evaluation(CLICK, checks={"candidate_bbox": [[1, 2, 3]]}), "bad_box", "step 0"),
    "no steps": (evaluation(), "no_steps", "no steps"),
    "no list of steps": (evaluation(steps={}), "bad_value", "steps is dict"),
    "no action": (
        evaluation(steps=[{"screenshot": "77_0.png"}]),
        "missing_field",
        "action_content is missing",
    ),
    "checks of another kind": (
        evaluation(steps=[step(WAIT, checks=[1])]),
        "bad_value",
        "check_options is list",
    ),
    "instruction of another kind": (evaluation(steps=[step(WAIT, step_instruction=5)]), "bad_text", "step 0"),
    "failed demonstration": (evaluation(WAIT, is_successful=False), "unsuccessful", "not successful"),
    "empty goal": (evaluation(WAIT, goal=" "), "empty_text", "goal is empty"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_line_is_rejected_alone(read_rows, case):
    line, reason, message = BROKEN[case]
    first, reject, last = read_rows(evaluation(WAIT, episode_id=1), line, evaluation(WAIT, episode_id=3))
    assert (first.episode_id, last.episode_id) == ("1", "3")
    assert (reject.reason, reject.file, reject.record) == (reason, "lines.jsonl", "line 2")
    assert message in reject.message


def test_a_missing_images_folder_is_said_before_any_work(tmp_path, read_rows):
    with pytest.raises(ConfigError, match="no such folder"):
        read_rows(evaluation(WAIT), images=str(tmp_path / "absent"))
