"""A loopback Hub, a dataset to publish, and an environment that points at nothing else."""

import os
import subprocess
import sys

import pytest
from lawful_dataset import tables, write_small_dataset
from loopback_hub import TOKEN, Hub

os.environ.setdefault("HF_HUB_DISABLE_XET", "1")


@pytest.fixture
def hub():
    with Hub() as running:
        yield running


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A small dataset that nobody changes."""
    return write_small_dataset(tmp_path_factory.mktemp("built") / "small", tables(6))


@pytest.fixture
def folder(tmp_path):
    """A small dataset of the test's own."""
    return write_small_dataset(tmp_path / "small", tables(6))


@pytest.fixture
def env(hub, tmp_path, monkeypatch):
    """This process and its children speak to the loopback Hub, with a cache of the test's own."""
    from huggingface_hub import constants

    home = tmp_path / "hf"
    values = {
        "HF_HOME": str(home),
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": TOKEN,
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # other tests of the same worker set it
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))
    return os.environ | values


@pytest.fixture
def no_waiting(monkeypatch):
    """Waits between attempts take no time; the list says how long they would have been."""
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    monkeypatch.setattr("tenacity.nap.time.sleep", waits.append)
    return waits


@pytest.fixture
def solar(env):
    """Run the command line in a process of its own."""

    def run(*words: object, code: int = 0, **changes: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "solar_rl.cli", *map(str, words)]
        done = subprocess.run(
            command, env=env | changes, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return run
