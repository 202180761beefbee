"""Make sure that a recipe fits a dataset, before anything heavy is loaded."""

from __future__ import annotations

import polars as pl
from datasets.arrow_dataset import Dataset

from solar_rl.advantage import ADAPTIVE_CREDITS
from solar_rl.config import DatasetConfig, validate_config
from solar_rl.errors import ConfigError, InputError
from solar_rl.schema import SCHEMA_VERSION
from solar_rl.store.dataset import SolarDataset
from solar_rl.train.contexts import GROUP

BUILD_HINT = "build the dataset with --sampler.policy {0}, or sample it with --sampler.model {0}"


def fitting_config(
    source: SolarDataset, where: str, credit: str, group_size: int | None, temperature: float | None
) -> DatasetConfig:
    """Return the dataset's config once the recipe is known to fit it.

    Args:
        source: The dataset.
        where: How errors name it.
        credit: The recipe's credit.
        group_size: The recipe's ``num_generations``; None: not checked.
        temperature: The recipe's temperature; None: not checked.

    Raises:
        InputError: Another schema version, number of candidates or temperature.
        ConfigError: The credit needs whole trajectories and the dataset was sampled adaptively.
    """
    found = source.manifest.schema_version
    if found != SCHEMA_VERSION:
        raise InputError(
            f"written with schema version {found}, this solar-rl trains on {SCHEMA_VERSION}",
            where=where,
            hint="build the dataset again with this version",
        )
    config = validate_config(DatasetConfig, source.manifest.config, where=f"{where}: manifest.json")
    sampler = config.sampler
    if group_size not in (None, sampler.n):
        raise InputError(
            f"num_generations is {group_size}, but the dataset holds {sampler.n} candidates a step",
            where=where,
            hint=f"add --num_generations {sampler.n}",
        )
    if temperature not in (None, sampler.temperature):
        raise InputError(
            f"temperature is {temperature}, but candidates were sampled at {sampler.temperature}",
            where=where,
            hint=f"add --temperature {sampler.temperature}",
        )
    if sampler.adaptive and credit not in ADAPTIVE_CREDITS:
        raise ConfigError(
            f"credit: {credit} needs whole trajectories, and this dataset was sampled adaptively",
            where=where,
            hint=f"use credit: {' or '.join(ADAPTIVE_CREDITS)}",
        )
    return config


def check_members(candidates: pl.DataFrame, steps: pl.DataFrame, config: DatasetConfig, where: str) -> None:
    """Make sure that each step has N candidates, or one alone where the sampling was adaptive.

    Raises:
        InputError: It hasn't.
    """
    n, allowed = config.sampler.n, {config.sampler.n} | ({1} if config.sampler.adaptive else set())
    found = candidates.group_by(GROUP).agg(
        pl.len().alias("members"), pl.col("candidate_index").n_unique().alias("different")
    )
    counted = steps.select(GROUP).join(found, on=GROUP, how="left", maintain_order="left")
    short = counted.filter(
        ~pl.col("members").fill_null(0).is_in(allowed) | (pl.col("members") != pl.col("different"))
    )
    if short.height:
        episode, step, members, _ = short.row(0)
        raise InputError(
            f"{short.height} of {steps.height} steps don't have {n} different candidates",
            where=f"{where}, episode {episode}, step {step}: {members or 0} candidates",
            hint="`solar-rl validate` lists what is wrong; build the dataset again",
        )


def check_stored(rows: Dataset, where: str) -> None:
    """Make sure that every candidate in play has token ids with a log-prob each.

    Raises:
        InputError: One hasn't.
    """
    whole = rows.to_polars()
    assert isinstance(whole, pl.DataFrame), "no size was asked for"
    table = whole.filter("in_play")
    ids, logps = pl.col("token_ids"), pl.col("sampling_logprobs")
    good = (
        (ids.list.len() > 0)
        & (ids.list.len() == logps.list.len())
        & logps.list.eval(pl.element().is_finite()).list.all()
    )
    bad = table.filter(~good.fill_null(False))
    if bad.height:
        first = bad.row(0, named=True)
        raise InputError(
            f"{bad.height} of {table.height} candidates have no token ids with a log-prob each",
            where=f"{where}, episode {first['episode_id']}, step {first['step_index']}, "
            f"candidate {first['candidate_index']}",
            hint=BUILD_HINT.format("THE POLICY THAT YOU TRAIN"),
        )
