"""A build that is killed while its engine starts or samples goes on to the same rows, and leaves no engine behind."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("vllm")
pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1800)]

ENDS_WITHIN = 20.0
"""Seconds in which the processes of a killed sampler must be gone."""


def command(out: Path, cache: Path, policy: Path, tmp: Path) -> list[str]:
    fields = {
        "source.options.episodes": 6,
        "source.options.buckets": "{short: 1.0, long: 0, super_long: 0}",
        "prompt.format": "json",
        "prompt.max_pixels": 50176,
        "sampler.type": "vllm",
        "sampler.model": policy,
        "sampler.n": 4,
        "sampler.dtype": "float32",
        "sampler.enforce_eager": "true",
        "sampler.max_model_len": 2048,
        "sampler.max_new_tokens": 24,
        "sampler.in_flight": 1,
        "shard_episodes": 2,
    }
    words = [word for name, value in fields.items() for word in (f"--{name}", str(value))]
    words = _without_sampler_defaults(words, tmp)
    return [sys.executable, "-m", "solar_rl.cli", "build", *words, "--out", str(out), "--cache", str(cache)]


def _without_sampler_defaults(words: list[str], tmp: Path) -> list[str]:
    """Use the phone's dataset.yaml without what only the scripted sampler has."""
    import yaml

    from solar_rl.shipped import shipped_path

    config = yaml.safe_load(shipped_path("datasets", "phone", "dataset.yaml").read_text())
    del config["sampler"]
    path = tmp / "phone.yaml"
    path.write_text(yaml.safe_dump(config))
    return [str(path), *words]


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def engines(victim: subprocess.Popen[bytes]) -> list:
    import psutil

    return psutil.Process(victim.pid).children(recursive=True)


def answered(cache: Path) -> int:
    return sum(path.stat().st_size for path in cache.glob("requests/*.segment"))


def kill_when(moment, words: list[str]) -> None:
    """Start a build, kill it when the moment has come, and see that all its processes end."""
    import psutil

    victim = subprocess.Popen(words, stderr=subprocess.DEVNULL, start_new_session=True)
    while not moment(victim):
        try:
            victim.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail("the build ended before it was killed")
    children = engines(victim)
    assert children
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    _, alive = psutil.wait_procs(children, timeout=ENDS_WITHIN)
    left = [" ".join(p.cmdline()) for p in alive if p.status() != psutil.STATUS_ZOMBIE]
    for process in alive:
        process.kill()
    assert not left


def test_kills_while_it_starts_and_while_it_samples(seeing, tmp_path):
    out, cache = tmp_path / "ds", tmp_path / "cache"
    words = command(out, cache, seeing, tmp_path)

    def starting(victim):
        return any("spawn_main" in " ".join(p.cmdline()) or "EngineCore" in p.name() for p in engines(victim))

    def further(bytes_more):
        had = answered(cache)
        return lambda victim: answered(cache) > had + bytes_more

    kill_when(starting, words)
    kill_when(further(2000), words)
    kill_when(further(2000), words)
    assert not (out / "manifest.json").exists()
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    straight = command(tmp_path / "straight", tmp_path / "other-cache", seeing, tmp_path)
    done = subprocess.run(straight, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert hashes(out) == hashes(tmp_path / "straight")
