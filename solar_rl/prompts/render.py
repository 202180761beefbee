"""Fill a template in: what a step holds becomes chat messages.

A template calls ``say(role)`` once a message and puts screenshots where it wants them. It gets data only: it can
neither read files nor run code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from solar_rl.errors import ConfigError
from solar_rl.prompts.catalogue import ROLES, read_source, told_name

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_MARK = re.compile("\0(\\d*)\0")
"""What stands for a screenshot, or for the beginning of a new part, until messages are cut."""


@dataclass(frozen=True)
class Mark:
    """A place in a message: of the screenshot of that number, or (None) where a new part begins."""

    index: int | None

    def __str__(self) -> str:
        return f"\0{'' if self.index is None else self.index}\0"


@dataclass(frozen=True)
class Told:
    """An earlier step as a template sees it.

    Args:
        number: Counted from 1.
        action: What was done, as the format writes it; None where the history doesn't show it.
        thought: The thought behind it, on one line, where it is shown.
        screen: Its screenshot, where it is shown.
    """

    number: int
    action: str | None = None
    thought: str | None = None
    screen: Mark | None = None

    @property
    def line(self) -> str:
        """Return thought and action on one line; the line breaks that a format puts around tags say nothing."""
        line = " ".join((self.action or "").splitlines())
        return f"{self.thought} {line}" if self.thought else line


def clean(text: str | None) -> str | None:
    """Return a text of a source's so that it can't pass for a mark."""
    return None if text is None else text.replace("\0", "\ufffd")


def render(template: str, values: Mapping[str, Any], screens: int) -> list[dict[str, Any]]:
    """Return the chat messages that a template makes.

    Args:
        template: As ``catalogue.settled`` left it in the config.
        values: What the template may name (docs/prompts.md), its texts cleaned.
        screens: Number of screenshots, all of which it must show, in order.

    Raises:
        ConfigError: It can't be read, names what there isn't, or shows other screenshots.
    """
    messages: list[dict[str, Any]] = []

    def say(role: str, caller: Callable[[], str]) -> str:
        if role not in ROLES:
            raise _wrong(template, f"role {role!r} is none of {', '.join(ROLES)}")
        if content := _parts(caller()):
            messages.append({"role": role, "content": content})
        return ""

    from jinja2 import TemplateError

    marks = [Mark(index) for index in range(screens)]
    try:
        _compiled(template).render(
            **values, say=say, screens=marks, screen=marks[-1] if marks else None, new_part=Mark(None)
        )
    except TemplateError as error:
        raise _wrong(template, error.message or type(error).__name__) from None
    _check(template, messages, screens)
    return _without_numbers(messages)


@cache
def _compiled(template: str) -> Template:
    from jinja2 import TemplateSyntaxError

    try:
        return _environment().from_string(read_source(template))
    except TemplateSyntaxError as error:
        raise _wrong(template, f"line {error.lineno}: {error.message}") from None


@cache
def _environment() -> Environment:
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(
        loader=FunctionLoader(read_source),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: "" if value is None else value,
    )


def _parts(text: str) -> list[dict[str, Any]]:
    """Cut a message at its marks; the line break that a template's own line ends with is none of the text's."""
    parts: list[dict[str, Any]] = []
    after_image = False
    for at, piece in enumerate(_MARK.split(text)):
        if at % 2:
            after_image = piece != ""
            if after_image:
                parts.append({"type": "image", "index": int(piece)})
            continue
        piece = piece.removesuffix("\n")
        if after_image:
            piece = piece.removeprefix("\n")
        if piece:
            parts.append({"type": "text", "text": piece})
    return parts


def _check(template: str, messages: Sequence[Mapping[str, Any]], screens: int) -> None:
    if not messages or messages[-1]["role"] != "user":
        raise _wrong(template, "the last message must be the user's")
    shown = [part["index"] for m in messages for part in m["content"] if part["type"] == "image"]
    if shown != list(range(screens)):
        raise _wrong(
            template,
            f"it shows {len(shown)} screenshots {shown}, expected all {screens}, oldest first, once each",
        )


def _without_numbers(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for message in messages:
        for part in message["content"]:
            part.pop("index", None)
    return messages


def _wrong(template: str, message: str) -> ConfigError:
    return ConfigError(f"the template is wrong: {message}", where=f"prompt.template {told_name(template)}")
