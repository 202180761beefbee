"""Describe a run of rounds: the keys of its YAML file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from solar_rl.config import SPEED_ONLY, Config, set_dotted, validate_config
from solar_rl.config.source import Split
from solar_rl.schema import LENGTH_BUCKETS
from solar_rl.yaml_file import read_yaml

OURS = ("dataset", "model_name_or_path", "output_dir", "max_steps", "seed", "resume_from_checkpoint")
"""Keys of a training recipe that each round sets."""


class HeldOut(Config):
    """How each round's policy is measured on recorded steps that it isn't trained on."""

    splits: tuple[Split, ...] = ("validation",)
    """Splits that are answered; the run stops early by the first of them."""
    episodes: int | None = Field(default=None, ge=1)
    """At most this many episodes (default: all)."""
    samples: int = Field(default=1, ge=1, le=64)
    """Answers a step; progress is the mean over them."""
    temperature: float = Field(default=0.0, ge=0)
    """0 is greedy, which goes with one answer."""
    max_new_tokens: int | None = Field(default=None, ge=1)
    """Longest answer in tokens (default: the dataset's sampler's)."""
    bucket_rule: str = "androidcontrol"
    """Rule of the length buckets that progress is broken down by."""
    suite: str | None = None
    """A suite in closed loop that each round's policy plays as well: phone, or another of ``evaluate`` (default: none).
    Rounds still stop by the progress on recorded steps."""
    suite_episodes: int | None = Field(default=None, ge=1)
    """At most this many episodes of each of its tasks (default: all)."""

    @field_validator("splits", mode="before")
    @classmethod
    def _one_split(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fits(self) -> HeldOut:
        if not self.splits:
            raise ValueError("splits: at least one is needed")
        if self.temperature == 0 and self.samples > 1:
            raise ValueError("temperature 0 gives the same answer again: set samples to 1, or a temperature")
        if self.bucket_rule not in LENGTH_BUCKETS:
            raise ValueError(f"bucket_rule: expected one of {', '.join(LENGTH_BUCKETS)}")
        if self.suite_episodes is not None and self.suite is None:
            raise ValueError("suite_episodes goes with a suite")
        return self


class RoundsConfig(Config):
    """A run of rounds."""

    dataset: str
    """A dataset.yaml, or the name of a shipped one: what each round samples on. Its sampler must be one that runs a
    local policy: transformers or vllm, or scripted (the answers are scripted, the log-probs the policy's)."""
    build: dict[str, Any] = {}
    """Fields of the dataset's config that differ from the file, nested or dotted."""
    policy: str
    """Folder of the policy that the first round samples with, or its id on the Hub."""
    rounds: int = Field(default=10, ge=1)
    """Rounds at most."""
    updates_per_round: int = Field(default=16, ge=1)
    """Optimizer steps a round. Candidates refreshed every 1 to 16 cost little (docs/method.md, section 4). [ours]"""
    recipe: str
    """A training recipe: a YAML file or the name of a shipped one. Each round sets its dataset, policy, output
    folder, number of steps and seed."""
    train: dict[str, Any] = {}
    """Keys of the recipe that differ from the file."""
    episodes_per_round: int | None = Field(default=None, ge=1)
    """Sample only this many episodes a round, drawn anew each time (default: all)."""
    evaluate: HeldOut = HeldOut()
    patience: int | None = Field(default=None, ge=1)
    """Stop after so many rounds in a row that bring no gain in held-out goal progress (default: never)."""
    min_gain: float = Field(default=0.0, ge=0)
    """A gain is more than this above the best so far."""
    keep_checkpoints: int = Field(default=2, ge=1, json_schema_extra=SPEED_ONLY)
    """Policies of the newest rounds that are kept; the best one is kept too."""
    processes: int | None = Field(default=None, ge=1, json_schema_extra=SPEED_ONLY)
    """Processes that train (default: one a GPU, or one)."""
    accelerate: str | None = Field(default=None, json_schema_extra=SPEED_ONLY)
    """A config of accelerate, or the name of a shipped one such as fsdp2, that training starts with: GPUs only."""

    @field_validator("train")
    @classmethod
    def _leaves_ours_alone(cls, value: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(set(OURS) & set(value)):
            raise ValueError(f"'{taken[0]}' is set by each round: leave it out")
        return value

    def identity(self) -> str:
        """Return a digest of all that makes a round what it is: more rounds, or more patience, change none."""
        return self.model_copy(update={"rounds": 1, "patience": None, "min_gain": 0.0}).digest()


def load_rounds_config(path: str | Path, overrides: Mapping[str, str] | None = None) -> RoundsConfig:
    """Read a rounds YAML and apply dotted overrides.

    Raises:
        ConfigError: Missing file, broken YAML, unknown key (with a suggestion) or wrong value.
    """
    data = read_yaml(path)
    for key, text in (overrides or {}).items():
        set_dotted(data, key, text)
    return validate_config(RoundsConfig, data, where=str(path), overrides=tuple(overrides or ()))


def dotted(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value of nested mappings under its dotted name, spelled as YAML.

    >>> dict(dotted({"sampler": {"n": 4}, "source.limit": 2}))
    {'sampler.n': '4', 'source.limit': '2'}
    """
    for name, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", json.dumps(value)
