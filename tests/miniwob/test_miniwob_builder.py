"""Recording: what an episode holds, which seeds go where, and what becomes of failures."""

from __future__ import annotations

import pytest

from builders.miniwob import EXPERTS, MiniWobBuilder, MiniWobEnv, MiniWobOptions
from builders.miniwob.experts.moves import Move, Touch
from builders.miniwob.page import Page
from builders.miniwob.record import record
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.episodes import check_episode
from solar_rl.errors import ConfigError, InputError
from solar_rl.images import decode_image
from solar_rl.schema import Episode, Reject


def builder(**options) -> MiniWobBuilder:
    made = load_builder(SourceConfig(builder="miniwob", options=options))
    assert isinstance(made, MiniWobBuilder)
    return made


def test_shards_are_tasks_by_blocks_of_seeds():
    made = builder(
        tasks=["click-test", "enter-text"], train_episodes=30, validation_episodes=0, test_episodes=2
    )
    assert made.shards() == [
        "click-test/train/100000-100024",
        "click-test/train/100025-100029",
        "click-test/test/0-1",
        "enter-text/train/100000-100024",
        "enter-text/train/100025-100029",
        "enter-text/test/0-1",
    ]


def test_an_unseen_task_is_in_the_test_split_only():
    made = builder(tasks=["click-test", "enter-text"], unseen_tasks=["enter-text"], train_episodes=1)
    shards = [shard for shard in made.shards() if shard.startswith("enter-text")]
    assert shards == ["enter-text/test/0-2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tasks": ["form-sequence-2"]}, "rewards any radio button"),
        ({"tasks": ["tic-tac-toe"]}, "has no expert"),
        ({"tasks": ["click-test", "click-test"]}, "must differ"),
        ({"unseen_tasks": ["click-test"]}, "be among them"),
        ({"train_seed": 2}, "seeds of train and test overlap"),
        ({"action_space": "voice"}, "pointer"),
        ({"speed": 2}, "speed"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        builder(**options)


def test_without_a_browser_a_build_stops_before_any_work(no_programs):
    with pytest.raises(InputError, match="no chromium was found"):
        builder().fingerprint()


@pytest.mark.browser
def test_the_fingerprint_names_what_draws_the_pages(a_browser):
    found = builder().fingerprint()
    assert found["pages"].startswith("miniwob 1.") and any(c.isdigit() for c in found["browser"])


@pytest.mark.browser
def test_an_episode_holds_screens_boxes_texts_and_its_success(a_browser):
    made = builder(tasks=["login-user"], train_episodes=1)
    [episode] = made.read(made.shards()[0])
    assert isinstance(episode, Episode)
    check_episode(episode)
    assert (episode.platform, episode.split, episode.category) == ("web", "train", "login-user")
    assert episode.recorded_success is True and episode.license == "mit" and episode.subsplits == ()
    assert [step.action.action_type for step in episode.steps] == ["click", "input_text"] * 2 + ["click"]
    user = episode.steps[1].action.text
    assert f'username "{user}"' in episode.goal
    for step in episode.steps:
        assert (step.screen_width, step.screen_height) == (320, 420) and step.screen_size == "stated"
        assert step.instruction and step.target_box and step.box_rule == "dom"
        if step.action.action_type == "click":
            assert step.target_box.contains(step.action.x, step.action.y)
            assert step.target_box == step.candidate_boxes[0]
            areas = [box.area for box in step.candidate_boxes]
            assert areas == sorted(areas)
    button = episode.steps[-1]
    picture = decode_image(button.screenshot.data).convert("L")
    edges = [round(edge * size) for edge, size in zip(button.target_box, (320, 420) * 2, strict=True)]
    inside = picture.crop(edges)
    assert len(set(inside.get_flattened_data())) > 10, "a button with its text lies in the box"
    assert set(picture.crop((edges[0], edges[3] + 2, edges[2], edges[3] + 20)).get_flattened_data()) == {255}


@pytest.mark.browser
def test_the_same_seed_is_recorded_the_same_by_another_browser(a_browser):
    made = [builder(tasks=["email-inbox"], train_episodes=1) for _ in range(2)]
    first, second = (list(one.read(one.shards()[0])) for one in made)
    assert first == second


@pytest.mark.browser
def test_held_out_episodes_say_so(a_browser):
    made = builder(tasks=["click-test", "focus-text"], unseen_tasks=["focus-text"], train_episodes=0)
    shards = made.shards()
    found = [next(iter(made.read(shard))) for shard in shards]
    assert [(e.category, e.split, e.subsplits) for e in found] == [
        ("click-test", "validation", ()),
        ("click-test", "test", ("seed_unseen",)),
        ("focus-text", "test", ("task_unseen",)),
    ]


@pytest.mark.browser
def test_a_failed_demonstration_is_a_reject_with_its_reason(env: MiniWobEnv, monkeypatch):
    def another_button(page: Page) -> Move:
        return Touch(next(e for e in page.all(tag="button") if f'"{e.text}"' not in page.goal), "Click it")

    monkeypatch.setitem(EXPERTS, "email-inbox", EXPERTS["click-test"])
    monkeypatch.setitem(EXPERTS, "click-button", another_button)
    lost = record(env, "email-inbox", 1, "train", ())
    assert isinstance(lost, Reject) and lost.reason == "expert_failed" and "no button" in lost.message
    wrong = record(env, "click-button", 3, "train", ())
    assert isinstance(wrong, Reject) and wrong.message == "after 1 steps: the page gave no full reward"
    assert (wrong.record, wrong.episode_id) == ("seed 3", "miniwob-click-button-000003")
    monkeypatch.setattr(env, "max_steps", 1)
    short = record(env, "enter-text", 1, "train", ())
    assert isinstance(short, Reject) and "no steps were left" in short.message


def test_options_have_defaults_that_don_t_overlap():
    seeds = MiniWobOptions().seeds()
    assert seeds == {"train": range(100_000, 100_020), "validation": range(50_000, 50_003), "test": range(3)}
