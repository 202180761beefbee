"""A whole dataset.yaml."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from solar_rl.config.base import SPEED_ONLY, Config
from solar_rl.config.executor import ExecutorConfig
from solar_rl.config.privacy import PrivacyConfig
from solar_rl.config.prompt import PromptConfig
from solar_rl.config.rewards import AdvantageConfig, ShapingConfig, ValidityConfig
from solar_rl.config.sampler import Sampler, ScriptedSampler
from solar_rl.config.source import SourceConfig


class DatasetConfig(Config):
    """A whole dataset build: what a dataset.yaml holds."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name of the dataset, also of its folder."""
    version: str = Field(default="1.0.0", pattern=r"^\d+\.\d+\.\d+([-+][A-Za-z0-9.-]+)?$")
    """Version of the dataset (semantic)."""
    description: str = ""
    """One or two sentences for the card."""
    license: str | None = None
    """Licence of the built dataset, as the Hub spells it (default: the source's)."""
    language: tuple[Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")], ...] = ("en",)
    """Languages of goals and instructions for the card, as ISO 639 codes."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Build seed: every candidate's seed comes from it, the episode and the step."""
    source: SourceConfig
    """Where the demonstrations come from; key ``sources`` beside it is short for ``source.sources``."""
    prompt: PromptConfig = PromptConfig()
    sampler: Sampler = ScriptedSampler()
    validity: ValidityConfig = ValidityConfig()
    shaping: ShapingConfig = ShapingConfig()
    advantage: AdvantageConfig = AdvantageConfig()
    privacy: PrivacyConfig = PrivacyConfig()
    preview_rows: int = Field(default=200, ge=0)
    """About this many rows in table preview."""
    shard_episodes: int = Field(default=64, ge=1, json_schema_extra=SPEED_ONLY)
    """Episodes a unit of work: what a kill can cost."""
    executor: ExecutorConfig = Field(default=ExecutorConfig(), json_schema_extra=SPEED_ONLY)
    """Where it runs."""

    @model_validator(mode="before")
    @classmethod
    def _several_sources(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "sources" not in data:
            return data
        data = dict(data)
        return data | {"source": {**(data.get("source") or {}), "sources": data.pop("sources")}}

    @model_validator(mode="after")
    def _pilots_have_one_history(self) -> Self:
        if self.sampler.adaptive and self.prompt.history == "candidate":
            raise ValueError(
                "sampler.adaptive asks some candidates of a step alone, and prompt.history candidate needs all of "
                "them at every step: set one of the two otherwise"
            )
        return self

    @field_validator("sampler", mode="before")
    @classmethod
    def _scripted_by_default(cls, value: Any) -> Any:
        return {"type": "scripted"} | value if isinstance(value, dict) else value
