"""What the verb ``rounds`` does: run them, and print a table of what each brought."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from solar_rl.commands import build_progress, log, parse_overrides, print_table
from solar_rl.errors import InputError
from solar_rl.rounds import Rounds, State, load_rounds_config, prepare
from solar_rl.rounds.state import STATE
from solar_rl.shipped import shipped_path

_HEADS = {
    "sampled_valid": "sampled\nvalid",
    "lag_mean": "lag",
    "lag_max": "most\nlag",
    "ratio_max": "highest\nratio",
    "sample_share": "effective\nshare",
    "valid": "held out\nvalid",
    "played_success": "closed loop\nsuccess",
    "played_progress": "closed loop\nprogress",
}
"""Headings of columns whose names are long, or tell too little."""


def rounds(recipe: str, overrides: Sequence[str], out: Path | None, *, dry_run: bool, as_json: bool) -> None:
    """Run the rounds that a YAML file describes."""
    path = _rounds_yaml(recipe)
    config = load_rounds_config(path, parse_overrides(overrides))
    folder = out or Path("runs", "rounds", path.stem)
    with build_progress(None) as heard:
        made = prepare(config, folder, heard)
        if dry_run:
            _print_plan(made, as_json)
            return
        state = made.run(partial(log.print, soft_wrap=True))
    if as_json:
        print((folder / STATE).read_text(encoding="utf-8"), end="")
    else:
        _print_rounds(state, folder)


def _rounds_yaml(recipe: str) -> Path:
    path = Path(recipe)
    return path if path.is_file() else shipped_path("recipes", f"{path.with_suffix('')}.yaml")


def _print_plan(made: Rounds, as_json: bool) -> None:
    plan = made.plan()
    if as_json:
        print(orjson.dumps(plan, option=orjson.OPT_INDENT_2).decode())
        return
    for stage in plan:
        print(f"round {stage['round']} {stage['stage']:<8} {stage['state']:<5} {stage['command']}")


def _print_rounds(state: State, folder: Path) -> None:
    import polars as pl

    rows: list[dict[str, Any]] = state.rows()
    if not rows:
        raise InputError("no round was run", where=str(folder))
    table = pl.DataFrame(rows, infer_schema_length=None)
    empty = [name for name in table.columns if table[name].null_count() == table.height]
    table = table.drop(empty).rename(_HEADS, strict=False)
    print_table(table, title="Rounds; progress is held out, with its 95 % interval")
    if state.best is not None:
        print(f"best round: {state.best}, held-out progress {state.progress()[state.best]:.4f}")
    if state.stopped:
        print(f"stopped: {state.stopped}")
