"""Read YAML as a user means it: words stay words, no key is lost, and what is wrong is one clear line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from solar_rl.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """YAML as of version 1.2: only true and false are booleans, so that ``alignment: off`` is a word.

    A key that stands twice in a mapping is an error: one of the two would be lost without a word.
    """

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                problem = f"key '{key.value}' stands there twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|false|False)$"), list("tTfF")
)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """Read a YAML file that holds a mapping.

    Raises:
        ConfigError: The file is missing, can't be read, isn't YAML, or isn't a mapping.
    """
    try:
        data = yaml.load(Path(path).read_text(encoding="utf-8"), Loader=_Loader)
    except FileNotFoundError:
        raise ConfigError("no such file", where=str(path), hint="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"can't be read: {error}", where=str(path)) from error
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        place = f"{path}:{line + 1}" if line is not None else str(path)
        raise ConfigError(f"is not valid YAML: {getattr(error, 'problem', error)}", where=place) from None
    if not isinstance(data, dict):
        raise ConfigError("is not a mapping of keys to values", where=str(path))
    return data


def parse_scalar(text: str) -> Any:
    """Read a value from the command line as YAML would; text that isn't YAML is the text itself.

    >>> [parse_scalar(text) for text in ("4", "0.5", "true", "off", "[train, test]")]
    [4, 0.5, True, 'off', ['train', 'test']]
    """
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError:
        return text
