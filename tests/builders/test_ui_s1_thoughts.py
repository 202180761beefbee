"""UI-S1's third kind of lines: thoughts, whose swipes are drawn the other way than in its training lines."""

from __future__ import annotations

import json

import pytest

from solar_rl.actions import Action

PATH = {"coordinate": [540.0, 1800.0], "coordinate2": [540.0, 600.0]}


def step(content, index=0, **more):
    return {"action_content": content, "screenshot": f"/x/images/77_{index}.png", **more}


def line(*steps, **more):
    ending = {"action": "terminate", "status": "success"}
    return {"goal": "buy a lamp", "steps": [*steps, step(ending, len(steps))], **more}


@pytest.fixture
def read_rows(tmp_path, read):
    def _read(*rows, **options):
        (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return read("ui_s1", tmp_path / "lines.jsonl", **options)

    return _read


def test_one_path_means_opposite_things_with_and_without_thoughts(read_rows):
    swipe = {"action": "swipe", **PATH}
    with_thoughts, without = read_rows(
        line(step(swipe, thought="More lamps lie below.")), line(step(swipe), step(swipe, 1))
    )
    assert with_thoughts.steps[0].action == Action("scroll", 0.5, 0.75, 0.5, 0.25, direction="down")
    assert without.steps[0].action == Action("scroll", 0.5, 0.25, 0.5, 0.75, direction="up")
    [chosen, _] = read_rows(
        line(step(swipe, thought="x")), line(step(swipe), step(swipe, 1)), variant="training"
    )
    assert chosen.steps[0].action.direction == "up", "the option has the last word"


def test_thoughts_are_kept_and_their_lines_are_for_training(read_rows):
    lines = line(step({"action": "wait", "time": 2}, thought="It loads."), is_successful=True)
    [episode] = read_rows(lines)
    assert [s.thought for s in episode.steps] == ["It loads.", None]
    assert (episode.episode_id, episode.split, episode.recorded_success) == ("77", "train", True)


def test_descriptions_stand_in_for_instructions_where_asked(read_rows):
    wait = {"action": "wait"}
    lines = line(
        step(wait, action_description="Wait.", thought="x"),
        step(wait, 1, action_description="Wait.", step_instruction="hold on"),
    )
    [episode] = read_rows(lines)
    assert [s.instruction for s in episode.steps] == [None, "hold on", None]
    [episode] = read_rows(lines, descriptions=True)
    assert [s.instruction for s in episode.steps] == ["Wait.", "hold on", None]


def test_a_failed_demonstration_is_a_reject_or_kept_as_one(read_rows):
    failed, unsaid, odd = (
        line(step({"action": "wait"}), is_successful=False),
        line(step({"action": "wait"})),
        line(step({"action": "wait"}), is_successful="yes"),
    )
    assert [getattr(i, "reason", None) for i in read_rows(failed, unsaid, odd)] == [
        "unsuccessful",
        None,
        "bad_value",
    ]
    kept = read_rows(failed, unsaid, unsuccessful="keep")
    assert [e.recorded_success for e in kept] == [False, None]


def test_a_listed_box_says_so(read_rows):
    click = {"action": "click", "coordinate": [540, 600], "bbox": [500, 500, 600, 700]}
    [episode] = read_rows(line(step(click)))
    assert [s.box_rule for s in episode.steps] == ["smallest_listed", None]
