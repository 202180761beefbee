"""Suites: what a model is measured on, as YAML files that are shipped beside this one.

A suite of steps is a source, a split, a level and the protocols that fit; a suite in closed loop is an
environment with its tasks and seeds. Both hold the figures that others have published, with where they stand.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from solar_rl.config import Config, set_dotted, validate_config
from solar_rl.errors import ConfigError, InputError
from solar_rl.protocols import PROTOCOLS
from solar_rl.yaml_file import read_yaml

PREFIX = "suite."
"""How a field of a suite is named on the command line: --suite.seeds 5."""
Rule = Literal["androidcontrol", "phone", "ui_genie"]


class Published(Config):
    """A figure as somebody published it: never ours, and never measured by us."""

    model: str
    """Which model."""
    metric: Literal["type_match", "exact_match", "task_sr", "success"]
    """Which metric."""
    value: float = Field(ge=0, le=100)
    """Percent, as published."""
    part: str | None = None
    """Which part of the suite, where it isn't the whole."""
    protocol: str | None = None
    """Our name of the rule that it was measured under; null: not stated, or none of ours."""
    source: str
    """Where it stands."""
    note: str | None = None
    """What to know before comparing."""


class Reference(Config):
    """What the suite holds where it is complete, so that a smaller one is noticed."""

    episodes: int
    """Episodes of the split."""
    steps: int
    """Their steps."""
    source: str
    """Where the counts are from."""


class AnySuite(Config):
    """What every suite has."""

    name: str
    """Its name."""
    about: str
    """What it measures, in a sentence or two."""
    prompt: dict[str, Any] = {}
    """Fields of the prompt block that belong to the suite, such as level."""
    buckets: Rule
    """Rule of the length buckets."""
    published: tuple[Published, ...] = ()
    """Figures of others."""


class StepSuite(AnySuite):
    """Recorded steps, each answered in the expert's place."""

    kind: Literal["steps"] = "steps"
    source: dict[str, Any]
    """The source block: builder, splits, options; the path is the user's."""
    protocols: tuple[str, ...]
    """Protocols that fit, the one to look at first in front."""
    reference: Reference | None = None
    """What it holds where it is complete."""

    @field_validator("protocols")
    @classmethod
    def _are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in PROTOCOLS:
                raise ValueError(f"'{name}' is no protocol; there is: {', '.join(PROTOCOLS)}")
        if not value:
            raise ValueError("at least one protocol is needed")
        return value

    @property
    def level(self) -> str:
        """Return what the model is given: high (the goal) or low (the step's instruction too)."""
        return str(self.prompt.get("level", "high"))


class ClosedLoopSuite(AnySuite):
    """Episodes that are played in an environment."""

    kind: Literal["closed_loop"]
    environment: str
    """A shipped environment: phone or miniwob."""
    options: dict[str, Any] = {}
    """Its options."""
    tasks: tuple[str, ...] = ()
    """Which tasks (default: all that the environment names)."""
    seeds: int = Field(default=25, ge=1)
    """Episodes of each task: seeds first_seed, first_seed + 1, ..."""
    first_seed: int = Field(default=0, ge=0)
    """The first of them."""
    max_steps: int | dict[str, int] = 40
    """Answers after which an episode is over: one number, or one a task."""
    recovery: bool = False
    """Measure wrong answers and recovery, where the environment can tell what is left."""
    side_by_side: int = Field(default=1, ge=1, le=64)
    """Episodes that are played at once; changes no result."""


Suite = StepSuite | ClosedLoopSuite


def suite_names() -> list[str]:
    """List the shipped suites."""
    files = (file.name for file in resources.files(__package__).iterdir())
    return sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml"))


def load_suite(name: str, overrides: Mapping[str, str] | None = None) -> Suite:
    """Read a suite.

    Args:
        name: A shipped suite, or the path of a YAML file of the user's.
        overrides: Dotted fields and their YAML values; those that begin with ``suite.`` are meant.

    Raises:
        InputError: No such suite.
        ConfigError: The file or a field is wrong.
    """
    if name.endswith((".yaml", ".yml")):
        data, where = read_yaml(name), name
    else:
        data, where = read_yaml(str(_shipped(name))), f"suite {name}"
    for key, text in (overrides or {}).items():
        if key.startswith(PREFIX):
            set_dotted(data, key.removeprefix(PREFIX), text)
    data.setdefault("name", Path(name).stem)
    kind = data.get("kind", "steps")
    if kind not in ("steps", "closed_loop"):
        raise ConfigError(f"kind is {kind!r}, expected steps or closed_loop", where=where)
    if kind == "steps":
        return validate_config(StepSuite, data, where=where)
    return validate_config(ClosedLoopSuite, data, where=where)


def _shipped(name: str) -> Path:
    names = suite_names()
    if name not in names:
        close = difflib.get_close_matches(name, names, n=1)
        known = f"there is: {', '.join(names)}, or a YAML file of your own"
        raise InputError(
            f"no suite is named '{name}'", hint=f"did you mean '{close[0]}'? {known}" if close else known
        )
    return Path(str(resources.files(__package__) / f"{name}.yaml"))
