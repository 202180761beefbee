"""docs/protocols.md says what the protocols say, and the docstrings' examples are true."""

import doctest
import importlib
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS))

from refresh_protocols import PAGE, refresh  # noqa: E402

from solar_rl.protocols import PROTOCOLS, VERDICT  # noqa: E402


def test_the_page_is_up_to_date():
    text = PAGE.read_text(encoding="utf-8")
    assert text == refresh(text), "run python docs/refresh_protocols.py"


def test_the_page_names_every_protocol_and_every_field_of_a_verdict():
    text = PAGE.read_text(encoding="utf-8")
    for protocol in PROTOCOLS.values():
        assert text.count(f"| `{protocol.name}` |") >= 3
        for field in (*VERDICT, *protocol.evidence):
            assert f"`{field}`" in text


def test_every_source_names_a_commit():
    for protocol in PROTOCOLS.values():
        assert protocol.name == "solar" or len(protocol.source.split()[1].rstrip(",")) == 8


@pytest.mark.parametrize(
    "name", ["qwen", "agentcpm_rft", "guir1", "guir1_reward", "gui_odyssey_official", "osatlas_ac"]
)
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(f"solar_rl.protocols.{name}"))
    assert result.attempted
    assert not result.failed
