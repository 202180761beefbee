"""A figure under a rule that counts every box says so where a box is the whole screen."""

import json

import polars as pl
import pytest

from solar_rl.cli import main
from solar_rl.evaluate.caveats import EVERY_BOX, caveat
from solar_rl.evaluate.suites import StepSuite, load_suite, suite_names
from solar_rl.protocols import PROTOCOLS

ROOT, BUTTON = [0.0, 0.0, 1.0, 1.0], [0.4, 0.4, 0.6, 0.5]


def steps(*boxes, action="click"):
    schema = {"action_type": pl.String, "candidate_boxes": pl.List(pl.List(pl.Float64))}
    return pl.DataFrame({"action_type": [action] * len(boxes), "candidate_boxes": list(boxes)}, schema)


@pytest.mark.parametrize("protocol", EVERY_BOX)
def test_a_whole_screen_box_at_some_steps_is_told_with_their_number(protocol):
    told = caveat(protocol, steps([ROOT, BUTTON], [BUTTON], [BUTTON, ROOT], []))
    assert told.startswith("at 2 of 4 steps that point") and protocol in told


def test_nothing_is_told_where_no_figure_suffers():
    assert caveat("uis1_eval", steps([BUTTON], [], [[0.0, 0.0, 1.0, 0.9]])) is None
    assert caveat("uis1_eval", steps([ROOT], action="type")) is None
    assert caveat("uis1_eval", steps()) is None
    others = set(PROTOCOLS) - set(EVERY_BOX)
    assert {caveat(name, steps([ROOT])) for name in others} == {None}


def test_rules_that_count_every_box_are_known():
    """Each rule says in words which boxes it counts; those that count more than the one that is meant are named."""
    several = {name for name, each in PROTOCOLS.items() if "single" not in each.rules.boxes}
    none = {name for name, each in PROTOCOLS.items() if each.rules.boxes.startswith(("none", "the smallest"))}
    assert several - none == set(EVERY_BOX)


def test_phone_suites_use_no_such_rule_and_asking_for_one_is_answered_with_the_note(tmp_path, capsys):
    suites = [load_suite(name) for name in suite_names()]
    phones = [each for each in suites if isinstance(each, StepSuite) and each.source["builder"] == "phone"]
    assert phones and not [each for each in phones if set(each.protocols) & set(EVERY_BOX)]
    words = [
        "--suite",
        "phone_steps",
        "--source.options.episodes",
        "2",
        "--sampler",
        "expert",
        "--bootstrap",
        "0",
    ]
    for protocol in ("uis1_eval", "solar"):
        with pytest.raises(SystemExit):
            main(["evaluate", *words, "--protocol", protocol, "--out", str(tmp_path / protocol)])
        assert ("a box covers the whole screen" in capsys.readouterr().out) == (protocol == "uis1_eval")
    [found] = json.loads((tmp_path / "uis1_eval" / "report.json").read_text())["protocols"]
    count = next(row["steps"] for row in found["by"]["action_type"] if row["action_type"] == "click")
    assert found["caveat"].startswith(f"at {count} of {count} steps")
