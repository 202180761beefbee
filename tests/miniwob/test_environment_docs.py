"""The examples of docs/environments.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "environments.md"
PHONE, MINIWOB = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def test_the_phone_s_example_runs():
    exec(PHONE, {})


@pytest.mark.browser
def test_miniwob_s_example_runs(a_browser):
    exec(MINIWOB, {})
