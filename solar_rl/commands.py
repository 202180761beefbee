"""What the verbs do: read the user's words, call the library, print tables or JSON."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from solar_rl.config import DatasetConfig, field_docs, load_dataset_config
from solar_rl.errors import ConfigError, InputError
from solar_rl.privacy import keyed
from solar_rl.shipped import shipped_path
from solar_rl.store.manifest import MANIFEST
from solar_rl.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from solar_rl.pipeline import Built, Submitted
    from solar_rl.pipeline.phases import Standing

SHOWN_ROWS = 20
"""Rows of a table when all statistics are printed at once."""
log = Console(stderr=True, highlight=False)


def parse_overrides(tokens: Sequence[str]) -> dict[str, str]:
    """Read ``--a.b value`` and ``--a.b=value`` tokens into a mapping of dotted keys to texts.

    Raises:
        ConfigError: A token is no option, or has no value.

    >>> parse_overrides(["--sampler.n", "4", "--shaping.alignment=paper"])
    {'sampler.n': '4', 'shaping.alignment': 'paper'}
    """
    pairs: dict[str, str] = {}
    rest = list(tokens)
    while rest:
        token = rest.pop(0)
        if not token.startswith("--"):
            raise ConfigError(f"unexpected argument {token!r}", hint="config fields are set as --a.b value")
        key, equals, value = token[2:].partition("=")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise ConfigError(f"option --{key} has no value", hint="see --help")
            value = rest.pop(0)
        pairs[key] = value
    return pairs


def build(
    dataset: str | None,
    overrides: Sequence[str],
    given: Mapping[str, object],
    out: Path | None,
    *,
    start_from: Path | None,
    cache: Path | None,
    use_cache: bool,
    trust_hashes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Build a dataset from a dataset.yaml or the name of a shipped one."""
    from solar_rl import pipeline

    pairs = parse_overrides(overrides)
    pairs |= {key: str(value) for key, value in given.items() if value is not None}
    config = dataset_config(dataset, pairs)
    folder = out or Path("runs") / f"{config.name}-{config.version}"
    options = pipeline.Options(start_from, cache, use_cache, trust_hashes)
    if dry_run:
        _print_plan(pipeline.plan(config, folder, options=options), as_json)
        return
    with build_progress(config.source.limit) as heard:
        built = pipeline.build(config, folder, progress=heard, options=options)
    if isinstance(built, pipeline.Submitted):
        print_submitted(built, as_json)
    else:
        print_built(built, as_json)


def derive(
    folder: Path,
    overrides: Sequence[str],
    out: Path | None,
    version: str | None,
    *,
    stage: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Make a new version of a dataset from its stored candidates or scores."""
    from solar_rl.pipeline import derive as stages

    plan = stages.plan(folder, parse_overrides(overrides), out, version, stage)
    if dry_run:
        _print_plan(plan.as_dict(), as_json)
        return
    print_built(stages.run(plan), as_json)


def stats(dataset: str, name: str | None, *, rows: int | None, as_json: bool) -> None:
    """Print one named statistic, or all of them."""
    from solar_rl import stats
    from solar_rl.store.dataset import open_dataset

    if name is not None and name not in stats.NAMES:
        raise InputError(f"no statistic is named '{name}'", hint=f"there is: {', '.join(stats.NAMES)}")
    names = [name] if name else list(stats.NAMES)
    with open_dataset(dataset).connect() as con:
        found = {each: stats.compute(con, each) for each in names}
    if as_json:
        _print_json({n: {title: t.to_dicts() for title, t in tables.items()} for n, tables in found.items()})
        return
    shown = rows if rows is not None or name else SHOWN_ROWS
    for each, tables in found.items():
        for title, table in tables.items():
            print_table(table, title=f"{each}: {title}", rows=shown)


def report(folder: Path, *, dry_run: bool) -> None:
    """Write report.html anew."""
    from solar_rl.pipeline.finish import refresh_report
    from solar_rl.store.dataset import SolarDataset

    path = SolarDataset(folder).path / "report.html"
    if dry_run:
        print(f"would write {path}")
        return
    refresh_report(path.parent)
    print(path)


def print_fields() -> None:
    """Print every config field with its default and meaning."""
    from rich.table import Table

    table = Table("field", "default", "meaning", show_lines=True)
    for name, default, doc in field_docs(DatasetConfig):
        table.add_row(f"--{name}", default, " ".join(doc.split()))
    _console().print(table)


def print_table(table: pl.DataFrame, *, title: str | None = None, rows: int | None = None) -> None:
    """Print a frame as a table that people read: aligned, rounded, nulls as a dash.

    Args:
        table: What to print.
        title: A line above it.
        rows: Print at most this many rows and say how many more there are (default: all).
    """
    from rich import box
    from rich.table import Table

    if title:
        print(title)
    shown = Table(box=box.SIMPLE_HEAD)
    for name, dtype in table.schema.items():
        shown.add_column(
            escape(visible(name)), justify="right" if dtype.is_numeric() else "left", overflow="fold"
        )
    for row in table.head(rows or table.height).iter_rows():
        shown.add_row(*(_cell(value) for value in row))
    _console().print(shown)
    if rows and table.height > rows:
        print(f"  ... and {table.height - rows:,} more rows\n")


def _cell(value: Any) -> str:
    if value is None:
        return "[dim]-[/]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    if isinstance(value, bytes):
        return f"[dim]{len(value):,} bytes[/]"
    return escape(visible(str(value)))


def _console() -> Console:
    """Make a console as wide as the terminal, or COLUMNS; wide where nobody looks, so that no word is broken."""
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200)


def dataset_config(dataset: str | None, pairs: dict[str, str]) -> DatasetConfig:
    """Read a dataset.yaml, or a shipped one, with the command line over it; ``--sampler`` names a sampler's file."""
    named = pairs.pop("sampler", None)
    sampler = None if named is None else sampler_file(named)
    config = load_dataset_config(_dataset_yaml(dataset), pairs, sampler=sampler)
    return config.model_copy(update={"privacy": keyed(config.privacy)})


def sampler_file(name: str) -> Path:
    """Return a sampler's file: a path, or the name of a shipped one."""
    path = Path(name)
    return path if path.suffix in {".yaml", ".yml"} else shipped_path("recipes", "samplers", f"{name}.yaml")


def _dataset_yaml(dataset: str | None) -> Path:
    if dataset is None:
        raise InputError("DATASET is missing", hint="a dataset.yaml, or a shipped name such as phone")
    path = Path(dataset)
    if path.is_dir() and (path / "dataset.yaml").exists():
        return path / "dataset.yaml"
    if path.is_dir() and path.name != dataset:  # a bare name may be a shipped one's
        hint = "shape, score and import-candidates make a new version of a dataset that is built"
        built = (path / MANIFEST).is_file()
        raise InputError("the folder holds no dataset.yaml", where=dataset, hint=hint if built else None)
    if path.is_file() or path.suffix in {".yaml", ".yml"} or len(path.parts) > 1:
        return path
    return shipped_path("datasets", dataset, "dataset.yaml")


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr while the block runs; yields the function that advances it."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=log, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


@contextmanager
def build_progress(total: int | None) -> Iterator[Callable[[Standing], None]]:
    """Show how far a build is: episodes, their rate, the time left where the number is known, cache hits."""
    from rich.progress import TimeRemainingColumn

    columns = (
        TextColumn("episodes"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[cache]}"),
    )
    began = time.monotonic()
    with Progress(*columns, console=log, transient=True) as bar:
        task = bar.add_task("episodes", total=total, rate="", cache="")

        def heard(standing: Standing) -> None:
            rate = standing.episodes / max(time.monotonic() - began, 1e-9)
            cache = f"{standing.hits:,} of {standing.asked:,} answers known" if standing.asked else ""
            bar.update(task, completed=standing.episodes, rate=f"{rate:,.1f}/s", cache=cache)

        yield heard


def print_submitted(submitted: Submitted, as_json: bool) -> None:
    """Print what was submitted."""
    if as_json:
        _print_json(submitted.as_dict())
        return
    jobs = ", ".join(submitted.jobs)
    print(f"{submitted.folder}: build {submitted.build_id[:12]} is submitted as jobs {jobs}")


def print_built(built: Built, as_json: bool) -> None:
    """Print what a build did."""
    if as_json:
        _print_json(built.as_dict())
        return
    if not built.changed:
        print(f"{built.folder}: nothing changed since build {built.build_id[:12]}, nothing to do")
        return
    if built.kept_from:
        log.print(f"ran {', '.join(built.ran) or 'no stage'}; the rest is kept from {built.kept_from}")
    if built.asked:
        log.print(f"{built.hits:,} of {built.asked:,} answers came from the cache")
    print_usage(built.usage)
    if built.replaced:
        log.print(f"took the place of version {built.replaced}")
    counts = ", ".join(f"{count:,} {name}" for name, count in built.counts.items())
    print(f"{built.folder}: {counts}; build {built.build_id[:12]}")
    if built.rejects:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(built.rejects.items()))
        print(f"rejected: {reasons}; see {built.folder / 'rejects.jsonl'}")
    for source, found in built.filtered.items():
        counts = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in found.items())
        print(f"{source}: {counts}")


def print_usage(usage: Mapping[str, Any]) -> None:
    """Print on stderr what a sampler counted in this run; nothing where it counted nothing."""
    if usage:
        log.print(f"the sampler counted: {told_usage(usage)}", soft_wrap=True)


def told_usage(usage: Mapping[str, Any]) -> str:
    """Say in one line what a sampler counted.

    >>> told_usage({"calls": 1200, "retries": 3, "prompt_tokens": 24000, "cost": 0.1234})
    '1,200 calls, 3 retries, 24,000 prompt tokens, cost 0.1234'
    """
    counts = [f"{value:,} {name.replace('_', ' ')}" for name, value in usage.items() if name != "cost"]
    return ", ".join(counts + ([f"cost {usage['cost']:,.4f}"] if "cost" in usage else []))


def _print_plan(plan: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        _print_json(plan)
        return
    for key, value in plan.items():
        print(f"{key}: {value}")


def _plain(value: Any) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)


def _print_json(value: Mapping[str, Any] | Iterable[Any]) -> None:
    print(orjson.dumps(value, default=_plain, option=orjson.OPT_INDENT_2).decode())
