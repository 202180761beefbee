"""OpenCUA's and ScreenAgent's real samples: what they hold, read whole."""

from __future__ import annotations

import hashlib

import pytest

from solar_rl.actions import Action
from solar_rl.episodes import checked
from solar_rl.schema import Episode, Reject

pytestmark = pytest.mark.real_data


def test_the_real_bench_task_is_read_whole(shared, read):
    [episode] = read("opencua", shared / "opencua")
    assert list(checked([episode], file="f", seen=set())) == [episode]
    assert (episode.episode_id, episode.ref_len, episode.split) == ("s_a96285eb665bef92", 10, "test")
    assert episode.goal.startswith('Upload a local pdf file named "CardPhotoForm.pdf" to Microsoft Sway')
    assert [s.action.action_type for s in episode.steps] == ["click"] * 7 + [
        "input_text",
        "click",
        "finished",
    ]
    assert all(
        s.target_box and s.target_box.contains(s.action.x, s.action.y) for s in episode.steps if s.action.x
    )
    assert {(s.screen_width, s.screen_height, s.screen_size) for s in episode.steps} == {
        (1468, 956, "stated")
    }
    several = {s.step_index: [a.action for a in s.alternatives] for s in episode.steps if s.alternatives}
    assert several == {1: [Action("click", 0.166, 0.4346)], 5: [Action("click", 0.89, 0.4681)]}
    assert all(a.box.contains(a.action.x, a.action.y) for s in episode.steps for a in s.alternatives)
    file = shared / "opencua" / "images" / "s_a96285eb665bef92_2.png"
    assert episode.steps[0].screenshot.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_real_sessions_are_read_whole(shared, read):
    items = list(checked(read("screenagent", shared / "screenagent"), file="f", seen=set()))
    assert all(isinstance(item, Episode) for item in items), items
    assert {e.episode_id[:4]: e.ref_len for e in items} == {"530e": 3, "5fe9": 2, "d98e": 2, "dd41": 5}
    assert {(e.platform, e.recorded_success) for e in items} == {("desktop", True)}
    python, _, writer, game = items
    assert [s.action for s in python.steps[1:]] == [
        Action("input_text", text="python"),
        Action("press", button="enter"),
    ]
    assert writer.steps[1].action == Action("press", keys=("Ctrl", "S"))
    assert [s.action.action_type for s in game.steps] == ["hover", "wait", "hover", "right_click", "click"]
    assert [s.screenshot is None for s in game.steps] == [False, True, False, False, False]
    assert python.goal == "Open the python interpreter" and python.steps[0].thought.startswith("According to")
    assert read("screenagent", shared / "screenagent", language="zh")[0].goal == "打开python解释器"


def test_the_real_turn_with_two_actions_is_a_reject_where_that_is_asked_for(shared, read):
    items = read("screenagent", shared / "screenagent", several_actions="reject")
    [reject] = [item for item in items if isinstance(item, Reject)]
    assert reject.reason == "several_actions" and "2 actions in one step: hover, wait" in reject.message
