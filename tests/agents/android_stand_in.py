"""A stand-in for AndroidWorld: its names and what its actions do, on the simulated phone instead of an emulator.

Written from its public source (agents/base_agent.py, env/json_action.py, env/actuation.py, episode_runner.py), anew.
"""

from __future__ import annotations

import dataclasses
import io
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from PIL import Image

from builders.phone import PhoneEnv
from solar_rl.actions import Action

TYPES = (
    "click", "double_tap", "scroll", "swipe", "input_text", "navigate_home", "navigate_back", "keyboard_enter",
    "open_app", "status", "wait", "long_press", "answer", "unknown",
)  # fmt: skip
DIRECTIONS = ("left", "right", "down", "up")


@dataclasses.dataclass
class JSONAction:
    action_type: str | None = None
    index: int | None = None
    x: int | None = None
    y: int | None = None
    text: str | None = None
    direction: str | None = None
    goal_status: str | None = None
    app_name: str | None = None
    keycode: str | None = None
    clear_text: bool | None = None

    def __post_init__(self) -> None:
        if self.action_type not in TYPES:
            raise ValueError(f"Invalid action type: {self.action_type}")
        if self.index is not None and (self.x is not None or self.y is not None):
            raise ValueError("Either an index or a <x, y> should be provided.")
        if self.direction and self.direction not in DIRECTIONS:
            raise ValueError(f"Invalid scroll direction: {self.direction}")


@dataclasses.dataclass
class AgentInteractionResult:
    done: bool
    data: dict[str, Any]


class EnvironmentInteractingAgent:
    def __init__(self, env, name="", transition_pause=1.0):
        self._env, self._name, self._transition_pause = env, name, transition_pause

    @property
    def env(self):
        return self._env

    @property
    def name(self):
        return self._name

    def set_max_steps(self, max_steps):
        self.max_steps = max_steps

    def reset(self, go_home=False):
        self.env.reset(go_home=go_home)

    def get_post_transition_state(self):
        return self.env.get_state(wait_to_stabilize=self._transition_pause is None)


class PhoneAsyncEnv:
    """The interface of ``AsyncEnv`` over the phone: 3 device pixels for one of the picture."""

    SCALE = 3

    def __init__(self, phone: PhoneEnv) -> None:
        self.phone, self.interaction_cache, self.executed, self.hidden = phone, "", [], 0

    @property
    def logical_screen_size(self):
        shot = self.phone.observe().screenshot
        return shot.width * self.SCALE, shot.height * self.SCALE

    def reset(self, go_home=False):
        self.interaction_cache = ""
        return self.get_state()

    def hide_automation_ui(self):
        self.hidden += 1

    def get_state(self, wait_to_stabilize=False):
        seen = self.phone.observe()
        width, height = self.logical_screen_size
        picture = Image.open(io.BytesIO(seen.screenshot.data)).convert("RGB").resize((width, height))
        whole = SimpleNamespace(x_min=0, y_min=0, x_max=width, y_max=height)
        rows = [SimpleNamespace(bbox_pixels=None, is_scrollable=False)]  # an element may have no box
        rows.append(SimpleNamespace(bbox_pixels=whole, is_scrollable=True))
        for box in seen.boxes:
            pixels = dict(zip(("x_min", "y_min", "x_max", "y_max"), _pixels(box, width, height), strict=True))
            rows.append(SimpleNamespace(bbox_pixels=SimpleNamespace(**pixels), is_scrollable=False))
        for number, row in enumerate(rows):
            row.text, row.content_description, row.hint_text = f"element {number}", None, None
            row.class_name = "android.widget.TextView"
        return SimpleNamespace(pixels=np.asarray(picture), forest=None, ui_elements=rows)

    def execute_action(self, action: JSONAction) -> None:
        self.executed.append(action)
        if action.action_type == "answer":
            self.interaction_cache = action.text
            return
        self.phone.act(self._canonical(action))

    def _canonical(self, action: JSONAction) -> Action:
        kind = action.action_type
        width, height = self.logical_screen_size
        if kind in ("click", "long_press", "double_tap"):
            if action.x is None or action.y is None:
                raise ValueError(f"Invalid click action: {action}")
            name = "double_click" if kind == "double_tap" else kind
            return Action(name, x=action.x / width, y=action.y / height)
        if kind == "scroll":  # from the middle of the element, or of the screen: down draws the finger up
            return Action("scroll", direction=action.direction)
        if kind == "input_text":  # the tap and enter of the real one would leave the phone's goals unmet
            return Action("input_text", text=action.text)
        if kind == "open_app":
            return Action("open_app", app_name=action.app_name)
        buttons = {"navigate_home": "home", "navigate_back": "back", "keyboard_enter": "enter"}
        return Action("press", button=buttons[kind]) if kind in buttons else Action("wait")


def _pixels(box, width, height):
    return round(box.x1 * width), round(box.y1 * height), round(box.x2 * width), round(box.y2 * height)


def run_episode(goal, agent, max_n_steps=10, start_on_home_screen=False):
    """Run as ``episode_runner.run_episode`` does."""
    agent.reset(start_on_home_screen)
    agent.set_max_steps(max_n_steps)
    data = []
    for number in range(max_n_steps):
        result = agent.step(goal)
        data.append(result.data | {"step_number": number})
        if result.done:
            break
    return SimpleNamespace(done=result.done, step_data=data)


def install(monkeypatch) -> None:
    """Let ``import android_world...`` find the stand-in."""
    made = {
        "android_world": {},
        "android_world.agents": {},
        "android_world.env": {},
        "android_world.agents.base_agent": {
            "AgentInteractionResult": AgentInteractionResult,
            "EnvironmentInteractingAgent": EnvironmentInteractingAgent,
        },
        "android_world.env.json_action": {"JSONAction": JSONAction},
    }
    for name, names in made.items():
        module = ModuleType(name)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, name, module)
