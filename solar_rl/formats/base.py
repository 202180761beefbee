"""What an output format is: a prompt that asks for it, a writer and a reader of one action."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from solar_rl.actions import Action


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
