from __future__ import annotations

import json

import pytest
from aitz_writer import DONE, HEIGHT, NONE, TAP, WIDTH, dual, steps, write
from android_control_writer import png

from solar_rl.actions import Action, Box
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError
from solar_rl.schema import Episode, Reject


@pytest.fixture
def read_steps(tmp_path, read):
    def _read(rows, options=None, **layout):
        return read("aitz", write(tmp_path, rows, **layout), **(options or {}))

    return _read


def only_action(items):
    [episode] = items
    return episode.steps[0].action


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        (TAP, Action("click", x=0.25, y=0.5)),
        ({"result_action_type": 3, "result_action_text": "Käse"}, Action("input_text", text="Käse")),
        ({"result_action_type": 5}, Action("press", button="back")),
        ({"result_action_type": 6}, Action("press", button="home")),
        ({"result_action_type": 7}, Action("press", button="enter")),
        (DONE, Action("finished", status="complete")),
        ({"result_action_type": 11}, Action("finished", status="infeasible")),
        ({**TAP, "result_action_type": 0, "duration": 900}, Action("long_press", x=0.25, y=0.5)),
        ({"result_action_type": 1, "duration": 900}, Action("wait")),
        (
            {**TAP, "result_touch_yx": [0.5, 0.25], "result_lift_yx": [0.5, 0.25]},
            Action("click", x=0.25, y=0.5),
        ),
    ],
)
def test_reads_every_action(read_steps, fields, action):
    assert only_action(read_steps(steps(fields))) == action


@pytest.mark.parametrize(
    ("touch", "lift", "content"),
    [
        ((0.541, 0.507), (0.001, 0.579), "down"),
        ((0.2, 0.5), (0.8, 0.5), "up"),
        ((0.5, 0.9), (0.52, 0.1), "right"),
        ((0.5, 0.1), (0.5, 0.9), "left"),
    ],
)
def test_two_points_far_apart_are_a_swipe_of_the_finger(read_steps, touch, lift, content):
    (y, x), (y2, x2) = touch, lift
    assert only_action(read_steps(steps(dual(touch, lift)))) == Action(
        "scroll", x, y, x2, y2, direction=content
    )


@pytest.mark.parametrize(("apart", "kind"), [(0.04, "click"), (0.0401, "scroll")])
def test_a_tap_ends_within_four_hundredths_of_where_it_began(read_steps, apart, kind):
    action = only_action(read_steps(steps(dual((0.0, 0.25), (apart, 0.25)))))
    assert (action.action_type, action.y) == (kind, 0.0)


def test_reads_what_surrounds_the_actions(read_steps):
    [episode] = read_steps(steps(TAP, DONE))
    assert (episode.episode_id, episode.goal) == ("GENERAL-5", 'open app "Clock"')
    assert (episode.split, episode.category, episode.license) == ("train", "general", "apache-2.0")
    assert episode.recorded_success is True
    first, last = episode.steps
    assert (first.instruction, first.thought, last.thought) == ("do 0", "thinking 0", "thinking 1")
    assert (first.screen_width, first.screen_height, first.screen_size) == (WIDTH, HEIGHT, "stated")
    assert first.screenshot.data == png(0, (WIDTH, HEIGHT))
    assert first.screen_text == 'TEXT "Clock" [20,90,30,110]\nICON_TIME [10,80,70,140]'


def test_boxes_that_hold_the_tap_go_from_the_smallest_outwards(read_steps):
    [episode] = read_steps(steps(TAP, DONE))
    small, large = Box(0.2, 0.45, 0.3, 0.55), Box(0.1, 0.4, 0.7, 0.7)
    first, last = episode.steps
    assert (first.target_box, first.candidate_boxes, first.box_rule) == (small, (small, large), "smallest")
    assert (last.target_box, last.candidate_boxes, last.box_rule) == (None, (), None)


@pytest.mark.parametrize("boxes", ["auto", "unit"])
def test_cagui_writes_boxes_as_shares_of_the_image(read_steps, boxes):
    shares = {"ui_positions": [[0.45, 0.2, 0.1, 0.1]], "ui_text": ["时钟"], "ui_types": ["TEXT"]}
    [episode] = read_steps(steps({**TAP, **shares}), options={"boxes": boxes})
    assert episode.steps[0].target_box == pytest.approx(Box(0.2, 0.45, 0.3, 0.55))
    assert episode.steps[0].screen_text == 'TEXT "时钟" [20,90,30,110]'


def test_boxes_can_be_declared_pixels(read_steps):
    tiny = {"ui_positions": "[[0, 0, 1, 1]]", "ui_text": '[""]', "ui_types": '["ICON_DOT"]'}
    [episode] = read_steps(steps({**TAP, **tiny}), options={"boxes": "pixels"})
    assert episode.steps[0].target_box is None
    assert episode.steps[0].screen_text == "ICON_DOT [0,0,1,1]"


def test_words_that_say_nothing_are_no_line_and_long_ones_are_cut(read_steps):
    said = {"ui_text": json.dumps([" \n", "", "a" * 200]), "ui_types": '["TEXT", "ICON_TIME", "TEXT"]'}
    [episode] = read_steps(steps({**TAP, **said}))
    assert episode.steps[0].screen_text == f'ICON_TIME [10,80,70,140]\nTEXT "{"a" * 100}…" [40,190,45,195]'


def test_a_byte_order_mark_does_no_harm(read_steps):
    [item] = read_steps(
        b"\xef\xbb\xbf" + json.dumps(steps({**TAP, "image_width": 100, "image_height": 200})).encode()
    )
    assert isinstance(item, Episode)


def test_elements_may_be_missing_or_without_words(read_steps):
    none = {"ui_positions": "[]", "ui_text": "", "ui_types": None}
    [episode] = read_steps(steps({**TAP, **none}))
    assert (episode.steps[0].target_box, episode.steps[0].screen_text) == (None, None)
    bare = {
        "ui_positions": "[[90, 20, 20, 10], [90, 20, 0, 0], [900, 20, 5, 5]]",
        "ui_text": "",
        "ui_types": "",
    }
    [episode] = read_steps(steps({**TAP, **bare}))
    assert episode.steps[0].candidate_boxes == (Box(0.2, 0.45, 0.3, 0.55),)


@pytest.mark.parametrize(
    ("folder", "options", "split", "category"),
    [
        ("train/single", {}, "train", "single"),
        ("test/web_shopping", {}, "test", "web_shopping"),
        ("general", {}, "train", "general"),
        ("test", {}, "test", "test"),
        ("test/more/general", {}, "train", "general"),
        ("test/general", {"split": "validation"}, "validation", "general"),
    ],
)
def test_folders_say_split_and_category(read_steps, folder, options, split, category):
    [episode] = read_steps(steps(TAP), folder=folder, options=options)
    assert (episode.split, episode.category) == (split, category)


@pytest.mark.parametrize("below", ["test", "test/general", "test/general/GENERAL-5"])
def test_a_part_of_the_release_can_be_named(tmp_path, read, below):
    write(tmp_path, steps(TAP), folder="test/general")
    [episode] = read("aitz", tmp_path / below)
    assert (episode.split, episode.category) == ("test", "general")


def test_options_choose_the_thought(read_steps):
    [episode] = read_steps(steps(TAP), options={"thought": "coat_screen_desc"})
    assert episode.steps[0].thought == "a screen"
    [episode] = read_steps(steps(TAP), options={"thought": "none"})
    assert episode.steps[0].thought is None


def test_other_files_are_no_episodes(tmp_path, read):
    write(tmp_path, steps(TAP))
    (tmp_path / "train" / "general" / "GENERAL-5" / "ocr.json").write_text("{}")
    (tmp_path / "index.json").write_text("[]")
    assert len(read("aitz", tmp_path)) == 1


def test_a_missing_screenshot_leaves_the_size_of_the_others(read_steps):
    [episode] = read_steps(steps(TAP, TAP), missing=[0])
    first = episode.steps[0]
    assert (first.screenshot, first.screen_width, first.screen_size) == (None, WIDTH, "inferred")
    assert first.target_box == Box(0.2, 0.45, 0.3, 0.55)


def test_a_missing_screenshot_may_have_its_size_stated(read_steps):
    sized = {**TAP, "image_width": 50, "image_height": 300}
    [episode] = read_steps(steps(sized), missing=[0])
    first = episode.steps[0]
    assert (first.screen_width, first.screen_height, first.screen_size) == (50, 300, "stated")


def test_missing_screenshots_can_cut_or_reject_an_episode(read_steps):
    [cut] = read_steps(steps(TAP, TAP), missing=[1], options={"missing_screenshots": "cut"})
    assert cut.ref_len == 1 and cut.recorded_success is None
    [reject] = read_steps(steps(TAP, TAP), missing=[1], options={"missing_screenshots": "reject"})
    assert reject.reason == "missing_image"


def changed(index, **fields):
    rows = steps(TAP, DONE)
    rows[index] |= fields
    return rows


BROKEN = {
    "half a file": (b"[{", "bad_json", "no JSON"),
    "an object": (b"{}", "bad_value", "the file is dict, expected a list"),
    "no steps": ([], "no_steps", "no steps"),
    "a step of another kind": ([7], "bad_value", "step 0 is int"),
    "unused number": (steps({"result_action_type": 2}), "unknown_action", "step 0: unknown action type 2"),
    "a word": (steps({"result_action_type": "TYPE"}), "unknown_action", "'TYPE'"),
    "a truth": (steps({"result_action_type": True}), "unknown_action", "True"),
    "an empty text": (steps({"result_action_type": 3}), "empty_text", "result_action_text is empty"),
    "no point": (steps({"result_action_type": 4}), "off_screen", "step 0: click"),
    "a point of one": (changed(0, result_touch_yx="[0.5]"), "bad_number", "expected two numbers"),
    "a point of words": (changed(0, result_lift_yx='["a", 1]'), "bad_number", "result_lift_yx is 'a'"),
    "a point that is no list": (changed(0, result_lift_yx="{}"), "bad_value", "result_lift_yx is dict"),
    "half a point": (changed(0, result_lift_yx="[0.5"), "bad_json", "result_lift_yx is no JSON"),
    "a box of three": (changed(0, ui_positions="[[1, 2, 3]]", ui_text="", ui_types=""), "bad_box", "step 0"),
    "boxes without words": (changed(0, ui_text='["a"]'), "lengths_mismatch", "3 positions, 1 texts"),
    "words that are numbers": (changed(0, ui_text="[1, 2, 3]"), "bad_text", "ui_text holds 1"),
    "a step too few": (
        changed(0, episode_length=3),
        "missing_steps",
        "2 steps are there, episode_length is 3",
    ),
    "two episodes": (changed(1, episode_id="9"), "mixed_episodes", "differ in episode_id: 5, 9"),
    "two goals": (changed(1, instruction="x"), "mixed_episodes", "differ in instruction"),
    "no goal": (changed(0, instruction=None), "missing_field", "step 0: instruction is missing"),
    "one number twice": (changed(1, step_id=0), "repeated_step", "step_id 0 is there twice"),
    "no number": (changed(1, step_id="1"), "bad_number", "step_id is '1'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_episode_is_rejected_alone(tmp_path, read, case):
    rows, reason, message = BROKEN[case]
    write(tmp_path, steps(TAP, DONE, episode="GENERAL-9"), episode="GENERAL-9")
    write(tmp_path, rows)
    items = read("aitz", tmp_path)
    [reject] = [item for item in items if isinstance(item, Reject)]
    assert reject.reason == reason and message in reject.message
    assert reject.file == "train/general/GENERAL-5/GENERAL-5.json" and reject.episode_id == "GENERAL-5"
    assert [item.episode_id for item in items if isinstance(item, Episode)] == ["GENERAL-9"]


def test_no_screenshot_at_all_leaves_no_size(read_steps):
    [reject] = read_steps(steps(TAP), missing=[0])
    assert reject.reason == "missing_image" and "its size isn't stated" in reject.message


def test_gaps_between_numbers_are_closed_and_order_restored(read_steps):
    rows = steps(DONE, TAP)
    rows[0]["step_id"], rows[1]["step_id"] = 7, 3
    [episode] = read_steps(rows)
    assert [s.action.action_type for s in episode.steps] == ["click", "finished"]
    assert [s.screenshot.data for s in episode.steps] == [png(1, (WIDTH, HEIGHT)), png(0, (WIDTH, HEIGHT))]


def test_one_id_in_two_categories_makes_two_episodes(tmp_path, read):
    write(tmp_path, steps(TAP))
    write(tmp_path, steps(TAP, episode="SINGLE-5"), episode="SINGLE-5", folder="train/single")
    assert [e.episode_id for e in read("aitz", tmp_path)] == ["GENERAL-5", "SINGLE-5"]


def test_source_files_are_the_annotations(tmp_path):
    write(tmp_path, steps(TAP))
    [file] = load_builder(SourceConfig(builder="aitz", path=str(tmp_path))).source_files()
    assert json.loads(file.read_bytes())[0]["result_touch_yx"] != NONE


def test_a_folder_without_episodes_or_a_file_is_said(tmp_path, read):
    with pytest.raises(ConfigError, match=r"holds no episode file \(EPISODE/EPISODE\.json, at any depth\)"):
        read("aitz", tmp_path)
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(ConfigError, match="is a file, expected a folder"):
        read("aitz", tmp_path / "x.json")
