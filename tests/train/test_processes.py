"""Several processes: torchrun on a CPU gives what one process gives, and a wrong world size is refused."""

import json
import os
import subprocess
import sys

import pytest
import yaml

from solar_rl.shipped import shipped_path
from solar_rl.train.callbacks import RECORD
from solar_rl.train.launch import make_command

pytestmark = pytest.mark.train

OPTIONS = {
    "credit": "solar",
    "expert_anchor": 0.2,
    "num_generations": 4,
    "gradient_accumulation_steps": 1,
    "max_steps": 2,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "constant",
    "scale_rewards": "none",
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "logging_steps": 1,
    "save_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
}


def run(dataset, policy_folder, out, processes: int, rows: int):
    """Run the recipe script in processes of its own, from a folder that holds nothing."""
    out.mkdir()
    options = OPTIONS | {
        "dataset": str(dataset.folder),
        "model_name_or_path": str(policy_folder),
        "output_dir": str(out),
        "per_device_train_batch_size": rows,
    }
    recipe = out / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(options))
    env = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = make_command(recipe, [], {"use_cpu": True}, processes)
    done = subprocess.run(command, cwd=out, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    results = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert results == ["groups", "margin at step 0", "margin at step 2"], "results go to stdout, once"
    assert "step 1/2  loss" in done.stderr, "progress goes to stderr"
    return json.loads((out / RECORD).read_text())


def test_two_processes_take_the_same_steps_as_one(dataset, policy_folder, tmp_path):
    one = run(dataset, policy_folder, tmp_path / "one", processes=1, rows=16)
    two = run(dataset, policy_folder, tmp_path / "two", processes=2, rows=8)
    assert one["log"][0]["loss"] == pytest.approx(two["log"][0]["loss"], abs=1e-6)
    for first, second in zip(one["log"], two["log"], strict=True):
        assert first["loss"] == pytest.approx(second["loss"], abs=2e-5)
        assert first["grad_norm"] == pytest.approx(second["grad_norm"], rel=1e-3)
    assert [m["margin"] for m in one["margin"]] == pytest.approx(
        [m["margin"] for m in two["margin"]], abs=1e-4
    )
    assert one["margin"][-1]["margin"] > one["margin"][0]["margin"]


def test_a_wrong_number_of_processes_is_refused_with_exit_2(dataset, policy_folder, tmp_path):
    options = ["--dataset", dataset.folder, "--model_name_or_path", policy_folder, "--use_cpu", "true"]
    options += ["--bf16", "false", "--report_to", "none", "--processes", "2", "--output_dir", tmp_path]
    command = [sys.executable, shipped_path("recipes", "grpo.py"), *options]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "1 processes run, 2 were asked for" in done.stderr.splitlines()[-1]


def test_a_value_that_trl_refuses_is_one_line_and_exit_2(dataset, policy_folder, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    options = {"dataset": str(dataset.folder), "model_name_or_path": str(policy_folder), "use_cpu": True}
    recipe.write_text(yaml.safe_dump(options | {"bf16": False, "save_strategy": "sometimes"}))
    command = make_command(recipe, [], options, 1)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "sometimes is not a valid SaveStrategy" in done.stderr.splitlines()[-1]
