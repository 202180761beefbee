from __future__ import annotations

import pytest
from parquet_writer import element, mind2web_row, write_parquet

from solar_rl.actions import Action, Box
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError
from solar_rl.schema import Alternative, Episode

MIDDLE = Box(0.25, 0.25, 0.75, 0.75)


@pytest.fixture
def read_rows(tmp_path, read):
    def _read(*rows, name="train-00000-of-00001.parquet", **options):
        return read("mind2web", write_parquet(tmp_path / name, *rows), **options)

    return _read


def test_a_task_is_an_episode_of_its_rows(read_rows):
    rows = [
        mind2web_row("a", 0),
        mind2web_row("a", 1, "TYPE", "Brooklyn "),
        mind2web_row("a", 3, "SELECT", "2 rooms"),
    ]
    first, second = read_rows(*rows[::-1], mind2web_row("b", 0), name="test_website-00000-of-00001.parquet")
    assert [s.action for s in first.steps] == [
        Action("click", 0.5, 0.5),
        Action("input_text", 0.5, 0.5, text="Brooklyn "),
        Action("input_text", 0.5, 0.5, text="2 rooms"),
    ]
    assert (first.episode_id, first.goal, first.platform, first.app) == ("a", "book a", "web", "united")
    assert (first.split, first.subsplits, first.category) == ("test", ("test_website",), "Travel / Airlines")
    assert (first.license, second.episode_id, second.ref_len) == ("openrail", "b", 1)
    step = first.steps[1]
    assert (step.target_box, step.candidate_boxes, step.box_rule) == (MIDDLE, (MIDDLE,), "original_target")
    assert (step.instruction, step.screen_height) == ("[button]  Go 1 -> TYPE", 240)
    [clicked] = read_rows(mind2web_row("a", 0, "SELECT", "2"), select_as="click")
    assert (clicked.steps[0].action, clicked.split, clicked.subsplits) == (
        Action("click", 0.5, 0.5),
        "train",
        (),
    )


def test_right_elements_are_boxes_where_they_hold_the_point_and_alternatives_elsewhere(read_rows):
    outer, inner = element(0, 0, 108, 240, original=False), element(27, 60, 54, 120)
    elsewhere, undrawn = element(0, 0, 20, 24, original=False), element(-1, -1, -1, -1, original=False)
    [episode] = read_rows(mind2web_row("a", 0, "CLICK", "", elsewhere, outer, undrawn, inner))
    [step] = episode.steps
    assert step.action == Action("click", 0.5, 0.5) and step.target_box == MIDDLE
    assert step.candidate_boxes == (MIDDLE, Box(0, 0, 1, 1))
    box = Box(0, 0, 20 / 108, 0.1)
    assert step.alternatives == (Alternative(Action("click", 10 / 108, 0.05), box),)
    [marked] = read_rows(mind2web_row("a", 0, "CLICK", "", outer, elsewhere))
    assert (marked.steps[0].target_box, marked.steps[0].box_rule) == (box, "marked_element")


def test_a_task_that_goes_on_in_the_next_file_is_read_once_and_whole(tmp_path):
    rows = [mind2web_row(task, i) for task, n in (("a", 3), ("b", 7), ("c", 2), ("d", 1)) for i in range(n)]
    for part, (start, end) in enumerate(((0, 5), (5, 8), (8, 13))):
        write_parquet(tmp_path / f"train-{part:05d}-of-00003.parquet", *rows[start:end], group=2)
    write_parquet(tmp_path / "test_task-00000-of-00001.parquet", mind2web_row("e", 0))
    builder = load_builder(SourceConfig(builder="mind2web", path=str(tmp_path)))
    read = {shard: [(e.episode_id, e.ref_len) for e in builder.read(shard)] for shard in builder.shards()}
    assert read == {
        "test_task-00000-of-00001.parquet": [("e", 1)],
        "train-00000-of-00003.parquet": [("a", 3), ("b", 7)],
        "train-00001-of-00003.parquet": [],
        "train-00002-of-00003.parquet": [("c", 2), ("d", 1)],
    }


def test_a_step_without_its_element_rejects_the_task_or_ends_it(read_rows):
    rows = [mind2web_row("a", 0), mind2web_row("a", 1, pos_candidates=[]), mind2web_row("a", 2)]
    [reject] = read_rows(*rows)
    assert reject.reason == "no_target" and "step 1" in reject.message and "untargeted cut" in reject.message
    told, episode = read_rows(*rows, untargeted="cut")
    assert (told.reason, told.episode_id, episode.ref_len) == ("no_target", "a", 1)
    assert "the episode ends before it" in told.message
    [nothing] = read_rows(rows[1], untargeted="cut")
    assert nothing.reason == "no_target"


BROKEN = {
    "unknown operation": (mind2web_row("x", 0, "DRAG"), "unknown_action"),
    "no operation": (mind2web_row("x", 0, operation=None), "bad_json"),
    "half an operation": (mind2web_row("x", 0, operation='{"op"'), "bad_json"),
    "no text": (mind2web_row("x", 0, "TYPE", ""), "empty_text"),
    "half an element": (mind2web_row("x", 0, "CLICK", "", '{"tag"'), "bad_json"),
    "half a box": (mind2web_row("x", 0, "CLICK", "", element(1, 2, 3)), "bad_box"),
    "a box of words": (mind2web_row("x", 0, "CLICK", "", element("a", 1, 2, 3)), "bad_box"),
    "an endless box": (mind2web_row("x", 0, "CLICK", "", element("nan", 1, 2, 3)), "bad_box"),
    "no number": (mind2web_row("x", 0, target_action_index="last"), "bad_number"),
    "no goal": (mind2web_row("x", 0, confirmed_task=None), "missing_field"),
    "no task": (mind2web_row(None, 0), "missing_field"),
    "no screenshot": (mind2web_row("x", 0, screenshot=None), "missing_image"),
    "half a screenshot": (mind2web_row("x", 0, screenshot={"bytes": b"\x89PNG", "path": None}), "bad_image"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_task_is_rejected_alone(read_rows, case):
    row, reason = BROKEN[case]
    first, reject, last = read_rows(mind2web_row("a", 0), row, mind2web_row("b", 0))
    assert isinstance(first, Episode) and isinstance(last, Episode)
    assert (reject.reason, reject.file) == (reason, "train-00000-of-00001.parquet")


def test_repeated_numbers_and_damaged_files_are_told(tmp_path, read, read_rows):
    [reject] = read_rows(mind2web_row("a", 1), mind2web_row("a", 1))
    assert reject.reason == "repeated_step"
    file = tmp_path / "train-00000-of-00001.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    [reject] = read("mind2web", tmp_path)
    assert (reject.reason, reject.file) == ("bad_parquet", file.name)
    file.unlink()
    with pytest.raises(ConfigError, match=r"holds no \.parquet"):
        read("mind2web", tmp_path)
