"""``scripts/torch_build.py`` keeps gigabytes of CUDA off machines without a GPU, before any of it is downloaded."""

import io
import json
import platform
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "torch_build.py"
CPU = ["filelock", "sympy>=1.13.3", 'opt-einsum>=3.3; extra == "opt-einsum"']


def requirements(*, cuda_on: str | None) -> list[str]:
    """What a build of torch requires; a CUDA build names its platform behind a marker."""
    libraries = ["nvidia-cudnn-cu13==9.24.0.43", "cuda-bindings<14"] if cuda_on else []
    return [*CPU, *(f'{name}; platform_system == "{cuda_on}"' for name in libraries)]


@pytest.fixture
def torch_build(monkeypatch):
    """The script's own names, on a machine without a GPU."""
    monkeypatch.setenv("PATH", "")
    return runpy.run_path(str(SCRIPT))


def report(requires: list[str]) -> str:
    metadata = {"name": "torch", "version": "2.13.0", "requires_dist": requires}
    return json.dumps({"install": [{"metadata": metadata}]})


def planned(names, monkeypatch, text: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return names["main"]("planned")


@pytest.fixture
def system() -> str:
    return platform.system()


def test_cpu_build_passes(torch_build, monkeypatch):
    assert planned(torch_build, monkeypatch, report(requirements(cuda_on=None))) == 0


def test_cuda_build_is_refused_with_what_to_do(torch_build, monkeypatch, capsys, system):
    assert planned(torch_build, monkeypatch, report(requirements(cuda_on=system))) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "torch 2.13.0 would be installed: a CUDA build" in said
    assert "TORCH_INDEX_URL" in said


def test_cuda_of_another_platform_is_no_cuda_here(torch_build, monkeypatch):
    assert planned(torch_build, monkeypatch, report(requirements(cuda_on="Plan9"))) == 0


def test_cuda_build_passes_where_a_gpu_is(monkeypatch, tmp_path, system):
    driver = tmp_path / "nvidia-smi"
    driver.write_text("#!/bin/sh\necho 'GPU 0: Some GPU (UUID: 1)'\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    names = runpy.run_path(str(SCRIPT))
    assert planned(names, monkeypatch, report(requirements(cuda_on=system))) == 0


def test_driver_without_a_gpu_is_no_gpu(monkeypatch, tmp_path, system):
    driver = tmp_path / "nvidia-smi"
    driver.write_text("#!/bin/sh\necho 'No devices were found'\nexit 6\n")
    driver.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    names = runpy.run_path(str(SCRIPT))
    assert planned(names, monkeypatch, report(requirements(cuda_on=system))) == 2


def test_nothing_to_install_passes(torch_build, monkeypatch):
    assert planned(torch_build, monkeypatch, '{"install": []}') == 0


def fake_torch(folder: Path, requires: list[str]) -> None:
    """Write a wheel that says it is torch."""
    lines = [
        "Metadata-Version: 2.1",
        "Name: torch",
        "Version: 2.13.0",
        *(f"Requires-Dist: {r}" for r in requires),
    ]
    info = "torch-2.13.0.dist-info"
    with zipfile.ZipFile(folder / "torch-2.13.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


@pytest.mark.parametrize(("cuda", "expected"), [(False, 0), (True, 2)])
def test_it_reads_what_pip_itself_reports(torch_build, monkeypatch, tmp_path, system, cuda, expected):
    fake_torch(tmp_path, requirements(cuda_on=system if cuda else None))
    look = [
        "--dry-run",
        "--ignore-installed",
        "--no-deps",
        "--no-index",
        "--report",
        "-",
        tmp_path / "torch-2.13.0-py3-none-any.whl",
    ]
    said = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-qq", *look], capture_output=True, text=True, check=True
    )
    assert planned(torch_build, monkeypatch, said.stdout) == expected


def test_this_environment_holds_a_torch_that_fits():
    subprocess.run([sys.executable, SCRIPT, "installed"], check=True)
