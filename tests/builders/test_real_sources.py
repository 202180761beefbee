"""Known facts of the real data, counted on the files themselves before the builders were written."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter

import pytest
from android_control_writer import blob, node

from solar_rl.actions import Box
from solar_rl.episodes import checked
from solar_rl.images import decode_image
from solar_rl.schema import Episode

pytestmark = pytest.mark.real_data


def unit(left, top, right, bottom):
    return Box(left / 1080, top / 2400, right / 1080, bottom / 2400)


def types(episodes):
    return Counter(step.action.action_type for episode in episodes for step in episode.steps)


def set_apart(episodes, action_type):
    return [s for e in episodes.values() for s in e.steps if s.action.action_type == action_type]


def by_id(items):
    assert all(isinstance(item, Episode) for item in items), items
    assert len(list(checked(items, file="f", seen=set()))) == len(items)
    return {episode.episode_id: episode for episode in items}


@pytest.fixture
def recorded(shared, read):
    return by_id(read("android_control", shared / "androidcontrol_tfrecord"))


@pytest.fixture
def lines(shared, read):
    return by_id(read("android_control_jsonl", shared / "androidcontrol_test_actions"))


def test_our_writer_makes_the_very_bytes_of_a_real_node(shared):
    real = base64.b64decode(
        (shared / "androidcontrol_tfrecord" / "real_first_node_ep0_step0.b64").read_text()
    )
    made = node(
        (0, 0, 1080, 136),
        class_name="android.widget.FrameLayout",
        package="com.android.systemui",
        children=(1, 2, 3),
    )
    assert blob(1, made) == real


def test_the_three_real_episodes_are_read_whole(recorded):
    assert [(e.episode_id, e.ref_len, e.split, e.app) for e in recorded.values()] == [
        ("0", 3, "train", "Zoho Meeting"),
        ("20", 4, "train", "Amazon Shopping"),
        ("40", 1, "train", "Snapdeal"),
    ]
    assert recorded["0"].goal == "Open the Zoho Meet app , view the scheduled meetings ."
    assert recorded["20"].steps[0].instruction == "Go to the previous page "
    assert [s.action.action_type for s in recorded["20"].steps] == ["press", "click", "click", "scroll"]
    assert [s.app for s in recorded["0"].steps] == ["Calendar", "Zoho Meeting", "Zoho Meeting"]
    assert recorded["40"].steps[0].action.direction == "down"


def test_real_labels_find_the_element_that_they_mean(recorded):
    past, (_, mobiles, close, _) = recorded["0"].steps[2], recorded["20"].steps
    assert past.target_box == unit(360, 317, 720, 464), "the tab, not the word in it"
    assert past.candidate_boxes == (past.target_box, unit(0, 136, 1080, 2337), Box(0, 0, 1, 1))
    assert mobiles.target_box == unit(10, 438, 210, 630)
    assert close.target_box == unit(913, 351, 1044, 472), "Close ad, not the bar behind it"
    assert all(
        box.contains(s.action.x, s.action.y) for s in (past, mobiles, close) for box in s.candidate_boxes
    )


def test_real_screenshots_are_kept_as_they_are(recorded):
    shot = recorded["40"].steps[0].screenshot
    assert (shot.width, shot.height, len(shot.data)) == (1080, 2400, 1_661_916)
    assert shot.sha256 == hashlib.sha256(shot.data).hexdigest()
    image = decode_image(shot.data)
    assert (image.size, image.mode) == ((1080, 2400), "RGBA")


def test_real_screens_as_text(recorded):
    assert recorded["0"].steps[1].screen_text is None, "a splash screen says nothing"
    text = recorded["20"].steps[2].screen_text
    assert 'View "Close ad" [913,351,1044,472]' in text.splitlines()
    assert "notification" not in text


def test_the_1167_real_test_episodes_are_all_built(lines):
    assert len(lines) == 1167 and sum(e.ref_len for e in lines.values()) == 6342
    assert types(lines.values()) == {
        "click": 3816, "scroll": 919, "input_text": 466, "open_app": 461, "wait": 411, "press": 263, "long_press": 6,
    }  # fmt: skip
    directions = Counter(s.action.direction for e in lines.values() for s in e.steps if s.action.direction)
    assert directions == {"down": 713, "up": 74, "right": 67, "left": 65}
    assert {e.split for e in lines.values()} == {"test"} and max(e.ref_len for e in lines.values()) == 24


def test_real_points_beyond_the_usual_screen_lie_on_the_large_one(lines):
    large = {e.episode_id for e in lines.values() if e.steps[0].screen_width == 1440}
    assert large == {
        "9195", "10235", "10531", "18894", "19928", "12571", "4988", "6645", "14940", "6944", "16124", "8074",
    }  # fmt: skip
    assert not any(s.action.off_screen for e in lines.values() for s in e.steps)
    assert lines["9195"].steps[3].action.x == 1355 / 1440


def test_real_steps_without_boxes_with_many_and_with_odd_ones(lines):
    points = [s for e in lines.values() for s in e.steps if s.action.x is not None]
    assert sum(not s.candidate_boxes for s in points) == 154
    assert sum(len(s.candidate_boxes) > 1 for s in points) == 977
    assert sum(len(s.candidate_boxes) for s in set_apart(lines, "open_app")) == 66, (
        "icons; of 67 one is off-screen"
    )
    assert all((s.target_box is None) == (not s.candidate_boxes) for s in points), (
        "no label outside its boxes"
    )
    assert lines["8216"].steps[0].target_box is None and lines["16452"].steps[2].target_box is None
    assert lines["9128"].steps[1].candidate_boxes[1].x1 == 0, "x was -2493"
    boxes = [b for e in lines.values() for s in e.steps for b in s.candidate_boxes]
    assert all(0 <= b.x1 < b.x2 <= 1 and 0 <= b.y1 < b.y2 <= 1 for b in boxes)


def test_real_texts_are_kept_to_the_letter(lines):
    assert lines["9128"].app == "\xa0Word Office" and lines["19242"].app == "Audio\xadmack"
    assert lines["16464"].steps[22].action.text == "Birthday Song "
    assert lines["17402"].steps[8].action.text == " Abstract artwork "
    assert sum(s.instruction is None for e in lines.values() for s in e.steps) == 6


def test_real_ui_s1_evaluation_lines_agree_with_androidcontrols(shared, read, lines):
    file = shared / "ui_s1" / "android_control_evaluation_std_part.jsonl"
    episodes = by_id(read("ui_s1", file, swipe_paths=False))
    assert len(episodes) == 300
    assert types(episodes.values()) == {
        "click": 959, "scroll": 206, "input_text": 131, "open_app": 122, "wait": 98, "press": 61, "long_press": 1,
    }  # fmt: skip
    for episode_id, episode in episodes.items():
        if episode_id == "9711":  # its swipes tell the large screen, which the bare actions don't
            continue
        for mine, theirs in zip(episode.steps, lines[episode_id].steps, strict=True):
            assert mine == theirs, (episode_id, mine.step_index)
    assert episodes["9711"].steps[0].screen_width == 1440
    assert episodes["9711"].steps[0].action.x == pytest.approx(lines["9711"].steps[0].action.x * 0.75)


def test_real_ui_s1_swipes_go_against_the_content(shared, read):
    for name in ("android_control_evaluation_std_part.jsonl", "android_control_train_example.jsonl"):
        for episode in read("ui_s1", shared / "ui_s1" / name):
            for action in (s.action for s in episode.steps if s.action.direction):
                ends = {"down": action.y - action.y2, "up": action.y2 - action.y}
                ends |= {"right": action.x - action.x2, "left": action.x2 - action.x}
                assert ends[action.direction] == pytest.approx(0.5)


def test_real_ui_s1_training_lines_agree_with_the_recorded_episodes(shared, read, recorded):
    episodes = by_id(read("ui_s1", shared / "ui_s1" / "android_control_train_example.jsonl"))
    assert len(episodes) == 32 and types(episodes.values())["finished"] == 32
    for episode_id, episode in recorded.items():
        trained = episodes[episode_id]
        assert trained.goal == episode.goal and trained.steps[-1].action.status == "complete"
        for mine, theirs in zip(trained.steps, episode.steps, strict=False):
            assert mine.action.action_type == theirs.action.action_type
            assert mine.action.direction == theirs.action.direction
            if theirs.action.action_type == "click":
                off = (mine.action.x - theirs.action.x) * 1080, (mine.action.y - theirs.action.y) * 2400
                assert max(map(abs, off)) < 1.0, "training coordinates are rounded, up to a pixel off"
