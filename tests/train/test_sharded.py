"""FSDP2 with the shipped config, two processes over gloo: the steps, margins and weights of one process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from test_processes import OPTIONS, run

from solar_rl.policy import load_policy
from solar_rl.shipped import shipped_path
from solar_rl.train.callbacks import RECORD

pytestmark = [pytest.mark.train, pytest.mark.slow]

WORKER = Path(__file__).with_name("sharded_worker.py")


def shipped() -> dict[str, str]:
    """Return the environment that ``accelerate launch`` makes of recipes/accelerate/fsdp2.yaml."""
    config = yaml.safe_load(shipped_path("recipes", "accelerate", "fsdp2.yaml").read_text())
    said = {key.upper(): value for key, value in config["fsdp_config"].items()}
    words = {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in said.items()
    }
    return words | {"ACCELERATE_USE_FSDP": "true", "ACCELERATE_MIXED_PRECISION": "no"}


def sharded(dataset, policy_folder, out, *words: str) -> dict:
    """Run the recipe script in two processes that share the weights."""
    out.mkdir(exist_ok=True)
    options = OPTIONS | {"dataset": str(dataset.folder), "model_name_or_path": str(policy_folder)}
    options |= {"output_dir": str(out), "per_device_train_batch_size": 8}
    options |= {"save_strategy": "steps", "save_steps": 1}
    (out / "recipe.yaml").write_text(yaml.safe_dump(options))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", WORKER]
    command += [shipped_path("recipes", "grpo.py"), "--config", out / "recipe.yaml", *words]
    env = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"} | shipped()
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((out / RECORD).read_text())


def same_weights(one: Path, other: Path) -> bool:
    ours, theirs = (load_policy(each, device="cpu").model.state_dict() for each in (one, other))
    return ours.keys() == theirs.keys() and all(torch.allclose(ours[k], theirs[k], atol=1e-4) for k in ours)


def test_two_sharded_processes_take_the_steps_of_one(dataset, policy_folder, tmp_path):
    one = run(dataset, policy_folder, tmp_path / "one", processes=1, rows=16)
    two = sharded(dataset, policy_folder, tmp_path / "two")
    assert one["log"][0]["loss"] == pytest.approx(two["log"][0]["loss"], abs=1e-6)
    for first, second in zip(one["log"], two["log"], strict=True):
        assert first["loss"] == pytest.approx(second["loss"], abs=2e-5)
        assert first["grad_norm"] == pytest.approx(second["grad_norm"], rel=1e-3)
    assert same_weights(tmp_path / "one", tmp_path / "two")


def test_sharded_processes_go_on_from_a_checkpoint(dataset, policy_folder, tmp_path):
    straight = sharded(dataset, policy_folder, tmp_path / "straight")
    checkpoint = str(tmp_path / "straight" / "checkpoint-1")
    resumed = sharded(dataset, policy_folder, tmp_path / "again", "--resume_from_checkpoint", checkpoint)
    assert resumed["log"][-1]["loss"] == pytest.approx(straight["log"][-1]["loss"], abs=1e-6)
    assert same_weights(tmp_path / "straight", tmp_path / "again")
