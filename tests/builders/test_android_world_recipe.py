"""The recorder in docs/sources.md, run against stand-ins for AndroidWorld, and what it writes read back."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from android_control_writer import notes_screen

from solar_rl.actions import Action

DOC = Path(__file__).parents[2] / "docs" / "sources.md"


@pytest.fixture
def record(monkeypatch):
    [snippet] = re.findall(r"```python\n(.*?def record\(.*?)```", DOC.read_text(), re.DOTALL)
    runner = ModuleType("android_world.episode_runner")
    runner.run_episode = lambda goal, agent, max_n_steps, start_on_home_screen: agent.run(goal, max_n_steps)
    package = ModuleType("android_world")
    package.episode_runner = runner
    monkeypatch.setitem(sys.modules, "android_world", package)
    monkeypatch.setitem(sys.modules, "android_world.episode_runner", runner)
    names: dict = {}
    exec(compile(snippet, str(DOC), "exec"), names)
    return names["record"]


class Env:
    """Shows one screen, and keeps what is executed."""

    def __init__(self):
        self.executed = []

    def get_state(self):
        box = SimpleNamespace(x_min=20, y_min=110, x_max=50, y_max=120)
        return SimpleNamespace(
            pixels=np.zeros((240, 108, 3), np.uint8),
            forest=SimpleNamespace(SerializeToString=notes_screen),
            ui_elements=[SimpleNamespace(bbox_pixels=None), SimpleNamespace(bbox_pixels=box)],
        )

    def execute_action(self, action):
        self.executed.append(action.as_dict())


class Agent:
    def __init__(self, env):
        self.env = env

    def run(self, goal, budget):
        assert (goal, budget) == ("Save the note", 12)
        for action in ({"action_type": "click", "index": 1}, {"action_type": "answer", "text": "done"}):
            self.env.execute_action(SimpleNamespace(as_dict=lambda action=action: action))
        return SimpleNamespace(done=True)


def test_the_recorder_writes_what_the_builder_reads(tmp_path, read, record):
    env, torn = Env(), []
    task = SimpleNamespace(
        name="Notes",
        goal="Save the note",
        complexity=1.2,
        start_on_home_screen=True,
        initialize_task=lambda env: None,
        is_successful=lambda env: 1.0,
        tear_down=torn.append,
    )
    execute = env.execute_action
    record(env, Agent(env), task, tmp_path)
    task.is_successful = lambda env: 0.5
    record(env, Agent(env), task, tmp_path, 1)
    assert env.execute_action == execute and len(torn) == 2
    assert [action["action_type"] for action in env.executed[:2]] == ["click", "answer"]
    episode, reject = read("android_world", tmp_path)
    assert [s.action for s in episode.steps] == [
        Action("click", 35 / 108, 115 / 240),
        Action("finished", status="complete", text="done"),
    ]
    assert (episode.episode_id, episode.category, episode.recorded_success) == ("Notes-0", "Notes", True)
    assert episode.steps[0].screenshot.height == 240 and "Save" in episode.steps[0].screen_text
    assert (reject.episode_id, reject.reason) == ("Notes-1", "unsuccessful")
