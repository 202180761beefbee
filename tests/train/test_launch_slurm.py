"""The Slurm script and accelerate's configs: read by their own tools, run against stand-ins."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from accelerate.commands.config.config_args import ClusterConfig, load_config_from_file
from accelerate.commands.launch import launch_command_parser

from solar_rl.shipped import shipped_path
from solar_rl.train.callbacks import RECORD

pytestmark = pytest.mark.train

SCRIPT = shipped_path("recipes", "slurm", "train.sbatch")
CONFIGS = sorted(shipped_path("recipes", "accelerate").glob("*.yaml"))
STAND_IN = """#!/bin/bash
# srun: the command once for each machine, side by side; fails when one fails
while [[ "$1" == --* ]]; do shift; done
pids=()
for ((i = 0; i < SLURM_NNODES; i++)); do SLURM_NODEID=$i "$@" & pids+=($!); done
code=0
for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
exit $code
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Put stand-ins for srun and scontrol first in PATH and set what Slurm sets."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in {"srun": STAND_IN, "scontrol": "#!/bin/bash\necho 127.0.0.1\necho other\n"}.items():
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    for key, value in {
        "PATH": path,
        "SLURM_NNODES": "2",
        "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_JOB_ID": str(free_port() - 20000),
        "PROCESSES_PER_MACHINE": "1",
        "ACCELERATE": "",
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }.items():
        monkeypatch.setenv(key, value)


def free_port() -> int:
    """Find a free port that a job's number can lead to."""
    for port in range(20000, 40000, 37):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise AssertionError("no port is free")


def sbatch(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(["bash", str(SCRIPT), *words], capture_output=True, text=True, check=False)


def test_the_script_is_bash():
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)


@pytest.mark.slow
def test_two_machines_train_together(cluster, dataset, policy_folder, tmp_path):
    out = tmp_path / "out"
    words = ["--dataset", str(dataset.folder), "--model_name_or_path", str(policy_folder)]
    words += ["--output_dir", str(out), "--max_steps", "2", "--margin_groups", "0"]
    words += ["--per_device_train_batch_size", "8"]
    done = sbatch("phone_cpu/stage1_atomic", *words)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "--nnodes 2 --node_rank 1 --master_addr 127.0.0.1" in done.stderr
    assert json.loads((out / RECORD).read_text())["steps"] == 2
    assert done.stderr.count("step 2/2  loss") == 1, "the first machine speaks for both"


def test_a_mistake_ends_the_job_with_its_code(cluster):
    done = sbatch("phone_cpu/stage1_atomic", "--learning_rte", "1")
    assert done.returncode == 2
    assert "did you mean 'learning_rate'" in done.stderr


def test_gpus_are_shared_as_multi_node_says_unless_told_otherwise(
    cluster, dataset, policy_folder, monkeypatch
):
    monkeypatch.delenv("ACCELERATE")
    monkeypatch.setenv("PROCESSES_PER_MACHINE", "8")
    words = ["--dataset", str(dataset.folder), "--model_name_or_path", str(policy_folder), "--dry-run"]
    done = sbatch("qwen2_5_vl_7b/stage1_atomic", *words, "--gradient_accumulation_steps", "16")
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert len(lines) == 2
    for rank, line in enumerate(lines):
        assert "multi_node.yaml --num_processes 16 --num_machines 2" in line
        assert f"--machine_rank {rank} --main_process_ip 127.0.0.1" in line


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_accelerate_reads_its_configs(path):
    config = load_config_from_file(str(path))
    assert isinstance(config, ClusterConfig)
    assert config.mixed_precision == "no", "the recipe's bf16 decides"
    assert config.num_processes == 8 * config.num_machines
    assert not config.use_cpu
    kind = config.distributed_type.value
    sharing = {
        "ddp": "MULTI_GPU",
        "fsdp2": "FSDP",
        "multi_node": "FSDP",
        "zero2": "DEEPSPEED",
        "zero3": "DEEPSPEED",
    }
    assert kind == sharing[path.stem]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_key_of_a_sharing_is_one_that_accelerate_launch_takes(path):
    known = vars(launch_command_parser().parse_args(["script.py"]))
    written = yaml.safe_load(path.read_text())
    for key in {**(written.get("fsdp_config") or {}), **(written.get("deepspeed_config") or {})}:
        assert key in known, key


def test_multi_node_shares_as_fsdp2_does():
    one, several = (
        yaml.safe_load(shipped_path("recipes", "accelerate", f"{name}.yaml").read_text())
        for name in ("fsdp2", "multi_node")
    )
    assert {key for key in one | several if one.get(key) != several.get(key)} == {
        "num_machines",
        "num_processes",
    }


def test_stages_of_zero_are_what_their_names_say():
    for stage in (2, 3):
        written = yaml.safe_load(shipped_path("recipes", "accelerate", f"zero{stage}.yaml").read_text())
        assert written["deepspeed_config"]["zero_stage"] == stage
