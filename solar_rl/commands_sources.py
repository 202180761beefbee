"""What the verbs about sources do: inspect, export, import candidates, test a builder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from solar_rl.builder import load_builder
from solar_rl.commands import log, parse_overrides
from solar_rl.config import SourceConfig, set_dotted, validate_config
from solar_rl.errors import ConfigError, InputError
from solar_rl.inspection import Guess, Survey, guess, start_yaml, survey
from solar_rl.inspection.contents import top
from solar_rl.inspection.formats import CANDIDATES, CLOSE, DATASET

_SHOWN = 8


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


def export(dataset: str, out: Path, *, as_json: bool) -> None:
    """Write a built dataset in the interchange format."""
    from solar_rl.interchange import export_dataset
    from solar_rl.store.dataset import open_dataset

    count = export_dataset(open_dataset(dataset).path, out)
    if as_json:
        _print_json({"folder": str(out), "episodes": count})
    else:
        print(f"{out}: {count:,} episodes; solar-rl build jsonl --source.path {out}")


def _source_block(best: Guess, overrides: Sequence[str]) -> dict[str, Any]:
    """Return the fields of the source block beside builder and path."""
    data: dict[str, Any] = {"source": {"options": dict(best.options)} if best.options else {}}
    for key, text in parse_overrides(overrides).items():
        if not key.startswith("source.") or key in ("source.builder", "source.path"):
            raise ConfigError(
                f"'inspect' can't set '{key}'", hint="it takes --source.options.* and --source.splits"
            )
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
