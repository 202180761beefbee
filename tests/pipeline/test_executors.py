"""A build on Slurm or Ray leaves the bytes of a build here; Slurm is a stand-in that runs what is submitted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_pipeline import hashes

HERE = Path(__file__).parent
pytest.importorskip("datatrove")

SBATCH = """#!{python}
'''A stand-in for sbatch: runs each task of the array at once, one after the other, and notes what it was given.'''
import os, re, subprocess, sys
home = os.environ["STAND_IN"]
number = len(os.listdir(home)) + 1
script = open(sys.argv[-1]).read()
with open(os.path.join(home, str(number)), "w") as file:
    file.write(" ".join(sys.argv[1:-1]) + chr(10) + script)
for word in sys.argv:
    if word.startswith("--dependency=afterok:"):
        assert int(word.rpartition(":")[2]) < number
last = int(re.search(r"--array=0-(\\d+)", script)[1])
for task in reversed(range(last + 1)):
    given = os.environ | {{"SLURM_ARRAY_TASK_ID": str(task), "SLURM_NODELIST": "here", "RUN_OFFSET": "0"}}
    done = subprocess.run(["bash", sys.argv[-1]], env=given, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
print("Submitted batch job", number)
"""
SRUN = """#!/bin/bash
while [[ $1 == -* ]]; do [[ $1 == -n ]] && shift; shift; done
exec "$@"
"""
SCONTROL = """#!/bin/bash
echo here
"""
CONFIG = """
name: toy
shard_episodes: 2
source:
  builder: toy_source:ToyBuilder
  options: {episodes: 6}
"""


def solar(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    given = os.environ | {"PYTHONPATH": paths} | environment
    command = [sys.executable, "-m", "solar_rl.cli", *words]
    return subprocess.run(command, cwd=cwd, env=given, capture_output=True, text=True, check=False)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "toy.yaml").write_text(CONFIG)
    done = solar("build", "toy.yaml", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """Put a stand-in of Slurm's commands on the PATH."""
    commands, notes = tmp_path / "bin", tmp_path / "jobs"
    commands.mkdir()
    notes.mkdir()
    texts = {"sbatch": SBATCH.format(python=sys.executable), "srun": SRUN, "scontrol": SCONTROL}
    for name, text in texts.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    return {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "STAND_IN": str(notes)}


def test_slurm_runs_an_array_for_each_phase_and_puts_the_dataset_together(
    home: Path, cluster: dict[str, str]
) -> None:
    words = ("build", "toy.yaml", "--out", "there", "--executor", "slurm", "--workers", "2")
    words += ("--executor.partition", "cpu", "--executor.sbatch", "{account: mine}")
    before = sorted(home.rglob("*"))
    dry = solar(*words, "--dry-run", cwd=home, **cluster)
    assert dry.returncode == 0, dry.stderr
    assert sorted(home.rglob("*")) == before
    done = solar(*words, cwd=home, **cluster)
    assert done.returncode == 0, done.stderr
    assert "submitted as jobs 1, 2, 3" in done.stdout
    scripts = [(home / "jobs" / str(number)).read_text() for number in (1, 2, 3)]
    for script in scripts:
        assert "#SBATCH --partition=cpu" in script
        assert "#SBATCH --account=mine" in script
        lines = [line for line in script.splitlines() if line.startswith(("#SBATCH --array", "srun"))]
        assert all(line in dry.stdout for line in lines)
    assert "--dependency=afterok:1" in scripts[1]
    assert "--dependency=afterok:2" in scripts[2]
    assert hashes(home / "there") == hashes(home / "here")
    again = solar(*words, cwd=home, **cluster)
    assert "nothing to do" in again.stdout


def test_no_option_of_slurm_lacks_its_value(home: Path) -> None:
    words = ("--out", "there/new", "--executor", "slurm", "--workers", "2", "--dry-run")
    dry = solar("build", "toy.yaml", "--sampler.n", "2", *words, cwd=home)
    assert dry.returncode == 0, dry.stderr
    options = [line for line in dry.stdout.splitlines() if line.startswith("#SBATCH")]
    assert len(options) > 12
    assert [line for line in options if "=" not in line or line.endswith(("=", "None"))] == []
    assert not [line for line in options if "partition" in line or "qos" in line]


def test_nothing_is_submitted_where_a_finished_version_gives_what_was_sampled(
    home: Path, cluster: dict[str, str]
) -> None:
    words = ("build", "toy.yaml", "--out", "there", "--from", "here", "--shaping.alignment", "paper")
    words += ("--executor", "slurm", "--workers", "2")
    dry = solar(*words, "--dry-run", cwd=home, **cluster)
    assert "sample: keep" in dry.stdout, dry.stderr
    assert "sbatch" not in dry.stdout.lower()
    done = solar(*words, cwd=home, **cluster)
    assert done.returncode == 0, done.stderr
    assert list((home / "jobs").iterdir()) == []
    assert (home / "there" / "manifest.json").is_file()


def test_without_slurm_or_with_one_that_refuses_the_error_is_clear(
    home: Path, cluster: dict[str, str]
) -> None:
    words = ("build", "toy.yaml", "--out", "there", "--executor", "slurm")
    none = solar(*words, cwd=home, PATH=str(home))
    assert none.returncode == 2, none.stderr
    assert "no sbatch on the PATH" in none.stderr
    (home / "bin" / "sbatch").write_text("#!/bin/bash\necho 'invalid partition specified: cpu' >&2\nexit 1\n")
    refused = solar(*words, cwd=home, **cluster)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith("solar-rl: sbatch refused")


@pytest.mark.slow
def test_ray_workers_leave_the_same_bytes(home: Path) -> None:
    pytest.importorskip("ray")
    words = ("--executor", "ray", "--workers", "2", "--executor.mem_per_cpu_gb", "1")
    done = solar("build", "toy.yaml", "--out", "there", *words, cwd=home)
    assert done.returncode == 0, done.stderr
    assert hashes(home / "there") == hashes(home / "here")


@pytest.mark.parametrize(
    ("executor", "code", "said"), [("slurm", 2, "needs the extra 'scale'"), ("local", 0, "")]
)
def test_without_datatrove_the_extra_is_named_where_it_is_needed(
    home: Path, executor: str, code: int, said: str
) -> None:
    script = (
        "import sys, importlib.util as u; found = u.find_spec; "
        "u.find_spec = lambda name, *a: None if name == 'datatrove' else found(name, *a); "
        "from solar_rl.cli import main; "
        f"main(['build', 'toy.yaml', '--out', 'two', '--workers', '2', '--executor', '{executor}'])"
    )
    given = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=home, env=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert said in done.stderr
