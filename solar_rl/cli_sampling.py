"""The verb that samples alone; see ``solar_rl.cli``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from solar_rl.cli_options import DryRun, Json, Out, Overrides


def sample(
    dataset: str | None = None,
    /,
    *overrides: Overrides,
    out: Out = None,
    version: str | None = None,
    limit: int | None = None,
    executor: Literal["local", "ray"] | None = None,
    workers: int | None = None,
    cache: Path | None = None,
    no_cache: Annotated[bool, Parameter(negative="")] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Sample alone: ask a policy for candidates at every step, and show how it goes.

    Given a dataset.yaml, what was sampled is kept in the dataset's folder, and `build` with the same words finds
    it there. Given a built dataset, it is sampled anew under another sampler or prompt: a new version beside it.
    A killed run goes on where it stopped.

    `--sampler NAME` takes a model's settings from recipes/samplers/NAME.yaml, or a file of your own (docs/prompts.md).

    Example: `solar-rl sample android_control --sampler qwen2_5_vl_7b --source.path FOLDER --limit 100 --dry-run`

    Example: `solar-rl sample runs/phone-1.0.0 --sampler.adaptive true`

    Args:
        dataset: A dataset.yaml, the name of a shipped one such as phone, or the folder of a built dataset.
        overrides: Dotted config fields, such as --sampler.n 4 or --prompt.history candidate.
        out: Folder of the dataset (default: runs/NAME-VERSION; of a new version: beside the old one).
        version: Version of the dataset (default: the file's; of a new version: the next minor version).
        limit: Stop after this many good episodes.
        executor: Where it runs (docs/scale.md).
        workers: Workers; each takes whole shards of the source.
        cache: Folder for answers of costly samplers and hashes of files (default: .solar-cache beside the
            dataset's folder).
        no_cache: Ask the sampler anew, and remember nothing of what it answers.
        dry_run: Read the source and say how much would be asked for; ask nobody.
        json: Print the result as JSON.
    """
    from solar_rl import commands_sampling

    given = {"source.limit": limit, "executor.type": executor, "executor.workers": workers}
    commands_sampling.sample(
        dataset,
        overrides,
        given,
        out,
        version,
        cache=cache,
        use_cache=not no_cache,
        dry_run=dry_run,
        as_json=json,
    )
