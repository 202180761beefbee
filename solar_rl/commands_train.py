"""What the verb ``train --plan`` prints: GPU memory by kind of sharing, from arithmetic."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import orjson
import polars as pl

from solar_rl.commands import print_table
from solar_rl.errors import ConfigError
from solar_rl.train.keys import read_settings, whole
from solar_rl.train.launch import check_policy_name, find_recipe
from solar_rl.train.memory import (
    CARDS,
    GB,
    SHARINGS,
    Job,
    Shape,
    context_of,
    memory,
    read_job,
    smallest_card,
)


def plan(
    recipe: str, extra: Sequence[str], *, processes: int | None, context: int | None, as_json: bool
) -> None:
    """Print how much memory a recipe takes on each GPU.

    Args:
        recipe: A recipe YAML, or the name of a shipped one.
        extra: Overrides as command-line words.
        processes: Number of GPUs (default: as many as the recipe's own accumulation needs).
        context: Tokens of prompt and answer (default: by the dataset's pixel limit, or the recipe's, else the
            paper's).
        as_json: Print JSON.

    Raises:
        ConfigError: No such recipe or model, a wrong key or value, or too short a context.
    """
    from solar_rl.train.shapes import first_model, read_shape

    settings = read_settings(find_recipe(recipe), extra)
    model = first_model(settings)
    check_policy_name(model)
    shape = read_shape(model, settings)
    tokens, screens = context_of(settings) if context is None else (context, None)
    job = read_job(settings, shape, tokens, screens)
    if job.context <= job.answer:
        raise ConfigError(f"{job.context} tokens don't hold an answer of {job.answer}", where="--context")
    gpus = processes or _gpus(settings)
    rows = [_row(shape, job, sharing, gpus) for sharing in (SHARINGS if gpus > 1 else SHARINGS[:1])]
    if as_json:
        found = {"recipe": recipe, "model": model, "gpus": gpus, "shape": shape, "job": job, "bytes": rows}
        sys.stdout.write(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    print(_head(model, shape, job, gpus))
    print_table(pl.DataFrame([_readable(row, job) for row in rows]))
    print(
        f"GB a GPU, by arithmetic (docs/memory.md), not measured; fits: the smallest of {', '.join(map(str, CARDS))} GB."
    )


def _gpus(settings: dict[str, Any]) -> int:
    """Return the number of GPUs with which the recipe's rows an update add up as they stand."""
    rows = whole(settings, "per_device_train_batch_size", 8)
    steps = whole(settings, "gradient_accumulation_steps", 1)
    return max(whole(settings, "rows_per_update", rows * steps) // (rows * steps), 1)


def _row(shape: Shape, job: Job, sharing: str, gpus: int) -> dict[str, Any]:
    parts = memory(shape, job, sharing, gpus)
    total = sum(parts.values())
    name = sharing if gpus > 1 else "one GPU"
    return {"sharing": name, **parts, "total": total, "fits": smallest_card(total, job.vllm)}


def _readable(row: dict[str, Any], job: Job) -> dict[str, str]:
    shown = {k: f"{v / GB:.1f}" for k, v in row.items() if k not in ("sharing", "fits")}
    vllm = {"vllm": f"{job.vllm:.0%} of it"} if job.vllm else {}
    return {"sharing": row["sharing"], **shown, **vllm, "fits": str(row["fits"] or "none")}


def _head(model: str, shape: Shape, job: Job, gpus: int) -> str:
    adapters = f", {shape.adapters:,} in adapters" if shape.adapters else ""
    host = shape.parameters * job.weight_bytes * (2 if job.reference else 1) / GB
    return (
        f"{model}: {shape.parameters:,} weights{adapters}\n"
        f"{gpus} GPU{'s' * (gpus > 1)}, {job.rows} row{'s' * (job.rows > 1)} of {job.context:,} tokens a forward pass "
        f"({job.screens:,} of screenshots, {job.answer} of the answer), "
        f"{'with' if job.checkpointing else 'without'} checkpointing\n"
        f"main memory while loading: {host:.1f} GB a process"
    )
