"""The one door through which a source enters: what a builder is, and how one is found by name.

A builder knows a format, not rewards. It lists independent pieces of work (``shards``: files, or seeds)
and turns each into Episodes, or into Rejects where a record is broken. To write your own, subclass
``Builder`` and name it in dataset.yaml as ``module:Class``.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from solar_rl.config import Config, SourceConfig, validate_config
from solar_rl.errors import ConfigError, InputError
from solar_rl.schema import Episode, Reject


class NoOptions(Config):
    """Options model of a builder that takes none."""


class Builder(ABC):
    """Reads one source format.

    Args:
        source: The ``source`` block of dataset.yaml.

    Raises:
        ConfigError: An option is unknown or wrong, or the path is missing.
    """

    name: ClassVar[str]
    """Written to ``episodes.source``."""
    license: ClassVar[str | None] = None
    """Licence of the source's data, as the Hub spells it."""
    homepage: ClassVar[str | None] = None
    """Where the source lives, for the card's attribution."""
    citation: ClassVar[str | None] = None
    """BibTeX of the source, for the card."""
    needs_path: ClassVar[bool] = True
    """Whether ``source.path`` must name something that exists."""
    Options: ClassVar[type[Config]] = NoOptions
    """Model of ``source.options``."""

    def __init__(self, source: SourceConfig) -> None:
        self.source = source
        self.options: Any = validate_config(self.Options, source.options, where="source.options")
        if self.needs_path:
            if source.path is None:
                raise ConfigError(
                    f"builder '{source.builder}' needs source.path",
                    hint="add --source.path /where/it/lies",
                )
            if not Path(source.path).exists():
                raise ConfigError("no such file or folder", where=f"source.path {source.path}")

    @property
    def path(self) -> Path:
        """Return ``source.path`` as a Path."""
        assert self.source.path is not None, "a builder with needs_path = False has no path"
        return Path(self.source.path)

    def source_files(self) -> list[Path]:
        """List the files that are read, for the hashes in the manifest."""
        return []

    @abstractmethod
    def shards(self) -> list[str]:
        """List independent pieces of work in a fixed order, such as file names."""

    @abstractmethod
    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield the episodes of one shard in a fixed order, and a Reject for each broken record."""


def load_builder(source: SourceConfig) -> Builder:
    """Find the builder that dataset.yaml names and set it up.

    A short name is looked up in the checkout's ``builders`` folder first, then in what the wheel
    ships; anything with a colon is an import string of the user's.

    Raises:
        ConfigError: No such builder, or it refuses its options.
    """
    cls = _import_string(source.builder) if ":" in source.builder else _shipped(source.builder)
    if not (isinstance(cls, type) and issubclass(cls, Builder)):
        raise ConfigError(
            f"'{source.builder}' is no subclass of solar_rl.builder.Builder", where="source.builder"
        )
    if not isinstance(getattr(cls, "name", None), str):
        raise ConfigError(
            f"'{source.builder}' has no name", where="source.builder", hint='add name = "..." to the class'
        )
    return cls(source)


def _import_string(text: str) -> Any:
    module, _, name = text.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"'{text}' can't be imported: {error}",
            where="source.builder",
            hint="is its folder on PYTHONPATH?",
        ) from error


def _shipped(name: str) -> Any:
    from solar_rl.shipped import shipped_module

    try:
        module = shipped_module("builders", name)
    except InputError as error:
        raise ConfigError(error.message, where="source.builder", hint=error.hint) from None
    return module.BUILDER
