"""The built wheel, in a clean environment and outside the checkout, does what the checkout does."""

import json
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """A new environment with the wheel in it; its dependencies are lent by this one.

    They are lent through a path line in a .pth file: Python then adds that folder, but doesn't run the .pth files in
    it, so the checkout that this environment has installed for development stays out.
    """
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    site.joinpath("lent.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        folder,
        "install",
        "-qq",
        "--no-deps",
        "--no-index",
        wheel,
    ]
    subprocess.run(pip, check=True, capture_output=True, text=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def outside(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("outside")


@pytest.fixture(scope="module")
def run(installed, outside):
    """Run a program of the new environment outside the checkout and return what it printed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    env |= {"PYTHONNOUSERSITE": "1", "PATH": f"{installed}:{env['PATH']}", "OMP_NUM_THREADS": "1"}

    def call(program: str, *arguments: object) -> str:
        command = [installed / program, *map(str, arguments)]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, cwd=outside, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True
        ) as process:
            try:
                out, err = process.communicate()
            except BaseException:  # a time limit: what the program itself started must end too
                os.killpg(process.pid, signal.SIGKILL)
                raise
        assert process.returncode == 0, f"{out}\n{err}"
        return out

    return call


def test_the_wheel_is_what_runs(run, installed):
    code = "import solar_rl, sys; print(solar_rl.__file__); print(*sys.path, sep='\\n')"
    file, *path = run("python", "-c", code).splitlines()
    assert Path(file).is_relative_to(installed.parent)
    assert str(ROOT) not in path


def test_help(run):
    assert "solar-rl" in run("solar-rl", "--help")


def test_build_takes_a_shipped_dataset_by_name(run, outside):
    run("solar-rl", "build", "phone", "--limit", 3, "--out", "built")
    manifest = json.loads((outside / "built" / "manifest.json").read_text())
    assert manifest["counts"]["episodes"] == 3
    assert str(ROOT) not in (outside / "built" / "manifest.json").read_text()
    run("solar-rl", "validate", "built")


@pytest.fixture(scope="module")
def demo(run, outside) -> Path:
    run("solar-rl", "demo", "--no-train", "--episodes", 6, "--out", "demo")
    return outside / "demo"


def test_demo_runs_up_to_the_report(demo):
    (page,) = demo.rglob("report.html")
    assert "<html" in page.read_text(encoding="utf-8")
    assert (demo / "dataset" / "manifest.json").exists()


def test_demo_can_be_run_again(run, demo):
    before = (demo / "dataset" / "manifest.json").read_bytes()
    run("solar-rl", "demo", "--no-train", "--episodes", 6, "--out", "demo")
    assert (demo / "dataset" / "manifest.json").read_bytes() == before


def test_recipe_travels_with_the_wheel(run, demo, outside):
    (outside / "policy").mkdir()
    command = run(
        "solar-rl", "train", "phone_cpu/stage1_atomic", "--dry-run", "--model_name_or_path", "policy"
    )
    assert "_shipped/recipes/grpo.py" in command
    assert f"{ROOT}/recipes" not in command


@pytest.mark.slow
@pytest.mark.train
@pytest.mark.timeout(1200)
def test_demo_trains_both_stages(run, outside):
    run("solar-rl", "demo", "--episodes", 6, "--out", "trained")
    for stage in ("stage1", "stage2"):
        assert (outside / "trained" / stage / "config.json").exists()
