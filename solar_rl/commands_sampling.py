"""What ``sample`` does: fill a dataset's work with candidates, or make a new version of a built one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from solar_rl.commands import (
    dataset_config,
    log,
    parse_overrides,
    print_built,
    print_submitted,
    print_usage,
    sampler_file,
)
from solar_rl.config import DatasetConfig, override, put_sampler, read_sampler, validate_config
from solar_rl.errors import ConfigError, InputError
from solar_rl.privacy import keyed

if TYPE_CHECKING:
    from solar_rl.pipeline import Sampled
    from solar_rl.pipeline.phases import Standing

MAY_CHANGE = ("prompt", "sampler", "seed", "executor", "source", "validity", "shaping", "advantage")
"""Blocks that a new version of a built dataset may change when it is sampled anew."""


def sample(
    dataset: str | None,
    overrides: Sequence[str],
    given: Mapping[str, object],
    out: Path | None,
    version: str | None,
    *,
    cache: Path | None,
    use_cache: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Sample for a dataset.yaml, or sample a built dataset anew."""
    from solar_rl import pipeline

    pairs = parse_overrides(overrides) | {
        key: str(value) for key, value in given.items() if value is not None
    }
    built = Path(dataset) if dataset and (Path(dataset) / "manifest.json").is_file() else None
    options = pipeline.Options(cache=cache, use_cache=use_cache, replace=built is None)
    if built is not None:
        config, folder = _another_version(built, pairs, out, version)
    else:
        if version is not None:
            pairs["version"] = f"'{version}'"
        config = dataset_config(dataset, pairs)
        folder = out or Path("runs") / f"{config.name}-{config.version}"
    if dry_run:
        with _reading() as heard:
            _print(pipeline.forecast(config, folder, progress=heard, options=options), as_json)
        return
    done: pipeline.Sampled | pipeline.Built | pipeline.Submitted
    with sampling_progress(_episodes(built, config)) as watched:
        run = pipeline.sample if built is None else pipeline.build
        done = run(config, folder, progress=watched, options=options)
    if isinstance(done, pipeline.Built):
        print_built(done, as_json)
    elif isinstance(done, pipeline.Submitted):
        print_submitted(done, as_json)
    elif as_json:
        _print(done.as_dict(), True)
    else:
        print_sampled(done)


def _episodes(built: Path | None, config: DatasetConfig) -> int | None:
    """Return how many episodes a built dataset will have again; None: the source is still to be read."""
    from solar_rl.store.manifest import require_whole

    if built is None:
        return None
    there = require_whole(built).counts["episodes"]
    return there if config.source.limit is None else min(there, config.source.limit)


def _another_version(
    folder: Path, pairs: dict[str, str], out: Path | None, version: str | None
) -> tuple[DatasetConfig, Path]:
    """Return the config of a built dataset under another sampler, and where it goes."""
    from solar_rl.store.manifest import require_whole

    manifest = require_whole(folder)
    data = deepcopy(manifest.config)
    named = pairs.pop("sampler", None)
    if named is not None:
        put_sampler(data, read_sampler(sampler_file(named)))
    for key in pairs:
        if key.split(".")[0] not in MAY_CHANGE:
            hint = f"it takes --sampler NAME and {', '.join(f'--{block}.*' for block in MAY_CHANGE)}"
            raise ConfigError(f"'sample' can't change '{key}' of a built dataset", hint=hint)
    override(data, pairs)
    data["version"] = version or _next_minor(folder, manifest.version)
    config = validate_config(DatasetConfig, data, where="command line", overrides=tuple(pairs))
    old = DatasetConfig.model_validate(manifest.config)
    if all(getattr(config, block) == getattr(old, block) for block in ("prompt", "sampler", "seed")):
        raise InputError(
            "it would be sampled as it was",
            where=str(folder),
            hint="change the sampler, the prompt or the seed: --sampler NAME, --sampler.*, --prompt.*, --seed",
        )
    config = config.model_copy(update={"privacy": keyed(config.privacy)})
    target = out or _sibling(folder, manifest.version, config.version)
    if target.resolve() == folder.resolve() or config.version == manifest.version:
        raise InputError("a version is never overwritten", where=str(target), hint="use --out and --version")
    return config, target


def _next_minor(folder: Path, version: str) -> str:
    """Return the next minor version that lies not beside the folder: other candidates are other data."""
    major, minor, _ = (int(part) for part in version.split("-")[0].split("+")[0].split("."))
    while True:
        minor += 1
        new = f"{major}.{minor}.0"
        if not _sibling(folder, version, new).exists():
            return new


def _sibling(folder: Path, old: str, new: str) -> Path:
    return folder.parent / f"{folder.resolve().name.removesuffix(f'-{old}')}-{new}"


def print_sampled(done: Sampled) -> None:
    """Print what there is after sampling."""
    what = f"{done.candidates:,} candidates of {done.contexts:,} contexts in {done.episodes:,} episodes"
    if done.kept_from:
        print(f"{done.kept_from}: {what} are there, nothing to sample")
        return
    if done.drawn:
        log.print(_drawn(done))
    print_usage(done.usage)
    tokens = "" if done.tokens is None else f", {done.tokens:,} tokens"
    print(f"{done.folder}: {what}{tokens}, {_percent(done.unparsed, done.candidates)} of them unparsable")
    log.print("`solar-rl build` with the same words goes on from here")


def _drawn(done: Sampled) -> str:
    told = [f"drew {done.drawn:,} candidates in {done.seconds:,.1f} s"]
    told.append(f"{done.drawn / max(done.seconds, 1e-9):,.1f}/s")
    if done.asked:
        told.append(f"{done.hits:,} of {done.asked:,} were known")
    if done.judged:
        told.append(f"{_percent(done.valid, done.judged)} of {done.judged:,} judged ones are valid")
    return ", ".join(told)


@contextmanager
def sampling_progress(total: int | None) -> Iterator[Callable[[Standing], None]]:
    """Show how sampling goes: episodes, rates, cache hits, parse errors, validity so far, time left.

    Args:
        total: Episodes in all; None: what the standing expects, once a shard of the source was read.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("episodes"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[told]}"),
    )
    began = time.monotonic()
    with Progress(*columns, console=log, transient=True) as bar:
        task = bar.add_task("episodes", total=total, told="")

        def heard(standing: Standing) -> None:
            expected = total or standing.expected or None
            told = going(standing, time.monotonic() - began, expected)
            bar.update(task, completed=standing.episodes, total=expected, told=told)

        yield heard


def going(standing: Standing, seconds: float, total: int | None = None) -> str:
    """Say in one line how sampling goes.

    Args:
        standing: What was done.
        seconds: How long this run took for it.
        total: Episodes in all, where known.

    >>> from solar_rl.pipeline.phases import Standing
    >>> going(Standing(candidates=80, tokens=2400, unparsed=4, judged=40, valid=30), 10.0)
    '8.0 candidates/s, 240 tokens/s, 5.0% unparsable, 75.0% valid'
    >>> going(Standing(episodes=50, drawn=10, candidates=80), 60.0, 200)
    '1.3 candidates/s, 0.0% unparsable, about 0:15:00 left'
    """
    if not standing.candidates:
        return ""
    told = [f"{standing.candidates / max(seconds, 1e-9):,.1f} candidates/s"]
    if standing.tokens:
        told.append(f"{standing.tokens / max(seconds, 1e-9):,.0f} tokens/s")
    if standing.asked:
        told.append(f"{_percent(standing.hits, standing.asked)} known")
    if standing.retries:
        told.append(f"{standing.retries:,} calls made again")
    told.append(f"{_percent(standing.unparsed, standing.candidates)} unparsable")
    if standing.judged:
        told.append(f"{_percent(standing.valid, standing.judged)} valid")
    if total and standing.drawn:
        left = max(0, total - standing.episodes) * seconds / standing.drawn
        told.append(f"about {timedelta(seconds=round(left))} left")
    return ", ".join(told)


@contextmanager
def _reading() -> Iterator[Callable[[int], None]]:
    from solar_rl.commands import progress

    with progress("episodes read", None) as advance:
        yield advance


def _percent(of: float, whole: float) -> str:
    return f"{of / whole:.1%}" if whole else "0.0%"


def _print(told: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        print(orjson.dumps(dict(told), default=str, option=orjson.OPT_INDENT_2).decode())
        return
    for key, value in told.items():
        print(
            f"{key}: {value:,}"
            if isinstance(value, int)
            else f"{key}: {'unknown' if value is None else value}"
        )
