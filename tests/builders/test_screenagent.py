from __future__ import annotations

import json

import pytest
from desktop_writer import GOOD, PLAN, keyboard, mouse, write_session

from solar_rl.actions import Action, Box
from solar_rl.errors import ConfigError
from solar_rl.schema import Episode

WAIT = {"action_type": "WaitAction", "wait_time": 1.0}


@pytest.fixture
def read_turns(tmp_path, read):
    def _read(*turns, more=None, **options):
        write_session(tmp_path / "s1", *turns, **(more or {}))
        return read("screenagent", tmp_path, **options)

    return _read


@pytest.mark.parametrize(
    ("given", "action"),
    [
        (mouse("click", (54, 60)), Action("click", 0.5, 0.25)),
        (mouse("click", (54, 60), "right"), Action("right_click", 0.5, 0.25)),
        (mouse("double_click", (108, 240)), Action("double_click", 1.0, 1.0)),
        (mouse("move", (54, 60)), Action("hover", 0.5, 0.25)),
        (mouse("scroll_up", scroll_repeat=3), Action("scroll", direction="up")),
        (mouse("scroll_down", (54, 60), None), Action("scroll", 0.5, 0.25, direction="down")),
        (keyboard("text", keyboard_text="你好 "), Action("input_text", text="你好 ")),
        (keyboard("input", keyboard_input="x"), Action("input_text", text="x")),
        (keyboard(None, keyboard_text="x"), Action("input_text", text="x")),
        (keyboard(None, keyboard_key="Return"), Action("press", button="enter")),
        (keyboard("press", keyboard_key="Ctrl+S"), Action("press", keys=("Ctrl", "S"))),
        (keyboard("press", keyboard_key="Super_L"), Action("press", keys=("Super",))),
        (keyboard("press", keyboard_key=["Control_L", "a"]), Action("press", keys=("Control", "a"))),
        (keyboard("press", keyboard_key=" "), Action("press", keys=("space",))),
        (keyboard("press", keyboard_key="+"), Action("press", keys=("+",))),
        (WAIT, Action("wait")),
    ],
)
def test_reads_every_action(read_turns, given, action):
    [episode] = read_turns([given])
    assert [step.action for step in episode.steps] == [action]


def test_turns_that_plan_or_judge_are_no_steps_and_tell_the_outcome(read_turns):
    [episode] = read_turns(
        [PLAN], [mouse("click", (54, 60))], [GOOD], [keyboard(None, keyboard_key="a")], [GOOD]
    )
    assert [s.action.action_type for s in episode.steps] == ["click", "press"]
    assert (episode.episode_id, episode.platform, episode.goal) == ("s1", "desktop", "Open it")
    assert (episode.recorded_success, episode.split) == (True, "train")
    assert episode.steps[0].thought == "The reason. It opens."
    bad = {"action_type": "EvaluateSubTaskAction", "situation": "need_retry", "advice": "again"}
    assert read_turns([WAIT], [bad], [WAIT], [WAIT], [bad])[0].recorded_success is False
    assert read_turns([WAIT], [bad], [WAIT], [WAIT], [WAIT])[0].recorded_success is None


def test_goals_and_thoughts_come_in_the_asked_language(read_turns):
    for language, goal, thought in (
        ("zh", "打开它", None),
        ("original", "打开它", "原因"),
        ("en", "Open it", None),
    ):
        more = {"LLM_response_editer_en": "```json", "LLM_response_editer_zh": "```json"}
        [episode] = read_turns([WAIT], more=more, language=language)
        assert (episode.goal, episode.steps[0].thought) == (goal, thought)


def test_negatives_are_left_out_and_not_hashed(tmp_path, read, read_turns):
    write_session(tmp_path / "s1", [mouse("click", (54, 60))])
    [file] = (tmp_path / "s1").glob("*.json")
    for name in ("neg_plan", "neg_eval"):
        (tmp_path / "s1" / f"{file.stem}_{name}.json").write_text("{}")
    [episode] = read("screenagent", tmp_path)
    assert len(episode.steps) == 1

    from solar_rl.builder import load_builder
    from solar_rl.config import SourceConfig

    builder = load_builder(SourceConfig(builder="screenagent", path=str(tmp_path)))
    assert builder.source_files() == [file]


def test_several_actions_in_one_turn_are_a_step_each(read_turns):
    super_text_enter = [
        keyboard("press", keyboard_key="Super_L"),
        keyboard("text", keyboard_text="notepad"),
        keyboard("press", keyboard_key="Return"),
    ]
    [episode] = read_turns(super_text_enter, [mouse("move", (54, 60)), mouse("drag", (108, 240))])
    assert [s.action for s in episode.steps] == [
        Action("press", keys=("Super",)),
        Action("input_text", text="notepad\n"),
        Action("drag", 0.5, 0.25, 1.0, 1.0),
    ]
    assert [s.screenshot is None for s in episode.steps] == [False, True, False]
    [reject] = read_turns(super_text_enter, [WAIT], several_actions="reject")
    assert reject.reason == "several_actions" and "step 0: 2 actions" in reject.message


def test_a_drag_starts_where_the_mouse_is_and_a_button_may_go_down_and_up(read_turns):
    [episode] = read_turns(
        [mouse("click", (54, 60))],
        [mouse("drag", (108, 240))],
        [mouse("down", (0, 0)), mouse("move", (27, 60)), mouse("up", (54, 120))],
        [mouse("down", (0, 0)), mouse("up", (0, 0))],
    )
    assert [s.action for s in episode.steps[1:]] == [
        Action("drag", 0.5, 0.25, 1.0, 1.0),
        Action("drag", 0.0, 0.0, 0.5, 0.5),
        Action("click", 0.0, 0.0),
    ]


def test_the_clickable_area_and_the_subtask_of_newer_files(read_turns):
    corners = {
        "upper_left_position": {"width": 27, "height": 24},
        "lower_right_position": {"width": 81, "height": 480},
    }
    [episode] = read_turns(
        [mouse("click", (54, 60), clickable_area=corners)], more={"current_task": "Click it"}
    )
    [step] = episode.steps
    assert step.target_box == Box(0.25, 0.1, 0.75, 1) and step.candidate_boxes == (step.target_box,)
    assert (step.box_rule, step.instruction) == ("smallest_listed", "Click it")


def test_a_session_is_a_shard_wherever_it_lies(tmp_path, read):
    from solar_rl.builder import load_builder
    from solar_rl.config import SourceConfig

    write_session(tmp_path / "train" / "a", [WAIT])
    write_session(tmp_path / "test" / "b", [WAIT])
    builder = load_builder(SourceConfig(builder="screenagent", path=str(tmp_path)))
    assert builder.shards() == ["test/b", "train/a"]
    assert [(e.episode_id, e.split) for e in read("screenagent", tmp_path)] == [("b", "test"), ("a", "train")]
    [alone] = read("screenagent", tmp_path / "test" / "b")
    assert (alone.episode_id, alone.split) == ("b", "test")
    with pytest.raises(ConfigError, match="holds no session"):
        read("screenagent", tmp_path / "test" / "b" / "images")


BROKEN = {
    "unknown kind": ({"action_type": "VoiceAction"}, "unknown_action", "'VoiceAction'"),
    "no kind": ({}, "unknown_action", "None"),
    "middle button": (mouse("click", (1, 1), "middle"), "unknown_action", "middle"),
    "unknown mouse": (mouse("spin", (1, 1)), "unknown_action", "'spin'"),
    "off the screen": (mouse("click", (109, 1)), "off_screen", "outside"),
    "no position": (mouse("drag"), "missing_field", "mouse_position"),
    "half a position": (mouse("click", (1, None)), "missing_field", "mouse_position.height"),
    "position of another kind": (
        mouse("click", None, mouse_position=[1, 2]),
        "bad_value",
        "mouse_position is list",
    ),
    "nowhere": (mouse("click"), "missing_field", "no point"),
    "no text": (keyboard("text"), "missing_field", "keyboard_input is missing"),
    "no key": (keyboard("press"), "missing_field", "keyboard_key"),
    "unknown keyboard": (keyboard("hum", keyboard_key="a"), "unknown_action", "'hum'"),
    "area": (mouse("click", (1, 1), clickable_area={"upper_left_position": 1}), "bad_value", "upper_left"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_turn_rejects_its_session(tmp_path, read, case):
    given, reason, message = BROKEN[case]
    write_session(tmp_path / "a", [WAIT])
    write_session(tmp_path / "b", [PLAN], [WAIT], [given])
    good, reject = read("screenagent", tmp_path)
    assert isinstance(good, Episode)
    assert (reject.reason, reject.file, reject.record, reject.episode_id) == (reason, "b", "session b", "b")
    assert message in reject.message and "step 1" in reject.message


def test_broken_files_and_screenshots_are_told(tmp_path, read):
    folder = write_session(tmp_path / "s", [WAIT])
    [file], [image] = folder.glob("*.json"), (folder / "images").iterdir()
    row = json.loads(file.read_text())
    file.write_text(json.dumps(row | {"video_width": 107}))
    assert read("screenagent", tmp_path)[0].reason == "bad_image"
    file.write_text(json.dumps(row | {"actions": None}))
    [reject] = read("screenagent", tmp_path)
    assert reject.reason == "missing_field" and file.name in reject.message
    file.write_text(json.dumps(row | {"actions": [PLAN]}))
    assert read("screenagent", tmp_path)[0].reason == "no_steps"
    file.write_text("{")
    assert read("screenagent", tmp_path)[0].reason == "bad_json"
    file.write_text(json.dumps(row))
    image.unlink()
    (folder / "images" / "other.jpg").write_bytes(b"")
    assert read("screenagent", tmp_path)[0].reason == "missing_image"
