"""Sampling health says what a plain count over the rows says, and tells what to do."""

import math

import polars as pl
import pytest
from lawful_dataset import N, tables, write_small_dataset

from solar_rl import query, stats

ACTION = [
    *(
        "pred_action_type",
        "pred_direction",
        "pred_text",
        "pred_app_name",
        "pred_keys",
        "pred_button",
        "pred_status",
    ),
    *("pred_x", "pred_y", "pred_x2", "pred_y2"),
]
STEP = ["episode_id", "step_index"]


def health(folder, frames):
    with query.connect(write_small_dataset(folder, frames)) as con:
        return stats.compute(con, "sampling")


def table(answer, title):
    return next(found for name, found in answer.items() if name.startswith(title))


def sign(answer, what):
    (row,) = table(answer, "Is it worth").filter(pl.col("sign").str.contains(what)).to_dicts()
    return row


@pytest.fixture(scope="module")
def frames():
    return tables(40)


@pytest.fixture(scope="module")
def answer(tmp_path_factory, frames):
    return health(tmp_path_factory.mktemp("small"), frames)


def test_contexts_and_samples_are_counted_apart(answer, frames):
    (row,) = table(answer, "Contexts and samples").to_dicts()
    assert row["candidates"] == N
    assert row["contexts"] == frames["steps"].height
    assert row["samples"] == frames["candidates"].height
    outcomes = table(answer, "What groups can teach")
    assert outcomes["contexts"].sum() == frames["steps"].height
    assert outcomes["samples"].sum() == frames["candidates"].height
    assert outcomes["share"].sum() == pytest.approx(1)


def test_mixed_groups_are_those_with_valid_and_invalid_candidates(answer, frames):
    groups = (
        frames["rewards"]
        .group_by(STEP)
        .agg(
            valid=pl.col("valid").sum(),
            scored=pl.col("valid").count(),
            spread=pl.col("raw_score").max() - pl.col("raw_score").min(),
        )
        .filter(pl.col("scored") > 0)
    )
    mixed = ((groups["valid"] > 0) & (groups["valid"] < groups["scored"])).mean()
    (whole,) = answer["Pass@1 and pass@N"].to_dicts()
    assert whole["mixed"] == pytest.approx(mixed)
    assert whole["scores_differ"] == pytest.approx((groups["spread"] > 1e-12).mean())
    assert sign(answer, "some valid and some not")["share"] == pytest.approx(mixed)


def test_different_actions_and_their_entropy(answer, frames):
    cells = [(pl.col(name) * 25).floor() for name in ACTION[-4:]]
    told = frames["candidates"].with_columns(cells).group_by([*STEP, *ACTION]).len("n")
    groups = told.group_by(STEP).agg(
        different=pl.len(),
        n=pl.col("n").sum(),
        biggest=pl.col("n").max(),
        nlogn=(pl.col("n") * pl.col("n").log()).sum(),
    )
    (row,) = table(answer, "Different actions").to_dicts()
    assert row["actions_a_step"] == pytest.approx(groups["different"].mean())
    assert row["entropy"] == pytest.approx((1 - groups["nlogn"] / (N * math.log(N))).mean(), abs=1e-6)
    assert row["all_alike"] == pytest.approx((groups["different"] == 1).mean())
    assert row["share_of_the_commonest"] == pytest.approx(groups["biggest"].sum() / groups["n"].sum())


def test_answers_that_were_cut_and_prompts_that_lost_history(tmp_path, frames):
    row = pl.int_range(pl.len())
    changed = frames["candidates"].with_columns(
        finish_reason=pl.when(row % 10 == 0).then(pl.lit("length")).otherwise(pl.lit("stop")),
        history_dropped=pl.when(row % 4 == 0).then(3).otherwise(0).cast(pl.Int32),
    )
    answer = health(tmp_path, frames | {"candidates": changed})
    ends = {row["finish_reason"]: row for row in table(answer, "How answers end").to_dicts()}
    assert ends["length"]["candidates"] == (changed["finish_reason"] == "length").sum()
    assert sum(row["with_history_dropped"] for row in ends.values()) == (changed["history_dropped"] > 0).sum()
    cut = sign(answer, "cut at")
    assert (cut["verdict"], round(cut["share"], 1)) == ("bad", 0.1)
    assert "max_new_tokens" in cut["advice"]
    assert sign(answer, "lost its oldest")["verdict"] == "bad"


def test_missing_log_probs_are_flagged(tmp_path, frames):
    half = pl.int_range(pl.len()) % 2 == 0
    ids = pl.lit([1, 2, 3], pl.List(pl.Int32))
    known = pl.lit([-0.5, -1.0, -1.5], pl.List(pl.Float32))
    changed = frames["candidates"].with_columns(
        token_ids=ids, sampling_logprobs=pl.when(half).then(known).otherwise(None)
    )
    answer = health(tmp_path, frames | {"candidates": changed})
    found = sign(answer, "log-prob")
    assert (found["share"], found["verdict"], found["wanted"]) == (pytest.approx(0.5, abs=0.02), "bad", "all")
    (tokens,) = table(answer, "Tokens and log-probs").to_dicts()
    assert tokens["tokens_an_answer"] == 3
    assert tokens["mean_logprob_an_answer"] == -3
    assert tokens["entropy_a_token"] == pytest.approx(1)


def test_where_pilots_were_drawn_first_they_alone_tell_pass_at_1(tmp_path, frames):
    """Groups of 1 where the pilot is valid, of N where not: the pool would be full of hard steps."""
    rewards = frames["rewards"]
    pilots = rewards.filter(candidate_index=0).select(*STEP, pilot="valid")
    kept = (
        rewards.join(pilots, on=STEP, how="left", maintain_order="left")
        .filter((pl.col("candidate_index") == 0) | ~pl.col("pilot").fill_null(True))
        .drop("pilot")
    )
    left = frames["candidates"].join(kept, on=[*STEP, "candidate_index"], how="semi", maintain_order="left")
    answer = health(tmp_path, frames | {"rewards": kept, "candidates": left})
    (whole,) = answer["Pass@1 and pass@N"].to_dicts()
    assert whole["pass_at_1"] == pytest.approx(pilots["pilot"].drop_nulls().mean())
    assert whole["pass_at_1"] != pytest.approx(kept["valid"].mean())
    sizes = table(answer, "Contexts and samples")
    assert sizes["candidates"].to_list() == [1, N]
    assert sizes["contexts"].sum() == frames["steps"].height
    assert sizes["samples"].sum() == kept.height


def test_a_dataset_without_candidates_has_no_verdict(tmp_path, frames):
    empty = {name: frames[name].clear() for name in ("rewards", "candidates", "trajectories")}
    answer = health(tmp_path, frames | empty)
    assert set(table(answer, "Is it worth")["verdict"]) == {"not known"}
