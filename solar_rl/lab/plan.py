"""What a lab run does, as a YAML file: the phone, the policy, the budget, the arms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from solar_rl.config import Config, override, validate_config
from solar_rl.lab.arms import ARMS, LAB_ARMS
from solar_rl.shipped import shipped_path
from solar_rl.yaml_file import read_yaml

_TASKS = {"phone": ("short", "long", "super_long"), "miniwob": ("each",)}
"""What ``measure.closed`` counts episodes by, in each world."""


class WarmPlan(Config):
    """The warm start: supervised fine-tuning of random weights on demonstrations."""

    only: tuple[str, ...] = ()
    """Templates or tasks that its demonstrations ask for (default: all that training has): what else the sampled goals ask for is new to the start."""
    updates: int = Field(ge=1)
    """How many; the learning rate falls to 0 over them. They set how good the start is."""
    rows: int = Field(ge=1)
    """Steps an update."""
    learning_rate: float = Field(gt=0)
    """Its highest learning rate."""
    every: int = Field(ge=1)
    """A checkpoint is saved and measured every so many updates."""
    prompt_weight: float = Field(default=0.0, ge=0)
    """Weight of the loss on prompts beside the answers': so it learns to look names up."""
    keys: dict[str, Any] = {}
    """More keys for its recipe."""


class TrainPlan(Config):
    """What all arms share. Sequences an update and the learning rate are the same for every arm."""

    rows: int = Field(ge=1)
    """Sequences an update; SFT has rows / n steps, as many as its siblings have groups."""
    updates: int | None = Field(default=None, ge=1)
    """Updates a run (default: from a timed pilot, so that the whole fits ``minutes``)."""
    most: int = Field(default=400, ge=1)
    """The pilot sets at most so many."""
    least: int = Field(default=20, ge=1)
    """The pilot sets at least so many."""
    learning_rate: float = Field(gt=0)
    """Of every arm."""
    checkpoints: int = Field(default=4, ge=1)
    """Times a run is measured, the last at its end."""
    keys: dict[str, Any] = {}
    """More keys for every recipe."""
    replay: dict[str, Any] = {}
    """More keys for every recipe but SFT's."""


class MeasurePlan(Config):
    """What is measured: recorded held-out steps, and episodes in closed loop."""

    episodes: int = Field(ge=1)
    """Held-out recorded episodes, answered greedily step by step at every checkpoint."""
    unseen: int = Field(default=0, ge=0)
    """The same of an app, and of templates, that training left out; at the end alone."""
    closed: dict[str, int]
    """Episodes in closed loop, at the end: on the phone by length; of MiniWoB++ ``each`` task has as many."""
    max_steps: dict[str, int]
    """Answers after which an episode in closed loop is over, by the same keys."""
    first_seed: int = 0
    """First of the closed-loop episodes: a confirmation takes fresh ones."""
    batch: int = Field(default=64, ge=1)
    """Answers that are generated side by side."""


class Plan(Config):
    """A lab run."""

    name: str
    """Its name."""
    minutes: float = Field(gt=0)
    """What the whole is to take on ``workers`` cores."""
    workers: int = Field(default=2, ge=1)
    """Processes side by side, each with one thread."""
    seed: int = Field(default=0, ge=0)
    """Seed of the phones, of the weights and of the build."""
    world: Literal["phone", "miniwob"] = "phone"
    """Where it takes place."""
    options: dict[str, Any]
    """Options of the world's builder."""
    observation: Literal["text", "image"] = "text"
    """What the policy sees of a screen: its text, or the screenshot, which takes the tiny Qwen2.5-VL in the place of
    a model of ``size``, and ``options.pictures``."""
    demonstrations: int = Field(ge=1)
    """Episodes of the warm start."""
    sampled: int = Field(ge=1)
    """Episodes of which candidates are sampled; others than the warm start's."""
    n: int = Field(default=8, ge=2)
    """Candidates a step."""
    size: dict[str, int] = {}
    """Fields of ``train.tiny_text.Size``, the model that reads text."""
    pretrained: str | None = None
    """Folder of a policy that takes the place of random weights; its warm start is the same."""
    prompt_tokens: int = Field(default=448, ge=64)
    """Longest prompt; older actions are left out until it fits. Screens have at most 44 lines, 256 of the lab's tokens."""
    policy_seed: int = Field(default=0, ge=0)
    """Seed of the random weights."""
    warm: WarmPlan
    train: TrainPlan
    measure: MeasurePlan
    seeds: tuple[int, ...]
    """Seeds of training."""
    about: str = ""
    """What it asks, in a sentence."""
    shares: str | None = None
    """Name of a plan whose start policy this one takes over, from the folder beside its own."""
    history: Literal["expert", "candidate"] = "expert"
    """Whose earlier actions the prompts of the sampled dataset tell; a mismatch is patched with the recorded one."""
    adaptive: bool = False
    """Draw the other n - 1 candidates of a step only where the first is invalid."""
    thoughts: bool = False
    """Let answers and histories name what is touched before the action: recorded so, and learned so."""
    history_steps: int = Field(default=3, ge=0)
    """Earlier actions that a prompt tells, the newest."""
    kept: bool = False
    """Give truncated credits more sequences an update, so that as many are in play as there are sequences elsewhere."""
    sampled_seed: int = Field(default=500_000, ge=0)
    """Seed of the sampled episodes, beside the plan's; the warm start has the plan's own."""
    rounds: int | None = Field(default=None, ge=1)
    """Sample anew with the newest policy every so many updates (default: once, for all)."""
    arms: tuple[str, ...] = tuple(LAB_ARMS)
    """Which arms."""

    @field_validator("arms")
    @classmethod
    def _are_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in ARMS:
                raise ValueError(f"'{name}' is no arm; there is: {', '.join(ARMS)}")
        return value

    @model_validator(mode="after")
    def _plays_what_there_is(self) -> Plan:
        if self.observation == "image" and not self.options.get("pictures", True):
            raise ValueError("observation: image needs screens that are drawn; set options.pictures: true")
        if self.observation == "image" and self.warm.prompt_weight:
            raise ValueError("warm.prompt_weight is for prompts of text; set it to 0 with observation: image")
        known = _TASKS[self.world]
        for name in (*self.measure.closed, *self.measure.max_steps):
            if name not in known:
                raise ValueError(
                    f"measure: '{name}' isn't played in world {self.world}; there is: {', '.join(known)}"
                )
        lacking = set(self.measure.closed) - set(self.measure.max_steps)
        if lacking:
            raise ValueError(f"measure.max_steps says nothing about {', '.join(sorted(lacking))}")
        return self

    @property
    def runs(self) -> list[tuple[str, int]]:
        """Return every (arm, seed), seed by seed, so that a run that was cut off has whole pairs."""
        return [(arm, seed) for seed in self.seeds for arm in self.arms]


def load_plan(plan: str, overrides: Mapping[str, str] | None = None) -> Plan:
    """Read a plan.

    Args:
        plan: A YAML file, or the name of a shipped one: quick, lab.
        overrides: Dotted fields and their YAML values.

    Raises:
        InputError: No such plan.
        ConfigError: A field is wrong.
    """
    path, data = _read(plan)
    given = dict(overrides or {})
    override(data, given)
    return validate_config(Plan, data, where=str(path), overrides=tuple(given))


def _read(plan: str) -> tuple[Path, dict[str, Any]]:
    """Read a plan's file; what it says stands over what the plan says that it is ``like``."""
    path = Path(plan) if Path(plan).is_file() else shipped_path("recipes", "lab", f"{plan}.yaml")
    data = read_yaml(path)
    like = data.pop("like", None)
    below = _read(like)[1] if like else {}
    return path, _over(below, data) | {"name": path.stem}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        other = merged.get(name)
        both = isinstance(value, dict) and isinstance(other, dict)
        merged[name] = _over(other or {}, value) if both else value
    return merged
