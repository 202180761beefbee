"""The verbs of the command line about sources: inspect what lies there, export, import candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from solar_rl.cli_options import DryRun, Json, Out, Overrides


def inspect(
    path: Path,
    /,
    *overrides: Overrides,
    builder: str | None = None,
    limit: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 1000,
    write: Path | None = None,
    json: Json = False,
) -> None:
    """Guess the format of a file or folder, say what is in it, and print a dataset.yaml to start from.

    Example: `solar-rl inspect ~/data/android_control --write my_dataset.yaml`

    Args:
        path: What you downloaded, or made: a file or a folder.
        overrides: Fields of the source, such as --source.options.images FOLDER.
        builder: The format, where the guess is wrong: a builder's short name, or module:Class of your own.
        limit: Read at most this many episodes, broken ones included.
        write: File to save the dataset.yaml in; it must not exist.
        json: Print what was found as JSON.
    """
    from solar_rl import commands_sources

    commands_sources.inspect(path, overrides, builder, limit, write, as_json=json)


def export(dataset: str, /, *, out: Path, json: Json = False) -> None:
    """Write a built dataset's demonstrations in the interchange format: lines of JSON and screenshots.

    Candidates and rewards stay behind. `solar-rl build jsonl --source.path OUT` builds them again.

    Example: `solar-rl export runs/phone-1.0.0 --out phone_lines`

    Args:
        dataset: Folder, OWNER/NAME or hf://datasets/OWNER/NAME.
        out: A new folder.
        json: Print the result as JSON.
    """
    from solar_rl import commands_sources

    commands_sources.export(dataset, out, as_json=json)


def import_candidates(
    file: Path,
    /,
    *overrides: Overrides,
    into: Path,
    format: str | None = None,
    sampler_id: str | None = None,
    out: Out = None,
    version: str | None = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Bring candidates that were sampled elsewhere into a built dataset: a new version beside it.

    Each row has `episode_id`, `step_index`, `candidate_index` and `completion` and, if known, `token_ids`,
    `sampling_logprobs`, `seed`, `sampler_id`, `finish_reason`, `history_dropped`. Answers are parsed, scored and shaped;
    nothing is overwritten.

    Example: `solar-rl import-candidates answers.parquet --into runs/phone-1.0.0 --format ui_tars`

    Args:
        file: JSONL or parquet, the same number of answers to every step of the dataset.
        overrides: Dotted fields of prompt, validity, shaping and advantage, and --sampler.temperature.
        into: The built dataset.
        format: Output format of the answers (default: the dataset's prompt.format).
        sampler_id: Who answered (default: the rows' own, else recorded/ and the file's name).
        out: Folder of the new version (default: beside the old one).
        version: The new version (default: the next patch version).
        dry_run: Check everything, say what would be done, and do nothing.
        json: Print the result as JSON.
    """
    from solar_rl import commands_sources

    commands_sources.import_candidates(
        file,
        into,
        overrides,
        format=format,
        sampler_id=sampler_id,
        out=out,
        version=version,
        dry_run=dry_run,
        as_json=json,
    )
