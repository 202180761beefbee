"""Walk the whole main job once, on the built-in simulated phone: build, statistics, SQL, report, training.

Every stage is the command that a user would type, printed and run in a process of its own, so that the
memory of one is gone before the next begins.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from solar_rl.errors import InputError, MissingExtra, SolarError

QUESTION = (
    "SELECT failure_action_type AS action, failure_reason AS reason, count(*) AS trajectories, "
    "round(avg(first_failure_step / ref_len), 2) AS where_in_episode "
    "FROM failures GROUP BY ALL ORDER BY trajectories DESC, action, reason LIMIT 5"
)
CANDIDATES = 4
"""N of the demo's dataset: half the paper's, so that training on a CPU stays short."""


def run_demo(out: Path, *, train: bool, episodes: int) -> None:
    """Run the main job into a folder and say at each step what was made.

    Args:
        out: Folder; ``dataset``, ``policy``, ``stage1`` and ``stage2`` are made in it.
        train: Run the two training stages on a tiny, randomly initialised Qwen2.5-VL.
        episodes: Demonstrations that the simulated phone generates.

    Raises:
        MissingExtra: Training is wanted and torch isn't installed.
        InputError: ``episodes`` is too small.
        SolarError: A command failed; its own message stands above.
    """
    if train and any(importlib.util.find_spec(name) is None for name in ("torch", "trl")):
        raise MissingExtra("training in the demo", "train")
    if episodes < 2:
        raise InputError("the demo needs at least 2 episodes", where="--episodes")
    begin = time.monotonic()
    dataset, policy = str(out / "dataset"), str(out / "policy")
    build = ["build", "phone", "--out", dataset, "--sampler.n", str(CANDIDATES)]
    build += ["--source.options.episodes", str(episodes)]
    if train:
        _say("a policy to train: a tiny, randomly initialised Qwen2.5-VL")
        _run("solar_rl.train.tiny", [policy])
        build += ["--sampler.policy", policy]
    _say("demonstrations on the simulated phone -> candidates -> validity -> shaped rewards")
    _solar(build)
    _say("where do trajectories fail first, and what would truncation throw away?")
    for name in ("first_failure", "truncation"):
        _solar(["stats", dataset, name, "--rows", "6"])
    _say("one question in SQL: what do failed trajectories break on?")
    _solar(["query", dataset, QUESTION])
    if train:
        _say("stage 1, atomic adaptation: every step on its own")
        _train("stage1_atomic", dataset, policy, out / "stage1")
        _say("stage 2, trajectory optimisation: the shaped rewards")
        _train("stage2_trajectory", dataset, str(out / "stage1"), out / "stage2")
    _say(f"done in {time.monotonic() - begin:.0f} s; open {out / 'dataset' / 'report.html'} in a browser")


def _train(recipe: str, dataset: str, start: str, target: Path) -> None:
    options = ["--dataset", dataset, "--model_name_or_path", start, "--output_dir", str(target)]
    _solar(["train", f"phone_cpu/{recipe}", *options])


def _solar(words: Sequence[str]) -> None:
    print(f"$ solar-rl {shlex.join(words)}", flush=True)
    _run("solar_rl.cli", words)


def _run(module: str, words: Sequence[str]) -> None:
    # libraries' bars off, ours stay; one thread, since a tiny model gains nothing from two and the idle one spins
    environment = {"OMP_NUM_THREADS": "1"} | os.environ | {"HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    code = subprocess.run([sys.executable, "-m", module, *words], check=False, env=environment).returncode
    if code:
        raise SolarError(f"{module} ended with exit code {code}", hint="its message is above")


def _say(text: str) -> None:
    print(f"\n== {text}", flush=True)
