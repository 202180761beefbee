"""Credits of the recipes: against the oracle, by hand, and what they refuse."""

import oracle
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import paths_frame, scored_frames, shaping_configs

from solar_rl.advantage import CREDITS, STEP_CREDITS, WEIGHTS, credit
from solar_rl.config import AdvantageConfig, ShapingConfig
from solar_rl.errors import ConfigError
from solar_rl.shaping import shape

PATH = ["episode_id", "candidate_index"]


def joined(frame, config=None):
    """Shape a frame and join what ``credit`` reads."""
    rewards, trajectories = shape(frame, config or ShapingConfig(), AdvantageConfig())
    facts = trajectories.select(*PATH, "success", "trajectory_reward", "first_failure_step")
    key = ["episode_id", "step_index", "candidate_index"]
    rewards = rewards.join(frame.select(*key, "ref_len"), on=key, how="left", maintain_order="left")
    return rewards.join(facts, on=PATH, how="left", maintain_order="left")


def advantages(frame, name, weight="none", **more):
    return (
        credit(joined(frame), name, weight, **more)
        .sort("candidate_index", "step_index")["credit_advantage"]
        .to_list()
    )


@settings(max_examples=250)
@given(
    scored_frames(),
    shaping_configs,
    st.sampled_from(CREDITS),
    st.sampled_from(WEIGHTS),
    st.sampled_from([None, 0.4]),
)
def test_every_credit_equals_the_oracle(frame, config, name, weight, floor):
    if weight == "log_success" and name not in STEP_CREDITS:
        return
    rows = joined(frame, config)
    got = credit(rows, name, weight, weight_floor=floor)
    assert got.select(rows.columns).equals(rows)
    want = oracle.credit(rows.to_dicts(), name, weight, floor)
    for row in got.iter_rows(named=True):
        values = row["credit_reward"], row["credit_advantage"]
        assert values == tuple(
            v if v is None else pytest.approx(v, abs=1e-9, rel=1e-9) for v in want[oracle.key(row)]
        )


@given(scored_frames(), st.sampled_from(CREDITS))
def test_dropped_reasons_tell_why_nothing_is_learned(frame, name):
    got = credit(joined(frame, ShapingConfig(alignment="paper")), name)
    out = got["credit_advantage"].is_null()
    reasons = {"unscored", "no trajectory", "after the breakdown"}
    assert set(got.filter(out)["dropped_reason"]) <= reasons
    assert set(got.filter(~out)["dropped_reason"]) <= {None, "one candidate", "no spread"}
    flat = got.filter(~out & got["dropped_reason"].is_not_null())
    assert (flat["credit_advantage"] == 0.0).all() and flat["credit_weight"].is_null().all()
    assert (got["dropped_reason"].is_null() == got["credit_weight"].is_not_null()).all()
    assert (got["raw_score"].is_null() == (got["dropped_reason"] == "unscored").fill_null(False)).all()


@given(scored_frames(), st.sampled_from(STEP_CREDITS), st.sampled_from(WEIGHTS))
def test_step_credits_sum_to_zero_in_each_group(frame, name, weight):
    got = (
        credit(joined(frame), name, weight)
        .group_by("episode_id", "step_index")
        .agg(pl.col("credit_advantage").sum())
    )
    assert got["credit_advantage"].abs().max() in (None, pytest.approx(0, abs=1e-9))


@given(scored_frames(whole=True, min_candidates=2), st.sampled_from(["step_local", "atomic"]))
def test_equal_actions_at_a_step_get_equal_credit(frame, name):
    got = credit(joined(frame), name).drop_nulls("credit_reward")
    for _, group in got.group_by("episode_id", "step_index", "raw_score", "pred_action_type"):
        assert group["credit_advantage"].n_unique() == 1


def test_solar_is_the_datasets_own_column():
    rows = joined(paths_frame([[1.0, 0.2, 1.0], [0.6, 1.0, 1.0], [0.0, 1.0, 0.5]]))
    got = credit(rows, "solar")
    assert got["credit_advantage"].equals(rows["advantage"], check_names=False)
    assert got["credit_reward"].equals(rows["reward"], check_names=False)


def test_sparse_spreads_success_over_the_kept_steps():
    frame = paths_frame([[1.0, 1.0, 1.0], [1.0, 0.2, 1.0]])
    assert advantages(frame, "sparse") == [0.5, 0.5, 0.5, -0.5, -0.5, None]


def test_sparse_r_traj_is_std_normalised_by_the_weight():
    frame = paths_frame([[1.0, 1.0], [1.0, 0.2]])
    assert advantages(frame, "sparse_rtraj", "std")[:2] == pytest.approx([0.5**0.5] * 2)
    plain = (1.0 - (0.3 * 0.6 + 0.3 * 0.5)) / 2
    assert advantages(frame, "sparse_rtraj") == pytest.approx([plain, plain, -plain, -plain])


def test_log_success_divides_by_the_share_of_valid_candidates():
    frame = paths_frame([[1.0], [0.0], [0.0], [0.2]])
    local = advantages(frame, "step_local")
    assert advantages(frame, "step_local", "log_success") == pytest.approx([a / 0.25 for a in local])
    hopeless = paths_frame([[0.1], [0.0], [0.0], [0.2]])
    local = advantages(hopeless, "step_local")
    assert advantages(hopeless, "step_local", "log_success") == pytest.approx([a * 4 for a in local])
    assert advantages(hopeless, "step_local", "log_success", weight_floor=0.5) == pytest.approx(
        [a * 2 for a in local]
    )


def test_log_success_of_0_1_validity_is_the_gradient_of_log_p():
    frame = paths_frame([[1.0], [1.0], [0.0], [0.0], [0.0]])
    p = 2 / 5
    assert advantages(frame, "step_local", "log_success") == pytest.approx([(1 - p) / p] * 2 + [-1.0] * 3)


def test_atomic_trains_on_indices_that_form_no_trajectory():
    frame = paths_frame([[1.0, 1.0], [0.0, 1.0]])
    frame = frame.filter((pl.col("step_index") == 0) | (pl.col("candidate_index") == 0))
    for name in ("atomic", "step_local"):
        assert credit(joined(frame), name)["credit_advantage"].null_count() == 0
    for name in ("solar", "sparse", "sparse_rtraj", "ui_s1"):
        got = credit(joined(frame), name).filter(pl.col("candidate_index") == 1)
        assert got["dropped_reason"].to_list() == ["no trajectory"]


def test_atomic_pays_a_tenth_for_an_answer_that_parses():
    got = credit(joined(paths_frame([[0.2], [0.0]])), "atomic")
    assert got["pred_action_type"].is_null().to_list() == [False, True]
    assert got["credit_reward"].to_list() == pytest.approx([0.1 + 0.9 * 0.2, 0.0])


def test_log_success_needs_step_groups():
    rows = joined(paths_frame([[1.0], [0.0]]))
    for name in set(CREDITS) - set(STEP_CREDITS):
        with pytest.raises(ConfigError, match=f"advantage_weight: log_success .* credit: {name}"):
            credit(rows, name, "log_success")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sola",), "credit is 'sola', expected one of solar, "),
        (("solar", "log"), "advantage_weight is 'log', expected one of none, "),
    ],
)
def test_unknown_names_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        credit(joined(paths_frame([[1.0]])), *arguments)
    with pytest.raises(ConfigError, match="weight_floor is 0"):
        credit(joined(paths_frame([[1.0]])), "solar", weight_floor=0)


def test_no_rows_are_no_trouble():
    rows = joined(paths_frame([[1.0]])).clear()
    for name in CREDITS:
        assert credit(rows, name).height == 0
