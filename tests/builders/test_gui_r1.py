from __future__ import annotations

import pytest
from parquet_writer import gui_r1_row, write_parquet

from solar_rl.actions import Action, Box
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError
from solar_rl.schema import Episode

MIDDLE = (0.25, 0.25, 0.75, 0.75)
NOWHERE = (-100, -100)


@pytest.fixture
def read_rows(tmp_path, read):
    def _read(*rows, **options):
        return read("gui_r1", write_parquet(tmp_path / "train.parquet", *rows), **options)

    return _read


@pytest.mark.parametrize(
    ("kind", "bbox", "text", "action"),
    [
        ("click", MIDDLE, "no input text", Action("click", 0.5, 0.5)),
        ("Click", (0.5, 0.25), "no input text", Action("click", 0.5, 0.25)),
        ("long_press", MIDDLE, "", Action("long_press", 0.5, 0.5)),
        ("moveto", MIDDLE, "", Action("hover", 0.5, 0.5)),
        ("doubleclick", MIDDLE, "", Action("double_click", 0.5, 0.5)),
        ("rightclick", MIDDLE, "", Action("right_click", 0.5, 0.5)),
        ("type", NOWHERE, "Käse ", Action("input_text", text="Käse ")),
        ("select", NOWHERE, "blue", Action("input_text", text="blue")),
        ("scroll", NOWHERE, "DOWN", Action("scroll", direction="down")),
        ("open_app", NOWHERE, "Clock", Action("open_app", app_name="Clock")),
        ("press_back", NOWHERE, "no input text", Action("press", button="back")),
        ("press_home", NOWHERE, "no input text", Action("press", button="home")),
        ("enter", NOWHERE, "no input text", Action("press", button="enter")),
        ("hotkey", NOWHERE, "ctrl+c", Action("press", keys=("ctrl", "c"))),
        ("wait", NOWHERE, "no input text", Action("wait")),
        ("complete", NOWHERE, "no input text", Action("finished", status="complete")),
    ],
)
def test_reads_every_action(read_rows, kind, bbox, text, action):
    [episode] = read_rows(gui_r1_row(kind, bbox, text))
    assert [step.action for step in episode.steps] == [action]


def test_a_row_is_an_episode_of_one_step(read_rows):
    first, second = read_rows(gui_r1_row(), gui_r1_row(task_type="low", history="Click on search"))
    assert (first.episode_id, second.episode_id) == ("train-0", "train-1")
    assert (first.goal, first.split, first.platform, first.category) == (
        "open the settings",
        "train",
        "android",
        "AndroidControl",
    )
    assert (first.steps[0].instruction, second.steps[0].instruction) == (None, "open the settings")
    assert first.steps[0].screenshot.width == 108 and first.license is None, "no licence was seen"


def test_boxes_and_points_are_shares_or_pixels(read_rows):
    unit, pixels, point = read_rows(
        gui_r1_row(bbox=MIDDLE), gui_r1_row(bbox=(27, 60, 81, 180)), gui_r1_row(bbox=(54, 60))
    )
    assert unit.steps[0].target_box == pixels.steps[0].target_box == Box(*MIDDLE)
    assert unit.steps[0].box_rule == "smallest_listed" and unit.steps[0].candidate_boxes == (Box(*MIDDLE),)
    assert (point.steps[0].action, point.steps[0].target_box) == (Action("click", 0.5, 0.25), None)
    [forced] = read_rows(gui_r1_row(bbox=(1, 1)), coordinates="pixels")
    assert forced.steps[0].action == Action("click", 1 / 108, 1 / 240)
    assert read_rows(gui_r1_row(bbox=(27, 60)), coordinates="unit")[0].reason == "off_screen"


@pytest.mark.parametrize(
    ("group", "ui_type", "platform"),
    [
        ("android_control_high", "icon", "android"),
        ("GUI-Odyssey", "", "android"),
        ("GUI-Act-Web", "", "web"),
        ("OmniAct-Desktop", "", "desktop"),
        ("x", "windows", "desktop"),
        ("screenspot", "web", "web"),
    ],
)
def test_the_platform_is_told_by_the_group_or_by_the_ui_type(read_rows, group, ui_type, platform):
    [episode] = read_rows(gui_r1_row(group=group, ui_type=ui_type))
    assert episode.platform == platform


def test_a_platform_that_nothing_tells_must_be_said(read_rows):
    [reject] = read_rows(gui_r1_row(group="x", ui_type=None))
    assert reject.reason == "bad_platform" and "source.options.platform" in reject.message
    assert read_rows(gui_r1_row(group="x", ui_type=None), platform="web")[0].platform == "web"


def test_the_history_may_be_added_to_the_goal(read_rows):
    rows = gui_r1_row(history="Click on search"), gui_r1_row(history="None")
    assert [e.goal for e in read_rows(*rows, history=True)] == [
        "open the settings\nDone so far: Click on search",
        "open the settings",
    ]


def test_row_groups_are_shards_and_test_files_are_test(tmp_path):
    rows = [gui_r1_row(instruction=f"do {i}") for i in range(10)]
    write_parquet(tmp_path / "androidcontrol_high_test.parquet", *rows, group=4)
    write_parquet(tmp_path / "train.parquet", *rows[:2])
    builder = load_builder(SourceConfig(builder="gui_r1", path=str(tmp_path)))
    name = "androidcontrol_high_test.parquet"
    assert builder.shards() == [f"{name}:0", f"{name}:1", f"{name}:2", "train.parquet:0"]
    items = [item for shard in builder.shards() for item in builder.read(shard)]
    assert [e.goal for e in items[:10]] == [f"do {i}" for i in range(10)]
    assert [e.episode_id for e in items[9:]] == ["androidcontrol_high_test-9", "train-0", "train-1"]
    assert [e.split for e in items[9:]] == ["test", "train", "train"]


BROKEN = {
    "unknown": (gui_r1_row("close/delete"), "unknown_action"),
    "no action": (gui_r1_row(None), "missing_field"),
    "no place": (gui_r1_row(bbox=NOWHERE), "missing_field"),
    "no bbox": (gui_r1_row(bbox=None), "bad_box"),
    "three numbers": (gui_r1_row(bbox=(1, 2, 3)), "bad_box"),
    "NaN": (gui_r1_row(bbox=(float("nan"), 0.5)), "bad_number"),
    "empty box": (gui_r1_row(bbox=(0.5, 0.5, 0.5, 0.6)), "bad_box"),
    "beside the screen": (gui_r1_row(bbox=(200, 10)), "off_screen"),
    "no text": (gui_r1_row("type", NOWHERE), "empty_text"),
    "no direction": (gui_r1_row("scroll", NOWHERE, "sideways"), "bad_value"),
    "no goal": (gui_r1_row(instruction=" "), "empty_text"),
    "no image": (gui_r1_row(image=None), "missing_image"),
    "a path alone": (gui_r1_row(image={"bytes": None, "path": "a.png"}), "missing_image"),
    "half an image": (gui_r1_row(image={"bytes": b"\x89PNG\r\n\x1a\n", "path": None}), "bad_image"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_row_is_rejected_alone(read_rows, case):
    row, reason = BROKEN[case]
    first, reject, last = read_rows(gui_r1_row(), row, gui_r1_row())
    assert isinstance(first, Episode) and last.episode_id == "train-2"
    assert (reject.reason, reject.file, reject.record) == (reason, "train.parquet", "row 1")
    assert reject.episode_id == "train-1"


def test_damaged_files_are_told(tmp_path, read):
    with pytest.raises(ConfigError, match=r"holds no \.parquet"):
        read("gui_r1", tmp_path)
    file = write_parquet(tmp_path / "train.parquet", *[gui_r1_row() for _ in range(40)])
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    [reject] = read("gui_r1", tmp_path)
    assert (reject.reason, reject.file) == ("bad_parquet", "train.parquet")
    middle = len(data) // 8
    file.write_bytes(data[:middle] + b"\0" * 400 + data[middle + 400 :])
    items = read("gui_r1", tmp_path)
    assert items and {type(item).__name__ for item in items} <= {"Episode", "Reject"}
