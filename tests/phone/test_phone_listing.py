"""The screen as a short list: what it names is what a touch does."""

import re

import pytest

from solar_rl.actions import Action
from solar_rl.config import validate_config
from solar_rl.errors import ConfigError
from solar_rl.shipped import shipped_module

phone = shipped_module("builders", "phone")
PLACE = re.compile(r"^(.*) (\d+) (\d+)$")


def options(**more):
    given = {"text": "list", "pictures": False, "by_name": 1.0, "popup_rate": 0.1, "seed": 5, **more}
    return validate_config(phone.PhoneOptions, given, where="test")


def places(text: str) -> list[tuple[int, int]]:
    found = (PLACE.match(line) for line in text.splitlines())
    return [(int(match[2]), int(match[3])) for match in found if match]


@pytest.fixture(scope="module")
def episodes():
    return [phone.build_episode(options(), index) for index in range(12)]


def test_the_expert_touches_points_that_the_list_names(episodes):
    touched = [(e, s) for e in episodes for s in e.steps if s.action.action_type in ("click", "long_press")]
    assert len(touched) > 30
    for _, step in touched:
        point = (round(step.action.x * 1000), round(step.action.y * 1000))
        assert point in places(step.screen_text), step.screen_text


def test_scrolls_have_a_direction_alone_and_there_are_no_pictures(episodes):
    steps = [step for episode in episodes for step in episode.steps]
    assert all(
        step.screenshot is None and (step.screen_width, step.screen_height) == (360, 720) for step in steps
    )
    assert all(step.action.x is None for step in steps if step.action.action_type == "scroll")


def test_apps_are_opened_by_name_alone(episodes):
    kinds = {step.action.action_type for episode in episodes for step in episode.steps}
    assert "open_app" in kinds
    assert not [
        s
        for e in episodes
        for s in e.steps
        if s.instruction and s.instruction.startswith("Swipe to the page")
    ]


def test_a_listed_demonstration_succeeds_in_closed_loop():
    env = phone.PhoneEnv(options())
    for task in ("short", "long", "super_long"):
        for seed in range(4):
            env.reset(task, seed)
            while not env.done:
                env.act(phone.expert_action(env).action)
            assert env.success, (task, seed)


def test_every_named_point_touches_what_it_names():
    """A click on it changes the screen, or it is a place that is chosen already."""
    env = phone.PhoneEnv(options(popup_rate=0.0))
    for seed in range(3):
        for x, y in places(env.reset("short", seed).screen_text):
            before = env.reset("short", seed).screen_text
            after = env.act(Action("click", x=x / 1000, y=y / 1000)).screen_text
            assert after != before


def test_goals_come_from_the_templates_that_are_given():
    names = ("clock.delete", "notes.pin", "settings.level")
    given = options(templates=names, buckets={"short": 1.0})
    drawn = [phone.draw_episode(given, index)[0].goal for index in range(20)]
    assert {name for goal in drawn for name in goal.templates} == set(names)


def test_a_thought_is_a_verb_and_the_name_of_what_is_touched_as_the_list_says_it():
    verbs = {"click": "tap", "long_press": "hold", "open_app": "open", "input_text": "type"}
    steps = [s for n in range(6) for s in phone.build_episode(options(thoughts=True), n).steps]
    for step in steps:
        verb, _, name = step.thought.partition(" ")
        assert verb == verbs.get(step.action.action_type, step.action.action_type)
        if step.action.action_type == "click":
            place = f"{step.action.x * 1000:.0f} {step.action.y * 1000:.0f}"
            line = next(line for line in step.screen_text.splitlines() if line.endswith(place))
            assert line.startswith(name)
        elif step.action.action_type != "wait":
            action = step.action
            assert name in (action.app_name, action.text, action.button, action.direction, action.status)


def test_a_phone_with_few_things_has_lists_that_fit_and_goals_that_can_be_reached():
    few = options(
        things=6,
        templates=["settings.switches", "contacts.delete", "clock.switch", "notes.tick"],
        popup_rate=0.0,
    )
    env = phone.PhoneEnv(few)
    for task in ("short", "long", "super_long"):
        for seed in range(3):
            env.reset(task, seed)
            contacts, clock, notes = (env.phone.apps[name] for name in ("contacts", "clock", "notes"))
            assert max(map(len, (contacts.people, clock.alarms, notes.bodies))) <= 6
            assert set(notes.items) <= set(notes.bodies)
            for names in (contacts.people, clock.alarms, notes.bodies):
                assert len({name.replace(":", " ").split()[0] for name in names}) == len(names)
            while not env.done:
                action = phone.expert_action(env).action
                assert action.action_type != "scroll"
                env.act(action)
            assert env.success, (task, seed)


def test_few_things_are_some_of_what_the_same_phone_holds_otherwise():
    many, few = phone.PhoneEnv(options()), phone.PhoneEnv(options(things=4))
    many.reset("short", 3), few.reset("short", 3)
    people = {name.split()[0] for name in many.phone.apps["contacts"].people}
    assert set(few.phone.apps["contacts"].people) < people
    assert few.phone.apps["settings"].facts() == many.phone.apps["settings"].facts()


def test_an_unknown_template_is_refused():
    with pytest.raises(ConfigError, match="is none of"):
        options(templates=["clock.tower"])


def test_by_default_nothing_has_changed():
    step = phone.build_episode(phone.PhoneOptions(), 0).steps[0]
    assert step.screenshot is not None
    assert step.screen_text.startswith("screen [0,0,360,720]")
