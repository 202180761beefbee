"""What a good record of AndroidControl becomes."""

from __future__ import annotations

import json

import pytest
from android_control_writer import (
    HEIGHT,
    SYSTEM_WINDOW,
    WIDTH,
    Recording,
    forest,
    node,
    notes_screen,
    png,
    window,
    write_shard,
)

from solar_rl.actions import Action, Box
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError


def click(x, y):
    return {"action_type": "click", "x": x, "y": y}


def one_click(tree, x, y, **more):
    return Recording(actions=[click(x, y)], trees=[tree, tree], **more)


def unit(left, top, right, bottom):
    return Box(left / WIDTH, top / HEIGHT, right / WIDTH, bottom / HEIGHT)


def test_reads_one_episode_with_a_step_for_each_action(read_shard):
    [episode] = read_shard([Recording(episode_id=42, instructions=["tap save ", "  "])])
    assert (episode.episode_id, episode.goal, episode.source) == ("42", "Save the note", "android_control")
    assert (episode.platform, episode.split, episode.ref_len) == ("android", "train", 2)
    first, second = episode.steps
    assert first.action == Action("click", x=35 / WIDTH, y=115 / HEIGHT)
    assert first.instruction == "tap save " and second.instruction is None
    assert (first.screen_width, first.screen_height, first.screen_size) == (WIDTH, HEIGHT, "stated")
    assert [s.screenshot.data for s in episode.steps] == [png(0), png(1)]


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        (click(54, 120), Action("click", x=0.5, y=0.5)),
        ({"action_type": "long_press", "x": 0, "y": 240}, Action("long_press", x=0.0, y=1.0)),
        ({"action_type": "scroll", "direction": "left"}, Action("scroll", direction="left")),
        ({"action_type": "input_text", "text": " Käse "}, Action("input_text", text=" Käse ")),
        (
            {"action_type": "open_app", "app_name": "\xa0Word Office"},
            Action("open_app", app_name="\xa0Word Office"),
        ),
        ({"action_type": "navigate_home"}, Action("press", button="home")),
        ({"action_type": "navigate_back"}, Action("press", button="back")),
        ({"action_type": "wait"}, Action("wait")),
    ],
)
def test_reads_every_action_of_the_vocabulary(read_shard, fields, action):
    [episode] = read_shard([Recording(actions=[fields])])
    assert episode.steps[0].action == action


def test_divides_by_the_screenshots_own_size(read_shard):
    wide = png(3, (320, 200))
    [episode] = read_shard(
        [Recording(actions=[click(160, 50)], screenshots=[wide] * 2, widths=[320] * 2, heights=[200] * 2)]
    )
    step = episode.steps[0]
    assert (step.action.x, step.action.y, step.screen_width, step.screen_height) == (0.5, 0.25, 320, 200)


def test_the_last_screen_belongs_to_no_step_unless_it_is_asked_for(read_shard):
    recording = Recording(actions=[{"action_type": "wait"}], screenshots=[png(1), b"never looked at"])
    [episode] = read_shard([recording])
    assert episode.ref_len == 1
    [reject] = read_shard([recording], finished_step=True)
    assert reject.reason == "bad_image" and "step 1" in reject.message
    [episode] = read_shard([Recording(actions=[{"action_type": "wait"}])], finished_step=True)
    assert [s.action for s in episode.steps] == [Action("wait"), Action("finished", status="complete")]
    assert episode.steps[1].screenshot.data == png(1) and episode.steps[1].instruction is None


def test_target_is_the_button_around_the_label_that_was_hit(read_shard):
    [episode] = read_shard([one_click(notes_screen(), 35, 115)])
    step = episode.steps[0]
    assert step.target_box == unit(10, 100, 60, 130)
    assert step.candidate_boxes == (unit(10, 100, 60, 130), Box(0, 0, 1, 1)), "from the target outwards"


def test_target_is_the_smallest_box_where_only_a_container_reacts(read_shard):
    tree = forest(window([node((0, 0, 108, 240), clickable=True), node((80, 20, 100, 30), text="Close ad")]))
    [episode] = read_shard([one_click(tree, 90, 25)])
    assert episode.steps[0].target_box == unit(80, 20, 100, 30)


def test_target_is_not_a_clickable_box_that_lies_behind(read_shard):
    behind, popup = node((0, 15, 108, 28), clickable=True), node((80, 20, 100, 30), text="Close ad")
    [episode] = read_shard([one_click(forest(window([behind, popup])), 90, 25)])
    assert episode.steps[0].target_box == unit(80, 20, 100, 30)
    assert len(episode.steps[0].candidate_boxes) == 2


def test_of_two_equal_boxes_the_one_that_reacts_counts_once(read_shard):
    same = (10, 10, 30, 20)
    tree = forest(window([node(same, text="Go"), node(same, clickable=True)]))
    [episode] = read_shard([one_click(tree, 20, 15)])
    assert episode.steps[0].target_box == unit(*same)
    assert episode.steps[0].candidate_boxes == (unit(*same),)


def test_invisible_empty_and_off_screen_boxes_are_ignored_and_the_rest_clipped(read_shard):
    nodes = [
        node((10, 10, 30, 20), visible=False, clickable=True),
        node((20, 30, 20, 5), clickable=True),
        node((-50, 5, -10, 40)),
        node((-20, 0, 60, 300), clickable=False),
    ]
    [episode] = read_shard([one_click(forest(window(nodes)), 20, 15)])
    assert episode.steps[0].candidate_boxes == (unit(0, 0, 60, 240),)


def test_a_step_without_a_point_or_a_tree_has_no_boxes(read_shard):
    [episode] = read_shard([Recording(actions=[click(5, 5), {"action_type": "wait"}], trees=[b"", b"", b""])])
    assert all(s.candidate_boxes == () and s.target_box is None for s in episode.steps)
    assert episode.steps[0].screen_text is None and episode.app is None


def test_child_ids_may_be_packed_or_not(read_shard):
    trees = [
        forest(window([node((0, 0, 9, 9), children=(1, 300), packed=packed)])) for packed in (True, False)
    ]
    episodes = read_shard([one_click(tree, 4, 4, episode_id=i) for i, tree in enumerate(trees)])
    assert episodes[0].steps[0].candidate_boxes == episodes[1].steps[0].candidate_boxes == (unit(0, 0, 9, 9),)


def test_screen_text_lists_labelled_elements_and_leaves_out_bars_and_passwords(read_shard):
    tree = forest(
        window([node((0, 0, 9, 9), text="9:41")], kind=SYSTEM_WINDOW, active=False),
        window(
            [
                node((1, 2, 30, 40), class_name="android.widget.Button", text=" Save\nit ", clickable=True),
                node((1, 2, 30, 40), class_name="android.widget.Button", text="Save it", clickable=True),
                node(
                    (5, 50, 90, 60),
                    class_name="android.widget.EditText",
                    text="s3cret",
                    password=True,
                    editable=True,
                ),
                node((5, 70, 90, 80)),
            ]
        ),
    )
    [episode] = read_shard([one_click(tree, 4, 4)])
    assert (
        episode.steps[0].screen_text
        == 'Button "Save it" [1,2,30,40] clickable\nEditText [5,50,90,60] editable'
    )


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("com.google.android.calendar", "Calendar"),
        ("in.amazon.mShop.android.shopping", "Amazon Shopping"),
        ("com.google.android.gm", "Gmail"),
        ("com.whatsapp", "Whatsapp"),
        ("com.android.app", "Com.android.app"),
    ],
)
def test_names_the_app_of_the_topmost_application_window(read_shard, package, name):
    tree = forest(
        window([node((0, 0, 9, 9), package="com.below")], layer=1),
        window([node((0, 0, 9, 9), package=package)], layer=4),
        window([node((0, 0, 9, 9), package="com.android.systemui")], layer=9, kind=SYSTEM_WINDOW),
    )
    [episode] = read_shard([one_click(tree, 4, 4)])
    assert episode.steps[0].app == name and episode.app == name


def test_an_opened_app_lends_its_name_to_its_package(read_shard):
    home = forest(window([node((0, 0, 9, 9), package="com.google.android.apps.nexuslauncher")]))
    app = forest(window([node((0, 0, 9, 9), package="com.zoho.meeting")]))
    actions = [{"action_type": "open_app", "app_name": "Zoho Meet"}, {"action_type": "wait"}]
    [episode] = read_shard([Recording(actions=actions, trees=[home, app, app])])
    assert [s.app for s in episode.steps] == ["Home screen", "Zoho Meet"] and episode.app == "Zoho Meet"


def test_splits_come_from_the_file_beside_the_shards_or_from_the_option(tmp_path, read):
    write_shard(tmp_path / "android_control-00000-of-00001", [Recording(episode_id=i) for i in (1, 2, 3)])
    assert [e.split for e in read("android_control", tmp_path)] == ["train"] * 3
    (tmp_path / "splits.json").write_text(json.dumps({"train": [], "test": [2], "validation": [3]}))
    assert [e.split for e in read("android_control", tmp_path)] == ["train", "test", "validation"]
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"test": [1]}))
    assert [e.split for e in read("android_control", tmp_path, splits=str(other))] == [
        "test",
        "train",
        "train",
    ]


def test_a_file_is_one_shard_and_a_folder_has_its_shards_in_order(tmp_path):
    for number in (2, 0, 1):
        write_shard(tmp_path / f"android_control-0000{number}-of-00020", [Recording(episode_id=number)])
    (tmp_path / "notes.txt").write_text("no shard")
    folder = load_builder(SourceConfig(builder="android_control", path=str(tmp_path)))
    assert folder.shards() == [f"android_control-0000{n}-of-00020" for n in range(3)]
    assert [next(iter(folder.read(s))).episode_id for s in folder.shards()] == ["0", "1", "2"]
    single = load_builder(SourceConfig(builder="android_control", path=str(tmp_path / folder.shards()[1])))
    assert single.shards() == ["android_control-00001-of-00020"]
    assert single.source_files() == [tmp_path / "android_control-00001-of-00020"]


def test_a_shard_of_several_gzip_members_is_read_to_its_end(tmp_path, read):
    path = write_shard(tmp_path / "android_control-00000-of-00001", [Recording(episode_id=1)])
    first = path.read_bytes()
    path.write_bytes(first + write_shard(path, [Recording(episode_id=2)]).read_bytes())
    assert [e.episode_id for e in read("android_control", path)] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "can't be read as JSON"),
        ("[1]", "object of lists"),
        ('{"dev": [1]}', "unknown split 'dev'"),
    ],
)
def test_a_wrong_splits_file_is_said_before_any_work(tmp_path, read, text, message):
    write_shard(tmp_path / "android_control-00000-of-00001", [Recording()])
    (tmp_path / "splits.json").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read("android_control", tmp_path)


def test_a_folder_without_shards_or_a_missing_splits_file_is_said_before_any_work(tmp_path, read):
    with pytest.raises(ConfigError, match="android_control-\\*-of-\\*"):
        read("android_control", tmp_path)
    write_shard(tmp_path / "android_control-00000-of-00001", [Recording()])
    with pytest.raises(ConfigError, match="no such file"):
        read("android_control", tmp_path, splits=str(tmp_path / "absent.json"))
    with pytest.raises(ConfigError, match="did you mean 'splits'"):
        read("android_control", tmp_path, split="x")
