"""Output formats: one module a model family, each with a writer and a reader.

To add a family, write one module with a class that has ``name``, ``space``, ``render``, ``parse`` and
``aside`` (see ``base.Format``), list it in ``FORMATS``, and write a template in ``solar_rl/prompts/templates/NAME``.
"""

from __future__ import annotations

import difflib
from functools import lru_cache

from solar_rl.actions import Action
from solar_rl.errors import ConfigError, ParseError
from solar_rl.formats.agentcpm_gui import AGENTCPM_GUI
from solar_rl.formats.base import Format, Frame
from solar_rl.formats.os_atlas import OS_ATLAS
from solar_rl.formats.plain_json import PlainJson
from solar_rl.formats.qwen_mobile_use import QWEN3VL, QWEN25VL
from solar_rl.formats.ui_tars import UI_TARS, UI_TARS_ABS
from solar_rl.formats.ui_venus import UI_VENUS, UI_VENUS_1000

_ALL: tuple[Format, ...] = (
    PlainJson(),
    QWEN25VL,
    QWEN3VL,
    UI_TARS,
    UI_TARS_ABS,
    AGENTCPM_GUI,
    UI_VENUS,
    UI_VENUS_1000,
    OS_ATLAS,
)
FORMATS: dict[str, Format] = {each.name: each for each in _ALL}
"""Every format by its name."""


def get_format(name: str) -> Format:
    """Return a format by its name.

    Raises:
        ConfigError: There is none of that name.
    """
    if name not in FORMATS:
        close = difflib.get_close_matches(name, FORMATS, n=1)
        known = f"known formats: {', '.join(FORMATS)}"
        hint = f"did you mean '{close[0]}'? {known}" if close else known
        raise ConfigError(f"no format is named '{name}'", where="prompt.format", hint=hint)
    return FORMATS[name]


@lru_cache(maxsize=1 << 16)
def parse_completion(format_name: str, text: str, frame: Frame) -> tuple[Action | None, str | None]:
    """Read an answer: the action and None, or None and the reason why there is none.

    Cached, since candidates of a step are often the same text.

    >>> parse_completion("json", '{"action": "wait"}', Frame(1080, 2400))[0].action_type
    'wait'
    >>> parse_completion("json", "I wait.", Frame(1080, 2400))
    (None, 'no JSON object')
    """
    try:
        return get_format(format_name).parse(text, frame), None
    except ParseError as error:
        return None, error.message
