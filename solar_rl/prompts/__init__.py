"""Put a step to a policy: goal, history and screen as chat messages.

A template says what goes where, as each family of models expects it (docs/prompts.md). Every function works from
plain values too, so that training rebuilds the very prompt that was sampled from the tables of a dataset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from solar_rl.actions import Action
from solar_rl.config import PromptConfig
from solar_rl.errors import ActionError
from solar_rl.formats import get_format
from solar_rl.formats.base import Frame
from solar_rl.formats.grid import THOUSAND
from solar_rl.formats.resize import smart_resize
from solar_rl.formats.spaces import Thousand
from solar_rl.prompts.catalogue import settled, template_of
from solar_rl.prompts.render import Mark, Told, clean, render
from solar_rl.schema import Episode, Step

__all__ = [
    "Past",
    "Request",
    "build_request",
    "frame_for",
    "frame_of",
    "messages_for",
    "recorded_past",
    "settled",
    "shown_steps",
    "tried",
    "uses_image",
    "without_oldest",
]


@dataclass(frozen=True)
class Past:
    """An earlier step as the history tells it: what was done and, where known, the thought behind it."""

    action: Action
    thought: str | None = None


@dataclass(frozen=True)
class Request:
    """One step put to a policy.

    Args:
        episode: The demonstration the step belongs to.
        step: The recorded step; scripted samplers read its action, models must not.
        messages: Chat messages; an image part is {"type": "image"} and takes the next of ``images``.
        images: Encoded screenshots in the order of the messages' image parts.
        frame: Size of the last screenshot as the model sees it.
        n: Number of candidates.
        seed: Seed of the first of them; the next has ``seed + 1``.
        past: The whole history, oldest first; the config decides how much of it ``messages`` show.
        config: How the step is put.
        first: Index of the first candidate, where earlier ones were asked for before.
    """

    episode: Episode
    step: Step
    messages: list[dict[str, Any]]
    images: tuple[bytes, ...]
    frame: Frame
    n: int
    seed: int
    past: tuple[Past, ...]
    config: PromptConfig
    first: int = 0

    @property
    def shown(self) -> int:
        """Return how many earlier actions the prompt shows."""
        return shown_steps(len(self.past), self.config)


def build_request(
    episode: Episode,
    step: Step,
    config: PromptConfig,
    *,
    n: int,
    seed: int,
    past: Sequence[Past] | None = None,
    first: int = 0,
) -> Request:
    """Put one recorded step to a policy.

    Args:
        episode: The demonstration.
        step: One of its steps.
        config: How it is put.
        n: Number of candidates.
        seed: Seed of the first of them: ``sampling.base.candidate_seed`` plus ``first``.
        past: Every earlier step as the history tells it (default: as it was recorded).
        first: Index of the first candidate.

    Raises:
        ActionError: An earlier action can't be written in the format; names the episode and the step.
    """
    history = recorded_past(episode, step) if past is None else tuple(past)
    frame, screens = frame_of(step, config), _screens(episode, step, config)
    try:
        chat = messages_for(
            episode.goal,
            step.instruction,
            history,
            frame,
            step.screen_text,
            config,
            screens=len(screens),
        )
    except ActionError as error:
        where = f"episode {episode.episode_id}, history of step {step.step_index}"
        raise ActionError(error.message, where=where, hint=error.hint) from None
    return Request(episode, step, chat, screens, frame, n, seed, history, config, first)


def without_oldest(request: Request, dropped: int) -> Request:
    """Return the same request with the ``dropped`` oldest of its shown actions left out.

    Raises:
        ValueError: It doesn't show so many.
    """
    kept = request.shown - dropped
    if dropped < 0 or kept < 0:
        raise ValueError(f"{request.shown} actions are shown, {dropped} can't be left out")
    shorter = {"history_steps": kept} if kept else {"history": "none"}
    config = request.config.model_copy(update=shorter)
    built = build_request(
        request.episode, request.step, config, n=request.n, seed=request.seed, past=request.past
    )
    return replace(request, messages=built.messages)


def recorded_past(episode: Episode, step: Step) -> tuple[Past, ...]:
    """Return what the expert did before a step."""
    return tuple(Past(e.action, e.thought) for e in episode.steps if e.step_index < step.step_index)


def shown_steps(past: int, config: PromptConfig) -> int:
    """Return how many of so many earlier actions a prompt shows."""
    return 0 if config.history == "none" else min(past, config.history_steps or past)


def _screens(episode: Episode, step: Step, config: PromptConfig) -> tuple[bytes, ...]:
    """Return the screenshots that the prompt of a step holds, oldest first."""
    if not uses_image(step, config):
        return ()
    first = step.step_index - config.screenshots + 1
    around = (e for e in episode.steps if first <= e.step_index <= step.step_index)
    return tuple(e.screenshot.data for e in around if e.screenshot is not None)


def uses_image(step: Step, config: PromptConfig) -> bool:
    """Tell whether the prompt of a step holds its screenshot."""
    return config.observation != "text" and step.screenshot is not None


def frame_of(step: Step, config: PromptConfig) -> Frame:
    """Return the size of a step's screen as the policy sees it; see ``frame_for``."""
    shot = step.screenshot
    size = (shot.width, shot.height) if shot else (step.screen_width, step.screen_height)
    return frame_for(*size, config, image=uses_image(step, config))


def frame_for(width: int, height: int, config: PromptConfig, *, image: bool = True) -> Frame:
    """Return what pixel coordinates are divided by.

    Args:
        width: Pixels of the screenshot, or of the screen where there is none.
        height: The same down the height.
        config: Holds the pixel limits.
        image: Whether there is a screenshot. If the policy sees it, its smart-resized size counts, else
            the screen's own.
    """
    if not image or config.observation == "text":
        return Frame(width, height)
    limits = {"min_pixels": config.min_pixels, "max_pixels": config.max_pixels}
    return Frame(*smart_resize(width, height, **limits))


def messages_for(
    goal: str,
    instruction: str | None,
    past: Sequence[Past],
    frame: Frame,
    screen_text: str | None,
    config: PromptConfig,
    *,
    screens: int = 1,
) -> list[dict[str, Any]]:
    """Return the chat messages for a step given as plain values.

    Args:
        goal: What the user wants.
        instruction: Low-level instruction; used at level ``low`` only.
        past: Every earlier step, oldest first; the config decides how many are shown.
        frame: Size of the screen as the policy sees it.
        screen_text: The screen as text; used where the observation is text or both.
        config: How the step is put; where it names no template, the format's first is meant.
        screens: Number of screenshots, the current one last; the caller passes their bytes beside the
            messages.

    Raises:
        ActionError: An earlier action can't be written in the format.
        ConfigError: The template is wrong.

    >>> chat = messages_for("Wait", None, [], Frame(28, 28), None, PromptConfig(format="json"))
    >>> chat[1]["content"][0]["text"]
    'Goal: Wait'
    """
    fmt = get_format(config.format)
    shown = 0 if config.observation == "text" else screens
    earlier = _earlier(past, frame, config, shown)
    grid = THOUSAND if fmt.space is Thousand else frame
    values = {
        "goal": clean(goal),
        "instruction": clean(instruction) if config.level == "low" else None,
        "earlier": earlier,
        "history": [told for told in earlier if told.action is not None],
        "screen_text": clean(screen_text) if config.observation != "image" else None,
        "width": grid.width,
        "height": grid.height,
    }
    return render(template_of(config), values, shown)


def tried(config: PromptConfig) -> PromptConfig:
    """Return the config once its template has told a step with a history, so that a wrong one stops before any work.

    Raises:
        ConfigError: The template is wrong.
    """
    past = [Past(Action("wait"), "a thought")] * 2
    screens = 0 if config.observation == "text" else config.screenshots
    for shown, before in ((min(screens, 1), past[:0]), (min(screens, 3), past)):
        messages_for("a goal", "a step", before, Frame(28, 28), "a screen", config, screens=shown)
    return config


def _earlier(past: Sequence[Past], frame: Frame, config: PromptConfig, screens: int) -> list[Told]:
    """Return the earlier steps of which the prompt shows the action, the screenshot or both, oldest first."""
    fmt = get_format(config.format)
    count = len(past)
    first_told, first_seen = count - shown_steps(count, config), max(count - max(screens - 1, 0), 0)
    steps = []
    for at in range(min(first_told, first_seen), count):
        each, told = past[at], at >= first_told
        thought = " ".join((each.thought or "").split()) if told and config.history_thoughts else ""
        screen = Mark(screens - 1 - (count - at)) if at >= first_seen else None
        action = clean(fmt.render(each.action, frame)) if told else None
        steps.append(Told(at + 1, action, clean(thought) or None, screen))
    return steps
