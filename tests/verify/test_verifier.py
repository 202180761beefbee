"""The verifier interface: found by name, held to the contract; calibration against a plain reading."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lawful_dataset import write_small_dataset

from solar_rl.columns import label_columns, polars_type
from solar_rl.config import ValidityConfig
from solar_rl.errors import ConfigError, InputError
from solar_rl.evaluate.files import EvaluationData
from solar_rl.schema import SCORE_COLUMNS
from solar_rl.validity import score
from solar_rl.verify import load_verifier, rules, verify
from solar_rl.verify.calibration import calibrate

SCHEMA = {column.name: polars_type(column.dtype) for column in SCORE_COLUMNS}


def always_half(steps, candidates):
    """A verifier that is found by its import string."""
    half = {"raw_score": pl.lit(0.5), "valid": pl.lit(True), "unscored_reason": pl.lit(None, pl.String)}
    return candidates.with_columns(**half).select(*half)


NOT_CALLABLE = 5


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    labels = EvaluationData(str(write_small_dataset(tmp_path_factory.mktemp("small"))))
    candidates = labels.dataset.candidates.collect(engine="in-memory")
    return labels.described_steps(candidates, screenshots=True), candidates, labels.episodes


def test_rules_as_a_verifier_are_the_rules(data):
    steps, candidates, episodes = data
    labelled = label_columns(candidates, steps, episodes)
    for config in (ValidityConfig(), ValidityConfig(preset="lenient")):
        assert verify(rules(config), steps, candidates).equals(score(labelled, config))


def test_steps_come_with_goal_length_and_screenshot(data):
    steps, *_ = data
    assert steps["goal"].null_count() == steps["ref_len"].null_count() == 0
    assert all(shot.startswith(b"\x89PNG") for shot in steps["screenshot"])


def test_a_callable_is_found_by_its_import_string(data):
    scores = verify(load_verifier(f"{__name__}:always_half"), *data[:2])
    assert scores.columns == list(SCHEMA)
    assert set(scores["raw_score"]) == {0.5}
    assert scores["distance"].null_count() == scores.height


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("judge", "'judge' is no verifier"),
        ("no.such.module:judge", "can't be imported"),
        (f"{__name__}:missing", "can't be imported"),
        (f"{__name__}:NOT_CALLABLE", "can't be called"),
    ],
)
def test_a_wrong_name_is_refused(name, told):
    with pytest.raises(ConfigError, match=told):
        load_verifier(name)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ({"raw_score": [0.5, 0.5]}, "no column valid, unscored_reason"),
        ({"raw_score": [0.5], "valid": [True], "unscored_reason": [None]}, "1 rows for 2 candidates"),
        ({"raw_score": [0.5, 1.5], "valid": [True] * 2, "unscored_reason": [None] * 2}, "row 1: .*outside"),
        ({"raw_score": [0.5, None], "valid": [True] * 2, "unscored_reason": [None, "r"]}, "or neither"),
        ({"raw_score": [0.5, None], "valid": [True, None], "unscored_reason": [None] * 2}, "needs a reason"),
        ({"raw_score": [0.5, float("nan")], "valid": [True] * 2, "unscored_reason": [None] * 2}, "outside"),
    ],
)
def test_a_verifier_that_breaks_the_contract_is_refused(data, returned, told):
    with pytest.raises(InputError, match=told):
        verify(lambda *_: pl.DataFrame(returned), data[0], data[1].head(2))


row = st.tuples(
    st.sampled_from(["click", "wait"]),
    st.none() | st.floats(0, 1),
    st.sampled_from([None, True, False]),
)


def compare(rows):
    said = [None if score is None else score >= 0.5 for _, score, _ in rows]
    reason = ["r" if score is None else None for _, score, _ in rows]
    scores = [score for _, score, _ in rows]
    verifier = pl.DataFrame(
        {"raw_score": scores, "valid": said, "unscored_reason": reason}, schema_overrides=SCHEMA
    )
    yardstick = pl.DataFrame({"valid": pl.Series([valid for *_, valid in rows], dtype=pl.Boolean)})
    return calibrate(verifier, yardstick, pl.Series([kind for kind, *_ in rows], dtype=pl.String))


@given(st.lists(row, max_size=30))
def test_calibration_is_what_its_definitions_say(rows):
    found = compare(rows)
    both = [(kind, s, valid) for kind, s, valid in rows if s is not None and valid is not None]
    assert found.figures["compared"] == len(both) == found.curve["candidates"].sum()
    assert found.figures["unscored_by_verifier"] == sum(s is None for _, s, _ in rows)
    if not both:
        assert found.figures["ece"] is None
        return
    bins = {}
    for _, s, valid in both:
        bins.setdefault(min(9, int(s * 10)), []).append((s, valid))
    gaps = [
        abs(sum(s for s, _ in one) / len(one) - sum(v for _, v in one) / len(one)) * len(one)
        for one in bins.values()
    ]
    assert found.figures["ece"] == pytest.approx(sum(gaps) / len(both), abs=1e-9)
    assert found.figures["brier"] == pytest.approx(
        sum((s - v) ** 2 for _, s, v in both) / len(both), abs=1e-9
    )
    assert found.figures["agreement"] == pytest.approx(sum((s >= 0.5) == v for _, s, v in both) / len(both))
    for kind in found.by_type.to_dicts():
        mine = [(s, v) for name, s, v in both if name == kind["action_type"]]
        assert kind["accepts_what_rules_refuse"] == sum(s >= 0.5 and not v for s, v in mine)
        assert kind["refuses_what_rules_accept"] == sum(s < 0.5 and v for s, v in mine)


def test_a_calibrated_verifier_has_no_error_and_a_sure_one_has_all():
    calibrated = compare([("click", 0.75, i < 3) for i in range(4)])
    assert calibrated.figures["ece"] == pytest.approx(0)
    sure = compare([("click", 1.0, False)] * 4)
    assert sure.figures["ece"] == sure.figures["brier"] == 1
    assert sure.figures["agreement"] == 0
