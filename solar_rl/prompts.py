"""Put a step to a policy: goal, history and screen as chat messages.

Every function works from plain values too, so that training rebuilds the very prompt that was sampled from
the tables of a dataset. The wording is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from solar_rl.actions import Action
from solar_rl.config import PromptConfig
from solar_rl.errors import ActionError
from solar_rl.formats import get_format
from solar_rl.formats.base import Frame
from solar_rl.formats.resize import smart_resize
from solar_rl.schema import Episode, Step


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
        seed: Seed of candidate 0; candidate k has ``seed + k``.
    """

    episode: Episode
    step: Step
    messages: list[dict[str, Any]]
    images: tuple[bytes, ...]
    frame: Frame
    n: int
    seed: int


def build_request(episode: Episode, step: Step, config: PromptConfig, *, n: int, seed: int) -> Request:
    """Put one recorded step to a policy.

    Args:
        episode: The demonstration.
        step: One of its steps.
        config: How it is put.
        n: Number of candidates.
        seed: Seed of candidate 0 (``sampling.base.candidate_seed``); candidate k has ``seed + k``.

    Raises:
        ActionError: An earlier action can't be written in the format; names the episode and the step.
    """
    image = uses_image(step, config)
    frame = frame_of(step, config)
    try:
        chat = messages(episode, step, config)
    except ActionError as error:
        where = f"episode {episode.episode_id}, history of step {step.step_index}"
        raise ActionError(error.message, where=where, hint=error.hint) from None
    images = (step.screenshot.data,) if image and step.screenshot else ()
    return Request(episode, step, chat, images, frame, n, seed)


def messages(episode: Episode, step: Step, config: PromptConfig) -> list[dict[str, Any]]:
    """Return the chat messages of one recorded step."""
    history = [earlier.action for earlier in episode.steps if earlier.step_index < step.step_index]
    return messages_for(
        episode.goal,
        step.instruction,
        history,
        frame_of(step, config),
        step.screen_text,
        config,
        image=uses_image(step, config),
    )


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
    history: Sequence[Action],
    frame: Frame,
    screen_text: str | None,
    config: PromptConfig,
    *,
    image: bool = True,
) -> list[dict[str, Any]]:
    """Return the chat messages for a step given as plain values.

    Args:
        goal: What the user wants.
        instruction: Low-level instruction; used at level ``low`` only.
        history: Every earlier action, oldest first; the config decides how many are shown.
        frame: Size of the screen as the policy sees it.
        screen_text: The screen as text; used where the observation is text or both.
        config: How the step is put.
        image: Whether there is a screenshot; the caller passes its bytes beside the messages.

    Raises:
        ActionError: An earlier action can't be written in the format.

    >>> chat = messages_for("Wait", None, [], Frame(28, 28), None, PromptConfig(format="json"))
    >>> chat[1]["content"][0]["text"]
    'Goal: Wait'
    """
    fmt = get_format(config.format)
    lines = [f"Goal: {goal}"]
    if config.level == "low" and instruction:
        lines.append(f"This step: {instruction}")
    lines += _history_lines(history, frame, config)
    if config.observation != "image" and screen_text:
        lines.append(f"Screen:\n{screen_text}")
    content: list[dict[str, Any]] = [{"type": "text", "text": "\n".join(lines)}]
    if image and config.observation != "text":
        content.append({"type": "image"})
    system = [{"type": "text", "text": fmt.system_prompt(frame)}]
    return [{"role": "system", "content": system}, {"role": "user", "content": content}]


def _history_lines(history: Sequence[Action], frame: Frame, config: PromptConfig) -> list[str]:
    if config.history == "none" or not history:
        return []
    fmt = get_format(config.format)
    first = max(0, len(history) - (config.history_steps or len(history)))
    # One line an action: the line breaks that a format puts around its tags say nothing here.
    shown = (" ".join(fmt.render(action, frame).splitlines()) for action in history[first:])
    return ["Actions so far:", *(f"{first + i}. {line}" for i, line in enumerate(shown, start=1))]
