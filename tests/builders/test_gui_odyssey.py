from __future__ import annotations

import json

import pytest
from android_control_writer import png
from gui_odyssey_writer import CLICK, DONE, HEIGHT, WIDTH, annotation, write

from solar_rl.actions import Action, Box
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.episodes import checked
from solar_rl.errors import ConfigError
from solar_rl.schema import Episode, Reject

POINTS = [[500, 250], [500, 250]]


@pytest.fixture
def read_all(tmp_path, read):
    def _read(*annotations, options=None, **layout):
        return read("gui_odyssey", write(tmp_path, annotations, **layout), **(options or {}))

    return _read


@pytest.mark.parametrize(
    ("fields", "action"),
    [
        (CLICK, Action("click", x=0.5, y=0.25)),
        ({"action": "CLICK", "info": "KEY_HOME"}, Action("press", button="home")),
        ({"action": "CLICK", "info": "KEY_BACK"}, Action("press", button="back")),
        ({"action": "CLICK", "info": "KEY_APPSELECT"}, Action("press", button="recent")),
        ({"action": "HOME"}, Action("press", button="home")),
        ({"action": "BACK"}, Action("press", button="back")),
        ({"action": "LONG_PRESS", "info": POINTS}, Action("long_press", x=0.5, y=0.25)),
        ({"action": "TEXT", "info": " Käse 黑森林 "}, Action("input_text", text=" Käse 黑森林 ")),
        ({"action": "TYPE", "info": "cats"}, Action("input_text", text="cats")),
        (DONE, Action("finished", status="complete")),
        (
            {"action": "INCOMPLETE", "ps": "Region limitation"},
            Action("finished", status="infeasible", text="Region limitation"),
        ),
        ({"action": "IMPOSSIBLE", "ps": ""}, Action("finished", status="infeasible")),
    ],
)
def test_reads_every_action(read_all, fields, action):
    [episode] = read_all(annotation(fields))
    assert episode.steps[0].action == action


@pytest.mark.parametrize(
    ("start", "end", "content"),
    [
        ((500, 750), (500, 250), "down"),
        ((500, 250), (500, 750), "up"),
        ((800, 500), (200, 510), "right"),
        ((200, 500), (800, 490), "left"),
    ],
)
def test_a_scroll_is_the_fingers_path_and_the_contents_direction(read_all, start, end, content):
    [episode] = read_all(annotation({"action": "SCROLL", "info": [list(start), list(end)]}))
    x, y, x2, y2 = (value / 1000 for value in (*start, *end))
    assert episode.steps[0].action == Action("scroll", x, y, x2, y2, direction=content)


def test_reads_what_surrounds_the_actions(read_all):
    [episode] = read_all(annotation(CLICK, DONE))
    assert (episode.episode_id, episode.source, episode.platform) == ("0001", "gui_odyssey", "android")
    assert (episode.goal, episode.app) == ("Using Chrome, search cats.", "Keep Notes, Chrome")
    assert (episode.category, episode.license) == ("Multi_Apps", "cc-by-4.0")
    assert episode.recorded_success is True
    first = episode.steps[0]
    assert (first.instruction, first.thought) == ("do 0", "because 0")
    assert (first.screen_width, first.screen_height, first.screen_size) == (WIDTH, HEIGHT, "stated")
    assert first.screenshot.data == png(0, (WIDTH, HEIGHT))
    box = Box(0.4, 0.2, 0.6, 0.3)
    assert (first.target_box, first.candidate_boxes, first.box_rule) == (box, (box,), "sam2_bbox")
    assert (episode.steps[1].target_box, episode.steps[1].box_rule) == (None, None)


def test_options_choose_goal_thought_and_meta_task(read_all):
    options = {"goal": "task", "thought": "description", "meta_task": True}
    [episode] = read_all(annotation(CLICK), options=options)
    assert episode.goal == "Search cats." and episode.steps[0].thought == "screen 0"
    assert "meta_task: Search {}." in episode.subsplits and episode.recorded_success is None
    [episode] = read_all(annotation(CLICK), options={"thought": "none"})
    assert episode.steps[0].thought is None


def test_giving_up_is_a_demonstration_that_did_not_reach_its_goal(read_all):
    [episode] = read_all(annotation(CLICK, {"action": "INCOMPLETE", "ps": "no such app"}))
    assert episode.recorded_success is False


def test_the_reason_for_giving_up_is_an_answer_or_a_thought(read_all):
    made = annotation(CLICK, {"action": "INCOMPLETE", "ps": "no such app"}, {"action": "INCOMPLETE"})
    [answer], [thought] = read_all(made), read_all(made, options={"reason": "thought"})
    assert [s.action.text for s in answer.steps] == [None, "no such app", None]
    assert [s.thought for s in answer.steps] == ["because 0", "because 1", "because 2"]
    assert [s.action.text for s in thought.steps] == [None, None, None]
    assert [s.thought for s in thought.steps] == ["because 0", "no such app", "because 2"]


@pytest.mark.parametrize(("family", "split"), [("random", "test"), ("task", "train"), ("none", "train")])
def test_each_family_of_splits_can_be_chosen_and_all_are_kept(read_all, family, split):
    test = {"train": [], "test": ["0001.json"]}
    splits = {"random": test, "device": test, "app": {"train": [], "test": []}}
    [episode] = read_all(annotation(CLICK), splits=splits, options={"split_family": family})
    assert episode.split == split
    assert episode.subsplits == ("random_test", "task_train", "device_test")


def test_splits_name_episodes_with_or_without_json(read_all):
    [episode] = read_all(annotation(CLICK), splits={"random": {"train": [], "test": ["0001"]}})
    assert episode.split == "test"


def test_a_family_that_is_not_there_is_said(tmp_path, read):
    write(tmp_path, [annotation(CLICK)])
    (tmp_path / "splits" / "random_split.json").unlink()
    with pytest.raises(ConfigError, match=r"no splits/random_split\.json.*split_family none"):
        read("gui_odyssey", tmp_path)
    [episode] = read("gui_odyssey", tmp_path, split_family="none")
    assert episode.split == "train" and episode.subsplits == ("task_train", "device_train", "app_train")


def test_screenshots_lie_flat_or_in_subfolders(read_all):
    [episode] = read_all(annotation(CLICK, DONE), below="data_3")
    assert [s.screenshot.data for s in episode.steps] == [png(i, (WIDTH, HEIGHT)) for i in (0, 1)]


def test_a_missing_screenshot_is_kept_cut_or_rejected(read_all):
    episodes = {p: read_all(annotation(CLICK, CLICK, DONE), missing=["0001_1.png"], options={"missing_screenshots": p})
                for p in ("keep", "cut", "reject")}  # fmt: skip
    [kept], [cut], [rejected] = episodes.values()
    assert [s.screenshot is None for s in kept.steps] == [False, True, False]
    assert (kept.steps[1].screen_width, kept.recorded_success) == (WIDTH, True)
    assert (cut.ref_len, cut.recorded_success) == (1, None)
    assert (rejected.reason, rejected.file) == ("missing_image", "annotations/0001.json")
    assert "step 1" in rejected.message


def test_nothing_is_left_to_cut_to_where_the_first_screenshot_is_missing(read_all):
    [reject] = read_all(annotation(CLICK), missing=["0001_0.png"], options={"missing_screenshots": "cut"})
    assert reject.reason == "missing_image"


def test_screenshots_can_be_left_out_but_a_folder_that_is_not_there_is_said(tmp_path, read):
    root = write(tmp_path / "odyssey", [annotation(CLICK)])
    [episode] = read("gui_odyssey", root, screenshots=None)
    assert episode.steps[0].screenshot is None
    with pytest.raises(ConfigError, match=r"no such folder.*null reads no screenshots"):
        read("gui_odyssey", root, screenshots="pictures")
    (root / "screenshots").rename(tmp_path / "pictures")
    [episode] = read("gui_odyssey", root, screenshots=str(tmp_path / "pictures"))
    assert episode.steps[0].screenshot is not None


def test_a_screenshots_name_never_leads_out_of_its_folder(tmp_path, read):
    lines = annotation(CLICK)
    write(tmp_path, [lines])
    (tmp_path / "secret.png").write_bytes(png())
    for name in ("../secret.png", "..", "a\0b", "x" * 5000, "/"):
        lines["steps"][0]["screenshot"] = name
        (tmp_path / "annotations" / "0001.json").write_text(json.dumps(lines))
        [episode] = read("gui_odyssey", tmp_path)
        assert episode.steps[0].screenshot is None


def test_a_device_that_is_turned_counts_as_its_screenshot_is_held(read_all):
    device = {"w": 240, "h": 108}
    [episode] = read_all(annotation(CLICK, device_info=device))
    assert (episode.steps[0].screen_width, episode.steps[0].screen_height) == (108, 240)
    larger = {"w": 1080, "h": 2400}
    [episode] = read_all(annotation(CLICK, device_info=larger))
    assert (episode.steps[0].screen_width, episode.steps[0].screenshot.width) == (1080, WIDTH)


@pytest.mark.parametrize(
    ("box", "target", "candidates"),
    [
        ([], None, 0),
        (None, None, 0),
        ([600, 600, 700, 700], None, 1),  # beside the label: offered, but not what it means
        ([500, 250, 500, 250], None, 0),
        ([-20, -9, 600, 1200], Box(0, 0, 0.6, 1), 1),
        ([1200, 1200, 1300, 1300], None, 0),
    ],
)
def test_boxes_that_are_odd(read_all, box, target, candidates):
    [episode] = read_all(annotation({**CLICK, "sam2_bbox": box}))
    step = episode.steps[0]
    assert step.target_box == target and len(step.candidate_boxes) == candidates
    assert (step.box_rule is None) == (target is None)


def test_steps_are_put_in_order_and_gaps_in_their_numbers_closed(read_all):
    made = annotation(CLICK, {"action": "BACK"}, DONE)
    for row, number in zip(made["steps"], (13, 9, 15), strict=True):
        row["step"] = number
    [episode] = read_all(made)
    assert [s.action.action_type for s in episode.steps] == ["press", "click", "finished"]
    assert [s.step_index for s in episode.steps] == [0, 1, 2]


def test_the_first_release_has_fewer_fields(read_all):
    made = annotation(CLICK)
    for name in ("description", "intention", "context", "low_level_instruction", "sam2_bbox"):
        del made["steps"][0][name]
    [episode] = read_all(made)
    assert (episode.steps[0].instruction, episode.steps[0].thought) == (None, None)


BROKEN = {
    "half a file": (b'{"episode_id": "1", "steps": [', "bad_json", "the file is no JSON"),
    "a list": (b"[]", "bad_value", "the file is list"),
    "unknown action": (annotation(CLICK, {"action": "PINCH"}), "unknown_action", "step 1: unknown action 'PINCH'"),
    "unknown key": (annotation({"action": "CLICK", "info": "KEY_POWER"}), "unknown_action", "'KEY_POWER'"),
    "an empty text": (annotation({"action": "TEXT", "info": ""}), "empty_text", "step 0: info is empty"),
    "a text that is a list": (annotation({"action": "TEXT", "info": ["a"]}), "bad_text", "step 0: info"),
    "no point": (annotation({"action": "CLICK", "info": []}), "bad_value", "info is []"),
    "half a path": (annotation({"action": "SCROLL", "info": [[1, 2]]}), "bad_value", "expected 2"),
    "a path without length": (annotation({"action": "SCROLL", "info": POINTS}), "bad_value", "begins and ends"),
    "a point of three": (annotation({"action": "CLICK", "info": [[1, 2, 3]]}), "bad_number", "step 0"),
    "a word for a number": (annotation({"action": "CLICK", "info": [["a", 2]]}), "bad_number", "'a'"),
    "off the screen": (annotation({"action": "CLICK", "info": [[1001, 2]]}), "off_screen", "step 0: click"),
    "a box of three": (annotation({**CLICK, "sam2_bbox": [1, 2, 3]}), "bad_box", "step 0"),
    "a step of another kind": (annotation(steps=[7], step_length=1), "bad_value", "step 0 is int"),
    "no steps": (annotation(), "no_steps", "no steps"),
    "a step too few": (annotation(CLICK, step_length=2), "missing_steps", "1 steps are there, step_length is 2"),
    "no device": (annotation(CLICK, device_info=None), "missing_field", "device_info is missing"),
    "no height": (annotation(CLICK, device_info={"w": 5}), "missing_field", "device_info.h is missing"),
    "no pixels": (annotation(CLICK, device_info={"w": 0, "h": 5}), "bad_number", "device_info.w is 0"),
    "no task": (annotation(CLICK, task_info=[]), "bad_value", "task_info is list"),
    "no goal": (annotation(CLICK, task_info={"instruction": " "}), "empty_text", "instruction is empty"),
    "apps that are numbers": (
        annotation(CLICK, task_info={"instruction": "a", "app": [1]}),
        "bad_value",
        "app[0] is int",
    ),
    "no screenshot's name": (annotation({**CLICK, "screenshot": ""}), "empty_text", "screenshot is empty"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_episode_is_rejected_alone(tmp_path, read, case):
    broken, reason, message = BROKEN[case]
    write(tmp_path, [annotation(CLICK, DONE, episode="9999"), broken])
    items = read("gui_odyssey", tmp_path)
    [reject] = [item for item in items if isinstance(item, Reject)]
    assert reject.reason == reason and message in reject.message
    assert reject.file.startswith("annotations/") and reject.record.startswith("episode ")
    [good] = [item for item in items if isinstance(item, Episode)]
    assert good.episode_id == "9999"


def test_two_steps_of_one_number_are_a_reject(read_all):
    made = annotation(CLICK, DONE)
    made["steps"][1]["step"] = 0
    [reject] = read_all(made)
    assert reject.reason == "repeated_step"


def test_incomplete_episodes_are_kept_where_asked_for(read_all):
    [episode] = read_all(annotation(CLICK, step_length=3), options={"incomplete": "keep"})
    assert episode.ref_len == 1


def test_a_broken_screenshot_is_no_missing_one(tmp_path, read):
    write(tmp_path, [annotation(CLICK)])
    (tmp_path / "screenshots" / "0001_0.png").write_bytes(png()[:-9])
    [reject] = read("gui_odyssey", tmp_path)
    assert reject.reason == "bad_image" and "step 0" in reject.message


def test_an_id_that_occurs_twice_is_found_behind_the_builder(tmp_path, read):
    write(tmp_path, [annotation(CLICK)])
    twin = tmp_path / "annotations" / "0002.json"
    twin.write_bytes((tmp_path / "annotations" / "0001.json").read_bytes())
    _, second = checked(read("gui_odyssey", tmp_path), file="f", seen=set())
    assert second.reason == "duplicate_id"


def test_shards_are_groups_of_files_that_hold_every_episode_once(tmp_path):
    write(tmp_path, [annotation(DONE, episode=f"{i:04}") for i in range(130)])
    builder = load_builder(SourceConfig(builder="gui_odyssey", path=str(tmp_path)))
    assert builder.shards() == [
        "annotations/0000.json..annotations/0063.json",
        "annotations/0064.json..annotations/0127.json",
        "annotations/0128.json..annotations/0129.json",
    ]
    ids = [item.episode_id for shard in reversed(builder.shards()) for item in builder.read(shard)]
    assert sorted(ids) == [f"{i:04}" for i in range(130)]
    assert len(builder.source_files()) == 134 and all(file.is_file() for file in builder.source_files())


@pytest.mark.parametrize("make", [lambda root: None, lambda root: (root / "annotations").mkdir()])
def test_a_folder_without_annotations_is_said(tmp_path, read, make):
    make(tmp_path)
    with pytest.raises(ConfigError, match=r"holds no episode file \(annotations/\*\.json\)"):
        read("gui_odyssey", tmp_path)


@pytest.mark.real_data
def test_files_of_the_real_shape(shared, read):
    tablet, made, sofa = read("gui_odyssey", shared / "guiodyssey_synthetic")
    kinds = [s.action.action_type for s in tablet.steps]
    assert kinds == ["long_press", "press", "click", "input_text", "press", "scroll", "finished"]
    assert tablet.steps[-1].action.status == "infeasible" and tablet.steps[-1].action.text
    assert (tablet.steps[0].screen_width, tablet.steps[0].screen_height) == (1280, 800)
    assert "黑森林" in tablet.steps[3].action.text
    assert [s.action.direction for s in made.steps if s.action.direction] == ["down"]
    assert all(s.screenshot for e in (tablet, made, sofa) for s in e.steps)
    assert (made.split, sofa.split) == ("train", "test")
    for family, test in {"task": made, "device": tablet, "app": sofa}.items():
        tested = [e.episode_id for e in read("gui_odyssey", shared / "guiodyssey_synthetic", split_family=family)
                  if e.split == "test"]  # fmt: skip
        assert tested == [test.episode_id]
