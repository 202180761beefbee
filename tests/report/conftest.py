"""The dataset that the report's tests share."""

from pathlib import Path

import pytest
from hand_made import build


@pytest.fixture(scope="session")
def dataset(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("dataset"))
