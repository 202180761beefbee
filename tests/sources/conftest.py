from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture
def shared() -> Path:
    """Return the folder of real data, or skip."""
    if not SHARED.is_dir():
        pytest.skip("no shared data folder beside the checkout")
    return SHARED
