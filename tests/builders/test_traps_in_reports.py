"""What users of other tools reported in public, each as a test of ours, named after its number.

No test, and why:

| report | why |
|---|---|
| 12 inclusionAI/UI-Venus#23: the AndroidControl test set has mistakes | no details; `stats oddities` counts what can be seen |
| 16 google-research-datasets/screen_annotation#2: boxes are left, right, top, bottom | no builder reads it |
"""

from __future__ import annotations

import gzip
import json

import pytest
from aitw_writer import step as aitw_step
from aitw_writer import write as write_aitw
from aitz_writer import dual
from aitz_writer import steps as aitz_steps
from aitz_writer import write as write_aitz
from android_control_writer import Recording, example, forest, frame, node, notes_screen, png, window
from desktop_writer import agentnet, at, bench, right, write_opencua
from gui_odyssey_writer import CLICK as ODYSSEY_CLICK
from gui_odyssey_writer import DONE, annotation
from gui_odyssey_writer import write as write_odyssey
from parquet_writer import element, mind2web_row, write_parquet

from solar_rl import pipeline, query, stats
from solar_rl.actions import Action, Box, opposite, path_direction
from solar_rl.config import DatasetConfig, SourceConfig
from solar_rl.errors import ActionError
from solar_rl.formats import get_format
from solar_rl.formats.base import Frame
from solar_rl.formats.resize import smart_resize
from solar_rl.schema import Episode

TAP = {"action_type": "click", "x": 35, "y": 115}
WAIT = {"action_type": "wait"}


def clicked(read_shard, tree, x=35, y=115):
    actions = [{"action_type": "click", "x": x, "y": y}]
    [episode] = read_shard([Recording(actions=actions, trees=[tree, tree])])
    return episode.steps[0]


def ui_s1_lines(tmp_path, *contents, **more):
    steps = [{"action_content": c, "screenshot": f"7_{i}.png", **more} for i, c in enumerate(contents)]
    file = tmp_path / "lines.jsonl"
    file.write_text(json.dumps({"goal": "go", "episode_id": 7, "is_successful": True, "steps": steps}))
    return file


def test_01_redundant_overlapping_nodes_give_one_target(read_shard):
    same = [node((10, 100, 60, 130), clickable=True, unique_id=i) for i in range(4)]
    step = clicked(read_shard, forest(window([node((0, 0, 108, 240), clickable=True), *same])))
    assert step.target_box == Box(10 / 108, 100 / 240, 60 / 108, 130 / 240)
    assert len(step.candidate_boxes) == len(set(step.candidate_boxes)) == 2


def test_02_text_without_a_click_and_two_ways_to_go_back_are_labels_as_recorded(read_shard):
    actions = [{"action_type": "input_text", "text": "x"}, {"action_type": "navigate_back"}, TAP]
    actions.append({"action_type": "open_app", "app_name": "Notes"})
    [episode] = read_shard([Recording(actions=actions)])
    kinds = [s.action.action_type for s in episode.steps]
    assert kinds == ["input_text", "press", "click", "open_app"], "neither is turned into the other"


def test_03_every_step_and_episode_names_its_app(read_shard):
    [episode] = read_shard([Recording()])
    assert episode.app == "Example Notes" and {s.app for s in episode.steps} == {"Example Notes"}


def test_04_a_point_has_its_element(read_shard):
    step = clicked(read_shard, notes_screen())
    assert (step.target_box is not None, step.box_rule) == (True, "smallest_clickable")


@pytest.fixture
def overlapping(tmp_path):
    """Build a mix in which a test episode of one source shows a screenshot of the other's training episode."""
    write_odyssey(tmp_path / "odyssey", [annotation(ODYSSEY_CLICK, DONE)])
    shot = (tmp_path / "odyssey" / "screenshots" / "0001_0.png").read_bytes()
    write_opencua(
        tmp_path / "opencua", agentnet("pyautogui.click(0.1, 0.2)", "computer.terminate(status='success')")
    )
    for name, data in (("0.png", shot), ("1.png", png(99))):
        (tmp_path / "opencua" / "images" / name).write_bytes(data)
    sources = {
        "gui_odyssey": {"path": str(tmp_path / "odyssey")},
        "opencua": {"path": str(tmp_path / "opencua"), "options": {"split": "test"}},
    }
    config = DatasetConfig(
        name="both",
        source=SourceConfig(sources=sources),
        prompt={"format": "json"},
        sampler={"type": "scripted", "n": 2},
    )
    return pipeline.build(config, tmp_path / "out").folder


def test_05_an_overlap_of_two_sources_is_found_and_stored_once(overlapping):
    with query.connect(overlapping) as con:
        answer = stats.compute(con, "leakage")
        shared = answer["Screenshots in more than one split"].to_dicts()
        stored = con.sql("SELECT count(*) FROM images").fetchall()[0][0]
    assert [(row["splits"], row["episodes"]) for row in shared] == [("test, train", 2)] and stored == 3
    [pair] = answer["Pairs across splits that are most alike (at most 50)"].to_dicts()
    assert (pair["episode"], pair["resembles"]) == ("opencua:t1", "gui_odyssey:0001")
    assert pair["shared_screenshots"] == 1


def test_06_the_finger_goes_up_where_the_content_goes_down(tmp_path, read):
    scroll = {"action": "SCROLL", "info": [[500, 800], [500, 200]]}
    write_odyssey(tmp_path / "odyssey", [annotation(scroll, DONE)])
    [episode] = read("gui_odyssey", tmp_path / "odyssey")
    action = episode.steps[0].action
    assert action.direction == "down" and path_direction(action.x, action.y, action.x2, action.y2) == "up"
    answer = json.loads(
        get_format("agentcpm_gui").render(Action("scroll", direction="down"), Frame(1080, 2400))
    )
    assert answer["to"] == "up", "this family names the finger's way"


def test_07_listed_boxes_are_taken_as_listed_and_say_so(tmp_path, read, read_shard):
    listed = [[500, 500, 600, 700], [0, 0, 1080, 2400]]
    click = {"action": "click", "coordinate": [540, 600]}
    checks = {"check_options": {"candidate_bbox": listed}}
    [episode] = read("ui_s1", ui_s1_lines(tmp_path, click, **checks))
    assert episode.steps[0].box_rule == "smallest_listed" and len(episode.steps[0].candidate_boxes) == 2
    assert clicked(read_shard, notes_screen()).box_rule != "smallest_listed"


@pytest.mark.parametrize("packed", [True, False])
def test_08_the_number_of_boxes_does_not_hang_on_how_the_tree_is_written(read_shard, packed):
    nodes = [
        node((0, 0, 108, 240), children=(1, 2, 300), packed=packed),
        node((10, 100, 60, 130), clickable=True, children=(3,), packed=packed),
        node((20, 110, 50, 120), visible=False),
        node((30, 105, 40, 125), text="Save"),
    ]
    step = clicked(read_shard, forest(window(nodes)))
    assert len(step.candidate_boxes) == 2 and step.box_rule == "smallest_clickable"


def test_09_several_boxes_are_neither_enlarged_nor_replaced_by_distance(tmp_path, read):
    click = {"action": "click", "coordinate": [540, 600]}
    checks = {"check_options": {"candidate_bbox": [[0, 0, 1080, 1200], [530, 590, 550, 610], [0, 0, 20, 20]]}}
    step = read("ui_s1", ui_s1_lines(tmp_path, click, **checks))[0].steps[0]
    assert step.target_box == Box(530 / 1080, 590 / 2400, 550 / 1080, 610 / 2400)
    assert len(step.candidate_boxes) == 3, "also the one that doesn't hold the label: it's the source's word"


def test_10_an_action_that_a_model_cannot_say_is_told_and_never_dropped():
    with pytest.raises(ActionError, match="no way to say open_app"):
        get_format("agentcpm_gui").render(Action("open_app", app_name="Notes"), Frame(1080, 2400))


def test_11_the_last_screenshot_is_a_step_where_the_config_says_so(read_shard):
    recording = Recording(actions=[WAIT])
    assert [s.action.action_type for s in read_shard([recording])[0].steps] == ["wait"]
    [episode] = read_shard([recording], finished_step=True)
    assert [s.action.action_type for s in episode.steps] == ["wait", "finished"]
    assert episode.steps[1].screenshot.data == png(1)


def test_13_an_action_without_a_source_is_a_reject_with_its_name(tmp_path, read):
    [reject] = read("ui_s1", ui_s1_lines(tmp_path, {"action": "key", "text": "volume_up"}))
    assert reject.reason == "unknown_action" and "'key'" in reject.message


def test_14_missing_screenshots_cost_what_the_config_says_and_no_split_is_named_all(tmp_path, read):
    write_odyssey(tmp_path / "odyssey", [annotation(ODYSSEY_CLICK, DONE)], missing=["0001_1.png"])
    found = {
        choice: read("gui_odyssey", tmp_path / "odyssey", missing_screenshots=choice)[0]
        for choice in ("keep", "cut", "reject")
    }
    assert [s.screenshot is None for s in found["keep"].steps] == [False, True]
    assert found["cut"].ref_len == 1 and found["reject"].reason == "missing_image"
    assert found["keep"].split in ("train", "validation", "test")


def test_15_aitw_writes_y_before_x_and_boxes_as_y_x_h_w(tmp_path, read):
    rows = aitz_steps(
        {
            **dual((0.425, 0.15), (0.425, 0.15)),
            "ui_positions": "[[80, 10, 60, 40]]",
            "ui_text": '[""]',
            "ui_types": '["ICON"]',
        }
    )
    [zoo] = read("aitz", write_aitz(tmp_path / "zoo", rows))
    assert (zoo.steps[0].action.x, zoo.steps[0].action.y) == (0.15, 0.425)
    assert zoo.steps[0].target_box == Box(10 / 100, 80 / 200, 50 / 100, 140 / 200), "image of 100x200"
    touched = {
        "results/yx_touch": [0.425, 0.15],
        "results/yx_lift": [0.425, 0.15],
        "results/action_type": [4],
    }
    positions = {"image/ui_annotations_positions": [0.4, 0.1, 0.3, 0.4]}
    texts = {"image/ui_annotations_text": [""], "image/ui_annotations_ui_types": ["ICON"]}
    [wild] = read("aitw", write_aitw(tmp_path / "wild", [aitw_step(**touched, **positions, **texts)]))
    action, box = wild.steps[0].action, wild.steps[0].target_box
    assert (action.x, action.y) == pytest.approx((0.15, 0.425))
    assert box == pytest.approx((0.1, 0.4, 0.5, 0.7), abs=1e-6)


def test_17_a_step_index_that_jumps_makes_no_gap(tmp_path, read):
    row = agentnet(*["computer.wait()"] * 3)
    for number, step in zip((12, 13, 15), row["traj"], strict=True):
        step["index"] = number
    right_one = bench(*[{"ground_truth_actions": [right("click", position=at(0.5, 0.5))]}] * 2)
    episodes = read("opencua", write_opencua(tmp_path / "cua", row, right_one))
    assert sorted([s.step_index for s in e.steps] for e in episodes) == [[0, 1], [0, 1, 2]]


def test_18_several_actions_in_one_step_are_steps_of_which_only_the_first_has_the_screen(tmp_path, read):
    path = write_opencua(tmp_path / "cua", agentnet("pyautogui.click(0.1, 0.2)\npyautogui.write('x')"))
    [episode] = read("opencua", path)
    assert [s.action.action_type for s in episode.steps] == ["click", "input_text"]
    assert [s.screenshot is None for s in episode.steps] == [False, True], (
        "no screen was recorded between them"
    )
    [reject] = read("opencua", path, several_actions="reject")
    assert reject.reason == "several_actions"


def test_19_a_box_that_does_not_hold_its_label_is_no_target(tmp_path, read):
    click = {"action": "click", "coordinate": [540, 600]}
    away = {"check_options": {"candidate_bbox": [[0, 2000, 200, 2200]]}}
    step = read("ui_s1", ui_s1_lines(tmp_path, click, **away))[0].steps[0]
    assert (step.target_box, step.box_rule, len(step.candidate_boxes)) == (None, None, 1)
    undrawn = mind2web_row("a", 0, "CLICK", "", element(-1, -1, -1, -1))
    file = write_parquet(tmp_path / "web" / "train-00000-of-00001.parquet", undrawn)
    [item] = read("mind2web", file.parent)
    assert not isinstance(item, Episode) or item.steps[0].target_box is None


def test_20_an_archive_without_its_images_is_told_or_read_without_them(tmp_path, read):
    click = {"action": "click", "coordinate": [540, 600]}
    file = ui_s1_lines(tmp_path, click, check_options={})
    (tmp_path / "images").mkdir()
    [reject] = read("ui_s1", file, images=str(tmp_path / "images"))
    assert reject.reason == "missing_image" and "7_0.png" in reject.message
    [episode] = read("ui_s1", file)
    assert (episode.steps[0].screenshot, episode.steps[0].screen_size) == (None, "inferred")


@pytest.mark.parametrize("name", ["qwen25vl_mobile_use", "qwen3vl_mobile_use", "ui_tars_abs", "ui_venus"])
@pytest.mark.parametrize("size", [(1080, 2400), (1440, 3120), (1600, 2560), (2560, 1600)])
def test_21_a_click_comes_back_from_a_resized_image_where_it_was(name, size):
    resized = Frame(*smart_resize(*size, max_pixels=1_000_000))
    label = Action("click", x=1035 / 1080, y=2273 / 2400)
    read = get_format(name).parse(get_format(name).render(label, resized), resized)
    assert abs(read.x - label.x) * size[0] < 3 and abs(read.y - label.y) * size[1] < 3, "pixels of the device"


def test_21_a_screenshot_of_another_size_than_stated_is_a_reject(read_shard):
    [reject] = read_shard([Recording(screenshots=[png(0, (54, 120))] * 3)])
    assert reject.reason == "bad_image" and "54x120" in reject.message


@pytest.mark.parametrize("text", ["Käse", "搜索附近的餐厅", "Привет", "🎂", "e\u0301", "\u202eabc"])
def test_22_text_that_is_not_ascii_is_kept(read_shard, text):
    [episode] = read_shard([Recording(goal=text, actions=[{"action_type": "input_text", "text": text}])])
    assert (episode.goal, episode.steps[0].action.text) == (text, text)
    for name in ("json", "qwen25vl_mobile_use", "ui_tars", "agentcpm_gui"):
        family = get_format(name)
        said = family.render(Action("input_text", text=text), Frame(1080, 2400))
        assert family.parse(said, Frame(1080, 2400)).text == text


def test_23_a_swipe_keeps_where_it_began_and_ended(tmp_path, read):
    swipe = {"action": "swipe", "coordinate": [900, 1800], "coordinate2": [900, 600]}
    file = ui_s1_lines(tmp_path, swipe, check_options={})
    action = read("ui_s1", file)[0].steps[0].action
    assert (action.x, action.y, action.x2, action.y2) == (900 / 1080, 0.75, 900 / 1080, 0.25)
    bare = read("ui_s1", file, swipe_paths=False)[0].steps[0].action
    assert (bare.x, bare.direction) == (None, action.direction)


@pytest.mark.parametrize("way", ["up", "down", "left", "right"])
@pytest.mark.parametrize(
    "name", ["qwen25vl_mobile_use", "ui_venus", "ui_tars", "os_atlas", "agentcpm_gui", "json"]
)
def test_24_a_direction_means_the_contents_in_and_out_of_every_format(way, name):
    label = Action("scroll", direction=way)
    read = get_format(name).parse(get_format(name).render(label, Frame(1092, 2408)), Frame(1092, 2408))
    assert read.direction == way
    if read.x2 is not None:
        assert path_direction(read.x, read.y, read.x2, read.y2) == opposite(way), "and a path the finger's"


def test_25_a_gzip_file_of_several_members_is_read_whole_and_bytes_keep_their_trailing_zeros(tmp_path, read):
    tree = forest(window([node((10, 100, 60, 130), clickable=True)]))
    assert tree.endswith(b"\0"), "explicit defaults at its end: a fixed-width string type would cut them off"
    records = [Recording(episode_id=i, actions=[TAP], trees=[tree, tree]).example() for i in range(4)]
    members = b"".join(gzip.compress(frame(record)) for record in records)
    (tmp_path / "android_control-00000-of-00001").write_bytes(members)
    episodes = read("android_control", tmp_path)
    assert [e.episode_id for e in episodes] == ["0", "1", "2", "3"]
    assert all(e.steps[0].target_box for e in episodes)


def test_25_a_list_of_one_and_an_empty_feature_stay_lists(tmp_path, read_shard):
    one = Recording(actions=[WAIT], instructions=["x"])
    assert read_shard([one])[0].ref_len == 1
    [reject] = read_shard([example({"episode_id": [7], "goal": ["x"], "actions": []})])
    assert reject.reason in ("no_steps", "missing_field")
