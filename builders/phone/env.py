"""Run an agent on the phone in closed loop: reset, step, success."""

from __future__ import annotations

from typing import NamedTuple

from solar_rl.actions import Action
from solar_rl.schema import Screenshot

from .draw import EpisodeSpec, PhoneOptions, draw_episode
from .expert import Demonstration, demonstrate
from .goals import Task
from .phone import Phone
from .render import render
from .widgets import screen_text


class Observation(NamedTuple):
    """What an agent sees: the screenshot, and the same screen as text."""

    screenshot: Screenshot
    screen_text: str
    width: int
    height: int


class PhoneEnv:
    """The simulated phone as an environment. Nothing an agent does raises; senseless actions pass time.

    Args:
        options: What kind of episodes, as in dataset.yaml (default: the builder's defaults).

    >>> env = PhoneEnv()
    >>> observation = env.reset(0)
    >>> observation.width, observation.height, env.success
    (360, 720, False)
    """

    def __init__(self, options: PhoneOptions | None = None) -> None:
        self.options = options or PhoneOptions()
        self.reset(0)

    def reset(self, episode: int | EpisodeSpec) -> Observation:
        """Start an episode.

        Args:
            episode: Its index under the options, or a spec (see ``draw_episode``).
        """
        spec = draw_episode(self.options, episode)[0] if isinstance(episode, int) else episode
        self.spec = spec
        self.phone: Phone = spec.phone()
        self.task = Task(self.phone, spec.goal)
        self.steps = 0
        self.last: Action | None = None
        self.task.watch(self.phone)
        return self.observe()

    def step(self, action: Action) -> Observation:
        """Do an action; after the end nothing changes any more."""
        if not self.done:
            self.steps += 1
            self.last = action
            if action.action_type != "finished":
                self.phone.act(action)
                self.task.watch(self.phone)
        return self.observe()

    def observe(self) -> Observation:
        """Return what can be seen now."""
        tree = self.phone.screen.tree
        shot = render(tree, self.options.scale)
        return Observation(shot, screen_text(tree, self.options.scale), shot.width, shot.height)

    @property
    def goal(self) -> str:
        """Return what the user asks for."""
        return self.spec.goal.text

    @property
    def done(self) -> bool:
        """Tell whether the agent has finished or has no steps left."""
        finished = self.last is not None and self.last.action_type == "finished"
        return finished or self.steps >= self.spec.max_steps

    @property
    def success(self) -> bool:
        """Tell whether the agent finished with the phone in exactly the wanted state."""
        return self.task.success(self.phone, self.last)

    @property
    def progress(self) -> float:
        """Return the share of the goal that is reached, in [0, 1]; 1 for a success."""
        return 1.0 if self.success else self.task.progress(self.phone)


def expert_action(env: PhoneEnv) -> Demonstration:
    """Return what the expert does next in this environment, from any state."""
    return demonstrate(env.phone, env.task, by_name=env.spec.by_name)
