"""What the verbs about sources do: inspect, export, import candidates, test a builder."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape

from solar_rl import commands, commands_validate
from solar_rl.builder import load_builder
from solar_rl.commands import log, parse_overrides
from solar_rl.config import SourceConfig, set_dotted, validate_config
from solar_rl.errors import CheckFailed, ConfigError, InputError
from solar_rl.inspection import Guess, Survey, guess, start_yaml, survey
from solar_rl.inspection.contents import top
from solar_rl.inspection.formats import CANDIDATES, CLOSE, DATASET

_SHOWN = 8
_FEW_PARSE = 0.5
"""Below this share of answers that can be read, the format is probably another."""


def inspect(
    path: Path,
    overrides: Sequence[str],
    builder: str | None,
    limit: int,
    write: Path | None,
    *,
    as_json: bool,
) -> None:
    """Guess a format, survey the source and print a dataset.yaml to start from."""
    if write is not None and write.exists():
        raise InputError("is there already, and isn't overwritten", where=str(write))
    if builder is not None and not path.exists():
        raise InputError("no such file or folder", where=str(path))
    _find_builders_here()
    found = [Guess(builder, 1.0, "named by --builder")] if builder else guess(path)
    best = found[0]
    if best.format in (DATASET, CANDIDATES):
        _tell_product(path, best, as_json)
        return
    block = _source_block(best, overrides)
    source = validate_config(
        SourceConfig, {"builder": best.format, "path": str(path), **block}, where="command line"
    )
    counted = survey(load_builder(source), limit)
    text = start_yaml(path, best.format, block, counted)
    if write is not None:
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(text, encoding="utf-8")
    if as_json:
        head = {"path": str(path), "format": best.format, "guesses": [each._asdict() for each in found]}
        _print_json(head | counted.as_dict() | {"dataset_yaml": text})
        return
    _print_guesses(found)
    for name, words in _lines(counted, limit):
        print(f"{name:<13}{words}")
    if write is None:
        print(f"\n# --- a dataset.yaml to start from (--write FILE saves it)\n{text}", end="")
    else:
        print(f"\nwritten: {write}\nnext:    solar-rl build {write} --limit 20")


def validate(
    dataset: str | None,
    builder: str | None,
    overrides: Sequence[str],
    *,
    all_images: bool,
    allow: Collection[str],
    as_json: bool,
) -> None:
    """Check a dataset or, with ``builder``, a builder on a sample."""
    if builder is not None:
        conform(builder, dataset, overrides, as_json=as_json)
        return
    if dataset is None:
        raise InputError("DATASET is missing", hint="a built dataset's folder, or a sample with --builder")
    if overrides:
        raise InputError(f"unexpected argument {overrides[0]!r}", hint="see --help")
    commands_validate.validate(dataset, all_images=all_images, allow=allow, as_json=as_json)


def conform(builder: str, sample: str | None, overrides: Sequence[str], *, as_json: bool) -> None:
    """Check a builder on a sample; exit 1 when a check fails.

    Raises:
        CheckFailed: Some check failed; every one is printed first.
    """
    from solar_rl.conformance import conform as run_checks

    _find_builders_here()
    block = {"builder": builder, "path": sample} | _source_fields(overrides, "validate")
    console, found = Console(highlight=False, soft_wrap=True), []
    for finding in run_checks(validate_config(SourceConfig, block, where="command line")):
        found.append(finding)
        if not as_json:
            colour = {"ok": "green", "warn": "yellow", "fail": "red", "skip": "dim"}[finding.verdict]
            mark = "FAIL" if finding.verdict == "fail" else f"{finding.verdict:<4}"
            console.print(f"[{colour}]{mark}[/] {finding.name} [dim]{escape(finding.detail)}[/]")
    if as_json:
        _print_json([{**finding._asdict(), "passed": finding.verdict != "fail"} for finding in found])
    failed = [finding.name for finding in found if finding.verdict == "fail"]
    if failed:
        names = ", ".join(failed)
        raise CheckFailed(f"{len(failed)} of {len(found)} checks failed: {names}", where=builder)
    if not as_json:
        warned = sum(finding.verdict == "warn" for finding in found)
        print(f"all {len(found)} checks passed" + (f", {warned} with a warning" if warned else ""))


def _find_builders_here() -> None:
    """Let a builder that is being written lie in the current folder."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


def export(dataset: str, out: Path, *, as_json: bool) -> None:
    """Write a built dataset in the interchange format."""
    from solar_rl.interchange import export_dataset
    from solar_rl.store.dataset import open_dataset

    count = export_dataset(open_dataset(dataset).path, out)
    if as_json:
        _print_json({"folder": str(out), "episodes": count})
    else:
        print(f"{out}: {count:,} episodes; solar-rl build jsonl --source.path {out}")


def import_candidates(
    file: Path,
    into: Path,
    overrides: Sequence[str],
    *,
    format: str | None,
    sampler_id: str | None,
    out: Path | None,
    version: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Bring candidates that were sampled elsewhere into a new version of a dataset."""
    from solar_rl import importing

    pairs = parse_overrides(overrides)
    job = importing.plan(file, into, pairs, format=format, sampler_id=sampler_id, out=out, version=version)
    if dry_run:
        if as_json:
            _print_json(job.as_dict())
        else:
            print("\n".join(f"{name}: {value}" for name, value in job.as_dict().items()))
        return
    if job.parsed < _FEW_PARSE:
        log.print(f"only {job.parsed:.1%} of the answers can be read as {job.base.config.prompt.format}")
    commands.print_built(importing.run(job), as_json)


def _source_block(best: Guess, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the fields of the source block beside builder and path, where there are any."""
    block = {"options": dict(best.options)} if best.options else {}
    return block | _source_fields(overrides, "inspect")


def _source_fields(overrides: Sequence[str], verb: str) -> dict[str, Any]:
    data: dict[str, Any] = {"source": {}}
    for key, text in parse_overrides(overrides).items():
        if not key.startswith("source.") or key in ("source.builder", "source.path"):
            hint = "it takes --source.options.* and --source.splits"
            raise ConfigError(f"'{verb}' can't set '{key}'", hint=hint)
        set_dotted(data, key, text)
    return dict(data["source"])


def _tell_product(path: Path, best: Guess, as_json: bool) -> None:
    """Say what to do with something that is no source."""
    advice = {
        DATASET: f"a built dataset: solar-rl stats {path}, solar-rl export {path} --out FOLDER",
        CANDIDATES: f"sampled answers: solar-rl import-candidates {path} --into DATASET",
    }[best.format]
    if as_json:
        _print_json({"path": str(path), "format": best.format, "why": best.why, "next": advice})
    else:
        print(f"{path}: {best.why}\n{advice}")


def _print_guesses(found: Sequence[Guess]) -> None:
    best = found[0]
    print(f"{'format':<13}{best.format}: {best.why}")
    others = [each for each in found[1:] if each.certainty >= best.certainty - CLOSE]
    for other in others:
        print(f"{'or':<13}{other.format}: {other.why}; look with --builder {other.format}")
    if others:
        log.print(f"the format isn't certain: {best.format} or {', '.join(each.format for each in others)}")


def _lines(found: Survey, limit: int) -> Iterator[tuple[str, str]]:
    """Say what was counted, one line a matter, what says nothing left out."""
    part = "" if found.whole else f"; read so far: the first {limit:,}, --limit reads more"
    yield (
        "episodes",
        f"{len(found.lengths):,}, {sum(found.rejects.values()):,} rejected, {found.shards:,} shards{part}",
    )
    length = found.length_summary()
    if length:
        yield (
            "steps",
            f"{found.steps:,}; {length['min']:g} to {length['max']:g} an episode, {length['median']:g} in the middle",
        )
        yield from _counts(found)
    for reason, count in found.rejects.most_common():
        first = found.first_rejects[reason]
        yield "problem", f"{reason} {count:,}; the first: {first.file}, {first.record}: {first.message}"


def _counts(found: Survey) -> Iterator[tuple[str, str]]:
    holds, steps = found.holds, found.steps
    yield "actions", top(found.actions.items(), len(found.actions))
    sizes = (
        (f"{width}x{height} ({origin})", count) for (width, height, origin), count in found.screens.items()
    )
    yield "screens", top(sizes, _SHOWN)
    distinct = f", {len(found.images):,} different" if found.images else ""
    yield "screenshots", f"{holds['screenshot']:,} of {steps:,} steps{distinct}"
    yield (
        "boxes",
        f"{holds['target_box']:,} of {holds['point']:,} actions with a point, {holds['several_boxes']:,} with several",
    )
    texts = ("instruction", "thought", "screen_text", "alternatives")
    yield "texts", ", ".join(f"{name} {holds[name]:,}" for name in texts if holds[name]) or "goals alone"
    named: tuple[tuple[str, Mapping[str, int]], ...] = (
        ("splits", found.splits),
        ("subsplits", found.subsplits),
        ("platforms", found.platforms),
        ("categories", found.categories),
        ("apps", {app: count for app, count in found.apps.items() if app != "-"}),
        ("licences", found.licenses),
    )
    for name, counts in named:
        if counts:
            yield name, top(counts.items(), _SHOWN)
    if set(found.outcomes) != {"not recorded"}:
        yield "outcomes", top(found.outcomes.items(), _SHOWN)
    if len(found.goals) < len(found.lengths):
        yield "goals", f"{len(found.goals):,} different"
    if holds["off_screen"]:
        yield "off screen", f"{holds['off_screen']:,} steps: they stay unscored"


def _print_json(value: Any) -> None:
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")
