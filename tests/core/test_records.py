"""Records are frozen, equal by value, and what the standard library takes for dataclasses."""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import asdict, fields, is_dataclass, replace
from typing import get_type_hints

import pytest

from solar_rl.actions import ACTION_FIELDS, Action
from solar_rl.errors import ActionError
from solar_rl.schema import Alternative, Episode, Screenshot, Step

CLICK = Action("click", x=0.5, y=0.25)
STEP = Step(0, CLICK, 10, 20, screenshot=Screenshot(b"x", 10, 20), alternatives=(Alternative(CLICK),))
EPISODE = Episode("e", "s", "web", "go", (STEP,))


@pytest.mark.parametrize("record", [CLICK, STEP, EPISODE, Alternative(CLICK)])
def test_a_record_is_a_frozen_value(record):
    for copy in (pickle.loads(pickle.dumps(record)), deepcopy(record), replace(record)):
        assert copy == record
        assert hash(copy) == hash(record)
    name = fields(record)[0].name
    with pytest.raises(AttributeError):
        setattr(record, name, None)
    with pytest.raises(AttributeError):
        record.other = 1
    assert is_dataclass(record)
    assert record != getattr(record, name)


def test_a_record_reads_as_the_class_that_it_was_written_as():
    assert repr(Alternative(Action("wait")))[:45] == "Alternative(action=Action(action_type='wait',"
    assert (Action.__module__, Action.__qualname__) == ("solar_rl.actions", "Action")
    assert Action.__doc__.startswith("One canonical action as flat fields")
    assert ACTION_FIELDS == Action.__match_args__ == tuple(asdict(CLICK))
    assert get_type_hints(Action)["x"] == float | None
    assert EPISODE.ref_len == 1
    assert not CLICK.off_screen


def test_a_changed_record_is_checked_again():
    assert replace(CLICK, x=0.75).x == 0.75
    with pytest.raises(ActionError, match="needs 'x'"):
        replace(CLICK, x=None)
    with pytest.raises(TypeError):
        replace(CLICK, nothing=1)
