"""The same predictions under every protocol: side by side, and where they differ."""

import json

import pytest
from lawful_dataset import write_small_dataset

from solar_rl.evaluate import evaluate, prepare
from solar_rl.evaluate.compare import disagreements, side_by_side
from solar_rl.evaluate.files import EvaluationData
from solar_rl.evaluate.predictions import read_predictions
from solar_rl.evaluate.verdicts import NAMES


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Every step is answered by a click at 0.5, 0.35: 0.1 below the click labels, and outside their box."""
    labels = EvaluationData(str(write_small_dataset(tmp_path_factory.mktemp("small"))))
    lines = [
        json.dumps({"episode_id": episode, "step_index": step, "action_type": "click", "x": 0.5, "y": 0.35})
        for episode, step in labels.steps.select("episode_id", "step_index").iter_rows()
    ]
    predictions = read_predictions(lines, where="p", frame_of=lambda _: None)
    return prepare(predictions, labels.steps, labels.episodes)


@pytest.fixture(scope="module")
def every(cases):
    return [evaluate(cases, name, resamples=0, groups=False) for name in NAMES]


def test_every_protocol_judges_or_drops_every_step(cases, every):
    table = side_by_side(every)
    assert table["protocol"].to_list() == list(NAMES)
    assert set(table["judged"] + table["dropped"]) == {cases.rows.height}
    assert len({each.source for each in every}) == len(NAMES)


def test_wide_and_narrow_radii_disagree_about_a_near_miss(cases, every):
    found = disagreements(cases, every)
    worst = found.row(0, named=True)
    assert worst["label"] == "click at 50.0 %, 25.0 %"
    assert worst["prediction"] == "click at 50.0 %, 35.0 %"
    assert "osatlas_ac" in worst["exact"]
    assert "gui_odyssey_official" in worst["exact"]
    assert "solar" in worst["not_exact"]
    assert "agentcpm_rft" not in worst["exact"] + worst["not_exact"], "it has no exact match, so no vote"


def test_the_most_evenly_split_come_first_and_no_more_than_asked(cases, every):
    found = disagreements(cases, every, limit=3)
    assert found.height == 3
    smaller = [
        min(len(row["exact"].split(", ")), len(row["not_exact"].split(", "))) for row in found.to_dicts()
    ]
    assert smaller == sorted(smaller, reverse=True)


def test_agreement_is_no_disagreement(cases, every):
    assert disagreements(cases, every[:1]).height == 0
