"""Read a built dataset as training rows: one a candidate, N rows a group, prompts as the sampler saw them.

The rows are light (token ids, log-probs, advantage); prompts and screenshots lie in ``Contexts``, once a
step, and are made when the trainer asks for them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from datasets.arrow_dataset import Dataset

from solar_rl.actions import ACTION_FIELDS
from solar_rl.advantage import credit as credit_rows
from solar_rl.columns import action_of
from solar_rl.config import PromptConfig, validate_config
from solar_rl.errors import InputError
from solar_rl.policy import Policy, answer_text
from solar_rl.prompts import Past, frame_for, messages_for
from solar_rl.store.manifest import read_manifest
from solar_rl.train.images import Screens

logger = logging.getLogger(__name__)

GROUP = ["episode_id", "step_index"]
MEMBER = [*GROUP, "candidate_index"]
_PROMPTED = (
    *GROUP,
    "goal",
    "instruction",
    "image_sha256",
    "screen_width",
    "screen_height",
    "screen_text",
    "thought",
)
_BUILD_HINT = "build the dataset with --sampler.policy {0}, or sample it with --sampler.model {0}"
_CHECKED = 64
"""Answers whose token ids are decoded and compared with their text before training."""


class Contexts:
    """Prompts and screenshots of the steps, each rebuilt as it was put to the sampler.

    Args:
        steps: Rows of table ``steps`` with the episode's ``goal``, sorted by key, whole episodes.
        screens: Where screenshots are read from.
        prompt: The dataset's prompt block.
    """

    def __init__(self, steps: pl.DataFrame, screens: Screens, prompt: PromptConfig) -> None:
        self.prompt, self._screens = prompt, screens
        self._rows = steps.select(*_PROMPTED, *ACTION_FIELDS).to_dicts()
        self._past = [Past(a, row["thought"]) for row in self._rows if (a := action_of(row)) is not None]

    def __len__(self) -> int:
        return len(self._rows)

    def messages(self, index: int) -> list[dict[str, Any]]:
        """Return the chat messages of a step, images left as placeholders."""
        row = self._rows[index]
        screens = len(self._shown(index))
        width, height = row["screen_width"], row["screen_height"]
        if screens:
            width, height = self._screens.size(row["image_sha256"])
        return messages_for(
            row["goal"],
            row["instruction"],
            self._past[index - row["step_index"] : index],
            frame_for(width, height, self.prompt, image=bool(screens)),
            row["screen_text"],
            self.prompt,
            screens=screens,
        )

    def encoded(self, index: int) -> tuple[bytes, ...]:
        """Return the encoded screenshots of a step, in the order of the messages' image parts."""
        return tuple(self._screens.encoded(sha) for sha in self._shown(index))

    def inputs(self, index: int) -> dict[str, Any]:
        """Return what TRL reads from a row: ``prompt`` and, for a policy that sees, ``images``."""
        images = [self._screens.decoded(sha) for sha in self._shown(index)]
        return {"prompt": self.messages(index), **({"images": images} if images else {})}

    def _shown(self, index: int) -> tuple[str, ...]:
        row = self._rows[index]
        if row["image_sha256"] is None or self.prompt.observation == "text":
            return ()
        first = index - min(row["step_index"], self.prompt.screenshots - 1)
        around = (each["image_sha256"] for each in self._rows[first : index + 1])
        return tuple(sha for sha in around if sha is not None)


@dataclass(frozen=True)
class Replay:
    """A dataset made ready for training.

    Args:
        rows: One row a candidate, ``size`` consecutive rows a group: the key, ``context``, ``token_ids``,
            ``sampling_logprobs``, ``answer``, ``reward``, ``advantage`` (0 when not in play),
            ``weight`` that is in the advantage (0 where nothing is learned), ``in_play``, ``repeat`` (times
            an epoch).
        contexts: Prompts and screenshots by ``context``.
        size: N, rows a group.
        temperature: Temperature the candidates were sampled at.
        counts: Groups kept, and groups left out by reason.
        name: Name, version and build id of the dataset.
    """

    rows: Dataset
    contexts: Contexts
    size: int
    temperature: float
    counts: dict[str, int]
    name: str

    def __len__(self) -> int:
        return len(self.rows) // self.size

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
    folder: str | Path,
    *,
    credit: str = "solar",
    split: str = "train",
    advantage_weight: str = "none",
    weight_floor: float | None = None,
    upsample_rare: float = 0.0,
    group_size: int | None = None,
    temperature: float | None = None,
) -> Replay:
    """Read a built dataset for a recipe.

    Args:
        folder: The dataset.
        credit: Where rewards and advantages come from (``solar_rl.advantage.credit``).
        split: Split to read.
        advantage_weight: none, std or log_success.
        weight_floor: Smallest share of valid candidates that log_success divides by (default: 1 / N).
        upsample_rare: From 0 (every step once an epoch) to 1 (every action type as often as the commonest).
        group_size: The recipe's ``num_generations``, checked against the dataset's N.
        temperature: The recipe's temperature, checked against the sampler's.

    Raises:
        InputError: No such dataset or split, the recipe doesn't fit it, or no group is left to train on.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    sampler = manifest.config["sampler"]
    size = sampler["n"]
    if group_size not in (None, size):
        raise InputError(
            f"num_generations is {group_size}, but the dataset holds {size} candidates a step",
            where=str(folder),
            hint=f"add --num_generations {size}",
        )
    if temperature not in (None, sampler["temperature"]):
        raise InputError(
            f"temperature is {temperature}, but candidates were sampled at {sampler['temperature']}",
            where=str(folder),
            hint=f"add --temperature {sampler['temperature']}",
        )
    tables = {
        name: _read(folder, name, split)
        for name in ("rewards", "candidates", "trajectories", "steps", "episodes")
    }
    credited = _credited(tables, credit, advantage_weight, weight_floor)
    groups, counts = _groups(credited)
    if not counts["kept"]:
        raise InputError(
            f"no group of split '{split}' has a reward to compare", where=str(folder), hint=str(counts)
        )
    logger.info("groups: %s", ", ".join(f"{count} {reason}" for reason, count in counts.items()))
    steps = tables["steps"].join(
        tables["episodes"].select("episode_id", "goal"), on="episode_id", how="left", maintain_order="left"
    )
    rows = _rows(groups, credited, tables["candidates"], steps, size, upsample_rare)
    prompt = validate_config(PromptConfig, manifest.config["prompt"], where=str(folder / "manifest.json"))
    screens = Screens(sorted(folder.glob("data/images/*.parquet")))
    name = f"{manifest.name} {manifest.version} ({manifest.build_id})"
    return Replay(rows, Contexts(steps, screens, prompt), size, sampler["temperature"], counts, name)


def check_policy(data: Replay, policy: Policy) -> None:
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
                hint=_BUILD_HINT.format(policy.name),
            )


def _read(folder: Path, table: str, split: str) -> pl.DataFrame:
    files = sorted(folder.glob(f"data/{table}/{split}-*.parquet"))
    if not files:
        splits = sorted({path.name.split("-")[0] for path in folder.glob(f"data/{table}/*.parquet")})
        raise InputError(
            f"no split '{split}' in table {table}", where=str(folder), hint=f"there is: {', '.join(splits)}"
        )
    return pl.concat([pl.read_parquet(file) for file in files])


def _credited(tables: dict[str, pl.DataFrame], credit: str, weight: str, floor: float | None) -> pl.DataFrame:
    """Put each trajectory's figures beside its rewards and compute the credit; sorted by key."""
    figures = ("ref_len", "success", "trajectory_reward", "first_failure_step")
    joined = (
        tables["rewards"]
        .sort(MEMBER)
        .join(
            tables["trajectories"].select("episode_id", "candidate_index", *figures),
            on=["episode_id", "candidate_index"],
            how="left",
            maintain_order="left",
        )
    )
    return credit_rows(joined, credit, weight, weight_floor=floor)


def _groups(credited: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Return the groups that have something to compare, and how many were left out for which reason."""
    groups = credited.group_by(GROUP, maintain_order=True).agg(
        pl.col("action_type").first(),
        pl.col("credit_advantage").fill_null(0.0).ne(0.0).any().alias("kept"),
        pl.col("dropped_reason").drop_nulls().first().fill_null("not_in_play").alias("reason"),
    )
    left_out = groups.filter(~pl.col("kept")).group_by("reason").len().sort("reason")
    kept = groups.filter("kept").select(*GROUP, "action_type")
    return kept, {"kept": kept.height, **dict(left_out.iter_rows())}


def _rows(
    groups: pl.DataFrame,
    credited: pl.DataFrame,
    candidates: pl.DataFrame,
    steps: pl.DataFrame,
    size: int,
    upsample: float,
) -> Dataset:
    """Lay the members of the kept groups one after the other, absent ones filled in as not in play."""
    members = groups.with_columns(_repeats(upsample)).join(
        pl.DataFrame({"candidate_index": range(size)}, schema={"candidate_index": pl.Int32}),
        how="cross",
        maintain_order="left_right",
    )
    contexts = steps.select(*GROUP).with_row_index("context")
    stored = candidates.select(*MEMBER, "completion", "token_ids", "sampling_logprobs")
    scores = credited.select(*MEMBER, "credit_reward", "credit_advantage", "credit_weight")
    for table, key in ((contexts, GROUP), (stored, MEMBER), (scores, MEMBER)):
        members = members.join(table, on=key, how="left", maintain_order="left")
    in_play = pl.col("credit_advantage").is_not_null()
    members = members.with_columns(in_play.alias("in_play"))
    _check_stored(members.filter("in_play"))
    rows = members.select(
        *MEMBER,
        "context",
        pl.col("completion").alias("answer"),
        "in_play",
        "repeat",
        pl.col("credit_reward").alias("reward"),
        pl.col("credit_advantage").fill_null(0.0).alias("advantage"),
        pl.col("credit_weight").fill_null(0.0).alias("weight"),
        pl.when("in_play").then("token_ids").otherwise(pl.lit([0], pl.List(pl.Int32))).alias("token_ids"),
        pl.when("in_play")
        .then("sampling_logprobs")
        .otherwise(pl.lit([0.0], pl.List(pl.Float32)))
        .alias("sampling_logprobs"),
    )
    return Dataset(rows.to_arrow())


def _repeats(upsample: float) -> pl.Expr:
    """Return how often a group comes an epoch: (commonest / own count) ** upsample, at most 8; ours."""
    count = pl.len().over("action_type").cast(pl.Float64)
    return (count.max() / count).pow(upsample).round().clip(1, 8).cast(pl.Int32).alias("repeat")


def _check_stored(rows: pl.DataFrame) -> None:
    ids, logps = pl.col("token_ids"), pl.col("sampling_logprobs")
    good = (
        (ids.list.len() > 0)
        & (ids.list.len() == logps.list.len())
        & logps.list.eval(pl.element().is_finite()).list.all()
    )
    bad = rows.filter(~good.fill_null(False))
    if bad.height:
        first = bad.row(0, named=True)
        raise InputError(
            f"{bad.height} of {rows.height} candidates have no token ids with a log-prob each",
            where=f"episode {first['episode_id']}, step {first['step_index']}, candidate {first['candidate_index']}",
            hint=_BUILD_HINT.format("THE POLICY THAT YOU TRAIN"),
        )
