"""The ``source`` block: which demonstrations are read, from one source or from several."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator, model_validator

from solar_rl.actions import ACTION_TYPES
from solar_rl.config.base import Config

Split = Literal["train", "validation", "test"]
SourceName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
MIX = "mix"
"""``source.builder`` of several sources."""


class FilterConfig(Config):
    """Which episodes of a source are kept; what is left out is counted by reason, not rejected."""

    min_steps: int | None = Field(default=None, ge=1)
    """Keep episodes of at least this many recorded steps."""
    max_steps: int | None = Field(default=None, ge=1)
    """Keep episodes of at most this many recorded steps."""
    action_types: tuple[str, ...] | None = None
    """Keep episodes all of whose actions are of these types."""
    subsplits: tuple[str, ...] | None = None
    """Keep episodes of one of these finer splits, such as app_unseen."""
    platforms: tuple[Literal["android", "desktop", "web"], ...] | None = None
    """Keep these platforms."""
    licenses: tuple[str, ...] | None = None
    """Keep episodes under one of these licences; an episode without one goes."""
    success: Literal["any", "not_failed", "recorded"] = "any"
    """not_failed: leave out what the source calls a failure. recorded: keep only what it calls a success."""
    screenshots: bool = False
    """Keep episodes with a screenshot at every step."""
    goal_scripts: tuple[str, ...] | None = None
    """Keep episodes whose goal is written in these scripts alone, as Unicode names them: latin, cjk, ..."""
    reference: str | None = None
    """Folder of a dataset whose candidates a reference policy gave: the next two ask it by episode id, the
    source's own or the mix's. Episodes that it lacks go."""
    min_validity: float | None = Field(default=None, ge=0, le=1)
    """Keep episodes where at least this share of the reference's scored candidates is valid."""
    max_validity: float | None = Field(default=None, ge=0, le=1)
    """Keep episodes where at most this share is: what the policy always solves teaches GRPO nothing."""

    @property
    def any(self) -> bool:
        """Tell whether anything is asked for."""
        return self != FilterConfig()

    @model_validator(mode="after")
    def _is_consistent(self) -> FilterConfig:
        if unknown := sorted(set(self.action_types or ()) - set(ACTION_TYPES)):
            raise ValueError(
                f"action_types: unknown type '{unknown[0]}', expected some of {', '.join(ACTION_TYPES)}"
            )
        by_reference = self.min_validity is not None or self.max_validity is not None
        if by_reference and self.reference is None:
            raise ValueError("min_validity and max_validity need reference: the folder of a scored dataset")
        for name in ("steps", "validity"):
            low, high = getattr(self, f"min_{name}"), getattr(self, f"max_{name}")
            if low is not None and high is not None and low > high:
                raise ValueError(f"min_{name} {low} is above max_{name} {high}: nothing would be kept")
        return self


class SourceBlock(Config):
    """What one source and one of several have in common."""

    builder: str = ""
    """Short name of a builder of ours (phone, android_control, ...) or an import string module:Class. One
    of several sources may leave it out where its name is the builder's."""
    path: str | None = None
    """File or folder of the source; relative to the current directory. Not needed by phone."""
    splits: tuple[Split, ...] | None = None
    """Keep only these splits (default: all)."""
    options: dict[str, Any] = {}
    """Options of the builder, checked against the builder's own model."""
    filters: FilterConfig = FilterConfig()
    """Which episodes are kept."""

    @field_validator("splits", mode="before")
    @classmethod
    def _one_split(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class MixedSource(SourceBlock):
    """One of several sources: which of its episodes are kept, and how many of those are drawn."""

    episodes: int | None = Field(default=None, ge=1)
    """Draw this many of the kept episodes (default: all)."""
    share: float | None = Field(default=None, gt=0)
    """Or draw so many that they make up this share of the mix, relative to the other sources' shares."""

    @model_validator(mode="after")
    def _one_target(self) -> MixedSource:
        if self.episodes is not None and self.share is not None:
            raise ValueError("give episodes or share, not both")
        return self


class SourceConfig(SourceBlock):
    """Which demonstrations are read."""

    limit: int | None = Field(default=None, ge=1)
    """Stop after this many good episodes (default: all)."""
    screen_hash: bool = True
    """Hash each episode's middle screen, by which `stats leakage` finds look-alikes: decodes one image."""
    max_reject_rate: float = Field(default=0.05, ge=0, le=1)
    """From 200 episodes on, a larger share of broken ones stops the build with exit 1."""
    sources: dict[SourceName, MixedSource] = {}
    """Several sources instead of one, by name; each name stands before its episodes' ids. Short: the key
    ``sources`` beside ``source``, also as a list, where a source is named after its builder."""
    episodes: int | None = Field(default=None, ge=1)
    """Size of a mix whose sources have shares (default: as large as the scarcest one allows)."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Which episodes are drawn: those whose hash of (seed, episode id) is lowest."""

    @field_validator("sources", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return sources_by_name(value) if isinstance(value, list) else value

    @model_validator(mode="before")
    @classmethod
    def _names_are_builders(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("sources"):
            return {"builder": MIX} | data
        return data

    @model_validator(mode="after")
    def _is_one_or_several(self) -> SourceConfig:
        if not self.sources:
            if not self.builder:
                raise ValueError("builder is missing: the name of a builder, or several sources")
            if self.episodes is not None:
                raise ValueError("episodes belongs to several sources with shares; one source has limit")
            return self
        if self.builder != MIX or self.path or self.options:
            raise ValueError("several sources have a builder, path and options each, none in common")
        shares = [block.share is not None for block in self.sources.values()]
        if any(shares) and not all(shares):
            raise ValueError("give every source a share, or none")
        if self.episodes is not None and not any(shares):
            raise ValueError("episodes divides the mix by the sources' shares, and they have none")
        return self


def sources_by_name(blocks: list[Any]) -> dict[str, Any]:
    """Name each of a list of source blocks, by its ``name`` or its builder.

    Raises:
        ValueError: One is no block, has no name, or has another's.
    """
    named: dict[str, Any] = {}
    for block in blocks:
        if not isinstance(block, dict):
            raise ValueError("expected a source block: builder, path, ...")
        name = block.get("name") or block.get("builder")
        if not isinstance(name, str):
            raise ValueError("a source has neither name nor builder")
        if name in named:
            raise ValueError(f"two sources are named '{name}': give each a name of its own")
        named[name] = {key: item for key, item in block.items() if key != "name"}
    return named
