"""The one door through which a source enters: what a builder is, and how one is found by name.

A builder knows a format, not rewards. It lists independent pieces of work (``shards``: files, or seeds)
and turns each into Episodes, or into Rejects where a record is broken. To write your own, subclass
``Builder`` and name it in dataset.yaml as ``module:Class``.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from solar_rl.config import Config, SourceConfig, validate_config
from solar_rl.config.privacy import PrivateKind
from solar_rl.errors import ConfigError, InputError, SolarError
from solar_rl.schema import Episode, Reject


class NoOptions(Config):
    """Options model of a builder that takes none."""


class Sign(NamedTuple):
    """Why a builder takes a path for one of its own, for `solar-rl inspect`.

    Args:
        certainty: 0 to 1; about 0.9 for a mark that no other format has, 0.5 where others look alike.
        why: What was found, in a few words.
        options: Options that go with it, such as where the screenshots lie.
    """

    certainty: float
    why: str
    options: dict[str, Any] = {}


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
    known_private: ClassVar[Mapping[PrivateKind, str]] = {}
    """Kinds of private strings that the published data is known to hold, and where: a dataset of it may hold
    them too, its card says so, and `build --mask` replaces them."""
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

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell from a look whether a file or folder holds this format; None: it doesn't, or can't be told.

        It must be quick, read little (``solar_rl.peek``) and raise nothing, whatever the path holds.
        """
        return None

    @property
    def path(self) -> Path:
        """Return ``source.path`` as a Path."""
        assert self.source.path is not None, "a builder with needs_path = False has no path"
        return Path(self.source.path)

    def source_files(self) -> list[Path]:
        """List the files that are read, for the hashes in the manifest."""
        return []

    def named_files(self) -> list[tuple[str, Path]]:
        """List ``source_files`` with the names that the manifest gives them: relative to the path."""
        return [(self._name_of(file.resolve()), file) for file in self.source_files()]

    def _name_of(self, file: Path) -> str:
        base = self.path.resolve()
        base = base if base.is_dir() else base.parent
        return file.relative_to(base).as_posix() if file.is_relative_to(base) else file.name

    def parts(self) -> dict[str, Builder]:
        """Return the builders that read, by name: itself, or those of a mix."""
        return {self.name: self}

    def prepare(self, folder: Path) -> None:  # noqa: B027
        """Find out what must be known before the first shard is read, once a build.

        Args:
            folder: Where to leave it for other processes of the same build, which call this as well. It
                belongs to this build alone and goes when the build is done.
        """
        # most builders have nothing to find out

    def filtered(self) -> dict[str, dict[str, int]]:
        """Count, by source and reason, the good episodes that were left out on purpose (after ``prepare``)."""
        return {}

    def fingerprint(self) -> dict[str, str]:
        """Return what else the episodes depend on, such as a browser's version: name to version.

        It belongs to the build's identity and stands in the manifest.
        """
        return {}

    @abstractmethod
    def shards(self) -> list[str]:
        """List independent pieces of work in a fixed order, such as file names."""

    def about(self, shard: str) -> int | None:
        """Tell about how many episodes a shard holds, where a quick look tells; for the time left, and nothing else."""
        return None

    @abstractmethod
    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield the episodes of one shard in a fixed order, and a Reject for each broken record."""


def read_shard(builder: Builder, shard: str) -> Iterator[Episode | Reject]:
    """Read a shard; what a user's own builder raises is told as the builder's fault, with the place.

    Raises:
        InputError: The builder was named by an import string and failed.
    """
    try:
        yield from builder.read(shard)
    except Exception as error:
        if ":" not in builder.source.builder:
            raise
        fault = error.message if isinstance(error, SolarError) else f"{type(error).__name__}: {error}"
        raise InputError(
            f"builder '{builder.source.builder}' failed: {fault}", where=f"shard {shard}"
        ) from error


def load_builder(source: SourceConfig) -> Builder:
    """Find the builder that dataset.yaml names and set it up.

    A short name is looked up in the checkout's ``builders`` folder first, then in what the wheel
    ships; anything with a colon is an import string of the user's. Several sources, or filters, make a
    ``mixing.Mix`` of the builders.

    Raises:
        ConfigError: No such builder, or it refuses its options.
    """
    if source.sources or source.filters.any:
        from solar_rl.mixing import Mix

        return Mix(source)
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
