"""What the judging verbs do: parse raw answers, evaluate predictions, calibrate a verifier."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from solar_rl.errors import ConfigError, InputError
from solar_rl.parsing import parse_lines

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.evaluate import Cases, Evaluation, Missing
    from solar_rl.evaluate.files import EvaluationData
    from solar_rl.verify import Verifier
    from solar_rl.verify.calibration import Calibration

ALL = "all"
SHOWN_CASES = 10
"""Disagreements printed for people; --json has more."""
INTERVALS = ("exact_match", "goal_progress", "task_sr")
"""Metrics whose intervals fit beside each other on a screen."""


def parse(file: Path | None, format_name: str, *, canonical: bool) -> None:
    """Read raw answers from a file or stdin and print one action a line."""
    from solar_rl.evaluate.files import open_lines

    lines = sys.stdin.buffer if file is None else open_lines(file)
    for said in parse_lines(lines, format_name, canonical=canonical):
        sys.stdout.write(json.dumps(said, ensure_ascii=False) + "\n")


def parted(words: Sequence[str]) -> tuple[Path | None, dict[str, str]]:
    """Part the words of the command line: a file of predictions, and dotted fields with their values.

    Raises:
        ConfigError: A field has no value, or there are two files.

    >>> parted(["--source.path", "there", "PRED.jsonl", "--suite.seeds=5"])
    (PosixPath('PRED.jsonl'), {'source.path': 'there', 'suite.seeds': '5'})
    """
    from solar_rl.commands import parse_overrides

    fields: list[str] = []
    files: list[str] = []
    waits = False
    for word in words:
        if waits or word.startswith("--"):
            fields.append(word)
            waits = word.startswith("--") and "=" not in word
        else:
            files.append(word)
    if len(files) > 1:
        raise ConfigError(f"unexpected argument {files[1]!r}", hint="one file of predictions at a time")
    return Path(files[0]) if files else None, parse_overrides(fields)


def require_whole(
    predictions: Path | None, data: str | None, overrides: Mapping[str, str]
) -> tuple[Path, str]:
    """Return the file and the data of an evaluation without a model.

    Raises:
        InputError: One of them is missing, or something is left over.
    """
    if predictions is None:
        raise InputError(
            "what is to be measured?",
            hint="a file of predictions with --data, or --model CKPT with --suite or --data",
        )
    if data is None:
        raise InputError("predictions need their labels", hint="--data DIR, or --suite NAME")
    if overrides:
        raise InputError(
            f"--{next(iter(overrides))} means nothing here", hint="fields are set with --model or --suite"
        )
    return predictions, data


def evaluate(
    file: Path,
    data: str,
    protocol: str,
    *,
    format_name: str | None,
    peer: str | None,
    split: str | None,
    level: str | None,
    missing: Missing,
    skip: Path | None,
    buckets: str | None,
    resamples: int,
    seed: int,
    verdicts: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Judge a file of predictions and print what it scores."""
    from solar_rl.evaluate import evaluate, prepare
    from solar_rl.evaluate.files import EvaluationData, open_lines, read_skip_list
    from solar_rl.evaluate.peers import PEERS
    from solar_rl.evaluate.predictions import read_predictions
    from solar_rl.evaluate.verdicts import NAMES

    if protocol != ALL:
        require_protocol(protocol, NAMES)
    labels = EvaluationData(data, split)
    skipped = read_skip_list(skip, labels.steps) if skip else None
    lines: Iterable[bytes | str] = open_lines(file)
    if peer is not None:
        format_name, read_lines = PEERS[peer]
        lines = read_lines(lines, where=str(file))
    predictions = read_predictions(
        lines,
        where=str(file),
        format_name=format_name,
        frame_of=labels.frames() if format_name else lambda _: None,
    )
    protocols = NAMES if protocol == ALL else (protocol,)
    options: dict[str, Any] = {
        "bucket_rule": buckets or labels.bucket_rule,
        "resamples": resamples,
        "seed": seed,
    }
    found: dict[str, tuple[Cases, list[Evaluation]]] = {}
    for its_level, of_level in by_level(predictions, level):
        cases = prepare(of_level, labels.steps, labels.episodes, missing=missing, skip=skipped)
        found[its_level] = (
            cases,
            [
                evaluate(cases, name, validity=labels.validity, groups=protocol != ALL, **options)
                for name in protocols
            ],
        )
    about = {"skip_list": str(skip) if skip else None, "resamples": resamples, "seed": seed}
    if as_json:
        _print_as_json(found, labels, about)
    else:
        _print(found, labels, about)
    if verdicts is not None:
        write_verdicts(found, verdicts, dry_run=dry_run)


def calibrate(
    data: str,
    verifier: str,
    *,
    model: str | None,
    split: str | None,
    limit: int | None,
    seed: int,
    endpoint: Mapping[str, Any],
    as_json: bool,
) -> None:
    """Score stored candidates with a verifier and print how far it agrees with the rules."""
    from solar_rl.evaluate.files import EvaluationData
    from solar_rl.schema import TABLES
    from solar_rl.verify import load_verifier, rules, verify
    from solar_rl.verify.calibration import calibrate
    from solar_rl.verify.endpoint import EndpointVerifier

    labels = EvaluationData(data, split)
    candidates = labels.dataset.table("candidates", split).collect(engine="in-memory")
    if limit is not None and limit < candidates.height:
        candidates = candidates.sample(limit, seed=seed)
    candidates = candidates.sort(TABLES["candidates"].key)
    if verifier.startswith(("http://", "https://")):
        if model is None:
            raise InputError("an endpoint needs the name of its model", hint="--model NAME")
        found: Verifier = EndpointVerifier(verifier, model, **endpoint)
        steps = labels.described_steps(candidates, screenshots=bool(endpoint["images"]))
    else:
        found = load_verifier(verifier)
        steps = labels.described_steps(candidates, screenshots=True)
    yardstick = verify(rules(labels.validity), steps, candidates)
    kinds = candidates.join(steps, on=["episode_id", "step_index"], how="left", maintain_order="left")
    result = calibrate(verify(found, steps, candidates), yardstick, kinds["action_type"])
    manifest = labels.dataset.manifest
    about = {
        "data": f"{manifest.name} {manifest.version}",
        "verifier": verifier,
        "model": model,
        "rules": labels.validity.model_dump(exclude_defaults=True) or "default settings",
    }
    if as_json:
        print(orjson.dumps(about | result.as_dict(), option=orjson.OPT_INDENT_2).decode())
    else:
        _print_calibration(result, about)


def _print_calibration(result: Calibration, about: Mapping[str, Any]) -> None:
    import polars as pl

    from solar_rl.commands import print_table

    print("; ".join(f"{name} {value}" for name, value in about.items() if value is not None))
    names, values = list(result.figures), list(result.figures.values())
    figures = pl.DataFrame({"figure": names, "value": [float(v) if v is not None else None for v in values]})
    print_table(figures, title="verifier against the rules")
    print_table(
        result.curve, title="reliability: the verifier's score against the share that the rules call valid"
    )
    print_table(result.by_type, title="disagreement by action type of the label")
    if result.unscored.height:
        print_table(result.unscored, title="candidates that the verifier left unscored")


def by_level(predictions: pl.DataFrame, level: str | None) -> Iterator[tuple[str, pl.DataFrame]]:
    """Part predictions that were made from the goal alone from those with the step's instruction."""
    import polars as pl

    if level is not None:
        predictions = predictions.with_columns(pl.col("level").fill_null(level)).filter(level=level)
        if not predictions.height:
            raise InputError(f"no prediction is of level {level}")
    for (its,), part in predictions.partition_by("level", as_dict=True, maintain_order=True).items():
        yield str(its or "not stated"), part


def _print_as_json(
    found: Mapping[str, tuple[Cases, list[Evaluation]]], labels: EvaluationData, about: Mapping[str, Any]
) -> None:
    from solar_rl.evaluate.compare import disagreements

    manifest = labels.dataset.manifest
    results: list[dict[str, Any]] = []
    for level, (cases, evaluations) in found.items():
        one = {"data": f"{manifest.name} {manifest.version}", "level": level, **about}
        if len(evaluations) > 1:
            one["disagreements"] = disagreements(cases, evaluations).to_dicts()
        results.append(one | {"protocols": [each.as_dict() for each in evaluations]})
    print(orjson.dumps(results, option=orjson.OPT_INDENT_2).decode())


def _print(
    found: Mapping[str, tuple[Cases, list[Evaluation]]], labels: EvaluationData, about: Mapping[str, Any]
) -> None:
    manifest = labels.dataset.manifest
    for level, (cases, evaluations) in found.items():
        skipped = f"skip list {about['skip_list']}" if about["skip_list"] else "no skip list"
        print(f"data {manifest.name} {manifest.version}, level {level}, {skipped}")
        print(", ".join(f"{count:,} {name}" for name, count in cases.counts.items()))
        if about["resamples"]:
            drawn = f"{about['resamples']:,} resamples of episodes, seed {about['seed']}"
            print(f"in brackets, low and high: 95 % intervals from {drawn}")
        if len(evaluations) > 1:
            print_comparison(cases, evaluations)
        else:
            print_one(evaluations[0])


def print_one(found: Evaluation) -> None:
    """Print what predictions score under one protocol: metrics, by action type, app and length."""
    import polars as pl

    from solar_rl.commands import SHOWN_ROWS, print_table
    from solar_rl.evaluate.metrics import MEANINGS

    title = f"{found.protocol}, {found.counts['judged']:,} steps"
    print(f"protocol {found.protocol}: {found.source}")
    print(
        ", ".join(f"{found.counts[name]:,} {name}" for name in ("judged", "dropped", "missing", "episodes"))
        + "\n"
    )
    if found.caveat:
        print(f"note: {found.caveat}\n")
    meanings = pl.Series("meaning", [MEANINGS[name] for name in found.metrics["metric"]])
    print_table(found.metrics.with_columns(meanings), title=f"{title}: metrics")
    for name, table in found.by.items():
        rule = f" (rule {found.bucket_rule})" if name == "bucket" else ""
        print_table(with_intervals(table), title=f"{title}: by {name}{rule}", rows=SHOWN_ROWS)


def with_intervals(table: pl.DataFrame) -> pl.DataFrame:
    """Put the ends of each interval behind its value, so that a table fits a screen."""
    import polars as pl

    def shown(name: str) -> pl.Expr:
        value, low, high = (pl.col(f"{name}{end}").round(3).cast(pl.String) for end in ("", "_low", "_high"))
        between = pl.format(" ({}-{})", low, high).fill_null("")
        return pl.concat_str(value, between).alias(name)

    metrics = [name.removesuffix("_low") for name in table.columns if name.endswith("_low")]
    plain = [name for name in table.columns if name.removesuffix("_low").removesuffix("_high") not in metrics]
    return table.select(*plain, *(shown(name) for name in metrics))


def print_comparison(cases: Cases, evaluations: Sequence[Evaluation]) -> None:
    """Print what the same predictions score under several protocols, and where those differ."""
    import polars as pl

    from solar_rl.commands import print_table
    from solar_rl.evaluate.compare import COUNTS, disagreements, side_by_side
    from solar_rl.evaluate.metrics import METRICS

    table = side_by_side(evaluations)
    print_table(table.select("protocol", *COUNTS, *METRICS), title="the same predictions, by protocol")
    ends = table.select("protocol", "judged", pl.col(f"^({'|'.join(INTERVALS)}).*$"))
    print_table(with_intervals(ends), title="with 95 % intervals (all of them: --json)")
    print("sources:")
    for each in evaluations:
        print(f"  {each.protocol}: {each.source}")
        if each.caveat:
            print(f"    note: {each.caveat}")
    print("\ncases on which the protocols disagree most:")
    for case in disagreements(cases, evaluations, limit=SHOWN_CASES).iter_rows(named=True):
        print(
            f"  episode {case['episode_id']}, step {case['step_index']}: {case['label']}; predicted {case['prediction']}"
        )
        print(f"    exact: {case['exact']}\n    not exact: {case['not_exact']}")


def write_verdicts(found: Mapping[str, tuple[Cases, list[Evaluation]]], path: Path, *, dry_run: bool) -> None:
    """Write one verdict a case of each protocol to a file of JSON lines.

    Raises:
        InputError: It can't be written.
    """
    from solar_rl.commands import log

    rows = sum(each.verdicts.height for _, evaluations in found.values() for each in evaluations)
    if dry_run:
        log.print(f"would write {rows:,} verdicts to {path}")
        return
    try:
        with path.open("wb") as out:
            out.writelines(_verdict_lines(found))
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror}", where=str(path)) from None
    log.print(f"{rows:,} verdicts in {path}")


def _verdict_lines(found: Mapping[str, tuple[Cases, list[Evaluation]]]) -> Iterable[bytes]:
    for level, (_, evaluations) in found.items():
        for each in evaluations:
            about = {"protocol": each.protocol, "level": level}
            for row in each.verdicts.iter_rows(named=True):
                yield orjson.dumps(row | about, option=orjson.OPT_APPEND_NEWLINE)


def require_protocol(name: str, known: Sequence[str]) -> None:
    """Refuse a protocol that there isn't.

    Raises:
        InputError: With the closest one.
    """
    if name not in known:
        import difflib

        close = difflib.get_close_matches(name, known, n=1)
        listed = f"there is: {ALL}, {', '.join(known)}"
        hint = f"did you mean '{close[0]}'? {listed}" if close else listed
        raise InputError(f"no protocol is named '{name}'", hint=hint)
