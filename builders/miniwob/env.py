"""MiniWoB++ in closed loop: a task and a seed, canonical actions, and the page's own verdict."""

from __future__ import annotations

import time
from typing import Literal

from solar_rl.actions import Action
from solar_rl.environment import Environment, Observation
from solar_rl.errors import InputError
from solar_rl.schema import Screenshot

from .browser import HEIGHT, WIDTH, Browser
from .doing import ActionSpace, do
from .experts import EXPERTS, Demonstration, demonstrate
from .page import Page, read_page
from .tasks import LEFT_OUT, SUITE

Text = Literal["elements", "list"]
MAX_STEPS = 40
"""Actions an episode may take: ours, twice what the longest demonstration of most tasks needs."""


class MiniWobEnv(Environment):
    """MiniWoB++'s pages as an environment, without their time limit and with a limit on steps.

    The page is loaded anew for each episode, so an episode follows from its task and seed alone.

    Args:
        action_space: dom (a click is a scripted click on the element on top at the point) or pointer.
        wait_ms: Pause after each action, for pages with delays.
        scale: Pixels of a screenshot for one of the page, which measures 160 x 210.
        screenshots: Whether observations hold one.
        text: What observations say: every element, or a short list.
        max_steps: Actions an episode may take.
        chromium: Program of the browser (default: MINIWOB_CHROME_BINARY, or found on PATH).
        chromedriver: Program of its driver (default: MINIWOB_CHROMEDRIVER, or found on PATH).

    Raises:
        MissingExtra: The extra ``miniwob`` isn't installed.
        InputError: Chromium or its driver is missing or doesn't start.
    """

    def __init__(
        self,
        *,
        action_space: ActionSpace = "dom",
        wait_ms: int = 0,
        scale: float = 2.0,
        screenshots: bool = True,
        text: Text = "elements",
        max_steps: int = MAX_STEPS,
        chromium: str | None = None,
        chromedriver: str | None = None,
    ) -> None:
        self.action_space: ActionSpace = action_space
        self.wait_ms = wait_ms
        self.screenshots = screenshots
        self.text: Text = text
        self.max_steps = max_steps
        self.scale = scale
        self.browser = Browser(chromium, chromedriver, scale)
        self.task = ""
        self.steps = 0
        self._over = True
        self._rewarded = False

    @property
    def tasks(self) -> tuple[str, ...]:
        """Return the suite; every other task of MiniWoB++ can be named too, but few have an expert."""
        return SUITE

    def reset(self, task: str, seed: int) -> Observation:
        """Start an episode on a page that is loaded anew.

        Raises:
            InputError: The task is left out or doesn't exist, or the browser fails.
        """
        if task in LEFT_OUT:
            raise InputError(f"task '{task}' is left out: {LEFT_OUT[task]}")
        self.browser.start(task, seed)
        self.task, self.steps = task, 0
        self._over = self._rewarded = False
        return self._look()

    def act(self, action: Action) -> Observation:
        """Do an action; after the end nothing changes, and the last screen stays."""
        if self.done:
            return self._seen
        self.steps += 1
        if action.action_type == "finished":
            self._over = True
            return self._seen
        do(self.browser, action, self.action_space)
        if self.wait_ms:
            time.sleep(self.wait_ms / 1000)
        self._over, reward = self.browser.judge()
        self._rewarded = self._over and reward == 1.0
        return self._seen if self._over else self._look()

    @property
    def done(self) -> bool:
        """Tell whether the page has judged, the agent has finished, or no steps are left."""
        return self._over or self.steps >= self.max_steps

    @property
    def success(self) -> bool:
        """Tell whether the page has judged, with its full reward; time doesn't count."""
        return self._rewarded

    def close(self) -> None:
        """End the browser."""
        self.browser.close()

    def _look(self) -> Observation:
        self.page: Page = read_page(self.browser.look(), WIDTH, HEIGHT)
        shot = None
        if self.screenshots:
            data = self.browser.screenshot()
            shot = Screenshot.of(data)
        width, height = (shot.width, shot.height) if shot else (WIDTH * self.scale, HEIGHT * self.scale)
        boxes = tuple(element.box for element in self.page.visible if element.box)
        text = self.page.listing() if self.text == "list" else self.page.text()
        self._seen = Observation(self.page.goal, shot, text, round(width), round(height), boxes)
        return self._seen


def expert_action(env: MiniWobEnv) -> Demonstration:
    """Return what the expert does next in this environment.

    Raises:
        InputError: The task has no expert.
        Lost: The expert doesn't know what to do on this page.
    """
    if env.task not in EXPERTS:
        raise InputError(f"task '{env.task}' has no expert", hint=f"there are: {', '.join(sorted(EXPERTS))}")
    return demonstrate(env.task, env.page, listed=env.text == "list")
