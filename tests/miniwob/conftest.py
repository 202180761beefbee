"""One browser for all tests here; without one they are skipped, unless a browser is required."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator

import pytest

from builders.miniwob import MiniWobEnv
from builders.miniwob.browser import find_browser
from solar_rl.errors import InputError


def missing() -> str | None:
    """What a MiniWoB++ page can't be opened without."""
    if importlib.util.find_spec("miniwob") is None:
        return "the extra miniwob isn't installed"
    try:
        find_browser(None, None)
    except InputError as error:
        return str(error)
    return None


@pytest.fixture(scope="session")
def a_browser() -> None:
    """Skip where there is no browser; fail where one is required."""
    lack = missing()
    if lack and os.environ.get("REQUIRE_BROWSER") == "1":
        pytest.fail(f"REQUIRE_BROWSER=1, but {lack}")
    if lack:
        pytest.skip(lack)


@pytest.fixture(scope="session")
def env(a_browser: None) -> Iterator[MiniWobEnv]:
    """An environment that takes screenshots."""
    with MiniWobEnv() as one:
        yield one


@pytest.fixture
def no_programs(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """A machine without any browser."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("MINIWOB_CHROME_BINARY", "MINIWOB_CHROMEDRIVER"):
        monkeypatch.delenv(name, raising=False)
    assert shutil.which("chromium") is None
