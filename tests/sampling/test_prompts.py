"""What the policy is told (here with each format's first template), and that the tables are enough to say it again."""

import pytest
from demonstration import SIZE, make_episode, said_by

from solar_rl.actions import Action
from solar_rl.config import PromptConfig
from solar_rl.errors import ActionError
from solar_rl.formats import FORMATS
from solar_rl.formats.base import Frame
from solar_rl.prompts import Past, build_request, frame_for, frame_of, messages_for, settled

EPISODE = make_episode()


def request_for(index: int, episode=EPISODE, **config):
    return build_request(episode, episode.steps[index], PromptConfig(**config), n=2, seed=64)


def user_text(request) -> str:
    return request.messages[1]["content"][0]["text"]


def test_high_level_gives_the_goal_and_numbered_history_but_no_instruction():
    text = user_text(request_for(2, format="json"))
    assert text.splitlines() == [
        "Goal: Set an alarm",
        "Actions so far:",
        '1. {"action": "open_app", "app_name": "Alarm Clock"}',
        '2. {"action": "click", "x": 500, "y": 250}',
    ]


def test_low_level_adds_the_instruction():
    assert "This step: do wait" in user_text(request_for(6, level="low"))


def test_the_first_step_has_no_history():
    assert user_text(request_for(0)) == "Goal: Set an alarm"


def test_history_can_be_left_out_or_cut_to_the_newest():
    assert "Actions so far" not in user_text(request_for(5, history="none"))
    lines = user_text(request_for(5, format="json", history_steps=2)).splitlines()
    assert [line[:3] for line in lines[2:]] == ["4. ", "5. "]


def test_an_image_is_shown_where_there_is_one():
    request = request_for(1)
    assert request.messages[1]["content"][1] == {"type": "image"}
    assert request.images == (EPISODE.steps[1].screenshot.data,)
    blind = request_for(1, episode=make_episode(images=False))
    assert len(blind.messages[1]["content"]) == 1
    assert blind.images == ()


def test_text_and_both_show_the_tree():
    assert "Screen:\n[button] 1" in user_text(request_for(1, observation="text"))
    assert request_for(1, observation="text").images == ()
    both = request_for(1, observation="both")
    assert "Screen:\n[button] 1" in user_text(both)
    assert len(both.images) == 1
    assert "Screen:" not in user_text(request_for(1))


def test_the_frame_is_the_resized_screenshot_or_the_screen():
    assert request_for(0, min_pixels=784, max_pixels=784 * 8).frame == Frame(56, 112)
    assert request_for(0, observation="text").frame == Frame(*SIZE)
    assert request_for(0, episode=make_episode(images=False)).frame == Frame(*SIZE)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("observation", ["image", "text", "both"])
@pytest.mark.parametrize("level", ["high", "low"])
def test_plain_values_give_the_very_same_prompt(name, observation, level):
    config = settled(PromptConfig(format=name, observation=observation, level=level))
    episode = said_by(name)
    past = [Past(step.action, step.thought) for step in episode.steps]
    for step in episode.steps:
        request = build_request(episode, step, config, n=1, seed=0)
        frame = frame_for(*SIZE, config)
        assert frame == request.frame == frame_of(step, config)
        again = messages_for(
            "Set an alarm",
            step.instruction,
            past[: step.step_index],
            frame,
            step.screen_text,
            config,
        )
        assert again == request.messages


def test_an_action_that_the_format_lacks_names_the_step():
    odd = make_episode((Action("hover", x=0.5, y=0.5), Action("wait")))
    with pytest.raises(ActionError, match="episode e, history of step 1"):
        request_for(1, episode=odd)
