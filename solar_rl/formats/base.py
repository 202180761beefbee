"""What an output format is: a writer and a reader of one action. What asks for it is a template (``prompts``)."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from solar_rl.actions import ACTION_FIELDS, Action
from solar_rl.errors import ActionError
from solar_rl.formats.spaces import Resized, Thousand


class Frame(NamedTuple):
    """Pixel size of the image as the model sees it: what its pixel coordinates are divided by."""

    width: int
    height: int


class Aside(NamedTuple):
    """What an answer says beside its action.

    Args:
        thought: What the model thought aloud.
        duration_ms: How long a press or a wait lasts, where the answer says it.
        direction: What a scroll was told by: the finger's way, the content's, or a word of no fixed sense.
    """

    thought: str | None = None
    duration_ms: float | None = None
    direction: Literal["finger", "content", "word"] = "finger"


class Format(Protocol):
    """One model family's way to write an action.

    ``render`` then ``parse`` gives the same action back within the frame's grid.
    """

    name: str

    @property
    def space(self) -> type[Resized] | type[Thousand]:
        """What its coordinates are measured in: pixels of the image as the model sees it, or 0..1000."""
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

    def aside(self, text: str, action: Action) -> Aside:
        """Return what else a raw answer says that was read as ``action``."""
        ...


def cant_say(family: str, action: Action) -> ActionError:
    """Return the error for an action that a family lacks, with the fields that were given.

    >>> str(cant_say("OS-Atlas", Action("press", keys=("ctrl", "c"))))
    "OS-Atlas has no way to say press, keys=('ctrl', 'c')"
    """
    given = ((name, getattr(action, name)) for name in ACTION_FIELDS[1:])
    fields = "".join(f", {name}={value!r}" for name, value in given if value is not None)
    return ActionError(f"{family} has no way to say {action.action_type}{fields}")
