"""Draw episodes: a phone and a goal from (seed, index) alone, of the length that is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, NamedTuple

from pydantic import Field, model_validator

from solar_rl.config import Config
from solar_rl.config.source import Split
from solar_rl.errors import ConfigError

from .apps import APPS
from .expert import Demonstration, demonstrate
from .goals import Goal, Part, Task
from .phone import Phone
from .templates import INFEASIBLE, TEMPLATES
from .widgets import Widget

Bucket = Literal["short", "long", "super_long"]
BUCKETS: dict[Bucket, tuple[int, int]] = {"short": (2, 5), "long": (6, 14), "super_long": (15, 40)}
"""Fewest and most steps of a bucket, the last ``finished`` included. [ours]"""
_TRIES = 500
_CANNOT = 0.08
"""Share of the short goals that can't be reached and must be declared so."""


class PhoneOptions(Config):
    """Options of the simulated phone. All values are ours."""

    episodes: int = Field(default=60, ge=1)
    """Number of episodes."""
    seed: int = Field(default=0, ge=0)
    """Each episode depends on this and its index alone."""
    scale: float = Field(default=1.0, ge=0.25, le=4.0)
    """Pixels a dp: 1 gives screens of 360 x 720."""
    min_steps: int = Field(default=2, ge=2, le=40)
    """Shortest demonstration, with the last ``finished``."""
    max_steps: int = Field(default=40, ge=2, le=40)
    """Longest demonstration."""
    buckets: dict[Bucket, float] = {"short": 0.4, "long": 0.4, "super_long": 0.2}
    """Weight of each length: short 2 to 5 steps, long 6 to 14, super_long 15 to 40."""
    popup_rate: float = Field(default=0.04, ge=0, le=0.5)
    """Chance that an action is followed by a pop-up which must be dismissed."""
    moved: Literal["never", "test", "always"] = "never"
    """Where widgets are moved about (margins, gaps, the add button's side): another layout, same goals."""
    validation_share: float = Field(default=0.1, ge=0, le=1)
    """Share of the goals that belong to the validation split; a goal's text decides, so none is in two."""
    test_share: float = Field(default=0.1, ge=0, le=1)
    """The same for the test split."""
    unseen_apps: tuple[str, ...] = ()
    """Every goal that needs one of these apps belongs to the test split."""
    unseen_templates: tuple[str, ...] = ()
    """Every goal made from one of these templates (such as clock.alarm) belongs to the test split."""
    templates: tuple[str, ...] = ()
    """Draw goals from these templates alone (default: all)."""
    by_name: float = Field(default=0.3, ge=0, le=1)
    """Share of episodes whose expert opens apps by name instead of looking for the icon."""
    things: int | None = Field(default=None, ge=4)
    """Most alarms, people and notes on a phone, of which each has a first word of its own: people have first names alone
    and alarms ring on the hour (default: up to 22 of each, which takes scrolling, many alike)."""
    text: Literal["tree", "list"] = "tree"
    """The screen as text: the whole tree of widgets, or a short list of what it says and what can be touched, with
    the very points that the expert then touches."""
    pictures: bool = True
    """Whether screens are drawn; without, there is only their text."""
    thoughts: bool = False
    """Record a thought with each step: the name of what is touched, or in a word what is done."""
    only: Split | None = None
    """Draw goals of this split alone, such as test to measure on goals that no training split has."""

    @model_validator(mode="after")
    def _fits(self) -> PhoneOptions:
        if self.min_steps > self.max_steps:
            raise ValueError(f"min_steps {self.min_steps} is more than max_steps {self.max_steps}")
        if self.validation_share + self.test_share > 1:
            raise ValueError("validation_share and test_share are more than 1 together")
        if not self.ranges():
            raise ValueError("no bucket with a weight has steps between min_steps and max_steps")
        known_names = (
            (self.unseen_apps, APPS),
            (self.unseen_templates, TEMPLATES),
            (self.templates, TEMPLATES),
        )
        for given, known in known_names:
            for name in given:
                if name not in known:
                    raise ValueError(f"'{name}' is none of {', '.join(sorted(known))}")
        return self

    def ranges(self) -> dict[Bucket, tuple[int, int]]:
        """Return the step range of each bucket that is in use, cut to min_steps and max_steps."""
        cut = {b: (max(lo, self.min_steps), min(hi, self.max_steps)) for b, (lo, hi) in BUCKETS.items()}
        return {b: r for b, r in cut.items() if r[0] <= r[1] and self.buckets.get(b, 0) > 0}


@dataclass(frozen=True)
class EpisodeSpec:
    """Everything that an episode follows from; equal specs give equal episodes."""

    episode_id: str
    phone_seed: str
    goal: Goal
    split: str
    popup_rate: float = 0.0
    moved: bool = False
    by_name: bool = False
    max_steps: int = 80
    listed: bool = False
    things: int | None = None

    def phone(self) -> Phone:
        """Make the phone in its initial state."""
        return Phone(self.phone_seed, popup_rate=self.popup_rate, moved=self.moved, things=self.things)


class Shot(NamedTuple):
    """One step of a demonstration before it is drawn: the screen as a tree, and what the expert did."""

    tree: Widget
    app: str
    demonstration: Demonstration


def draw_episode(options: PhoneOptions, index: int) -> tuple[EpisodeSpec, list[Shot]]:
    """Draw an episode and its demonstration.

    Args:
        options: The options, of which everything but ``episodes`` matters.
        index: Position of the episode, from 0.

    Raises:
        ConfigError: No goal of the wanted length was found.
    """
    phone_seed = f"phone {options.seed} {index}"
    rng = Random(f"goal {options.seed} {index}")
    ranges = options.ranges()
    weights = [options.buckets[bucket] for bucket in ranges]
    bucket = rng.choices(list(ranges), weights)[0]
    low, high = ranges[bucket]
    phone = Phone(phone_seed, things=options.things)
    for _ in range(_TRIES):
        goal = draw_goal(phone, rng, bucket, options.templates or tuple(TEMPLATES))
        split = split_of(goal, options)
        if options.only not in (None, split):
            continue
        spec = EpisodeSpec(
            f"phone-{options.seed}-{index:06d}",
            phone_seed,
            goal,
            split,
            options.popup_rate,
            options.moved == "always" or (options.moved == "test" and split == "test"),
            rng.random() < options.by_name,
            listed=options.text == "list",
            things=options.things,
        )
        shots = list(rollout(spec, high + 1))
        if low <= len(shots) <= high:
            return spec, shots
    raise ConfigError(
        f"no goal of {low} to {high} steps was found in {_TRIES} tries",
        where=f"source.options, episode {index}",
        hint="widen min_steps and max_steps",
    )


def draw_goal(phone: Phone, rng: Random, bucket: Bucket, templates: Sequence[str]) -> Goal:
    """Draw a goal of about the bucket's length from what is on the phone, made from some templates."""
    able = tuple(name for name in templates if name not in INFEASIBLE)
    if bucket == "short":
        cannot = rng.random() < _CANNOT
        names = tuple(name for name in INFEASIBLE if name in templates) if cannot else able
        return Goal((_part(phone, rng, names or able, 1),))
    if bucket == "long":
        count, size = rng.choice(((1, 1), (1, 2), (1, 4), (2, 1)))
    else:
        count, size = rng.choice(((1, 7), (2, 4), (3, 1), (3, 2), (4, 1), (4, 2), (5, 1)))
    count = min(count, len({name.partition(".")[0] for name in able}))
    parts: list[Part] = []
    while len(parts) < count:
        used = {part.app for part in parts}
        parts.append(_part(phone, rng, [n for n in able if n.partition(".")[0] not in used], size))
    questions = [part for part in parts if part.answer is not None]
    tasks = [part for part in parts if part.answer is None]
    return Goal((*tasks, *questions[:1]))


def _part(phone: Phone, rng: Random, names: Sequence[str], size: int) -> Part:
    while True:
        part = TEMPLATES[rng.choice(names)](phone, rng, size)
        if part is not None:
            return part


def rollout(spec: EpisodeSpec, limit: int) -> Iterator[Shot]:
    """Let the expert act from the start until it finishes, at most ``limit`` steps."""
    phone = spec.phone()
    task = Task(phone, spec.goal)
    for _ in range(limit):
        task.watch(phone)
        shown = demonstrate(phone, task, by_name=spec.by_name, listed=spec.listed)
        yield Shot(phone.screen.tree, phone.front.name, shown)
        if shown.action.action_type == "finished":
            return
        phone.act(shown.action)


def split_of(goal: Goal, options: PhoneOptions) -> str:
    """Return the split that a goal belongs to, whatever phone it was drawn on."""
    if set(goal.apps) & set(options.unseen_apps) or set(goal.templates) & set(options.unseen_templates):
        return "test"
    place = int.from_bytes(hashlib.sha256(goal.text.encode()).digest()[:6], "big") / 2**48
    if place < options.test_share:
        return "test"
    return "validation" if place < options.test_share + options.validation_share else "train"
