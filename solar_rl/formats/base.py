"""What an output format is: a prompt that asks for it, a writer and a reader of one action."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from solar_rl.actions import ACTION_FIELDS, Action
from solar_rl.errors import ActionError


class Frame(NamedTuple):
    """Pixel size of the image as the model sees it: what its pixel coordinates are divided by."""

    width: int
    height: int


class Format(Protocol):
    """One model family's way to write an action.

    ``render`` then ``parse`` gives the same action back within the frame's grid.
    """

    name: str

    def system_prompt(self, frame: Frame) -> str:
        """Return the system prompt: the action space, and the screen's size where the family states it."""
        ...

    def render(self, action: Action, frame: Frame) -> str:
        """Write an action as this family's models do.

        Raises:
            ActionError: The family has no such action.
        """
        ...

    def parse(self, text: str, frame: Frame) -> Action:
        """Read one action from a model's raw answer.

        Raises:
            ParseError: The answer can't be read without a guess; its message is the stored reason.
        """
        ...


def cant_say(family: str, action: Action) -> ActionError:
    """Return the error for an action that a family lacks, with the fields that were given.

    >>> str(cant_say("OS-Atlas", Action("press", keys=("ctrl", "c"))))
    "OS-Atlas has no way to say press, keys=('ctrl', 'c')"
    """
    given = ((name, getattr(action, name)) for name in ACTION_FIELDS[1:])
    fields = "".join(f", {name}={value!r}" for name, value in given if value is not None)
    return ActionError(f"{family} has no way to say {action.action_type}{fields}")
