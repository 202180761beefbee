"""The adapter for AndroidWorld's runner, on a stand-in that keeps the semantics of its actions."""

import pytest
from android_stand_in import PhoneAsyncEnv, install, run_episode
from test_agents import Script

from builders.android_control.screen import Screen
from builders.android_world.actions import read_action
from builders.phone import PhoneEnv, PhoneOptions, expert_action
from solar_rl.actions import Action, Box
from solar_rl.agents import PolicyAgent
from solar_rl.android_world import Element, make_agent, observe, to_json_actions
from solar_rl.config import PromptConfig
from solar_rl.errors import ActionError, InputError
from solar_rl.formats import get_format

SIZE = (1080, 2400)
ELEMENTS = [
    Element(None, True),
    Element(Box(0, 0, 1, 1), True),
    Element(Box(0, 0.5, 1, 0.9), True),
    Element(Box(0, 0.6, 0.5, 0.7), False),
]


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        (Action("long_press", x=0.5, y=0.5), {"action_type": "long_press", "x": 540, "y": 1200}),
        (Action("double_click", x=0.0, y=0.0), {"action_type": "double_tap", "x": 0, "y": 0}),
        (Action("click", x=1.0, y=1.0), {"action_type": "click", "x": 1079, "y": 2399}),
        (Action("scroll", direction="down"), {"action_type": "scroll", "direction": "down"}),
        (
            Action("scroll", direction="left", x=0.2, y=0.65, x2=0.8, y2=0.65),
            {"action_type": "scroll", "direction": "left", "index": 2},
        ),
        (Action("input_text", text="milk"), {"action_type": "input_text", "text": "milk"}),
        (
            Action("input_text", text="milk", x=0.5, y=0.5),
            {"action_type": "input_text", "text": "milk", "x": 540, "y": 1200},
        ),
        (Action("open_app", app_name="Clock"), {"action_type": "open_app", "app_name": "Clock"}),
        (Action("press", button="back"), {"action_type": "navigate_back"}),
        (Action("press", button="enter"), {"action_type": "keyboard_enter"}),
        (
            Action("press", button="recent"),
            {"action_type": "press_keyboard", "keycode": "KEYCODE_APP_SWITCH"},
        ),
        (Action("press", keys=("backspace",)), {"action_type": "press_keyboard", "keycode": "KEYCODE_DEL"}),
        (Action("press", keys=("down",)), {"action_type": "press_keyboard", "keycode": "KEYCODE_DPAD_DOWN"}),
        (Action("wait"), {"action_type": "wait"}),
        (Action("finished", status="infeasible"), {"action_type": "status", "goal_status": "infeasible"}),
    ],
)
def test_actions_are_written_in_device_pixels_and_read_back(action, fields):
    assert to_json_actions(action, SIZE, ELEMENTS) == [fields]
    rectangles = [box and tuple(v * s for v, s in zip(box, SIZE * 2, strict=True)) for box, _ in ELEMENTS]
    again = read_action(fields, Screen(*SIZE), rectangles).action
    assert (again.action_type, again.direction, again.text) == (
        action.action_type,
        action.direction,
        action.text,
    )
    assert (again.button, again.keys, again.status) == (action.button, action.keys, action.status)
    if action.x is not None and action.action_type != "scroll":
        assert (again.x, again.y) == pytest.approx((action.x, action.y), abs=1e-3)


@pytest.mark.parametrize(
    "action",
    [
        Action("hover", x=0.5, y=0.5),
        Action("drag", x=0.1, y=0.1, x2=0.5, y2=0.5),
        Action("press", keys=("ctrl", "c")),
    ],
)
def test_what_android_world_lacks_is_said(action):
    with pytest.raises(ActionError, match="AndroidWorld"):
        to_json_actions(action, SIZE)


def led(env, change=lambda number, action: action):
    """A policy that says what the phone's expert would do, in the format ``json``."""
    fmt, prompt = get_format("json"), PromptConfig(format="json", observation="both")
    asked = []

    def say(request):
        action = change(len(asked), expert_action(env.phone).action)
        asked.append(request)
        return action if isinstance(action, str) else fmt.render(action, request.frame)

    return PolicyAgent(prompt, Script(say)), asked


@pytest.fixture
def env(monkeypatch):
    install(monkeypatch)
    phone = PhoneEnv(PhoneOptions(popup_rate=0.0, buckets={"short": 1.0}))
    phone.reset("any", 3)
    return PhoneAsyncEnv(phone)


def test_an_expert_reaches_its_goals_through_android_world_s_runner(env):
    for seed in range(4):
        env.phone.reset("any", seed)
        player, asked = led(env)
        agent = make_agent(env, player, transition_pause=None)
        result = run_episode(env.phone.goal, agent, 20)
        assert result.done
        env.phone.act(expert_action(env.phone).action)  # the runner asks the task; the phone wants to be told
        assert env.phone.success
        assert (agent.counts.answers, agent.counts.unreadable, agent.counts.undone) == (len(asked), 0, 0)
        assert env.hidden == seed + 1
        assert [len(request.past) for request in asked] == list(range(len(asked)))
        assert asked[0].frame.width < asked[0].frame.height
        assert "element 2" in str(asked[0].messages)


def test_an_answer_is_where_android_world_reads_it(env):
    player, _ = led(env, lambda number, action: Action("finished", status="complete", text="42"))
    result = run_episode("What?", make_agent(env, player, transition_pause=None))
    assert env.interaction_cache == "42" and result.done
    assert [action["action_type"] for action in result.step_data[-1]["actions"]] == ["answer", "status"]


def test_what_can_t_be_read_or_done_costs_a_step_and_is_counted(env):
    said = ["hm", Action("drag", x=0.1, y=0.1, x2=0.5, y2=0.5), Action("press", button="recent")]
    player, _ = led(env, lambda number, action: said[number] if number < 3 else action)
    agent = make_agent(env, player, transition_pause=None)
    result = run_episode(env.phone.goal, agent, 3)
    assert not result.done and env.executed == []
    assert (agent.counts.answers, agent.counts.unreadable, agent.counts.undone) == (3, 1, 2)
    faults = [step["fault"] for step in result.step_data]
    assert faults[0] and "no action drag" in faults[1] and "Invalid action type" in faults[2]


def test_a_new_episode_forgets_the_last(env):
    player, asked = led(env, lambda number, action: Action("wait"))
    agent = make_agent(env, player, transition_pause=None)
    run_episode("One", agent, 2)
    run_episode("Two", agent, 2)
    assert [len(request.past) for request in asked] == [0, 1, 0, 1]
    assert [request.episode.goal for request in asked] == ["One", "One", "Two", "Two"]


def test_the_screen_is_seen_as_it_is(env):
    seen = observe("Go", env.get_state(), env.logical_screen_size)
    assert (
        (seen.width, seen.height)
        == env.logical_screen_size
        == (seen.screenshot.width, seen.screenshot.height)
    )
    assert all(0 <= edge <= 1 for box in seen.boxes for edge in box)


def test_without_android_world_it_says_so():
    with pytest.raises(InputError, match="can't be imported"):
        make_agent(None, None)
