"""The judging verbs of the command line: parse raw answers, evaluate predictions, calibrate a verifier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

from solar_rl.cli_options import DryRun, Json, Out


def parse(
    file: Path | None = None,
    /,
    *,
    format: str,
    canonical: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Read raw model answers and print the action of each, one JSON object a line.

    Each line in is a JSON object with `raw` and, for the formats that speak pixels, `resized_w` and
    `resized_h`. An answer that can't be read gives `{"error": true, "reason": ...}`; the exit code is 0.

    Example: `solar-rl parse --format ui_tars < RAW.jsonl`

    Args:
        file: File to read (default: stdin).
        format: Output format of the model, such as qwen25vl_mobile_use (docs/formats.md).
        canonical: Say actions in canonical names instead of AndroidControl's.
    """
    from solar_rl import commands_evaluate

    commands_evaluate.parse(file, format, canonical=canonical)


def evaluate(
    *words: Annotated[str, Parameter(name="PREDICTIONS", allow_leading_hyphen=True)],
    data: str | None = None,
    suite: str | None = None,
    model: str | None = None,
    sampler: str = "transformers",
    protocol: str | None = None,
    format: str | None = None,
    peer: Literal["agentcpm"] | None = None,
    split: str | None = None,
    level: Literal["high", "low"] | None = None,
    missing: Literal["error", "wrong", "skip"] = "error",
    skip: Path | None = None,
    buckets: Literal["androidcontrol", "phone", "ui_genie"] | None = None,
    bootstrap: Annotated[int, Parameter(validator=validators.Number(gte=0, lte=100_000))] = 1000,
    seed: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    verdicts: Path | None = None,
    limit: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = None,
    out: Out = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Measure a model on a suite, or judge predictions: TM, EM, goal progress, task SR, with intervals.

    With `--model` the model answers every step of a suite (or of `--data`) greedily, or plays it in closed loop;
    a run that was cut off goes on when the same command is run again. Suites: android_control_low,
    android_control_high, gui_odyssey, phone_steps; in closed loop phone, phone_unseen_apps,
    phone_unseen_templates, miniwob (docs/evaluate.md). Fields are set by their dotted names: `--source.path`,
    `--prompt.template`, `--sampler.endpoints`, `--suite.seeds`.

    In a file of predictions each line is a JSON object with `episode_id`, `step_index` and either the fields of a
    canonical action or, with `--format`, the `raw` answer; `{"parse_error": "..."}` is an answer that was no action.

    Example: `solar-rl evaluate --model CKPT --suite android_control_high --source.path /data/android_control`

    Example: `solar-rl evaluate PRED.jsonl --protocol all --data runs/android_control-1.0.0`

    Args:
        words: JSONL file, one prediction a step; and dotted fields of source, prompt, sampler and suite.
        data: Folder, OWNER/NAME or hf://datasets/OWNER/NAME with the labels.
        suite: Name of a suite, or a YAML file of your own.
        model: Folder of a checkpoint, id on the Hub, or name of an endpoint's model.
        sampler: What runs the model: transformers, vllm, openai, or a file of recipes/samplers/ or your own, which says how
            the model is asked too. expert: no model, the suite's own expert answers (the ceiling).
        protocol: Name of a protocol (docs/protocols.md), or all: side by side, with the cases on which they
            differ (default: solar, or those that fit the suite).
        format: Output format of the raw answers, or of the model (docs/formats.md).
        peer: The file is one that a peer's own scripts write: agentcpm (predict.jsonl, all.jsonl).
        split: Only this split of the data.
        level: What the predictions were given: high (the goal) or low (the step's instruction too), where
            lines don't say it in `level`; with it only lines of that level count.
        missing: A step that the protocol judges but has no prediction is an error, wrong, or skipped.
        skip: JSONL list of steps to leave out (episode_id, and step_index for one step alone).
        buckets: Rule of the length buckets (default: the data's).
        bootstrap: Resamples of episodes for the intervals; 0: none.
        seed: Seed of the resampling.
        verdicts: JSONL file to write one verdict a case to.
        limit: At most so many episodes; in closed loop: of each task.
        out: Folder for answers and report.json (default: runs/evaluate/SUITE/MODEL).
        dry_run: Judge and print, but write no verdicts; with a model, say what would be measured.
        json: Print the figures as JSON.
    """
    from solar_rl import commands_evaluate

    predictions, overrides = commands_evaluate.parted(words)
    if suite is not None or model is not None or sampler != "transformers":
        from solar_rl import commands_measuring, commands_suites

        commands_suites.run(
            commands_measuring.Asked(
                suite,
                data,
                model,
                sampler,
                overrides,
                predictions,
                protocol,
                format,
                split,
                level,
                missing,
                skip,
                buckets,
                bootstrap,
                seed,
                verdicts,
                limit,
                out,
                dry_run,
                json,
            )
        )
        return
    commands_evaluate.evaluate(
        *commands_evaluate.require_whole(predictions, data, overrides),
        protocol or "solar",
        format_name=format,
        peer=peer,
        split=split,
        level=level,
        missing=missing,
        skip=skip,
        buckets=buckets,
        resamples=bootstrap,
        seed=seed,
        verdicts=verdicts,
        dry_run=dry_run,
        as_json=json,
    )


def calibrate(
    data: str,
    /,
    *,
    verifier: str,
    model: str | None = None,
    split: str | None = None,
    limit: Annotated[int | None, Parameter(validator=validators.Number(gte=1))] = 200,
    seed: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    threshold: Annotated[float, Parameter(validator=validators.Number(gte=0, lte=1))] = 0.5,
    concurrency: Annotated[int, Parameter(validator=validators.Number(gte=1, lte=256))] = 8,
    retries: Annotated[int, Parameter(validator=validators.Number(gte=0, lte=20))] = 4,
    timeout: Annotated[float, Parameter(validator=validators.Number(gt=0))] = 60.0,
    images: bool = True,
    key_variable: str = "OPENAI_API_KEY",
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Hold a verifier against the rules: reliability curve, calibration error, disagreement by action type.

    A verifier is `rules`, an import string of a callable over steps and candidates, or the address of an
    OpenAI-compatible endpoint whose model is asked about each candidate (this costs requests).

    Example: `solar-rl calibrate runs/phone-1.0.0 --verifier http://localhost:8000/v1 --model my-judge`

    Args:
        data: Folder, OWNER/NAME or hf://datasets/OWNER/NAME with candidates.
        verifier: rules, module:callable, or http(s)://.../v1.
        model: Name of the endpoint's model.
        split: Only this split.
        limit: Candidates to judge, drawn at random.
        seed: Seed of the draw.
        threshold: The endpoint's candidate is valid from this score on.
        concurrency: Requests at a time.
        retries: Further attempts after a timeout or a busy endpoint.
        timeout: Seconds for one attempt.
        images: Send screenshots to the endpoint.
        key_variable: Environment variable that holds the endpoint's key.
        dry_run: Say what would be asked, and ask nothing.
        json: Print the figures as JSON.
    """
    from solar_rl import commands_evaluate

    if dry_run:
        print(f"would judge at most {limit} candidates of {data} with {verifier}")
        return
    endpoint = {
        "threshold": threshold,
        "concurrency": concurrency,
        "retries": retries,
        "timeout": timeout,
        "images": images,
        "key_variable": key_variable,
    }
    commands_evaluate.calibrate(
        data, verifier, model=model, split=split, limit=limit, seed=seed, endpoint=endpoint, as_json=json
    )
