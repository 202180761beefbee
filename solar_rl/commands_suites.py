"""What the verb evaluate does with a suite: let a model answer its steps, or hand it to the closed loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from solar_rl import __version__
from solar_rl.commands import print_table
from solar_rl.commands_closed_loop import evaluate_closed_loop
from solar_rl.commands_evaluate import (
    ALL,
    by_level,
    print_comparison,
    print_one,
    require_protocol,
    with_intervals,
    write_verdicts,
)
from solar_rl.commands_measuring import (
    EXPERT,
    RUNNERS,
    Asked,
    bar,
    config_of,
    lines,
    print_about,
    sampler_of,
    save,
    say_files,
    say_plan,
    told_prompt,
)
from solar_rl.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.config import DatasetConfig
    from solar_rl.evaluate import Evaluation
    from solar_rl.evaluate.answering import Answered
    from solar_rl.evaluate.files import EvaluationData
    from solar_rl.evaluate.suites import StepSuite


def run(asked: Asked) -> None:
    """Measure a model, an expert or a file of predictions on a suite, or a model on a dataset."""
    from solar_rl.evaluate.suites import ClosedLoopSuite, StepSuite, load_suite

    if (asked.predictions is not None) and (asked.model is not None or asked.sampler == EXPERT):
        raise InputError("a model and a file of predictions: which is to be measured?")
    if asked.model is None and asked.sampler in RUNNERS and asked.predictions is None:
        raise InputError(
            "who is to be measured?", hint="--model CKPT, --sampler expert, or a file of predictions"
        )
    overrides = asked.overrides
    if asked.suite is None:
        if asked.data is None:
            raise InputError("on what?", hint="--suite NAME, or --data DIR")
        suite = StepSuite(
            name=Path(asked.data).name, about="", source={}, buckets="androidcontrol", protocols=("solar",)
        )
        _evaluate_steps(asked, suite, overrides, {})
        return
    shipped, found = load_suite(asked.suite), load_suite(asked.suite, overrides)
    from solar_rl.evaluate.answering import changed

    changes = changed(found, shipped) | {
        key: value
        for key, value in overrides.items()
        if key.startswith(("source.", "validity.")) and key != "source.path"
    }
    if isinstance(found, ClosedLoopSuite):
        evaluate_closed_loop(asked, found, overrides, changes)
    else:
        _evaluate_steps(asked, found, overrides, changes)


def _evaluate_steps(
    asked: Asked, suite: StepSuite, overrides: Mapping[str, str], changes: Mapping[str, Any]
) -> None:
    from solar_rl.evaluate import evaluate, prepare
    from solar_rl.evaluate.answering import completeness, is_whole
    from solar_rl.evaluate.files import EvaluationData, read_skip_list
    from solar_rl.evaluate.verdicts import NAMES

    protocols = _protocols(asked, suite, NAMES)
    data = EvaluationData(asked.data, asked.split or _only_split(suite)) if asked.data else None
    config = config_of(asked, suite, data, overrides)
    if asked.dry_run:
        say_plan(asked, config, f"under {', '.join(protocols)}")
        return
    found, about = _answered(asked, config, data)
    predictions = _predictions(asked, config, found)
    skipped = read_skip_list(asked.skip, found.steps) if asked.skip else None
    cases = prepare(predictions, found.steps, found.episodes, missing=asked.missing, skip=skipped)
    rule = asked.buckets or (data.bucket_rule if data and not suite.source else suite.buckets)
    evaluations = [
        evaluate(
            cases,
            name,
            validity=config.validity,
            bucket_rule=rule,
            resamples=asked.resamples,
            seed=asked.seed,
        )
        for name in protocols
    ]
    about |= {
        "data": completeness(suite, found),
        "level": config.prompt.level,
        "skip_list": str(asked.skip) if asked.skip else None,
        "resamples": asked.resamples,
        "seed": asked.seed,
        "changed": dict(changes),
        "counts": cases.counts | found.counts,
    }
    whole = is_whole(suite, found)
    published = published_beside(suite, evaluations if whole else ())
    report = about | {
        "protocols": [each.as_dict() for each in evaluations],
        "published": published.to_dicts(),
        "config": config.model_dump(mode="json"),
    }
    save(asked, report)
    if asked.verdicts is not None:
        write_verdicts({config.prompt.level: (cases, evaluations)}, asked.verdicts, dry_run=False)
    if asked.as_json:
        print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
        return
    print_about(suite.about, about)
    if len(evaluations) > 1:
        print_comparison(cases, evaluations)
        print_table(_by_length(evaluations), title=f"by length (rule {rule})")
    else:
        print_one(evaluations[0])
    if published.height:
        ours = "where the rule is the same" if whole else "left out, since this isn't the whole suite"
        print_table(published, title=f"published by others, percent, not measured here; ours {ours}")
    say_files(asked)


def _protocols(asked: Asked, suite: StepSuite, known: Sequence[str]) -> Sequence[str]:
    if asked.protocol is None:
        return suite.protocols
    if asked.protocol == ALL:
        return known
    require_protocol(asked.protocol, known)
    return (asked.protocol,)


def _only_split(suite: StepSuite) -> str | None:
    splits = suite.source.get("splits", ())
    return splits[0] if len(splits) == 1 else None


def _answered(
    asked: Asked, config: DatasetConfig, data: EvaluationData | None
) -> tuple[Answered, dict[str, Any]]:
    """Ask the model about every step, or read the labels alone where there are predictions."""
    from solar_rl.builder import load_builder
    from solar_rl.evaluate.answering import answer_steps, data_episodes, labels_alone, source_episodes
    from solar_rl.schema import Reject

    rejects: list[Reject] = []
    if data is None:
        episodes = source_episodes(config, load_builder(config.source), rejects)
    else:
        episodes = data_episodes(data, config.source.limit)
    about: dict[str, Any] = {"suite": asked.suite, "solar_rl": __version__, "prompt": told_prompt(config)}
    if asked.predictions is not None:
        found = labels_alone(config, episodes)
        return found, about | {"predictions": str(asked.predictions), "rejects": _reasons(rejects)}
    asked.folder.mkdir(parents=True, exist_ok=True)
    with (
        sampler_of(config, asked.folder) as (sampler, told),
        bar("episodes") as done,
        lines(asked.folder / "predictions.jsonl") as note,
    ):
        found = answer_steps(config, sampler, episodes, note, done)
        about |= {
            "model": asked.model,
            "sampler": sampler.sampler_id,
            "temperature": config.sampler.temperature,
        }
        told()
    with lines(asked.folder / "rejects.jsonl") as note:
        for reject in rejects:
            note(asdict(reject))
    return found, about | {"rejects": _reasons(rejects)}


def _reasons(rejects: Sequence[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for reject in rejects:
        found[reject.reason] = found.get(reject.reason, 0) + 1
    return found


def _predictions(asked: Asked, config: DatasetConfig, found: Answered) -> pl.DataFrame:
    from solar_rl.evaluate.files import open_lines
    from solar_rl.evaluate.predictions import read_predictions

    if asked.predictions is None:
        return found.predictions
    read = read_predictions(
        open_lines(asked.predictions), where=str(asked.predictions), frame_of=lambda _: None
    )
    ((_, rows),) = by_level(read, config.prompt.level)
    return rows.drop("level")


def published_beside(suite: StepSuite, evaluations: Sequence[Evaluation]) -> pl.DataFrame:
    """Put the figures that others published beside ours, where ours were measured under the same rule."""
    import polars as pl

    by_name = {each.protocol: each for each in evaluations}
    rows = []
    for each in suite.published:
        mine = by_name.get(each.protocol or "")
        value = None if mine is None or each.part else _value(mine, each.metric)
        rows.append(
            {
                "model": each.model,
                "metric": each.metric,
                "part": each.part,
                "published": each.value,
                "ours": None if value is None else 100 * value,
                "rule": each.protocol or "not stated",
                "source": each.source,
                "note": each.note,
            }
        )
    words = dict.fromkeys(("model", "metric", "part", "rule", "source", "note"), pl.String)
    order = ("model", "metric", "part", "published", "ours", "rule", "source", "note")
    return pl.DataFrame(rows, schema={name: words.get(name, pl.Float64) for name in order})


def _value(found: Evaluation, metric: str) -> float | None:
    rows = found.metrics.filter(metric=metric)
    return rows["value"][0] if rows.height else None


def _by_length(evaluations: Sequence[Evaluation]) -> pl.DataFrame:
    import polars as pl

    tables = [
        each.by["bucket"].select(pl.lit(each.protocol).alias("protocol"), pl.all()) for each in evaluations
    ]
    return with_intervals(pl.concat(tables))
