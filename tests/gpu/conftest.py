"""Checks that need a GPU: skipped without one, failed where REQUIRE_GPU=1 says that there must be one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "sampling"))


@pytest.fixture(scope="session")
def gpus() -> int:
    """How many GPUs there are, at least one."""
    torch = pytest.importorskip("torch")
    count = torch.cuda.device_count()
    if not count and os.environ.get("REQUIRE_GPU") == "1":
        pytest.fail("REQUIRE_GPU=1, and torch sees no GPU")
    if not count:
        pytest.skip("no GPU")
    return int(count)


@pytest.fixture(scope="session")
def policy(tmp_path_factory, gpus) -> Path:
    """A model that sees: the one that SOLAR_RL_GPU_MODEL names, else a tiny random Qwen2.5-VL."""
    from solar_rl.train.tiny import make_tiny_policy

    named = os.environ.get("SOLAR_RL_GPU_MODEL")
    return Path(named) if named else make_tiny_policy(tmp_path_factory.mktemp("policies") / "tiny-vl")
