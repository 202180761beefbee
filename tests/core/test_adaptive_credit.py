"""Groups of 1 and N, as adaptive sampling leaves them: what each is credited with."""

import polars as pl
import pytest
from strategies import paths_frame
from test_credit import joined

from solar_rl.advantage import credit

N = 4
SCORES = [[1.0, 0.2, 0.0], [1.0, 0.9, 0.1], [1.0, 0.0, 0.8], [1.0, 0.6, 0.3]]
"""Candidates by steps: at step 0 the pilot is valid, so the others were never drawn."""


def adaptive_rows():
    frame = paths_frame(SCORES)
    asked_once = (pl.col("step_index") == 0) & (pl.col("candidate_index") > 0)
    return joined(frame.filter(~asked_once))


def of_step(rows, step):
    return rows.filter(step_index=step).sort("candidate_index")


@pytest.mark.parametrize("name", ["step_local", "atomic"])
@pytest.mark.parametrize("weight", ["none", "log_success"])
def test_a_group_of_one_teaches_nothing_and_is_told_so(name, weight):
    row = of_step(credit(adaptive_rows(), name, weight), 0)
    assert row["credit_advantage"].to_list() == [0.0]
    assert row["credit_weight"].to_list() == [None]
    assert row["dropped_reason"].to_list() == ["one candidate"]


def test_a_group_of_n_gets_the_leave_one_out_form_up_to_one_factor_of_all_groups():
    """(s - mean) / (n - 1) / max(p, floor) a sample; a trainer's mean over the group's n rows divides by n instead."""
    floor = 1 / N
    got = credit(adaptive_rows(), "step_local", "log_success", weight_floor=floor)
    for step in (1, 2):
        scores = [path[step] for path in SCORES]
        share = sum(score >= 0.5 for score in scores) / N
        mean = sum(scores) / N
        leave_one_out = [(score - mean) / (N - 1) / max(share, floor) for score in scores]
        others = [(sum(scores) - score) / (N - 1) for score in scores]
        by_hand = [
            (score - other) / N / max(share, floor) for score, other in zip(scores, others, strict=True)
        ]
        assert leave_one_out == pytest.approx(by_hand), (
            "minus the mean of the others, averaged over the group"
        )
        in_group = [each / N for each in of_step(got, step)["credit_advantage"]]
        assert [each * N / (N - 1) for each in in_group] == pytest.approx(leave_one_out)


def test_the_pilot_counts_in_the_share_of_valid_candidates():
    got = of_step(credit(adaptive_rows(), "step_local", "log_success"), 1)
    assert got["credit_weight"].to_list() == pytest.approx([1 / 0.5] * N)


def test_rows_that_form_no_trajectory_keep_score_and_verdict_alone():
    rows = adaptive_rows()
    outside = rows.filter(pl.col("candidate_index") > 0)
    assert outside["raw_score"].null_count() == 0
    for name in ("position", "segment_index", "base_reward", "gap_share", "reward", "advantage"):
        assert outside[name].null_count() == outside.height, name
