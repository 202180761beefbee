from __future__ import annotations

import json

import pytest

from solar_rl.actions import Action, Box
from solar_rl.episodes import checked
from solar_rl.errors import ConfigError
from solar_rl.schema import Episode

WAIT = {"action_type": "wait"}


def click(x, y):
    return {"action_type": "click", "x": x, "y": y}


def row(*actions, **changes):
    actions = list(actions) or [WAIT]
    made = {
        "episode_id": 8193,
        "goal": "publish my art",
        "split": "test",
        "actions": actions,
        "step_instructions": ["go on"] * len(actions),
        "candidate_bboxes": [[]] * len(actions),
    }
    return {**made, **changes}


@pytest.fixture
def read_rows(tmp_path, read):
    def _read(*rows):
        lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in rows]
        (tmp_path / "part.jsonl").write_bytes(b"\n".join(lines))
        return read("android_control_jsonl", tmp_path)

    return _read


def test_reads_an_episode_on_an_inferred_screen(read_rows):
    boxes = [[[456, 2211, 624, 2337], [0, 473, 1080, 2337]], []]
    [episode] = read_rows(
        row(click(540, 2273), WAIT, candidate_bboxes=boxes, step_instructions=["tap it", " "])
    )
    assert (episode.episode_id, episode.split, episode.source) == ("8193", "test", "android_control_jsonl")
    first, second = episode.steps
    assert first.action == Action("click", x=0.5, y=2273 / 2400)
    assert (first.screen_width, first.screen_height, first.screen_size) == (1080, 2400, "inferred")
    assert first.target_box == Box(456 / 1080, 2211 / 2400, 624 / 1080, 2337 / 2400)
    assert first.candidate_boxes[1] == Box(0, 473 / 2400, 1, 2337 / 2400)
    assert (first.instruction, second.instruction, first.screenshot) == ("tap it", None, None)


@pytest.mark.parametrize("point", [(1081, 5), (5, 2401), (1367, 2952)])
def test_one_point_beyond_the_usual_screen_makes_the_whole_episode_large(read_rows, point):
    [episode] = read_rows(row(click(720, 1560), click(*point)))
    assert {(s.screen_width, s.screen_height) for s in episode.steps} == {(1440, 3120)}
    assert (episode.steps[0].action.x, episode.steps[0].action.y) == (0.5, 0.5)


def test_a_point_beyond_every_screen_is_kept_and_no_box_makes_a_screen_large(read_rows):
    far, edge = read_rows(
        row(click(2000, 5)),
        row(click(1080, 2400), episode_id=2, candidate_bboxes=[[[0, 0, 1084, 2402]]]),
    )
    assert far.steps[0].action.off_screen and far.steps[0].screen_size == "inferred"
    assert list(checked([far], file="f", seen=set())) == [far], "kept, and unscored later"
    assert edge.steps[0].screen_width == 1080 and edge.steps[0].candidate_boxes == (Box(0, 0, 1, 1),)


def test_boxes_are_clipped_and_empty_ones_ignored(read_rows):
    boxes = [[-55, 136, 108, 240], [30, 30, 30, 90], [-90, 0, -5, 50]]
    [episode] = read_rows(row(click(54, 200), candidate_bboxes=[boxes]))
    assert episode.steps[0].candidate_boxes == (Box(0, 136 / 2400, 0.1, 0.1),)


def test_an_opened_app_names_the_episode_as_it_is_written(read_rows):
    [episode] = read_rows(row(WAIT, {"action_type": "open_app", "app_name": "Audio\xadmack"}))
    assert episode.app == "Audio\xadmack" == episode.steps[1].action.app_name


BROKEN = {
    "half a line": (b'{"episode_id": 5, "goal": "x", "act', "bad_json", "the line is no JSON"),
    "no object": (b"[1]", "bad_json", "the line is list"),
    "no UTF-8": (b'{"goal": "\xff"}', "bad_json", "the line"),
    "deep nesting": (b"[" * 100_000, "bad_json", "the line"),
    "no id": (row(episode_id=None), "missing_field", "episode_id is missing"),
    "id of another kind": (row(episode_id=1.5), "bad_text", "episode_id is 1.5"),
    "no goal": (row(goal=None), "missing_field", "goal is missing"),
    "empty goal": (row(goal=""), "empty_text", "goal is empty"),
    "no actions": (row(actions=[], step_instructions=[], candidate_bboxes=[]), "no_steps", "no actions"),
    "actions of another kind": (row(actions={"0": WAIT}), "bad_value", "actions is dict"),
    "an action that is text": (row(actions=["wait"]), "bad_value", "actions[0] is str"),
    "an instruction too many": (row(step_instructions=["a", "b"]), "lengths_mismatch", "2 step_instructions"),
    "a list of boxes too few": (row(candidate_bboxes=[]), "lengths_mismatch", "0 candidate_bboxes"),
    "no boxes": (row(candidate_bboxes=None), "missing_field", "candidate_bboxes is missing"),
    "an instruction of another kind": (row(WAIT, WAIT, step_instructions=["", 3]), "bad_text", "step 1"),
    "unknown action": (
        row(WAIT, {"action_type": "pinch"}),
        "unknown_action",
        "step 1: unknown action 'pinch'",
    ),
    "NaN": (row(click(float("nan"), 4)), "bad_number", "step 0: x is nan"),
    "empty text": (row({"action_type": "input_text", "text": ""}), "empty_text", "step 0: text is empty"),
    "a box of three": (
        row(click(1, 1), candidate_bboxes=[[[1, 2, 3]]]),
        "bad_box",
        "step 0: a candidate box is",
    ),
    "a box with NaN": (row(click(1, 1), candidate_bboxes=[[[1, 2, 3, float("nan")]]]), "bad_number", "nan"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_line_is_rejected_alone(read_rows, case):
    line, reason, message = BROKEN[case]
    first, reject, last = read_rows(row(episode_id=1), line, row(episode_id=3))
    assert (first.episode_id, last.episode_id) == ("1", "3")
    assert (reject.reason, reject.file, reject.record) == (reason, "part.jsonl", "line 2")
    assert message in reject.message


def test_an_unknown_split_and_a_duplicate_id_are_rejected_by_the_check_behind_every_builder(read_rows):
    items = checked(read_rows(row(), row(), row(episode_id=2, split="dev")), file="part.jsonl", seen=set())
    assert [i.episode_id if isinstance(i, Episode) else i.reason for i in items] == [
        "8193",
        "duplicate_id",
        "bad_split",
    ]


def test_blank_lines_are_no_records(read_rows):
    assert len(read_rows(row(), b"  ", row(episode_id=2), b"")) == 2


def test_a_folder_without_lines_or_a_missing_path_is_said_before_any_work(tmp_path, read):
    with pytest.raises(ConfigError, match=r"holds no \.jsonl file"):
        read("android_control_jsonl", tmp_path)
    with pytest.raises(ConfigError, match="no such file or folder"):
        read("android_control_jsonl", tmp_path / "absent.jsonl")
