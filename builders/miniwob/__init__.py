"""MiniWoB++: web pages with goals, recorded by scripted experts, and the same pages in closed loop.

The pages are nobody's here (PyPI ``miniwob``, MIT); the experts, the recording and the step limit are ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

from solar_rl.builder import Builder
from solar_rl.config import SourceConfig, validate_config
from solar_rl.errors import MissingExtra
from solar_rl.schema import Episode, Reject

from .browser import find_browser, program_version
from .env import MiniWobEnv, expert_action
from .experts import EXPERTS, Demonstration, Lost
from .options import MiniWobOptions
from .record import LICENSE, record
from .tasks import LEFT_OUT, SIMPLE, SUITE

_SHARD = 25
"""Seeds a shard."""

__all__ = [
    "BUILDER",
    "EXPERTS",
    "LEFT_OUT",
    "SIMPLE",
    "SUITE",
    "Demonstration",
    "Lost",
    "MiniWobBuilder",
    "MiniWobEnv",
    "MiniWobOptions",
    "expert_action",
    "make_environment",
]


class MiniWobBuilder(Builder):
    """Demonstrations on MiniWoB++'s pages.

    Raises:
        ConfigError: An option is wrong.
        InputError: Chromium or its driver is missing.
    """

    name = "miniwob"
    license = LICENSE
    homepage = "https://miniwob.farama.org"
    known_private = dict.fromkeys(("email", "phone"), "made up by the pages, the phone book's at random")
    citation = """@inproceedings{liu2018reinforcement,
  author = {Evan Zheran Liu and Kelvin Guu and Panupong Pasupat and Tianlin Shi and Percy Liang},
  title = {Reinforcement Learning on Web Interfaces using Workflow-Guided Exploration},
  booktitle = {International Conference on Learning Representations (ICLR)},
  url = {https://arxiv.org/abs/1802.08802},
  year = {2018},
}"""
    needs_path = False
    Options = MiniWobOptions

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        self._seeds: dict[str, range] = self.options.seeds()
        self._env: tuple[int, MiniWobEnv] | None = None

    def shards(self) -> list[str]:
        """List blocks of seeds of each task, such as ``click-button/train/100000-100019``."""
        return [
            f"{task}/{split}/{block[0]}-{block[-1]}"
            for task in self.options.tasks
            for split, seeds in self._seeds.items()
            if split == "test" or task not in self.options.unseen_tasks
            for block in (seeds[start : start + _SHARD] for start in range(0, len(seeds), _SHARD))
        ]

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Record one block; each episode depends on its task and seed alone."""
        task, split, block = shard.split("/")
        first, last = (int(seed) for seed in block.split("-"))
        for seed in range(first, last + 1):
            subsplits = self._subsplits(task, split)
            yield record(self._environment(), task, seed, split, subsplits, thoughts=self.options.thoughts)

    def _environment(self) -> MiniWobEnv:
        """Return this process's browser, which serves every shard and goes with the builder."""
        if self._env is None or self._env[0] != os.getpid():
            self._env = os.getpid(), _environment(self.options)
        return self._env[1]

    def fingerprint(self) -> dict[str, str]:
        """Return what draws the pages: a different browser may draw other pixels."""
        chromium, _ = find_browser(None, None)
        try:
            pages = metadata.version("miniwob")
        except metadata.PackageNotFoundError as error:
            raise MissingExtra("MiniWoB++", "miniwob") from error
        return {"pages": f"miniwob {pages}", "browser": program_version(chromium)}

    def _subsplits(self, task: str, split: str) -> tuple[str, ...]:
        if task in self.options.unseen_tasks:
            return ("task_unseen",)
        return ("seed_unseen",) if split == "test" else ()


def make_environment(options: Mapping[str, Any]) -> MiniWobEnv:
    """Make the environment of an evaluation suite.

    Args:
        options: Fields of ``MiniWobOptions``.

    Raises:
        ConfigError: An option is unknown or wrong.
        MissingExtra: The extra ``miniwob`` isn't installed.
        InputError: Chromium or its driver is missing or doesn't start.
    """
    return _environment(validate_config(MiniWobOptions, options, where="source.options"))


def _environment(options: MiniWobOptions) -> MiniWobEnv:
    return MiniWobEnv(
        action_space=options.action_space,
        wait_ms=options.wait_ms,
        scale=options.scale,
        max_steps=options.max_steps,
        screenshots=options.pictures,
        text=options.text,
    )


BUILDER = MiniWobBuilder
