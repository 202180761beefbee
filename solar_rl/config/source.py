"""The ``source`` block: which demonstrations are read."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from solar_rl.config.base import Config


class SourceConfig(Config):
    """Which demonstrations are read."""

    builder: str
    """Short name of a builder of ours (phone, android_control, ...) or an import string module:Class."""
    path: str | None = None
    """File or folder of the source; relative to the current directory. Not needed by phone."""
    splits: tuple[Literal["train", "validation", "test"], ...] | None = None
    """Keep only these splits (default: all)."""
    limit: int | None = Field(default=None, ge=1)
    """Stop after this many good episodes (default: all)."""
    max_reject_rate: float = Field(default=0.05, ge=0, le=1)
    """From 200 episodes on, a larger share of broken ones stops the build with exit 1."""
    options: dict[str, Any] = {}
    """Options of the builder, checked against the builder's own model."""

    @field_validator("splits", mode="before")
    @classmethod
    def _one_split(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value
