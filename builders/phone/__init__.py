"""The built-in simulated phone: apps as state machines, goals with planned demonstrations, a closed loop.

Everything is made by this project and follows from (seed, index): no recording, no download, the same
bytes every time.
"""

from __future__ import annotations

from collections.abc import Iterator

from solar_rl.builder import Builder
from solar_rl.environment import Observation
from solar_rl.schema import Episode, Reject, Step

from .draw import BUCKETS, EpisodeSpec, PhoneOptions, Shot, draw_episode
from .env import PhoneEnv, expert_action, make_environment
from .goals import Goal
from .listing import named, screen_list
from .render import pixels, render
from .templates import TEMPLATES
from .widgets import screen_text

_SHARD = 16
"""Episodes a shard."""

__all__ = [
    "BUCKETS",
    "BUILDER",
    "TEMPLATES",
    "EpisodeSpec",
    "Goal",
    "Observation",
    "PhoneBuilder",
    "PhoneEnv",
    "PhoneOptions",
    "draw_episode",
    "expert_action",
    "make_environment",
]


class PhoneBuilder(Builder):
    """Demonstrations on the simulated phone."""

    name = "phone"
    license = "apache-2.0"
    needs_path = False
    Options = PhoneOptions

    def shards(self) -> list[str]:
        """List blocks of episode indices, such as 000000-000015."""
        count = self.options.episodes
        return [f"{a:06d}-{min(a + _SHARD, count) - 1:06d}" for a in range(0, count, _SHARD)]

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield the episodes of one block; each depends on the seed and its own index alone."""
        first, last = (int(part) for part in shard.split("-"))
        for index in range(first, last + 1):
            yield build_episode(self.options, index)


BUILDER = PhoneBuilder


def build_episode(options: PhoneOptions, index: int) -> Episode:
    """Draw one episode and render its screens."""
    spec, shots = draw_episode(options, index)
    steps = tuple(_step(place, shot, options) for place, shot in enumerate(shots))
    return Episode(
        spec.episode_id,
        "phone",
        "android",
        spec.goal.text,
        steps,
        spec.split,
        spec.goal.apps[0],
        "apache-2.0",
    )


def _step(place: int, shot: Shot, options: PhoneOptions) -> Step:
    picture = render(shot.tree, options.scale) if options.pictures else None
    width, height = pixels(options.scale)
    text = screen_list(shot.tree) if options.text == "list" else screen_text(shot.tree, options.scale)
    shown = shot.demonstration
    return Step(
        place,
        shown.action,
        width,
        height,
        shown.instruction,
        picture,
        text,
        shot.app,
        shown.target_box,
        shown.candidate_boxes,
        "stated",
        thought=named(shot.tree, shown.action) if options.thoughts else None,
    )
