"""Read the demonstrations of a built dataset for training that samples its own candidates.

The stored candidates aren't looked at. What the dataset's config says of prompts, validity and shaping holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from datasets.arrow_dataset import Dataset

from solar_rl.columns import episode_of, step_of
from solar_rl.config import DatasetConfig, PromptConfig
from solar_rl.errors import ConfigError, InputError
from solar_rl.schema import SPLITS, Episode, Screenshot, Step
from solar_rl.store.dataset import open_dataset
from solar_rl.store.parquet import table_files
from solar_rl.train.contexts import GROUP
from solar_rl.train.data import Crediting
from solar_rl.train.fit import fitting_config
from solar_rl.train.fresh_packing import pack
from solar_rl.train.images import Screens


class Demonstrations:
    """Recorded episodes by id, their screenshots read when they are asked for.

    Args:
        episodes: Rows of table ``episodes``, sorted by key.
        steps: Rows of table ``steps``, sorted by key.
        screens: Where screenshots are read from.
    """

    def __init__(self, episodes: pl.DataFrame, steps: pl.DataFrame, screens: Screens) -> None:
        self._episodes, self._steps, self.screens = episodes, steps, screens

    def tables(self, episode_ids: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the rows of some episodes of tables ``episodes`` and ``steps``, sorted by key."""
        wanted = pl.col("episode_id").is_in(list(episode_ids))
        return self._episodes.filter(wanted), self._steps.filter(wanted)

    def read(self, episode_ids: Sequence[str]) -> list[Episode]:
        """Return some episodes with their screenshots, sorted by id."""
        episodes, steps = self.tables(episode_ids)
        by_id: dict[str, list[Step]] = {}
        for row in steps.iter_rows(named=True):
            by_id.setdefault(row["episode_id"], []).append(step_of(row, self._shot(row["image_sha256"])))
        return [episode_of(row, by_id[row["episode_id"]]) for row in episodes.iter_rows(named=True)]

    def screenshots(self, steps: pl.DataFrame) -> pl.DataFrame:
        """Return ``sha256`` and ``screenshot`` of every image that some steps show."""
        names = steps["image_sha256"].drop_nulls().unique().sort().to_list()
        data = {"sha256": names, "screenshot": [self.screens.encoded(name) for name in names]}
        return pl.DataFrame(data, {"sha256": pl.String, "screenshot": pl.Binary})

    def _shot(self, sha256: str | None) -> Screenshot | None:
        if sha256 is None:
            return None
        return Screenshot(self.screens.encoded(sha256), *self.screens.size(sha256))


@dataclass(frozen=True)
class Fresh:
    """A dataset's demonstrations made ready for on-policy training.

    Args:
        rows: One row a candidate that is to be sampled, N consecutive rows a step, whole episodes one after the
            other: the key, ``action_type``, ``position`` (null) and ``ref_len``; then N rows of padding, with
            an empty ``episode_id``.
        lengths: Steps of each episode, in the order of the rows.
        bins: Episodes that are generated together, by number.
        slots: Steps that a bin holds.
        demonstrations: The episodes.
        config: The dataset's config with the recipe's N and temperature.
        counts: Episodes in play and left out, and steps that are padding.
        name: Name, version and build id of the dataset.
    """

    rows: Dataset
    lengths: tuple[int, ...]
    bins: list[list[int]]
    slots: int
    demonstrations: Demonstrations
    config: DatasetConfig
    counts: dict[str, int]
    name: str

    @property
    def prompt(self) -> PromptConfig:
        """Return how steps are put to the policy."""
        return self.config.prompt

    @property
    def anchors(self) -> dict[str, int]:
        """Return nothing: which steps have an anchor is seen batch by batch."""
        return {}

    def extremes(self) -> list[tuple[float, float]]:
        """Return nothing: there are no stored groups to measure a margin on."""
        return []


def load_fresh(
    dataset: str | Path,
    crediting: Crediting,
    *,
    size: int,
    temperature: float,
    local_rows: int,
    revision: str | None = None,
    split: str = "train",
    seed: int = 0,
) -> Fresh:
    """Read a built dataset's demonstrations for a recipe that samples while it trains.

    Args:
        dataset: A folder, or a dataset of the Hub.
        crediting: What candidates will be credited with.
        size: N: the recipe's ``num_generations``.
        temperature: The recipe's temperature.
        local_rows: Rows that a process generates at once: ``per_device_train_batch_size * steps_per_generation``.
        revision: Tag, branch or commit of a dataset of the Hub.
        split: Split to read.
        seed: Seed of the packing.

    Raises:
        InputError: No such dataset or split, the batch isn't whole groups, or no episode fits it.
        ConfigError: ``upsample_rare``, or a credit that needs whole trajectories where sampling is adaptive.
    """
    if crediting.upsample_rare:
        raise ConfigError(
            "upsample_rare chooses among stored groups, and mode: fresh samples whole episodes",
            hint="set it to 0, or use mode: replay",
        )
    source = open_dataset(dataset, revision)
    where = str(source.folder) if source.repo is None else f"{source.repo}@{source.commit}"
    config = fitting_config(source, where, crediting.credit, None, None)
    sampler = config.sampler.model_copy(update={"n": size, "temperature": temperature})
    config = config.model_copy(update={"sampler": sampler})
    episodes, steps = (
        source.table(name, split).collect(engine="in-memory").sort(key)
        for name, key in (("episodes", ["episode_id"]), ("steps", GROUP))
    )
    if episodes.is_empty():
        splits = [name for name in SPLITS if source.manifest.table_rows("episodes").get(name)]
        raise InputError(
            f"split '{split}' has no episodes", where=where, hint=f"there is: {', '.join(splits) or 'none'}"
        )
    slots, rest = divmod(local_rows, size)
    if rest or not slots:
        raise InputError(
            f"per_device_train_batch_size * steps_per_generation is {local_rows}, no multiple of "
            f"num_generations, {size}",
            hint="mode: fresh samples whole groups in each process",
        )
    kept = episodes.filter(pl.col("ref_len") <= slots)
    longest = int(episodes["ref_len"].to_numpy().max())
    if kept.is_empty():
        raise InputError(
            f"no episode fits a batch of {slots} steps, the shortest has {episodes['ref_len'].to_numpy().min()}",
            where=where,
            hint=f"raise steps_per_generation: {longest * size} rows hold every episode",
        )
    source.fetch("images")
    demonstrations = Demonstrations(kept, steps, Screens(table_files(source.folder, "images")))
    lengths = tuple(kept["ref_len"].to_list())
    bins = pack(lengths, slots, seed=seed)
    counts = {
        "episodes": kept.height,
        f"longer than {slots} steps (the longest: {longest})": episodes.height - kept.height,
        "batches": len(bins),
        "steps of padding": slots * len(bins) - sum(lengths),
    }
    manifest = source.manifest
    return Fresh(
        _rows(kept["episode_id"], steps, episodes, size),
        lengths,
        bins,
        slots,
        demonstrations,
        config,
        {name: count for name, count in counts.items() if count},
        f"{manifest.name} {manifest.version} ({manifest.build_id})",
    )


def _rows(kept: Iterable[str], steps: pl.DataFrame, episodes: pl.DataFrame, size: int) -> Dataset:
    about = (
        steps.filter(pl.col("episode_id").is_in(list(kept)))
        .select(*GROUP, "action_type")
        .join(episodes.select("episode_id", "ref_len"), on="episode_id", how="left", maintain_order="left")
    )
    padding = about.head(1).with_columns(episode_id=pl.lit(""), step_index=pl.lit(0, pl.Int32))
    members = pl.DataFrame({"candidate_index": range(size)}, schema={"candidate_index": pl.Int32})
    rows = pl.concat([about, padding]).join(members, how="cross", maintain_order="left_right")
    return Dataset(rows.with_columns(position=pl.lit(None, pl.String)).to_arrow())
