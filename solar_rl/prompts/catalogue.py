"""Find templates: those that are shipped, by format and version, and those of the user's own.

``templates/FORMAT/VERSION.jinja`` is what a format's models expect. A version never changes once a dataset may name
it: another wording is another version. A user's own file is stored in the config as its text, so that a dataset's
manifest is enough to say its prompts again.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from functools import cache
from importlib import resources
from pathlib import Path

from solar_rl.config import PromptConfig
from solar_rl.errors import ConfigError

ROLES = ("system", "user", "assistant")
"""Roles of chat messages."""
_NAME = re.compile(r"\w+/\w+")
_INCLUDE = re.compile(r"""\{%-?\s*include\s+["']([^"']+)["']""")


def settled(config: PromptConfig) -> PromptConfig:
    """Return a config that names its template for good: the format's newest where it names none.

    Raises:
        ConfigError: No such template or file.
    """
    given = config.template
    if given is None:
        return config.model_copy(update={"template": newest(config.format)})
    if is_text(given) or given in shipped():
        return config
    path = Path(given)
    if path.is_file():
        text = path.read_text(encoding="utf-8")
        return config.model_copy(update={"template": text if is_text(text) else f"{text}\n"})
    close = difflib.get_close_matches(given, shipped(), n=1)
    known = f"there is: {', '.join(shipped())}, or a file of your own"
    hint = f"did you mean '{close[0]}'? {known}" if close else known
    raise ConfigError(f"no template is named '{given}'", where="prompt.template", hint=hint)


def template_of(config: PromptConfig) -> str:
    """Return the template that a config means.

    A build names one for good. A config without is a dataset's that was made before there were templates: its
    prompts are its format's first.
    """
    return config.template or f"{config.format}/1"


def newest(format_name: str) -> str:
    """Return the newest template of a format.

    >>> newest("json")
    'json/1'
    """
    versions = [int(name.partition("/")[2]) for name in shipped() if name.startswith(f"{format_name}/")]
    return f"{format_name}/{max(versions, default=1)}"


@cache
def shipped() -> tuple[str, ...]:
    """Return the names of all shipped templates."""
    root = resources.files("solar_rl.prompts") / "templates"
    return tuple(
        sorted(
            f"{folder.name}/{file.name.removesuffix('.jinja')}"
            for folder in root.iterdir()
            if folder.is_dir() and folder.name != "parts"
            for file in folder.iterdir()
        )
    )


def is_text(template: str) -> bool:
    """Tell whether a template is given by its text."""
    return "\n" in template


def read_source(template: str) -> str:
    """Return the text of a template, or of a part that several share.

    Raises:
        ConfigError: None of that name is shipped.
    """
    if is_text(template):
        return template
    file = resources.files("solar_rl.prompts") / "templates" / f"{template}.jinja"
    if not _NAME.fullmatch(template) or not file.is_file():
        raise ConfigError(f"no template is named '{template}'", where="prompt.template")
    return file.read_text(encoding="utf-8")


def hashes(template: str) -> dict[str, str]:
    """Return the SHA-256 of a shipped template and of what it includes, by name; a text is its own name."""
    found: dict[str, str] = {}
    waiting = [template]
    while waiting:
        name = waiting.pop()
        source = read_source(name)
        waiting += [each for each in _INCLUDE.findall(source) if each not in found]
        if not is_text(name):
            found[name] = hashlib.sha256(source.encode()).hexdigest()
    return dict(sorted(found.items()))


def told_name(template: str) -> str:
    """Return a short name for messages and tables.

    >>> told_name("json/1")
    'json/1'
    """
    if not is_text(template):
        return template
    return f"of your own ({hashlib.sha256(template.encode()).hexdigest()[:8]})"
