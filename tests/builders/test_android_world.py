from __future__ import annotations

import json

import pytest
from android_control_writer import forest, node, notes_screen, png, window

from solar_rl.actions import Action, Box
from solar_rl.errors import ConfigError
from solar_rl.schema import Episode

BUTTON = Box(10 / 108, 100 / 240, 60 / 108, 130 / 240)


def rollout(*actions, success=1.0, **more):
    steps = [
        {"action": a, "screenshot": "shots/0.png", "forest": "trees/0.pb", "thought": f"why {i}"}
        for i, a in enumerate(actions)
    ]
    return {
        "episode_id": "Notes-0",
        "task": "Notes",
        "goal": "Save the note",
        "success": success,
        "steps": steps,
        **more,
    }


def act(kind, **arguments):
    return {"action_type": kind, **arguments}


WAIT = act("wait")


@pytest.fixture
def read_rows(tmp_path, read):
    (tmp_path / "shots").mkdir()
    (tmp_path / "trees").mkdir()
    (tmp_path / "shots" / "0.png").write_bytes(png())
    (tmp_path / "trees" / "0.pb").write_bytes(notes_screen())

    def _read(*rows, **options):
        lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        (tmp_path / "rollouts.jsonl").write_bytes(b"\n".join(lines))
        return read("android_world", tmp_path, **options)

    return _read


@pytest.mark.parametrize(
    ("given", "action"),
    [
        (act("click", x=54, y=60), Action("click", 0.5, 0.25)),
        (act("double_tap", x=54, y=60), Action("double_click", 0.5, 0.25)),
        (act("long_press", x=54, y=60), Action("long_press", 0.5, 0.25)),
        (act("input_text", text="Käse "), Action("input_text", text="Käse ")),
        (act("input_text", text="a", x=54, y=60, clear_text=True), Action("input_text", 0.5, 0.25, text="a")),
        (act("navigate_home"), Action("press", button="home")),
        (act("navigate_back"), Action("press", button="back")),
        (act("keyboard_enter"), Action("press", button="enter")),
        (act("press_keyboard", keycode="KEYCODE_DEL"), Action("press", keys=("backspace",))),
        (act("press_keyboard", keycode="KEYCODE_DPAD_UP"), Action("press", keys=("up",))),
        (act("press_keyboard", keycode="KEYCODE_APP_SWITCH"), Action("press", button="recent")),
        (act("open_app", app_name="\xa0Clock"), Action("open_app", app_name="\xa0Clock")),
        (WAIT, Action("wait")),
        (act("status", goal_status="complete"), Action("finished", status="complete")),
        (act("status", goal_status="infeasible"), Action("finished", status="infeasible")),
        (act("answer", text="7 pm"), Action("finished", status="complete", text="7 pm")),
    ],
)
def test_reads_every_action(read_rows, given, action):
    [episode] = read_rows(rollout(given))
    assert episode.steps[0].action == action


@pytest.mark.parametrize("way", ["up", "down", "left", "right"])
def test_a_scroll_is_the_contents_and_a_swipe_the_fingers_up_and_down_but_the_contents_sideways(
    read_rows, way
):
    scroll, swipe = read_rows(rollout(act("scroll", direction=way)), rollout(act("swipe", direction=way)))
    turned = {"up": "down", "down": "up"}.get(way, way)
    assert scroll.steps[0].action == Action("scroll", direction=way)
    assert swipe.steps[0].action == Action("scroll", direction=turned)


def test_an_index_counts_the_visible_leaves_described_and_scrollable_nodes(read_rows):
    # 9:41, My notes, Save: the frame and the button have children and no description.
    clicks = [act("click", index=i) for i in (0, 1, "2")]
    [episode] = read_rows(
        rollout(*clicks, act("scroll", direction="down", index=1), act("input_text", text="a", index=2))
    )
    assert [(s.action.x, s.action.y) for s in episode.steps[:3]] == [
        (10 / 108, 5 / 240),
        (54 / 108, 30 / 240),
        (35 / 108, 115 / 240),
    ]
    save = Box(20 / 108, 110 / 240, 50 / 108, 120 / 240)
    assert episode.steps[2].target_box == save and episode.steps[2].box_rule == "named_element"
    scroll, typed = episode.steps[3:]
    assert (scroll.action.direction, scroll.action.x) == ("down", 54 / 108)
    assert (typed.action.text, typed.action.x, typed.target_box) == ("a", 35 / 108, save)


def test_the_recorded_elements_go_before_those_of_the_forest(read_rows):
    line = rollout(act("click", index=1))
    line["steps"][0]["elements"] = [None, [0, 0, 54, 60]]
    [episode] = read_rows(line)
    assert (episode.steps[0].action, episode.steps[0].target_box) == (
        Action("click", 27 / 108, 0.125),
        Box(0, 0, 0.5, 0.25),
    )
    line["steps"][0]["action"]["index"] = 0
    assert read_rows(line)[0].reason == "bad_index"


def test_invisible_nodes_are_no_elements_and_described_ones_are(tmp_path, read_rows):
    nodes = [
        node((0, 0, 108, 240), children=(1,), description="list"),
        node((0, 0, 10, 10), visible=False),
        node((20, 20, 40, 40)),
    ]
    (tmp_path / "trees" / "0.pb").write_bytes(forest(window(nodes)))
    [episode] = read_rows(rollout(act("click", index=0), act("click", index=1)))
    assert [s.action for s in episode.steps] == [
        Action("click", 0.5, 0.5),
        Action("click", 30 / 108, 30 / 240),
    ]


def test_a_step_has_what_its_forest_and_its_agent_say(read_rows):
    [episode] = read_rows(rollout(act("click", x=35, y=115), act("open_app", app_name="Notes"), split="test"))
    assert (episode.platform, episode.category, episode.app, episode.split) == (
        "android",
        "Notes",
        "Notes",
        "test",
    )
    assert (episode.recorded_success, episode.license) == (True, None)
    [step, _] = episode.steps
    assert (step.target_box, step.box_rule, step.thought) == (BUTTON, "smallest_clickable", "why 0")
    assert "My notes" in step.screen_text and step.app == "Notes" and step.screen_size == "stated"
    [named] = read_rows(rollout(WAIT), split="validation", license="mit")
    assert (named.split, named.license) == ("validation", "mit")


def test_an_answer_and_the_status_after_it_are_one_step(read_rows):
    answer, status = act("answer", text="7 pm"), act("status", goal_status="complete")
    [episode] = read_rows(rollout(WAIT, answer, status))
    assert [s.action for s in episode.steps] == [
        Action("wait"),
        Action("finished", status="complete", text="7 pm"),
    ]
    [unsure] = read_rows(rollout(answer, act("status", goal_status="infeasible")))
    assert unsure.steps[0].action.status == "infeasible"
    for early in (rollout(answer, WAIT), rollout(status, status), rollout(answer, WAIT, status)):
        [reject] = read_rows(early)
        assert reject.reason == "bad_value" and "step 0" in reject.message


def test_rollouts_that_fail_demonstrate_no_success(read_rows):
    for success in (0, 0.5, False):
        [reject] = read_rows(rollout(WAIT, success=success))
        assert reject.reason == "unsuccessful" and "unsuccessful keep" in reject.message
        [kept] = read_rows(rollout(WAIT, success=success), unsuccessful="keep")
        assert kept.recorded_success is False
    assert read_rows(rollout(WAIT, success=None))[0].recorded_success is None
    assert read_rows(rollout(WAIT, success=2))[0].reason == "bad_value"


def test_a_rollout_without_screenshots_states_its_screen(read_rows):
    line = rollout(act("click", x=54, y=60), screen=[108, 240])
    for step in line["steps"]:
        del step["screenshot"], step["forest"]
    [episode] = read_rows(line)
    [step] = episode.steps
    assert (step.action, step.screenshot, step.screen_text, step.app) == (
        Action("click", 0.5, 0.25),
        None,
        None,
        None,
    )
    for screen, reason in ((None, "missing_field"), ([1], "bad_value"), ([0, 2], "bad_value")):
        assert read_rows(line | {"screen": screen})[0].reason == reason


BROKEN = {
    "half a line": (b'{"goal"', "bad_json"),
    "unknown": (rollout(act("unknown")), "unknown_action"),
    "no action": (rollout(None), "missing_field"),
    "no type": (rollout({}), "missing_field"),
    "a list as type": (rollout({"action_type": []}), "unknown_action"),
    "no place": (rollout(act("click")), "missing_field"),
    "half a place": (rollout(act("click", x=1)), "missing_field"),
    "off the screen": (rollout(act("click", x=109, y=1)), "off_screen"),
    "no such element": (rollout(act("click", index=3)), "bad_index"),
    "a negative index": (rollout(act("click", index=-1)), "bad_index"),
    "an index of words": (rollout(act("click", index="last")), "bad_number"),
    "no text": (rollout(act("input_text", text="")), "empty_text"),
    "no direction": (rollout(act("swipe")), "missing_field"),
    "status": (rollout(act("status", goal_status="maybe")), "bad_value"),
    "no keycode": (rollout(act("press_keyboard")), "missing_field"),
    "no steps": (rollout(), "no_steps"),
    "no goal": (rollout(WAIT, goal=" "), "empty_text"),
    "a path that leaves": (rollout(WAIT, steps=[{"action": WAIT, "screenshot": "../secret.png"}]), "bad_path"),
    "an absolute path": (rollout(WAIT, steps=[{"action": WAIT, "screenshot": "/etc/passwd"}]), "bad_path"),
    "a missing file": (rollout(WAIT, steps=[{"action": WAIT, "screenshot": "shots/1.png"}]), "missing_image"),
    "a tree as image": (rollout(WAIT, steps=[{"action": WAIT, "screenshot": "trees/0.pb"}]), "bad_image"),
    "elements": (rollout(WAIT, steps=[{"action": WAIT, "screenshot": "shots/0.png", "elements": {}}]), "bad_value"),
    "an element": (rollout(WAIT, steps=[{"action": WAIT, "screenshot": "shots/0.png", "elements": [[1]]}]), "bad_box"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_line_is_rejected_alone(read_rows, case):
    line, reason = BROKEN[case]
    first, reject, last = read_rows(rollout(WAIT, episode_id="a"), line, rollout(WAIT, episode_id="c"))
    assert isinstance(first, Episode) and last.episode_id == "c"
    assert (reject.reason, reject.file, reject.record) == (reason, "rollouts.jsonl", "line 2")


def test_a_broken_forest_is_told(tmp_path, read_rows):
    (tmp_path / "trees" / "0.pb").write_bytes(b"\xff\xff no forest")
    assert read_rows(rollout(WAIT))[0].reason == "bad_tree"
    with pytest.raises(ConfigError, match="no such folder"):
        read_rows(rollout(WAIT), files=str(tmp_path / "absent"))
