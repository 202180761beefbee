from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from android_control_writer import Recording, write_shard

from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.schema import Episode, Reject

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
Items = list[Episode | Reject]


@pytest.fixture
def read() -> Callable[..., Items]:
    """Read everything a builder gives for a path."""

    def _read(builder: str, path: Path, **options: Any) -> Items:
        made = load_builder(SourceConfig(builder=builder, path=str(path), options=options))
        return [item for shard in made.shards() for item in made.read(shard)]

    return _read


@pytest.fixture
def read_shard(tmp_path: Path, read: Callable[..., Items]) -> Callable[..., Items]:
    """Write recordings as one shard and read it."""

    def _read(records: Iterable[Recording | bytes], **options: Any) -> Items:
        write_shard(tmp_path / "android_control-00000-of-00001", records)
        return read("android_control", tmp_path, **options)

    return _read


@pytest.fixture
def shared() -> Path:
    """Return the folder of real data, or skip."""
    if not SHARED.is_dir():
        pytest.skip("no shared data folder beside the checkout")
    return SHARED
