"""Turn records into columns and back: Episodes, Steps and Candidates as polars frames of the schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

import orjson
import polars as pl

from solar_rl.actions import ACTION_FIELDS, Action, Box
from solar_rl.fingerprints import goal_words, screen_hash
from solar_rl.schema import TABLES, Alternative, Candidate, Episode, Screenshot, Step

_EPISODE_FIELDS = {each.name for each in fields(Episode)} - {"steps", "subsplits"}
_FIELDS_OF = attrgetter(*ACTION_FIELDS)  # astuple copies deeply, at twenty times the cost
_SCALARS: dict[str, Any] = {
    "string": pl.String,
    "bool": pl.Boolean,
    "int32": pl.Int32,
    "int64": pl.Int64,
    "float32": pl.Float32,
    "float64": pl.Float64,
    "image": pl.Struct({"bytes": pl.Binary, "path": pl.String}),
}


def polars_type(dtype: str) -> Any:
    """Turn a type string of the schema into the polars type."""
    return pl.List(polars_type(dtype[5:-1])) if dtype.startswith("list<") else _SCALARS[dtype]


def polars_schema(table: str) -> dict[str, Any]:
    """Return the polars schema of a table, in column order."""
    return {column.name: polars_type(column.dtype) for column in TABLES[table].columns}


def episodes_frame(episodes: Iterable[Episode], *, screens: bool = False) -> pl.DataFrame:
    """Make the rows of table ``episodes``, sorted by key.

    Args:
        episodes: The demonstrations.
        screens: Fill ``screen_hash`` too, for which a screenshot of each has to be decoded.
    """
    rows = [
        (
            e.episode_id,
            e.source,
            e.platform,
            e.goal,
            e.app,
            e.ref_len,
            e.split,
            e.license,
            e.category,
            list(e.subsplits),
            e.recorded_success,
            goal_words(e.goal),
            screen_hash(e) if screens else None,
        )
        for e in episodes
    ]
    return _frame("episodes", rows)


def steps_frame(episodes: Iterable[Episode]) -> pl.DataFrame:
    """Make the rows of table ``steps``, sorted by key."""
    rows = [
        (
            episode.episode_id,
            step.step_index,
            step.instruction,
            step.screenshot.sha256 if step.screenshot else None,
            step.screen_width,
            step.screen_height,
            *_action_values(step.action),
            list(step.target_box) if step.target_box else None,
            [list(box) for box in step.candidate_boxes],
            step.screen_size,
            step.app or episode.app,
            step.screen_text,
            step.box_rule,
            step.thought,
            [alternative_text(each) for each in step.alternatives],
        )
        for episode in episodes
        for step in episode.steps
    ]
    return _frame("steps", rows)


def candidates_frame(candidates: Iterable[Candidate]) -> pl.DataFrame:
    """Make the rows of table ``candidates``, sorted by key."""
    rows = [
        (
            c.episode_id,
            c.step_index,
            c.candidate_index,
            c.completion,
            list(c.token_ids) if c.token_ids is not None else None,
            list(c.sampling_logprobs) if c.sampling_logprobs is not None else None,
            c.parse_error,
            *_action_values(c.action),
            c.sampler_id,
            c.seed,
            c.finish_reason,
            c.history_dropped,
        )
        for c in candidates
    ]
    return _frame("candidates", rows)


def label_columns(candidates: pl.DataFrame, steps: pl.DataFrame, episodes: pl.DataFrame) -> pl.DataFrame:
    """Put each candidate's label beside it: what ``validity.score`` and ``shaping.shape`` read.

    Args:
        candidates: Rows of table ``candidates``.
        steps: The steps they answer.
        episodes: Their episodes.

    Returns:
        The candidates' rows in the same order, without the texts and tokens that scoring never reads,
        with the label's columns of ``steps`` and ``ref_len``.
    """
    unread = [
        "completion",
        "token_ids",
        "sampling_logprobs",
        "sampler_id",
        "seed",
        "finish_reason",
        "history_dropped",
    ]
    unread_steps = ["instruction", "image_sha256", "screen_text", "box_rule", "thought"]
    return candidates.drop(unread, strict=False).join(
        steps.drop(unread_steps, strict=False).join(
            episodes.select("episode_id", "ref_len"), on="episode_id", how="left", maintain_order="left"
        ),
        on=["episode_id", "step_index"],
        how="left",
        maintain_order="left",
    )


def alternative_text(alternative: Alternative) -> str:
    """Write an alternative action as the JSON object that column ``alternatives`` holds."""
    values = {name: value for name, value in _named(alternative.action) if value is not None}
    box = {"box": list(alternative.box)} if alternative.box else {}
    return orjson.dumps(values | box).decode()


def read_alternative(text: str) -> Alternative:
    """Read an alternative action back from column ``alternatives``."""
    values = orjson.loads(text)
    box = values.pop("box", None)
    if "keys" in values:
        values["keys"] = tuple(values["keys"])
    return Alternative(Action(**values), Box(*box) if box else None)


def action_of(row: Mapping[str, Any], prefix: str = "") -> Action | None:
    """Read an action back from a row of ``steps`` or, with prefix ``pred_``, of ``candidates``.

    Returns:
        The action, or None where the row has none (an answer that did not parse).
    """
    if row[f"{prefix}action_type"] is None:
        return None
    values = {name: row[f"{prefix}{name}"] for name in ACTION_FIELDS}
    values["keys"] = tuple(values["keys"]) if values["keys"] is not None else None
    return Action(**values)


def episode_of(row: Mapping[str, Any], steps: Iterable[Step]) -> Episode:
    """Read an episode back from a row of ``episodes`` and its steps."""
    named = {name: row[name] for name in _EPISODE_FIELDS}
    return Episode(steps=tuple(steps), subsplits=tuple(row["subsplits"]), **named)


def step_of(row: Mapping[str, Any], screenshot: Screenshot | None = None) -> Step:
    """Read a step back from a row of ``steps``, with the screenshot that its ``image_sha256`` names."""
    action = action_of(row)
    assert action is not None, "a label always has an action"
    return Step(
        row["step_index"],
        action,
        row["screen_width"],
        row["screen_height"],
        instruction=row["instruction"],
        screenshot=screenshot,
        screen_text=row["screen_text"],
        app=row["app"],
        target_box=Box(*row["target_box"]) if row["target_box"] else None,
        candidate_boxes=tuple(Box(*box) for box in row["candidate_boxes"]),
        screen_size=row["screen_size"],
        box_rule=row["box_rule"],
        thought=row["thought"],
        alternatives=tuple(read_alternative(text) for text in row["alternatives"]),
    )


def _action_values(action: Action | None) -> Sequence[Any]:
    if action is None:
        return (None,) * len(ACTION_FIELDS)
    return [list(v) if isinstance(v, tuple) else v for v in _FIELDS_OF(action)]


def _named(action: Action) -> Iterable[tuple[str, Any]]:
    return zip(ACTION_FIELDS, _action_values(action), strict=True)


def _frame(table: str, rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=polars_schema(table), orient="row")
    return frame.sort(TABLES[table].key, maintain_order=True)
