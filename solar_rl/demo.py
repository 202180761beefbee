"""Walk the whole main job once, on the built-in simulated phone: build, statistics, SQL, report, training."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

from solar_rl.commands import print_table
from solar_rl.config import DatasetConfig, load_dataset_config
from solar_rl.errors import InputError, MissingExtra, SolarError
from solar_rl.shipped import shipped_path

QUESTION = """
SELECT f.failure_action_type AS action, f.failure_reason AS reason, count(*) AS trajectories,
       round(avg(f.first_failure_step / f.ref_len), 2) AS where_in_episode,
       round(avg(f.trajectory_reward), 3) AS mean_R_traj
FROM failures f GROUP BY ALL ORDER BY trajectories DESC, action, reason LIMIT 8
""".strip()
_STATS = (("first_failure", "by relative position"), ("validity", "by action type"), ("truncation", None))


def run_demo(out: Path, *, train: bool, episodes: int) -> None:
    """Run the main job into a folder and say at each step what was made.

    Args:
        out: Folder; ``dataset``, ``policy``, ``stage1`` and ``stage2`` are made in it.
        train: Run the two training stages on a tiny, randomly initialised Qwen2.5-VL.
        episodes: Demonstrations that the simulated phone generates.

    Raises:
        MissingExtra: Training is wanted and torch isn't installed.
        InputError: ``out`` can't be used.
    """
    if train and any(importlib.util.find_spec(name) is None for name in ("torch", "trl")):
        raise MissingExtra("training in the demo", "train")
    if episodes < 2:
        raise InputError("the demo needs at least 2 episodes", where="--episodes")
    begin = time.monotonic()
    policy = _make_policy(out) if train else None
    folder = _build(out, episodes, policy)
    _show(folder)
    if policy is not None:
        _train(out, folder, policy)
    _headline(f"done in {time.monotonic() - begin:.0f} s")
    print(f"open {folder / 'report.html'} in a browser\nask more:  solar-rl stats {folder} first_failure")


def demo_config(episodes: int, policy: Path | None) -> DatasetConfig:
    """Return the shipped phone dataset's config, cut to the demo's size."""
    pairs = {"source.options.episodes": str(episodes), "sampler.n": "4"}
    if policy is not None:
        pairs["sampler.policy"] = str(policy)
    return load_dataset_config(shipped_path("datasets", "phone", "dataset.yaml"), pairs)


def _make_policy(out: Path) -> Path:
    from solar_rl.train.tiny import make_tiny_policy

    _headline("a policy: a tiny, randomly initialised Qwen2.5-VL")
    folder = make_tiny_policy(out / "policy")
    print(folder)
    return folder


def _build(out: Path, episodes: int, policy: Path | None) -> Path:
    from solar_rl import commands, pipeline

    _headline("build: demonstrations on the simulated phone -> candidates -> validity -> shaped rewards")
    config = demo_config(episodes, policy)
    with commands.progress("episodes", episodes) as advance:
        built = pipeline.build(config, out / "dataset", progress=advance)
    commands.print_built(built, as_json=False)
    return built.folder


def _show(folder: Path) -> None:
    from solar_rl import query, stats

    with query.connect(folder) as con:
        for name, title in _STATS:
            _headline(f"stats {name}")
            tables = stats.compute(con, name)
            for each, table in tables.items():
                if title in (None, each):
                    print_table(table, title=each)
    _headline("one question in SQL: what do failed trajectories break on?")
    print(QUESTION)
    print_table(query.run(folder, QUESTION))
    _headline("report")
    print(folder / "report.html")


def _train(out: Path, folder: Path, policy: Path) -> None:
    stages = {
        "stage1": ("phone_cpu/stage1_atomic", policy),
        "stage2": ("phone_cpu/stage2_trajectory", out / "stage1"),
    }
    for stage, (recipe, start) in stages.items():
        _headline(f"train {recipe}")
        _run_stage(recipe, folder, start, out / stage)


def _run_stage(recipe: str, folder: Path, start: Path, target: Path) -> None:
    from solar_rl.train.launch import launch

    options: dict[str, Any] = {"dataset": folder, "model_name_or_path": start, "output_dir": target}
    extra = [token for name, value in options.items() for token in (f"--{name}", str(value))]
    if launch(recipe, extra):
        raise SolarError(f"{recipe} failed", where=str(target), hint="its output is above")


def _headline(text: str) -> None:
    print(f"\n== {text}", flush=True)
