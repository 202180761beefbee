"""The examples in the core's docstrings are true."""

import doctest
import importlib

import pytest

MODULES = [
    "actions",
    "advantage",
    "reconstruct",
    "rules.places",
    "rules.words",
    "shaping",
    "text",
    "validity",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(f"solar_rl.{name}")).failed == 0
