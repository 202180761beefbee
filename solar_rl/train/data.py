"""Read a built dataset as training rows: one a candidate, N rows a group.

The rows are light (token ids, log-probs, advantage); prompts and screenshots lie in ``Contexts``
(train/contexts.py), once a context, and are made when the trainer asks for them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from datasets.arrow_dataset import Dataset

from solar_rl.advantage import credit as credit_rows
from solar_rl.config import DatasetConfig, PromptConfig
from solar_rl.errors import InputError, NothingToCompare
from solar_rl.policy import Reader, answer_text
from solar_rl.schema import SPLITS
from solar_rl.store.dataset import SolarDataset, open_dataset
from solar_rl.store.parquet import table_files
from solar_rl.train.anchor import Thoughts, anchor_texts
from solar_rl.train.contexts import GROUP, MEMBER, Contexts, make_contexts
from solar_rl.train.fit import BUILD_HINT, check_members, check_stored, fitting_config
from solar_rl.train.images import Screens

logger = logging.getLogger(__name__)

_TABLES = ("rewards", "candidates", "trajectories", "steps", "episodes")
_CHECKED = 64
"""Answers whose token ids are decoded and compared with their text before training."""


@dataclass(frozen=True)
class Crediting:
    """What candidates are credited with, and which groups are trained on.

    Args:
        credit: Where rewards and advantages come from (``solar_rl.advantage.credit``).
        advantage_weight: none, std or log_success.
        weight_floor: Smallest share of valid candidates that log_success divides by (default: 1 / N).
        upsample_rare: From 0 (every step once an epoch) to 1 (every action type as often as the commonest).
        anchor: Give each group the recorded action as an answer, with or without a thought; groups that
            have nothing to compare are then kept for it, their candidates not in play (None: no anchors).
    """

    credit: str = "solar"
    advantage_weight: str = "none"
    weight_floor: float | None = None
    upsample_rare: float = 0.0
    anchor: Thoughts | None = None


@dataclass(frozen=True)
class Made:
    """Training rows with what they were made of; see ``Replay``."""

    rows: Dataset
    contexts: Contexts
    counts: dict[str, int]
    anchors: dict[str, int]


@dataclass(frozen=True)
class Replay:
    """A dataset made ready for training.

    Args:
        rows: One row a candidate, ``size`` consecutive rows a group: the key, ``context``, ``token_ids``,
            ``sampling_logprobs``, ``answer``, ``reward``, ``advantage`` (0 when not in play), ``weight`` that
            is in the advantage (0 where nothing is learned), ``in_play``, ``repeat`` (times an epoch),
            ``anchor`` (the recorded action as an answer, in one row of its group) and what health is
            reported by: ``action_type``, ``position``, ``ref_len``, ``valid``, ``parsed``, ``prefix_len``.
        contexts: Prompts and screenshots by ``context``.
        size: N, rows a group.
        temperature: Temperature the candidates were sampled at.
        counts: Groups kept, and groups left out by reason.
        anchors: Steps with an expert anchor, and steps without one by reason; empty where it is off.
        name: Name, version and build id of the dataset.
    """

    rows: Dataset
    contexts: Contexts
    size: int
    temperature: float
    counts: dict[str, int]
    anchors: dict[str, int]
    name: str

    def __len__(self) -> int:
        return len(self.rows) // self.size

    @property
    def prompt(self) -> PromptConfig:
        """Return how steps were put to the sampler."""
        return self.contexts.prompt

    def group(self, index: int) -> list[dict[str, Any]]:
        """Return the rows of one group."""
        start = index * self.size
        rows = self.rows[start : start + self.size]
        return [dict(zip(rows, values, strict=True)) for values in zip(*rows.values(), strict=True)]

    def extremes(self) -> list[tuple[float, float]]:
        """Return the lowest and highest advantage of each group."""
        advantages = self.rows["advantage"][:]
        blocks = (advantages[k : k + self.size] for k in range(0, len(advantages), self.size))
        return [(min(block), max(block)) for block in blocks]


def load_replay(
    dataset: str | Path,
    crediting: Crediting = Crediting(),
    *,
    revision: str | None = None,
    split: str = "train",
    group_size: int | None = None,
    temperature: float | None = None,
) -> Replay:
    """Read a built dataset for a recipe.

    Args:
        dataset: A folder, or a dataset of the Hub: ``owner/name`` or ``hf://datasets/owner/name@revision``.
        crediting: What candidates are credited with.
        revision: Tag, branch or commit of a dataset of the Hub.
        split: Split to read.
        group_size: The recipe's ``num_generations``, checked against the dataset's N.
        temperature: The recipe's temperature, checked against the sampler's.

    Raises:
        InputError: No such dataset, revision or split, the recipe doesn't fit it, candidates or their
            log-probs are missing, or no group is left to train on.
    """
    source = open_dataset(dataset, revision)
    where = str(source.folder) if source.repo is None else f"{source.repo}@{source.commit}"
    config = fitting_config(source, where, crediting.credit, group_size, temperature)
    tables = {name: _read(source, name, split, where) for name in _TABLES}
    check_members(tables["candidates"], tables["steps"], config, where)
    source.fetch("images")
    screens = Screens(table_files(source.folder, "images"))
    made = make_rows(tables, config, screens, crediting)
    if made.rows.num_rows == 0:
        raise NothingToCompare(
            f"no group of split '{split}' has a reward to compare", where=where, hint=str(made.counts)
        )
    check_stored(made.rows, where)
    logger.info("groups: %s", ", ".join(f"{count} {reason}" for reason, count in made.counts.items()))
    manifest = source.manifest
    return Replay(
        **vars(made),
        size=config.sampler.n,
        temperature=config.sampler.temperature,
        name=f"{manifest.name} {manifest.version} ({manifest.build_id})",
    )


def make_rows(
    tables: Mapping[str, pl.DataFrame],
    config: DatasetConfig,
    screens: Screens,
    crediting: Crediting,
    *,
    every_group: bool = False,
) -> Made:
    """Turn tables into training rows, N consecutive rows a group.

    Args:
        tables: rewards, candidates, trajectories, steps and episodes, of whole episodes.
        config: The dataset's config.
        screens: Where screenshots are read from.
        crediting: What candidates are credited with.
        every_group: Keep groups that teach nothing too, their members not in play.
    """
    figures = tables["episodes"].select("episode_id", "goal", "ref_len")
    steps = tables["steps"].join(figures, on="episode_id", how="left", maintain_order="left")
    contexts = make_contexts(steps, tables["candidates"], tables["rewards"], screens, config)
    credited = _credited(tables, crediting)
    texts: list[str | None] = [None] * steps.height
    anchors: dict[str, int] = {}
    if crediting.anchor is not None:
        parsed = tables["candidates"].filter(pl.col("parse_error").is_null())["completion"]
        texts, anchors = anchor_texts(contexts, parsed, crediting.anchor)
    steps = steps.with_row_index("step").with_columns(pl.Series("anchor", texts, pl.String))
    groups, counts = _groups(credited, steps, every_group=every_group)
    groups = groups.with_columns(_repeats(crediting.upsample_rare))
    rows = _rows(groups, credited, tables["candidates"], contexts.stride, config.sampler.n)
    return Made(rows, contexts, counts, anchors)


def check_policy(data: Replay, policy: Reader) -> None:
    """Make sure that the stored token ids are this policy's: decoded, they give the stored answers.

    Raises:
        InputError: They aren't, so the stored log-probs mean nothing to this policy.
    """
    stride = max(1, len(data.rows) // _CHECKED)
    for row in data.rows.select(range(0, len(data.rows), stride)):
        ids, vocabulary = row["token_ids"], len(policy.tokenizer)
        if not row["in_play"]:
            continue
        if max(ids) >= vocabulary or answer_text(policy, ids) != row["answer"]:
            raise InputError(
                f"the stored token ids are not those of policy {policy.name}",
                where=f"{data.name}, episode {row['episode_id']}, step {row['step_index']}",
                hint=BUILD_HINT.format(policy.name),
            )


def _read(source: SolarDataset, table: str, split: str, where: str) -> pl.DataFrame:
    rows = source.table(table, split).collect(engine="in-memory")
    if rows.is_empty() and table == "steps":
        splits = [name for name in SPLITS if source.manifest.table_rows("steps").get(name)]
        raise InputError(
            f"split '{split}' has no steps", where=where, hint=f"there is: {', '.join(splits) or 'none'}"
        )
    return rows


def _credited(tables: Mapping[str, pl.DataFrame], crediting: Crediting) -> pl.DataFrame:
    """Put each trajectory's figures beside its rewards and compute the credit; sorted by key."""
    figures = ("success", "trajectory_reward", "first_failure_step", "valid_prefix_len")
    joined = (
        tables["rewards"]
        .sort(MEMBER)
        .join(
            tables["trajectories"].select("episode_id", "candidate_index", *figures),
            on=["episode_id", "candidate_index"],
            how="left",
            maintain_order="left",
        )
        .join(
            tables["episodes"].select("episode_id", "ref_len"),
            on="episode_id",
            how="left",
            maintain_order="left",
        )
    )
    return credit_rows(
        joined, crediting.credit, crediting.advantage_weight, weight_floor=crediting.weight_floor
    )


def _groups(
    credited: pl.DataFrame, steps: pl.DataFrame, *, every_group: bool
) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the groups that are trained on, and how many were left out for which reason.

    A group is ``kept`` where its candidates have something to compare, ``anchor alone`` where only the
    recorded action teaches.
    """
    groups = credited.group_by(GROUP, maintain_order=True).agg(
        pl.col("action_type").first(),
        pl.col("credit_advantage").fill_null(0.0).ne(0.0).any().alias("compared"),
        pl.col("dropped_reason").drop_nulls().first().fill_null("not_in_play").alias("reason"),
    )
    groups = groups.join(steps.select(*GROUP, "step", "anchor"), on=GROUP, how="left", maintain_order="left")
    why = (
        pl.when("compared")
        .then(pl.lit("kept"))
        .when(pl.col("anchor").is_not_null())
        .then(pl.lit("anchor alone"))
        .otherwise("reason")
    )
    groups = groups.with_columns(why.alias("reason"))
    found = dict(groups.group_by("reason").len().sort("reason").iter_rows())
    counts = {"kept": found.pop("kept", 0), **found}
    kept = groups if every_group else groups.filter(pl.col("reason").is_in(["kept", "anchor alone"]))
    return kept.select(*GROUP, "step", "action_type", "compared", "anchor"), counts


def _rows(
    groups: pl.DataFrame,
    credited: pl.DataFrame,
    candidates: pl.DataFrame,
    stride: int,
    size: int,
) -> Dataset:
    """Lay the members of the kept groups one after the other, absent ones filled in as not in play."""
    members = groups.join(
        pl.DataFrame({"candidate_index": range(size)}, schema={"candidate_index": pl.Int32}),
        how="cross",
        maintain_order="left_right",
    )
    stored = candidates.select(
        *MEMBER,
        "completion",
        "token_ids",
        "sampling_logprobs",
        pl.col("parse_error").is_null().alias("parsed"),
    )
    scores = credited.select(
        *MEMBER,
        "credit_reward",
        "credit_advantage",
        "credit_weight",
        "position",
        "valid",
        "ref_len",
        pl.col("valid_prefix_len").alias("prefix_len"),
    )
    for table in (stored, scores):
        members = members.join(table, on=MEMBER, how="left", maintain_order="left")
    in_play = pl.col("credit_advantage").is_not_null() & pl.col("compared")
    members = members.with_columns(in_play.alias("in_play"))
    first = pl.col("candidate_index") == pl.col("in_play").arg_max().over(GROUP)  # 0 where none is in play
    own = pl.col("candidate_index") if stride > 1 else pl.lit(0)
    rows = members.select(
        *MEMBER,
        (pl.col("step") * stride + own).cast(pl.Int64).alias("context"),
        pl.col("completion").alias("answer"),
        "in_play",
        "repeat",
        pl.col("credit_reward").alias("reward"),
        pl.when("in_play").then("credit_advantage").otherwise(0.0).alias("advantage"),
        pl.when("in_play").then(pl.col("credit_weight").fill_null(0.0)).otherwise(0.0).alias("weight"),
        pl.when("in_play").then("token_ids").otherwise(pl.lit([0], pl.List(pl.Int32))).alias("token_ids"),
        pl.when("in_play")
        .then("sampling_logprobs")
        .otherwise(pl.lit([0.0], pl.List(pl.Float32)))
        .alias("sampling_logprobs"),
        pl.when(first).then("anchor").alias("anchor"),
        "action_type",
        "position",
        "ref_len",
        "valid",
        "parsed",
        "prefix_len",
    )
    return Dataset(rows.to_arrow())


def _repeats(upsample: float) -> pl.Expr:
    """Return how often a group comes an epoch: (commonest / own count) ** upsample, at most 8; ours."""
    count = pl.len().over("action_type").cast(pl.Float64)
    return (count.max() / count).pow(upsample).round().clip(1, 8).cast(pl.Int32).alias("repeat")
