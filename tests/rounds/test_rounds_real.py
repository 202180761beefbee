"""Rounds for real, on the phone with a tiny policy: versions, shared files, and the same result after kills."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
import yaml

from solar_rl.diff import compare
from solar_rl.rounds.state import STATE
from solar_rl.store.manifest import read_manifest

pytest.importorskip("trl", reason="needs the train extra")
pytestmark = pytest.mark.train

OPTIONS = {"episodes": 12, "buckets": {"short": 1.0, "long": 0.0, "super_long": 0.0}, "popup_rate": 0.0}
RUN = {
    "dataset": "phone",
    "rounds": 2,
    "updates_per_round": 2,
    "build": {
        "source": {"options": OPTIONS},
        "sampler": {"n": 4},
        "prompt": {"max_pixels": 28 * 28 * 16},
        "preview_rows": 8,
    },
    "recipe": "phone_cpu/log_step",
    "train": {"off_policy": "behaviour", "margin_groups": 4},
    "evaluate": {
        "splits": ["validation", "test"],
        "episodes": 2,
        "max_new_tokens": 6,
        "bucket_rule": "phone",
    },
    "keep_checkpoints": 1,
}
SUITE = {
    "about": "two answers each",
    "buckets": "phone",
    "kind": "closed_loop",
    "environment": "phone",
    "options": {"seed": 900001, "only": "test"},
    "tasks": ["short"],
    "max_steps": 2,
    "recovery": False,
}


@pytest.fixture(scope="module")
def recipe(tmp_path_factory) -> Path:
    from solar_rl.train.tiny import make_tiny_policy

    folder = tmp_path_factory.mktemp("rounds")
    policy = make_tiny_policy(folder / "policy", seed=3)
    path = folder / "rounds.yaml"
    suite = folder / "brief.yaml"
    suite.write_text(yaml.safe_dump(SUITE))
    evaluate = RUN["evaluate"] | {"suite": str(suite), "suite_episodes": 2}
    path.write_text(yaml.safe_dump(RUN | {"policy": str(policy), "evaluate": evaluate}))
    return path


def start(recipe: Path, out: Path, *words: str) -> subprocess.Popen:
    env = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    command = [sys.executable, "-m", "solar_rl.cli", "rounds", str(recipe), "--out", str(out), *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=env, text=True, start_new_session=True, **pipes)


def finish(process: subprocess.Popen) -> str:
    out, err = process.communicate()
    assert process.returncode == 0, err[-3000:]
    return out


def test_two_rounds_on_the_phone(recipe, tmp_path):
    out = tmp_path / "run"
    record = json.loads(finish(start(recipe, out, "--json")))
    assert [row["version"] for row in record["rounds"]] == [None, "1.1.0", "1.2.0"]
    first, second = record["rounds"][1:]
    for row in (first, second):
        assert (row["updates"], row["lag_max"], row["lag_mean"]) == (2, 1, 0.5)
        assert row["ratio_max"] >= row["ratio"] > 0
        assert 0 < row["sample_share"] <= 1
        assert 0 < row["sampled_valid"] < 1
        assert 0 <= row["low"] <= row["progress"] <= row["high"] <= 1
        assert 0 <= row["played_success"] <= row["played_progress"] <= 1
    played = record["stages"]["evaluate-2"]["played"]
    assert played["episodes"] == 2
    report = json.loads((out / "round-2" / "suite" / "report.json").read_text())
    assert report["model"] == str(out / "round-2" / "policy")
    built = read_manifest(out / "phone-heldout-1.2.0").config["prompt"]
    assert report["config"]["prompt"] == built, "it is asked as on recorded steps"
    one, two = (out / f"phone-1.{number}.0" for number in (1, 2))
    found = compare(one, two)
    assert "config" in found.changed
    both = pl.concat([pl.read_parquet(each / "data/candidates/*.parquet") for each in (one, two)])
    assert both.group_by("episode_id", "step_index", "candidate_index").len()["len"].unique().to_list() == [2]
    assert set(out.glob("round-*/policy")) == {out / "round-2" / "policy"}, "or the best, round 0"
    shared = [entry for entry in read_manifest(one).files if entry.path.startswith("data/images/")]
    assert shared
    assert all((one / entry.path).samefile(two / entry.path) for entry in shared), (
        "screenshots lie there once"
    )
    assert not (out / ".cache").exists()
    assert not list(out.glob("round-*/policy/checkpoint-*"))


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_as_a_straight_one(recipe, tmp_path):
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    finish(start(recipe, straight))
    for ready in (
        lambda: (killed / "round-1" / "build.yaml").exists(),
        lambda: "build-1" in stages(killed) and (killed / "round-1" / "policy").exists(),
        lambda: "train-1" in stages(killed),
        lambda: "build-2" in stages(killed),
    ):
        process = start(recipe, killed)
        while process.poll() is None and not ready():
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    finish(start(recipe, killed))
    ours, theirs = (json.loads((each / STATE).read_text()) for each in (straight, killed))
    assert ours["rounds"] == theirs["rounds"]
    for name in ("build-1", "build-2"):
        assert ours["stages"][name] == theirs["stages"][name]
    weights = [
        (each / "round-2" / "policy" / "model.safetensors").read_bytes() for each in (straight, killed)
    ]
    assert weights[0] == weights[1]


def stages(folder: Path) -> dict:
    path = folder / STATE
    return json.loads(path.read_text())["stages"] if path.exists() else {}
