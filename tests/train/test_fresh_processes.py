"""Two processes pack, sample and shape episodes of their own, and together do what one does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fresh_dataset import build_phone

pytestmark = pytest.mark.train


def run(dataset, policy_folder, out, processes: int, readings: int):
    """Run the worker and return what each process wrote down."""
    out.mkdir()
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    words = [Path(__file__).with_name("fresh_worker.py"), dataset, policy_folder, out, readings]
    env = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, *(launcher if processes > 1 else []), *map(str, words)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((out / f"rank-{rank}.json").read_text()) for rank in range(processes)]


def test_two_processes_shape_and_step_as_one_does(policy_folder, tmp_path):
    """With an own history, where calls have to be made together although episodes differ in length."""
    dataset = build_phone(tmp_path / "phone", policy_folder, prompt={"history": "candidate"})
    [one] = run(dataset, policy_folder, tmp_path / "one", 1, readings=20)
    two = run(dataset, policy_folder, tmp_path / "two", 2, readings=10)
    assert [each["world"] for each in two] == [2, 2]
    own = [{tuple(row[:3]) for row in each["rows"]} for each in two]
    assert own[0] and own[1] and not own[0] & own[1], "each process has episodes of its own"
    assert {key[0] for key in own[0]}.isdisjoint(key[0] for key in own[1]), "and whole ones"
    assert sorted(two[0]["rows"] + two[1]["rows"]) == sorted(one["rows"])
    assert two[0]["sizes"] == two[1]["sizes"], "processes ask in the same calls, for as many answers"
    assert two[0]["loss"] == pytest.approx(one["loss"], abs=1e-6)
    assert two[0]["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-4)
