"""Count what is in a source: episodes, steps, screens, actions, and what can't be built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from solar_rl.actions import Action
from solar_rl.builder import Builder, read_shard
from solar_rl.episodes import checked
from solar_rl.schema import Episode, Reject, Step

_KEPT_ACTIONS = 500


@dataclass
class Survey:
    """What was met so far; counts are of steps unless their name says otherwise.

    Args:
        shards: Number of shards of the source.
        whole: Whether the source was read to its end.
        lengths: Steps of each episode.
        screens: Width, height and where they come from.
        rejects: Broken records by reason.
        first_rejects: The first of each reason.
        kept_actions: Different actions with a step each, to try output formats on.
    """

    shards: int = 0
    whole: bool = True
    lengths: list[int] = field(default_factory=list)
    splits: Counter[str] = field(default_factory=Counter)
    platforms: Counter[str] = field(default_factory=Counter)
    apps: Counter[str] = field(default_factory=Counter)
    categories: Counter[str] = field(default_factory=Counter)
    subsplits: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    licenses: Counter[str] = field(default_factory=Counter)
    screens: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    actions: Counter[str] = field(default_factory=Counter)
    holds: Counter[str] = field(default_factory=Counter)
    rejects: Counter[str] = field(default_factory=Counter)
    first_rejects: dict[str, Reject] = field(default_factory=dict)
    goals: Counter[str] = field(default_factory=Counter)
    kept_actions: dict[Action, Step] = field(default_factory=dict)
    images: set[str] = field(default_factory=set)

    @property
    def steps(self) -> int:
        """Return the number of steps."""
        return sum(self.lengths)

    @property
    def pointed(self) -> int:
        """Return the number of steps whose action has a point."""
        return self.holds["point"]

    def add(self, item: Episode | Reject) -> None:
        """Count one item of a builder."""
        if isinstance(item, Reject):
            self.rejects[item.reason] += 1
            self.first_rejects.setdefault(item.reason, item)
            return
        self.lengths.append(item.ref_len)
        self.splits[item.split] += 1
        self.platforms[item.platform] += 1
        self.apps[item.app or "-"] += 1
        self.categories.update([item.category] if item.category else [])
        self.subsplits.update(item.subsplits)
        self.outcomes[{True: "success", False: "failure", None: "not recorded"}[item.recorded_success]] += 1
        self.licenses[item.license or "-"] += 1
        self.goals[item.goal.strip().casefold()] += 1
        for step in item.steps:
            self._add_step(step)

    def _add_step(self, step: Step) -> None:
        self.screens[step.screen_width, step.screen_height, step.screen_size] += 1
        self.actions[step.action.action_type] += 1
        there = {
            "screenshot": step.screenshot is not None,
            "screen_text": bool(step.screen_text),
            "instruction": step.instruction is not None,
            "thought": step.thought is not None,
            "alternatives": bool(step.alternatives),
            "point": step.action.x is not None,
            "target_box": step.action.x is not None and step.target_box is not None,
            "several_boxes": len(step.candidate_boxes) > 1,
            "off_screen": step.action.off_screen,
        }
        self.holds.update(name for name, is_there in there.items() if is_there)
        if step.screenshot is not None:
            self.images.add(step.screenshot.sha256)
        if len(self.kept_actions) < _KEPT_ACTIONS:
            self.kept_actions.setdefault(step.action, step)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {
            "episodes": len(self.lengths),
            "rejects": sum(self.rejects.values()),
            "whole": self.whole,
            "shards": self.shards,
            "steps": self.steps,
            "episode_length": self.length_summary(),
            "distinct_goals": len(self.goals),
            "distinct_screenshots": len(self.images),
            **{name: self.holds[name] for name in HOLDS},
            "actions": _ranked(self.actions),
            "screens": [
                {"width": width, "height": height, "screen_size": origin, "steps": count}
                for (width, height, origin), count in self.screens.most_common()
            ],
            "splits": _ranked(self.splits),
            "subsplits": _ranked(self.subsplits),
            "platforms": _ranked(self.platforms),
            "categories": _ranked(self.categories),
            "recorded_success": _ranked(self.outcomes),
            "licenses": _ranked(self.licenses),
            "apps": _ranked(self.apps),
            "problems": [
                {
                    "reason": reason,
                    "count": count,
                    "file": self.first_rejects[reason].file,
                    "record": self.first_rejects[reason].record,
                    "message": self.first_rejects[reason].message,
                }
                for reason, count in self.rejects.most_common()
            ],
        }

    def length_summary(self) -> dict[str, float] | None:
        """Return the shortest, middle and longest episode; None where there is none."""
        if not self.lengths:
            return None
        return {"min": min(self.lengths), "median": median(self.lengths), "max": max(self.lengths)}


HOLDS = (
    "screenshot",
    "screen_text",
    "instruction",
    "thought",
    "alternatives",
    "point",
    "target_box",
    "several_boxes",
    "off_screen",
)
"""What a step may hold, by the names under which ``Survey.holds`` counts it."""


def survey(builder: Builder, limit: int) -> Survey:
    """Read a source, or its beginning, and count what is there; memory is that of one episode.

    Args:
        builder: Set up for the source.
        limit: Stop after so many episodes and rejects.
    """
    shards = builder.shards()
    found, seen, left = Survey(shards=len(shards)), set[str](), limit
    for shard in shards:
        for item in checked(read_shard(builder, shard), file=shard, seen=seen):
            if not left:
                found.whole = False
                return found
            found.add(item)
            left -= 1
    return found


def _ranked(counts: Mapping[str, int] | Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def top(counts: Iterable[tuple[str, int]], shown: int) -> str:
    """Say the first few of ranked counts in a line."""
    pairs = sorted(counts, key=lambda item: (-item[1], item[0]))
    words = [f"{name} {count:,}" for name, count in pairs[:shown]]
    return ", ".join([*words, f"{len(pairs) - shown} more"] if len(pairs) > shown else words)
