"""Generate candidates in the shape of a real dataset, seeded, for benchmarks and scale tests.

Lengths follow AndroidControl's test episodes and action types its test steps: counts of the 1,543
episodes and 8,444 steps in X-PLUG/MobileAgent, UI-S1/datasets/android_control_evaluation_std.jsonl
(commit 11cea57, AndroidControl: Apache-2.0 / CC BY 4.0). Everything else is made up.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from solar_rl.columns import polars_schema
from solar_rl.config import ValidityConfig
from solar_rl.validity import score

LENGTHS = {
    1: 116,
    2: 122,
    3: 200,
    4: 221,
    5: 256,
    6: 173,
    7: 138,
    8: 102,
    9: 65,
    10: 42,
    11: 30,
    12: 18,
    13: 18,
    14: 8,
    15: 6,
    16: 5,
    17: 8,
    18: 4,
    19: 6,
    20: 1,
    21: 1,
    22: 1,
    24: 2,
}
"""Steps of an episode: number of such episodes."""
ACTIONS = {
    "click": 5074,
    "scroll": 1211,
    "input_text": 632,
    "open_app": 608,
    "wait": 567,
    "press": 343,
    "long_press": 9,
    "drag": 10,
    "finished": 10,
}
"""Action type: number of such steps. The last two don't occur there; a few make every rule run."""

_WORDS = [
    "buy",
    "milk",
    "call",
    "anna",
    "at",
    "nine",
    "send",
    "the",
    "blue",
    "photo",
    "to",
    "paris",
    "open",
    "notes",
    "find",
    "cheap",
    "flights",
    "today",
]
_APPS = [
    "Gmail",
    "Clock",
    "Maps",
    "Notes",
    "Settings",
    "Contacts",
    "Calendar",
    "Camera",
    "Photos",
    "Chrome",
    "Drive",
    "Files",
]
_CHOICES = {
    "direction": ("down", "down", "down", "down", "up", "left", "right"),
    "app_name": tuple(_APPS),
    "button": ("back", "back", "home", "enter"),
    "status": ("complete", "infeasible"),
}
_FIELD_OF = {"scroll": "direction", "open_app": "app_name", "press": "button", "finished": "status"}
_POINTS = ("click", "long_press", "drag")


def generate_labelled(episodes: int, n: int, seed: int, *, steps: int | None = None) -> pl.DataFrame:
    """Generate what ``validity.score`` reads: n candidates for each step, beside their labels.

    Args:
        episodes: Number of episodes.
        n: Candidates a step.
        seed: Seed of everything.
        steps: Total number of steps; random episodes get one more each until it is reached.

    Returns:
        Rows sorted by key: the columns of ``candidates`` and ``steps`` that scoring reads, and ref_len.
    """
    rng = np.random.default_rng(seed)
    labels = _labels(rng, _lengths(rng, episodes, steps))
    rows = np.repeat(np.arange(len(labels)), n)
    answers = _answers(rng, labels[rows])
    index = pl.Series("candidate_index", np.tile(np.arange(n, dtype=np.int32), len(labels)))
    return labels[rows].with_columns(index, *answers)


def generate_scored(episodes: int, n: int, seed: int, *, steps: int | None = None) -> pl.DataFrame:
    """Generate what ``shaping.shape`` reads: candidates with their scores, sorted by key."""
    labelled = generate_labelled(episodes, n, seed, steps=steps)
    names = [
        "episode_id",
        "step_index",
        "candidate_index",
        "app",
        "action_type",
        "pred_action_type",
        "ref_len",
    ]
    return labelled.select(names).with_columns(score(labelled, ValidityConfig()))


def _lengths(rng: np.random.Generator, episodes: int, steps: int | None) -> np.ndarray:
    counts = np.array(list(LENGTHS.values()))
    lengths = rng.choice(list(LENGTHS), episodes, p=counts / counts.sum())
    while steps is not None and lengths.sum() < steps:
        longer = rng.permutation(episodes)[: steps - lengths.sum()]
        lengths[longer] += 1
    return lengths


def _labels(rng: np.random.Generator, lengths: np.ndarray) -> pl.DataFrame:
    """Generate one row per step, with a small box around most points and two containers around it."""
    size = lengths.sum()
    counts = np.array(list(ACTIONS.values()))
    kinds = rng.choice(list(ACTIONS), size, p=counts / counts.sum())
    episode = np.repeat(np.arange(len(lengths)), lengths)
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    x, y, x2, y2 = rng.uniform(0.06, 0.94, (4, size))
    frame = pl.DataFrame(
        {
            "episode_id": [f"episode-{i:06d}" for i in episode],
            "step_index": np.arange(size) - first,
            "ref_len": np.repeat(lengths, lengths),
            "app": rng.choice(_APPS, len(lengths))[episode],
            "action_type": kinds,
            "x": np.where(np.isin(kinds, _POINTS), x, np.nan),
            "y": np.where(np.isin(kinds, _POINTS), y, np.nan),
            "x2": np.where(kinds == "drag", x2, np.nan),
            "y2": np.where(kinds == "drag", y2, np.nan),
            "text": _texts(rng, size),
            **{name: rng.choice(choices, size) for name, choices in _CHOICES.items()},
        }
    ).fill_nan(None)
    return _only_own_fields(frame, "").with_columns(_boxes(rng, x, y), target_box=None, keys=None)


def _boxes(rng: np.random.Generator, x: np.ndarray, y: np.ndarray) -> pl.Series:
    width, height = rng.uniform(0.02, 0.3, len(x)), rng.uniform(0.01, 0.06, len(x))
    small = np.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], axis=1)
    row = np.stack([np.zeros(len(x)), y - height, np.ones(len(x)), y + height], axis=1)
    screen = np.broadcast_to(np.array([0.0, 0.1, 1.0, 0.95]), small.shape)
    boxes = pl.Series("candidate_boxes", np.stack([small, row, screen], axis=1))
    nested = boxes.cast(polars_schema("steps")["candidate_boxes"])
    without = pl.Series(rng.random(len(x)) < 0.04)
    empty = pl.Series("candidate_boxes", [[]], dtype=nested.dtype)
    return pl.select(pl.when(~without).then(nested).otherwise(empty).alias("candidate_boxes")).to_series()


def _answers(rng: np.random.Generator, rows: pl.DataFrame) -> list[pl.Series]:
    """Generate one answer per row: mostly near the label, sometimes another action or no action."""
    size = len(rows)
    fate = rng.choice(["right", "near", "far", "other", "unparsed"], size, p=[0.45, 0.25, 0.18, 0.1, 0.02])
    noise = np.select([fate == "right", fate == "near"], [0.004, 0.03], 0.3)
    fields = ("x", "y", "x2", "y2")
    points = {name: rows[name].to_numpy() + rng.normal(0, 1, size) * noise for name in fields}
    missed = pl.Series(fate == "far")
    other = rng.choice(["click", "scroll", "wait"], size)
    kinds = np.where(fate == "other", other, rows["action_type"].to_numpy())
    words = {
        name: pl.select(
            pl.when(missed).then(pl.Series(rng.choice(choices, size))).otherwise(rows[name])
        ).to_series()
        for name, choices in {**_CHOICES, "text": _texts(rng, 1000)}.items()
    }
    frame = pl.DataFrame({"action_type": kinds, **points, **words}).fill_nan(None)
    parsed = pl.Series(fate != "unparsed")
    own = _only_own_fields(frame, "").with_columns(keys=None).select(pl.all().name.prefix("pred_"))
    error = pl.select(pl.when(~parsed).then(pl.lit("no JSON object in the answer"))).to_series()
    return [*own.with_columns(pl.when(parsed).then(pl.all()).name.keep()), error.alias("parse_error")]


def _texts(rng: np.random.Generator, size: int) -> list[str]:
    words = rng.choice(_WORDS, (size, 5))
    return [" ".join(row[:length]) for row, length in zip(words, rng.integers(1, 6, size), strict=True)]


def _only_own_fields(frame: pl.DataFrame, prefix: str) -> pl.DataFrame:
    fields = {**_FIELD_OF, "input_text": "text"}
    kind = pl.col(f"{prefix}action_type")
    return frame.with_columns(
        pl.when(kind == action).then(pl.col(f"{prefix}{name}")).alias(f"{prefix}{name}")
        for action, name in fields.items()
    )
