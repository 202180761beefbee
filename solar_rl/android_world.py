"""A policy as an agent of AndroidWorld's own runner: canonical actions written as its JSON actions.

Facts from android_world: agents/base_agent.py (the agent's interface), env/json_action.py (names and keys),
env/actuation.py (what each does to the device), env/interface.py (state, screen size, answers). Nothing of it is
imported before ``make_agent`` is called, and nothing of it is needed for the rest. Not run against an emulator here.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from solar_rl.actions import Action, Box
from solar_rl.closed_loop import Answer, Job, Player, Turn
from solar_rl.environment import Observation
from solar_rl.errors import ActionError, InputError
from solar_rl.schema import Screenshot

FAMILY = "AndroidWorld"
_POINTED = {"click": "click", "double_click": "double_tap", "long_press": "long_press"}
_BUTTONS = {"back": "navigate_back", "home": "navigate_home", "enter": "keyboard_enter"}
_KEYS = {"backspace": "DEL", "delete": "FORWARD_DEL", "home": "MOVE_HOME", "end": "MOVE_END"}
_ARROWS = ("up", "down", "left", "right")


class Element(NamedTuple):
    """What is needed of one of AndroidWorld's ``ui_elements``: its box in the unit square, and whether it scrolls."""

    box: Box | None
    scrolls: bool


def to_json_actions(
    action: Action, size: tuple[int, int], elements: Sequence[Element] = ()
) -> list[dict[str, Any]]:
    """Write a canonical action as the JSON actions that do the same, as fields of ``JSONAction``.

    Points become whole device pixels. A scroll's direction is the content's on both sides; AndroidWorld looks at no
    point of it but scrolls an element by index, so a scroll with a point names the smallest scrollable one
    that holds it. ``finished`` with a text is an answer first, which is where AndroidWorld reads it.

    Args:
        action: The action.
        size: Width and height of the screen in device pixels (``logical_screen_size``).
        elements: The state's ``ui_elements``, in their order.

    Returns:
        One action, or two for an answer; a last one of type ``status`` ends the episode.

    Raises:
        ActionError: AndroidWorld has no such action: hover, right_click, drag, a combination of keys.

    >>> to_json_actions(Action("click", x=0.5, y=0.25), (1080, 2400))
    [{'action_type': 'click', 'x': 540, 'y': 600}]
    >>> to_json_actions(Action("finished", status="complete", text="42"), (1080, 2400))
    [{'action_type': 'answer', 'text': '42'}, {'action_type': 'status', 'goal_status': 'complete'}]
    """
    kind = action.action_type
    if kind in _POINTED:
        return [{"action_type": _POINTED[kind], **_pixels(action, size)}]
    if kind == "scroll":
        place = _scroller(action, elements)
        return [{"action_type": "scroll", "direction": action.direction, **place}]
    if (
        kind == "input_text"
    ):  # AndroidWorld taps the place first, where there is one, and presses enter at the end
        return [{"action_type": "input_text", "text": action.text, **_pixels(action, size)}]
    if kind == "open_app":
        return [{"action_type": "open_app", "app_name": action.app_name}]
    if kind == "press":
        return [_press(action)]
    if kind == "wait":
        return [{"action_type": "wait"}]
    if kind == "finished":
        answer = [{"action_type": "answer", "text": action.text}] if action.text else []
        return [*answer, {"action_type": "status", "goal_status": action.status}]
    raise ActionError(f"{FAMILY} has no action {kind}")


def _pixels(action: Action, size: tuple[int, int]) -> dict[str, int]:
    if action.x is None or action.y is None:
        return {}
    return {"x": _pixel(action.x, size[0]), "y": _pixel(action.y, size[1])}


def _pixel(share: float, length: int) -> int:
    """Return a pixel on the screen: the right and lower edge belong to the last one."""
    return min(max(int(share * length), 0), length - 1)


def _scroller(action: Action, elements: Sequence[Element]) -> dict[str, int]:
    if action.x is None or action.y is None:
        return {}
    holding = [
        (element.box.area, index)
        for index, element in enumerate(elements)
        if element.scrolls and element.box is not None and element.box.contains(action.x, action.y)
    ]
    return {"index": min(holding)[1]} if holding else {}


def _press(action: Action) -> dict[str, str]:
    if action.button == "recent":
        return {"action_type": "press_keyboard", "keycode": "KEYCODE_APP_SWITCH"}
    if action.button is not None:
        return {"action_type": _BUTTONS[action.button]}
    keys = action.keys or ()
    if len(keys) != 1:
        raise ActionError(f"{FAMILY} presses one key at a time, not {'+'.join(keys)}")
    key = keys[0].lower()
    name = f"DPAD_{key}" if key in _ARROWS else _KEYS.get(key, key)
    return {"action_type": "press_keyboard", "keycode": f"KEYCODE_{name.upper()}"}


def observe(goal: str, state: Any, size: tuple[int, int]) -> Observation:
    """Turn a state of AndroidWorld into what our agents see.

    Args:
        goal: What is asked for.
        state: ``pixels`` (height, width, 3) and ``ui_elements``.
        size: Width and height of the screen in device pixels.
    """
    data = io.BytesIO()
    Image.fromarray(np.asarray(state.pixels)).save(data, "PNG", compress_level=1)
    height, width = np.asarray(state.pixels).shape[:2]
    elements = elements_of(state, size)
    text = "\n".join(
        line
        for number, each in enumerate(state.ui_elements)
        if (line := _told(number, each, elements[number].box))
    )
    boxes = tuple(element.box for element in elements if element.box is not None)
    return Observation(goal, Screenshot(data.getvalue(), width, height), text, width, height, boxes)


def elements_of(state: Any, size: tuple[int, int]) -> list[Element]:
    """Return what is needed of the elements of a state, in their order."""
    return [Element(_box(each, size), bool(each.is_scrollable)) for each in state.ui_elements]


def _box(element: Any, size: tuple[int, int]) -> Box | None:
    pixels = element.bbox_pixels
    if pixels is None:
        return None
    return Box(pixels.x_min / size[0], pixels.y_min / size[1], pixels.x_max / size[0], pixels.y_max / size[1])


def _told(number: int, element: Any, box: Box | None) -> str | None:
    """Say an element on one line: number, class, label, box in thousandths; None where it says nothing."""
    label = element.text or element.content_description or element.hint_text
    if not label or box is None:
        return None
    kind = (element.class_name or "").rpartition(".")[2] or "View"
    place = ", ".join(str(round(1000 * edge)) for edge in box)
    return f"{number} {kind} {label!r} [{place}]"


@dataclass
class Counts:
    """What an agent did over its life: answers, those that couldn't be read, and those that couldn't be done."""

    answers: int = 0
    unreadable: int = 0
    undone: int = 0


def make_agent(
    env: Any, player: Player, *, name: str = "solar-rl", transition_pause: float | None = None
) -> Any:
    """Make an agent for AndroidWorld's runner out of a player, such as ``agents.PolicyAgent``.

    An answer that can't be read, or that AndroidWorld has no action for, passes a step and changes nothing;
    ``agent.counts`` counts both.

    Args:
        env: An ``AsyncEnv`` of AndroidWorld.
        player: Who answers.
        name: Name of the agent in the results.
        transition_pause: Seconds to wait before each look; None: until the screen is stable, as its ``run.py`` does.

    Returns:
        An ``EnvironmentInteractingAgent``.

    Raises:
        InputError: AndroidWorld isn't installed.
    """
    try:
        base_agent: Any = import_module("android_world.agents.base_agent")
        json_action: Any = import_module("android_world.env.json_action")
    except ImportError as error:
        raise InputError(
            f"{FAMILY} can't be imported ({error})",
            hint="install it in this environment: docs/android_world.md",
        ) from error

    class PolicyInAndroidWorld(base_agent.EnvironmentInteractingAgent):  # type: ignore[misc]
        """Asks a player turn by turn."""

        def __init__(self) -> None:
            super().__init__(env, name, transition_pause)
            self.counts = Counts()
            self._history: list[Answer] = []
            self._episodes = 0

        def reset(self, go_home: bool = False) -> None:
            """Begin an episode."""
            super().reset(go_home)
            self.env.hide_automation_ui()  # the pointer's coordinates are no part of the screen
            self._history = []
            self._episodes += 1

        def step(self, goal: str) -> Any:
            """Look, ask, act."""
            size = tuple(self.env.logical_screen_size)
            state = self.get_post_transition_state()
            turn = Turn(0, Job(name, self._episodes), goal, tuple(self._history), observe(goal, state, size))
            (answer,) = player.answer([turn])
            self._history.append(answer)
            self.counts.answers += 1
            said = {"answer": answer.text, "fault": answer.fault, "goal": goal}
            if answer.action is None:
                self.counts.unreadable += 1
                return base_agent.AgentInteractionResult(False, said | {"actions": []})
            done, actions, fault = self._do(answer.action, size, elements_of(state, size))
            self.counts.undone += fault is not None
            data = said | {"actions": actions, "fault": fault}
            return base_agent.AgentInteractionResult(done, data)

        def _do(
            self, action: Action, size: tuple[int, int], elements: list[Element]
        ) -> tuple[bool, list[dict[str, Any]], str | None]:
            """Do an action; return whether the agent is done, what was done, and why it couldn't be."""
            done: list[dict[str, Any]] = []
            try:
                for fields in to_json_actions(action, size, elements):
                    if fields["action_type"] == "status":  # its runner ends the episode, nothing is executed
                        return True, [*done, fields], None
                    self.env.execute_action(json_action.JSONAction(**fields))
                    done.append(fields)
            except ValueError as error:  # ours (no such action), or its own: a version without that action
                return False, done, str(error)
            return False, done, None

    return PolicyInAndroidWorld()
