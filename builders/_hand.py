"""What mouse and keyboard do within one recorded step, told call by call and read as canonical actions.

Several calls may be one action: a move and the drag, scroll or click that follows it; a button or key that goes
down and comes up again; a text and the Enter after it. What is left over is as many actions as there are:
nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from solar_rl.actions import Action
from solar_rl.config import Config
from solar_rl.errors import RecordError
from solar_rl.schema import Step

Point = tuple[float, float]
"""x and y in the unit square."""
ENTER = ("enter", "return")


class HandOptions(Config):
    """Options of builders whose steps may hold several actions."""

    several_actions: Literal["split", "reject"] = "split"
    """A recorded step with several actions: a step each, of which only the first has a screenshot (the screens
    between weren't recorded), or a reject of the episode."""


class Hand:
    """Mouse and keyboard through one step.

    Args:
        pointer: Where the last step left the mouse, None where nothing says so.
    """

    def __init__(self, pointer: Point | None = None) -> None:
        self.pointer = pointer
        self._actions: list[Action] = []
        self._moved = False
        self._button_down: Point | None = None
        self._held: list[str] = []
        self._held_did_something = True

    def move(self, point: Point) -> None:
        """Move the mouse; what follows decides whether it only hovers there."""
        self._settle()
        self.pointer, self._moved = _on_screen("move", point), True

    def click(self, kind: str, point: Point | None = None) -> None:
        """Click (click, double_click, right_click) at a point, or where the mouse is."""
        self._no_keys_held(kind)
        self._arrive(kind, point)
        self._actions.append(Action(kind, *self._place(kind)))

    def drag_to(self, point: Point) -> None:
        """Drag from where the mouse is."""
        self._no_keys_held("drag")
        start, self._moved = self._place("drag"), False
        self.pointer = _on_screen("drag", point)
        self._actions.append(Action("drag", *start, *point))

    def scroll(self, direction: str, point: Point | None = None) -> None:
        """Turn the wheel so that the content in that direction comes into view.

        Without a point, and without a move in this step, the scroll has none: where an earlier step left the
        mouse is nobody's choice of place.
        """
        self._no_keys_held("scroll")
        if point is not None:
            self._arrive("scroll", point)
        elif self._moved:
            self._moved, point = False, self.pointer
        x, y = point if point is not None else (None, None)
        self._actions.append(Action("scroll", x, y, direction=direction))

    def button_down(self, point: Point | None = None) -> None:
        """Press the left mouse button and keep it down."""
        self._arrive("mouse down", point)
        self._button_down = self._place("mouse down")

    def button_up(self, point: Point | None = None) -> None:
        """Let the left mouse button go: a drag, or a click where the mouse went down.

        Raises:
            RecordError: ``bad_value``: it wasn't down.
        """
        start, self._button_down = self._button_down, None
        if start is None:
            raise RecordError("bad_value", "a mouse button comes up that didn't go down in this step")
        end = _on_screen("mouse up", point) if point is not None else self._place("mouse up")
        self.pointer, self._moved = end, False
        self._actions.append(Action("click", *start) if start == end else Action("drag", *start, *end))

    def type(self, text: str) -> None:
        """Type a text.

        Raises:
            RecordError: ``empty_text``.
        """
        self._settle()
        self._no_keys_held("text")
        if not text:
            raise RecordError("empty_text", "the typed text is empty")
        self._actions.append(Action("input_text", text=text))

    def press(self, keys: Sequence[str]) -> None:
        """Press keys together, with those that are held down; a key given twice is pressed twice."""
        self._settle()
        chord = (*self._held, *keys)
        if not chord or not all(chord):
            raise RecordError("bad_value", f"the pressed keys are {list(keys)!r}")
        self._held_did_something = True
        enter = len(chord) == 1 and chord[0].lower() in ENTER
        self._actions.append(Action("press", button="enter") if enter else Action("press", keys=chord))

    def key_down(self, key: str) -> None:
        """Press a key and keep it down."""
        self._settle()
        self._held_did_something = False
        self._held.append(key)

    def key_up(self, key: str) -> None:
        """Let a key go; one that nothing happened with was pressed itself.

        Raises:
            RecordError: ``bad_value``: it wasn't down.
        """
        if key not in self._held:
            raise RecordError("bad_value", f"key {key!r} comes up that didn't go down in this step")
        if not self._held_did_something:
            chord, self._held = self._held, []
            self.press(chord)
            self._held = chord
        self._held.remove(key)

    def wait(self) -> None:
        """Wait."""
        self._settle()
        self._actions.append(Action("wait"))

    def finish(self, status: str, text: str | None = None) -> None:
        """End the episode."""
        self._settle()
        self._actions.append(Action("finished", status=status, text=text))

    def actions(self) -> list[Action]:
        """Return what was done.

        Raises:
            RecordError: ``no_action``, or ``bad_value`` for a button or key that stays down.
        """
        self._settle()
        if self._button_down is not None or self._held:
            held = self._held[0] if self._held else "the mouse button"
            raise RecordError("bad_value", f"{held} goes down and doesn't come up in this step")
        if not self._actions:
            raise RecordError("no_action", "the step holds no action")
        return _with_enter(self._actions)

    def _settle(self) -> None:
        """Take a move that nothing followed for a hover; with the button down it is on its way."""
        if self._moved and self._button_down is None:
            self._actions.append(Action("hover", *self._place("hover")))
        self._moved = False

    def _arrive(self, kind: str, point: Point | None) -> None:
        if point is not None and point != self.pointer:
            self._settle()
            self.pointer = _on_screen(kind, point)
        self._moved = False

    def _place(self, kind: str) -> Point:
        if self.pointer is None:
            raise RecordError(
                "missing_field", f"{kind} has no point, and no earlier step tells where the mouse is"
            )
        return self.pointer

    def _no_keys_held(self, kind: str) -> None:
        if self._held:
            raise RecordError(
                "unknown_action", f"{kind} with {'+'.join(self._held)} held down is no canonical action"
            )


def _on_screen(kind: str, point: Point) -> Point:
    if not all(0 <= value <= 1 for value in point):
        raise RecordError("off_screen", f"{kind} at {point} lies outside the screen (the unit square)")
    return point


def _with_enter(actions: Sequence[Action]) -> list[Action]:
    """Join each typed text with the Enter right after it: the text then ends in a line break."""
    joined: list[Action] = []
    for action in actions:
        last = joined[-1] if joined else None
        if action.button == "enter" and last is not None and last.action_type == "input_text":
            joined[-1] = replace(last, text=f"{last.text}\n")
        else:
            joined.append(action)
    return joined


def one_step_each(actions: Sequence[Action], several: str, make: Callable[[int, Action], Step]) -> list[Step]:
    """Make steps of what was done in one recorded step.

    Args:
        actions: One action or more.
        several: ``split``: a step an action, of which only the first has the screenshot, since the screens
            between weren't recorded. ``reject``: more than one is an error.
        make: Makes the step of the n-th action with all that the record has.

    Raises:
        RecordError: ``several_actions``.
    """
    if len(actions) > 1 and several == "reject":
        names = ", ".join(action.action_type for action in actions)
        message = f"{len(actions)} actions in one step: {names}"
        raise RecordError("several_actions", message, hint="source.options.several_actions split")
    steps = [make(place, action) for place, action in enumerate(actions)]
    return [steps[0], *(replace(step, screenshot=None, thought=None) for step in steps[1:])]
