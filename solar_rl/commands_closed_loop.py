"""What the verb evaluate does with a suite in closed loop: play it, and say how often the agent gets there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from solar_rl import __version__
from solar_rl.commands import print_table
from solar_rl.commands_evaluate import with_intervals
from solar_rl.commands_measuring import (
    EXPERT,
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
from solar_rl.errors import ConfigError, InputError

if TYPE_CHECKING:
    from solar_rl.closed_loop import Player, SuiteResult
    from solar_rl.config import DatasetConfig
    from solar_rl.environment import Environment
    from solar_rl.evaluate.suites import ClosedLoopSuite


def evaluate_closed_loop(
    asked: Asked, suite: ClosedLoopSuite, overrides: Mapping[str, str], changes: Mapping[str, Any]
) -> None:
    """Play a suite and print how often the agent gets there.

    Args:
        asked: What the user asked for.
        suite: The suite.
        overrides: Dotted fields of the command line.
        changes: In which fields the suite differs from the shipped one.
    """
    from solar_rl.closed_loop import Job, play, summarise
    from solar_rl.closed_loop.playing import limit_of

    _refuse_for_steps(asked)
    config = config_of(asked, suite, None, overrides)
    seeds = range(suite.first_seed, suite.first_seed + (asked.limit or suite.seeds))
    if asked.dry_run:
        say_plan(asked, config, f"{len(seeds)} episodes of each task")
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    played = []
    with _environments(suite, config) as environments, _player(asked, suite, config) as (player, about):
        tasks = suite.tasks or environments[0].tasks
        for task in tasks:
            limit_of(suite.max_steps, task)
        jobs = [Job(task, seed) for task in tasks for seed in seeds]
        with bar("episodes", len(jobs)) as done, lines(asked.folder / "episodes.jsonl") as note:
            for one in play(environments, player, jobs, max_steps=suite.max_steps, recovery=suite.recovery):
                note(asdict(one))
                played.append(one)
                done()
    order = {job: place for place, job in enumerate(jobs)}
    played.sort(key=lambda one: order[Job(one.task, one.seed)])
    rule = asked.buckets or suite.buckets
    found = summarise(
        played, resamples=asked.resamples, seed=asked.seed, bucket_rule=rule if suite.recovery else None
    )
    about |= {
        "max_steps": suite.max_steps,
        "seeds": [seeds[0], seeds[-1]],
        "resamples": asked.resamples,
        "seed": asked.seed,
        "changed": dict(changes),
    }
    report = about | found.as_dict() | {"config": config.model_dump(mode="json")}
    save(asked, report)
    if asked.as_json:
        print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
        return
    print_about(suite.about, about)
    _print_rates(found)
    say_files(asked)


def _refuse_for_steps(asked: Asked) -> None:
    for name in ("predictions", "data", "protocol", "split", "skip"):
        if getattr(asked, name) is not None:
            raise InputError(
                f"suite {asked.suite} is played in closed loop: '{name}' means nothing there",
                hint="recorded steps of the phone: --suite phone_steps",
            )
    if asked.level == "low":
        raise ConfigError("an environment gives no step instructions", where="--level low")


@contextmanager
def _environments(suite: ClosedLoopSuite, config: DatasetConfig) -> Iterator[list[Environment]]:
    from solar_rl.shipped import shipped_module

    module = shipped_module("builders", suite.environment)
    if not hasattr(module, "make_environment"):
        raise ConfigError(f"'{suite.environment}' is no environment", where="suite.environment")
    with ExitStack() as stack:
        yield [
            stack.enter_context(module.make_environment(config.source.options))
            for _ in range(suite.side_by_side)
        ]


@contextmanager
def _player(
    asked: Asked, suite: ClosedLoopSuite, config: DatasetConfig
) -> Iterator[tuple[Player, dict[str, Any]]]:
    from solar_rl.agents import ExpertAgent, PolicyAgent

    about: dict[str, Any] = {"suite": asked.suite, "solar_rl": __version__}
    if asked.sampler == EXPERT:
        yield ExpertAgent(suite.environment), about | {"model": None, "sampler": EXPERT}
        return
    about |= {"model": asked.model, "prompt": told_prompt(config), "temperature": config.sampler.temperature}
    with sampler_of(config, asked.folder) as (sampler, told):
        yield PolicyAgent(config.prompt, sampler, config.seed), about | {"sampler": sampler.sampler_id}
        told()


def _print_rates(found: SuiteResult) -> None:
    import polars as pl

    shown = [name for name, value in asdict(found.overall).items() if value is not None]
    for title, rates in (
        ("by task", (*found.tasks, found.overall)),
        (f"by length of the expert's way (rule {found.bucket_rule})", found.lengths),
    ):
        if not rates:
            continue
        table = pl.DataFrame([asdict(rate) for rate in rates], infer_schema_length=None).select(shown)
        table = table.rename({"low": "success_low", "high": "success_high"})
        print_table(with_intervals(table), title=f"{title}, with 95 % intervals")
    ends: dict[str, int] = {}
    for one in found.episodes:
        ends[one.ended] = ends.get(one.ended, 0) + 1
    print("ended by: " + ", ".join(f"{count} {name}" for name, count in sorted(ends.items())))
