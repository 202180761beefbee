"""The phone in closed loop: the expert succeeds, others don't, and mistakes can be repaired."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.phone import EpisodeSpec, Goal, PhoneEnv, PhoneOptions, draw_episode, expert_action
from builders.phone.expert import demonstrate
from builders.phone.goals import Look, Part, Task
from builders.phone.phone import POPUPS, Phone
from builders.phone.widgets import visible
from solar_rl.actions import ACTION_TYPES, BUTTONS, DIRECTIONS, Action

PLAIN = PhoneOptions(popup_rate=0)


def play(phone: Phone, task: Task, limit: int = 200) -> Action | None:
    """Let the expert act until it finishes."""
    for _ in range(limit):
        task.watch(phone)
        action = demonstrate(phone, task).action
        if action.action_type == "finished":
            return action
        phone.act(action)
    return None


def any_action(rng: Random, phone: Phone) -> Action:
    """Draw an action, mostly one that touches something."""
    if rng.random() < 0.6:
        box = rng.choice([s.box for s in visible(phone.screen.tree) if s.widget.key]).unit()
        kind = rng.choice(("click", "click", "long_press", "double_click"))
        return Action(kind, x=(box.x1 + box.x2) / 2, y=(box.y1 + box.y2) / 2)
    kind = rng.choice([kind for kind in ACTION_TYPES if kind != "finished"])
    return Action(
        kind,
        x=rng.random(),
        y=rng.random(),
        x2=rng.random(),
        y2=rng.random(),
        direction=rng.choice(DIRECTIONS),
        text=rng.choice(("hello", "555", "a: b", "")),
        app_name=rng.choice(("Shop", "contacts", "Nowhere")),
        button=rng.choice(BUTTONS),
    )


@pytest.mark.parametrize("block", range(10))
def test_the_expert_reaches_every_goal(block: int) -> None:
    for index in range(block * 30, block * 30 + 30):
        options = PhoneOptions(seed=index, popup_rate=0.1, moved="always" if index % 2 else "never")
        spec, shots = draw_episode(options, index)
        phone = spec.phone()
        task = Task(phone, spec.goal)
        for shot in shots:
            task.watch(phone)
            last = shot.demonstration.action
            if last.action_type != "finished":
                phone.act(last)
        assert task.success(phone, last), spec.goal.text


@pytest.mark.parametrize("block", range(10))
def test_the_expert_finds_back_from_any_state(block: int) -> None:
    for index in range(block * 10, block * 10 + 10):
        spec = draw_episode(PhoneOptions(seed=index + 900, popup_rate=0.05), index)[0]
        phone, rng = spec.phone(), Random(index)
        task = Task(phone, spec.goal)
        for _ in range(40):
            phone.act(any_action(rng, phone))
            task.watch(phone)
        assert task.success(phone, play(phone, task)), spec.goal.text


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_no_action_raises_and_every_screen_can_be_drawn(seed: int) -> None:
    rng = Random(seed)
    env = PhoneEnv(PhoneOptions(seed=seed, popup_rate=0.2))
    while not env.done and env.steps < 25:
        seen = env.act(any_action(rng, env.phone))
        assert seen.width == 360 and seen.screen_text.startswith(("screen", "scrim", "loading"))
        assert 0.0 <= env.progress <= 1.0


def test_the_environment_follows_the_expert_to_success() -> None:
    env = PhoneEnv(PhoneOptions(seed=7))
    for index in range(6):
        env.reset("any", index)
        progress = [env.progress]
        while not env.done:
            env.act(expert_action(env).action)
            progress.append(env.progress)
        assert env.success and env.progress == 1.0
        assert progress[0] < 1.0


def test_the_environment_shows_what_the_builder_recorded() -> None:
    env = PhoneEnv(PLAIN)
    seen = env.reset("any", 1)
    _, shots = draw_episode(PLAIN, 1)
    for shot in shots:
        assert f'"{env.phone.launcher.time}"' in seen.screen_text
        assert expert_action(env) == shot.demonstration
        seen = env.act(shot.demonstration.action)


@pytest.mark.parametrize("index", range(8))
def test_doing_nothing_fails(index: int) -> None:
    env = PhoneEnv(PLAIN)
    env.reset("any", index)
    while not env.done:
        env.act(Action("wait"))
    assert not env.success and env.progress < 1.0
    env.reset("any", index)
    other = "infeasible" if env.spec.goal.status == "complete" else "complete"
    env.act(Action("finished", status=other))
    assert env.done and not env.success


def one(part: Part) -> EpisodeSpec:
    return EpisodeSpec("one", "phone 0 0", Goal((part,)), "train")


def test_a_change_too_many_is_a_failure() -> None:
    env = PhoneEnv(PLAIN)
    env.start(one(Part("clock.alarm", "clock", "set an alarm", (("alarm", "03:35", "on"),))))
    alarms = env.phone.apps["clock"].alarms  # type: ignore[attr-defined]
    alarms["03:35"] = "on"
    alarms["04:40"] = "on"
    assert env.progress == 1.0 and not env.task.success(env.phone, Action("finished", status="complete"))
    del alarms["04:40"]
    assert env.task.success(env.phone, Action("finished", status="complete"))


def test_a_success_must_be_declared_and_declared_rightly() -> None:
    env = PhoneEnv(PLAIN)
    env.start(one(Part("clock.timer", "clock", "start a timer", (("timer", "10"),))))
    env.phone.apps["clock"].timer = "10"  # type: ignore[attr-defined]
    assert not env.success
    env.act(Action("finished", status="infeasible"))
    assert env.done and not env.success


def test_a_question_needs_its_answer() -> None:
    look = Look("settings", ("about",))
    part = Part("settings.about", "settings", "which model?", looks=(look,), answer="Heron 5")
    env = PhoneEnv(PLAIN)
    for text, right in (("Heron 4", False), (None, False), (" heron  5.", True)):
        env.start(one(part))
        env.act(Action("finished", status="complete", text=text))
        assert env.success is right


def test_a_finished_episode_stays_as_it_is() -> None:
    env = PhoneEnv(PLAIN)
    env.reset("any", 0)
    first = env.act(Action("finished", status="complete"))
    assert env.act(Action("open_app", app_name="Shop")) == first and env.steps == 1


def test_a_pop_up_takes_every_touch_until_it_is_dismissed() -> None:
    phone = Phone("phone 0 0")
    phone.popup = POPUPS[0]
    phone.act(Action("click", x=0.5, y=0.98))
    assert phone.popup is None, "a touch beside the box sends it away"
    phone.popup = POPUPS[0]
    phone._screen = None
    task = Task(phone, Goal((Part("clock.timer", "clock", "start a timer", (("timer", "10"),)),)))
    shown = demonstrate(phone, task)
    assert shown.instruction == "Dismiss the pop-up with Not now"
    phone.act(shown.action)
    assert phone.popup is None and not phone.loading


def test_text_goes_into_the_focused_field_only() -> None:
    phone = Phone("phone 0 0")
    phone.act(Action("input_text", text="lost"))
    phone.act(Action("open_app", app_name="contacts"))
    contacts = phone.apps["contacts"]
    contacts.tap("new:")
    phone.act(Action("input_text", text="lost"))
    assert contacts.drafts == {}
    contacts.focus = "name"
    phone.act(Action("input_text", text="Ada"))
    phone.act(Action("input_text", text=" Li"))
    assert contacts.draft("name") == "Ada Li"


def test_a_slow_app_needs_a_wait() -> None:
    phone = Phone("phone 0 0")
    phone.act(Action("open_app", app_name="Shop"))
    assert phone.loading and "Opening Shop" in str(phone.screen.tree)
    while phone.loading:
        phone.act(Action("wait"))
    assert phone.front.name == "shop"


def test_the_text_names_what_can_be_touched_and_nothing_hidden() -> None:
    env = PhoneEnv(PLAIN)
    env.reset("any", 0)
    env.act(Action("open_app", app_name="Settings"))
    seen = env.observe().screen_text
    assert 'row "Battery saver"' in seen and "clickable" in seen
    assert "About phone" not in seen, "below the fold"
    env.act(Action("scroll", direction="down"))
    assert "About phone" in env.observe().screen_text


def test_a_menu_over_what_the_expert_needs_is_closed_first() -> None:
    """A policy deleted a note that it shouldn't have, and opens another one's menu: the note must come back."""
    env = PhoneEnv(PhoneOptions(templates=("notes.delete",), popup_rate=0, buckets={"short": 1.0}))
    env.reset("any", 3)
    notes = env.phone.apps["notes"]
    lost, other = [title for title in notes.bodies if title not in env.goal][:2]
    env.act(Action("open_app", app_name="Notes"))
    notes.on_delete(lost)
    notes.menu = ("menu", "open", other)
    env.act(Action("wait"))
    assert env.steps_left is not None
    while not env.done:
        env.act(expert_action(env).action)
    assert env.success
