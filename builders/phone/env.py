"""Run an agent on the phone in closed loop: reset, act, success."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, get_args

from solar_rl.actions import Action
from solar_rl.config import validate_config
from solar_rl.environment import Environment, Observation
from solar_rl.errors import InputError

from .draw import Bucket, EpisodeSpec, PhoneOptions, draw_episode
from .expert import Demonstration, demonstrate
from .goals import Task
from .listing import screen_list
from .phone import Phone
from .render import pixels, render
from .widgets import screen_text, visible

ANY = "any"
"""Task of whatever length the options draw."""


class PhoneEnv(Environment):
    """The simulated phone as an environment. Nothing an agent does raises; senseless actions pass time.

    A task is a length of goal (short, long, super_long), or ``any``; the seed is the episode's index under
    the options.

    Args:
        options: What kind of episodes, as in dataset.yaml (default: the builder's defaults).

    >>> env = PhoneEnv()
    >>> observation = env.reset("any", 0)
    >>> observation.width, observation.height, env.success
    (360, 720, False)
    """

    def __init__(self, options: PhoneOptions | None = None) -> None:
        self.options = options or PhoneOptions()
        self.reset(ANY, 0)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Return the lengths that the options allow."""
        return tuple(self.options.ranges())

    def reset(self, task: str, seed: int) -> Observation:
        """Start an episode.

        Args:
            task: A length of goal, or ``any``.
            seed: Index of the episode under the options, narrowed to that length.

        Raises:
            InputError: No such task.
        """
        if task not in (ANY, *self.tasks):
            known = ", ".join((ANY, *self.tasks))
            raise InputError(f"the phone has no task '{task}'", hint=f"there is: {known}")
        options = self.options
        if task != ANY:
            weights = {bucket: float(bucket == task) for bucket in get_args(Bucket)}
            options = options.model_copy(update={"buckets": weights})
        return self.start(draw_episode(options, seed)[0])

    def start(self, spec: EpisodeSpec) -> Observation:
        """Start the episode of a spec (see ``draw_episode``)."""
        self.spec = spec
        self.phone: Phone = spec.phone()
        self.task = Task(self.phone, spec.goal)
        self.steps = 0
        self.last: Action | None = None
        self.task.watch(self.phone)
        return self.observe()

    def act(self, action: Action) -> Observation:
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
        tree, scale = self.phone.screen.tree, self.options.scale
        shot = render(tree, scale) if self.options.pictures else None
        boxes = tuple(seen.box.unit() for seen in visible(tree))
        text = screen_list(tree) if self.options.text == "list" else screen_text(tree, scale)
        return Observation(self.goal, shot, text, *pixels(scale), boxes)

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

    @property
    def steps_left(self) -> int | None:
        """Return how many actions the expert would need from here, the last ``finished`` included.

        The expert acts on a copy of the phone; None where it doesn't get there.
        """
        phone, task = deepcopy((self.phone, self.task))
        for taken in range(1, self.spec.max_steps + 1):
            action = demonstrate(phone, task, by_name=self.spec.by_name, listed=self.spec.listed).action
            if action.action_type == "finished":
                return taken
            phone.act(action)
            task.watch(phone)
        return None


def make_environment(options: Mapping[str, Any]) -> PhoneEnv:
    """Make the environment of an evaluation suite.

    Args:
        options: Fields of ``PhoneOptions``.

    Raises:
        ConfigError: An option is unknown or wrong.
    """
    return PhoneEnv(validate_config(PhoneOptions, options, where="source.options"))


def expert_action(env: PhoneEnv) -> Demonstration:
    """Return what the expert does next in this environment, from any state."""
    return demonstrate(env.phone, env.task, by_name=env.spec.by_name, listed=env.spec.listed)
