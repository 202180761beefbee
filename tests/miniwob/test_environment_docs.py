"""The examples of docs/environments.md run and come out as they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from solar_rl.closed_loop import SuiteResult

PAGE = Path(__file__).parents[2] / "docs" / "environments.md"
PHONE, MINIWOB = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)


def result_of(example: str) -> SuiteResult:
    """Run an example as a reader would and return what it calls its result."""
    names: dict[str, Any] = {}
    exec(example, names)
    return names["result"]


def test_the_phone_s_example_plays_five_episodes_to_their_goal():
    overall = result_of(PHONE).overall
    assert (overall.episodes, overall.success) == (5, 1.0)


@pytest.mark.browser
def test_miniwob_s_example_plays_three_episodes_to_their_goal(a_browser):
    overall = result_of(MINIWOB).overall
    assert (overall.episodes, overall.success) == (3, 1.0)
