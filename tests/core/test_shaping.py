"""The laws of shaping, its golden numbers, and every column against the plain-Python oracle."""

import itertools
import math

import numpy as np
import oracle
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from strategies import SCORED, paths_frame, scored_frames, scored_row, shaping_configs, unit

from solar_rl.columns import polars_schema
from solar_rl.config import AdvantageConfig, ShapingConfig
from solar_rl.errors import InputError
from solar_rl.shaping import shape

PLAIN = AdvantageConfig()
KEY = ["episode_id", "step_index", "candidate_index"]
PATH = ["episode_id", "candidate_index"]
ALIGNMENTS = ("off", "paper", "prefix_mean", "segments")


def shaped(frame, alignment="segments", **more):
    return shape(frame, ShapingConfig(alignment=alignment, **more), PLAIN)


def path_rewards(*scores, alignment="segments", **more):
    """Return the rewards of one trajectory's steps, and its row."""
    rewards, trajectories = shaped(paths_frame([scores]), alignment, **more)
    return rewards["reward"].to_list(), trajectories.row(0, named=True)


# ---- golden values: the hazard table (N_ref = 10, default weights)

HAZARD = {  # scores: R_traj, then reward at step 0 and at the last kept step by mode
    "fails at step 1": ([1.0, 0.2] + [1.0] * 8, 0.210, (1.010, -0.80), (1.210, -1.0), (0.210, -0.80)),
    "fails at step 1, worse": ([1.0, 0.0] + [1.0] * 8, 0.180, (1.180, -1.00), (1.180, -1.0), (0.180, -1.00)),
    "fails at the last step": ([1.0] * 9 + [0.2], 0.546, (0.1496, -0.80), (0.1718, -1.0), (0.546, -0.80)),
    "success": ([1.0] * 10, 1.000, (0.100, 0.10), (0.100, 0.1), (1.000, 1.00)),
}


@pytest.mark.parametrize("name", HAZARD)
def test_hazard_table(name):
    scores, r_traj, paper, unit_mass, prefix_mean = HAZARD[name]
    modes = (("paper", "none"), ("paper", "unit_mass"), ("prefix_mean", "none"))
    for (alignment, normalisation), (first, last) in zip(modes, (paper, unit_mass, prefix_mean), strict=True):
        rewards, trajectory = path_rewards(*scores, alignment=alignment, normalisation=normalisation)
        kept = [r for r in rewards if r is not None]
        assert trajectory["trajectory_reward"] == pytest.approx(r_traj, abs=1e-12)
        assert (kept[0], kept[-1]) == (pytest.approx(first, abs=1e-4), pytest.approx(last, abs=1e-4))


def test_segments_by_hand():
    rewards, trajectory = path_rewards(1.0, 0.2, 0.6, 0.8)
    first, second = 0.3 * 0.6 + 0.3 / 4, 0.3 * 0.7 + 0.3 * 2 / 4
    assert rewards == pytest.approx([first, -0.8, 0.6 + second - 0.7, 0.8 + second - 0.7])
    assert trajectory["target_reward"] == pytest.approx(first - 0.8 + 2 * second) == trajectory["reward_sum"]
    assert trajectory["trajectory_reward"] == pytest.approx(first) and trajectory["alignment"] == "aligned"


def test_penalise_by_hand():
    rewards, trajectory = path_rewards(1.0, 0.2, 0.4, 0.8, alignment="prefix_mean", suffix="penalise")
    assert rewards == pytest.approx([0.3 * 0.6 + 0.3 / 4, -0.8, -0.6, 0.0])
    assert trajectory["target_reward"] == pytest.approx(0.255 - 0.8 - 0.6)


def test_failing_at_once_leaves_nothing_to_carry_the_gap():
    for alignment in ALIGNMENTS[:3]:
        rewards, trajectory = path_rewards(0.2, 1.0, alignment=alignment)
        assert rewards == [pytest.approx(-0.8), None]
        assert (trajectory["alignment"], trajectory["valid_prefix_len"]) == ("no_prefix", 0)
    rewards, trajectory = path_rewards(0.2, 1.0)
    assert rewards == [pytest.approx(-0.8), pytest.approx(0.3 + 0.15)]
    assert trajectory["alignment"] == "aligned" and trajectory["trajectory_reward"] == pytest.approx(0.06)


def test_off_leaves_bases_as_they_are():
    rewards, trajectory = path_rewards(0.9, 0.6, 0.2, 1.0, alignment="off")
    assert rewards == [0.9, 0.6, pytest.approx(-0.8), None]
    assert trajectory["target_reward"] == trajectory["reward_sum"] == pytest.approx(0.7)
    assert trajectory["alignment"] == "off"


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_a_trajectory_of_unscored_steps_is_no_success_story(alignment):
    rewards, trajectory = path_rewards(None, None, alignment=alignment)
    assert rewards == [None, None]
    assert trajectory["success"] and trajectory["valid_prefix_len"] == 2 and trajectory["reward_sum"] == 0.0
    assert trajectory["alignment"] == "no_prefix"
    assert [trajectory[n] for n in ("trajectory_reward", "mean_raw_score", "target_reward")] == [None] * 3


@pytest.mark.parametrize("alignment", ["paper", "prefix_mean", "segments"])
def test_an_unscored_step_counts_in_progress_and_in_no_mean(alignment):
    rewards, trajectory = path_rewards(1.0, None, 0.2, 1.0, alignment=alignment)
    assert rewards[1] is None and trajectory["first_failure_step"] == 2
    assert trajectory["valid_prefix_len"] == 2 and trajectory["mean_raw_score"] == pytest.approx(0.6)
    assert trajectory["trajectory_reward"] == pytest.approx(0.3 * 0.6 + 0.3 * 2 / 4)


def test_a_valid_step_with_score_zero_carries_its_share():
    frame = paths_frame([[0.0, 0.0, 0.4]], threshold=0.0)
    for alignment in ALIGNMENTS:
        for normalisation in ("none", "unit_mass") if alignment != "segments" else ("none",):
            rewards, trajectories = shaped(frame, alignment, normalisation=normalisation)
            assert trajectories["success"].all() and rewards["position"].eq("prefix").all()
            assert trajectories["reward_sum"][0] == pytest.approx(trajectories["target_reward"][0], abs=1e-12)


def test_an_index_without_a_candidate_at_every_step_forms_no_trajectory():
    frame = paths_frame([[1.0, 1.0, 0.2], [1.0, 0.0, 1.0]])
    frame = frame.filter((pl.col("step_index") != 1) | (pl.col("candidate_index") != 1))
    rewards, trajectories = shaped(frame)
    assert trajectories["candidate_index"].to_list() == [0]
    alone = rewards.filter(pl.col("candidate_index") == 1)
    assert alone["raw_score"].to_list() == [1.0, 1.0] and alone["valid"].all()
    columns = ("position", "segment_index", "base_reward", "gap_share", "reward", "advantage")
    assert alone.select(pl.col(columns).is_null().all()).row(0) == (True,) * 6
    assert rewards.filter(pl.col("candidate_index") == 0)["advantage"].to_list() == [0.0, 0.0, 0.0]


def test_failures_are_described():
    frame = paths_frame([[1.0, 0.2, 1.0]])
    trajectory = shaped(frame).trajectories.row(0, named=True)
    assert trajectory["first_failure_step"] == 1 and not trajectory["success"]
    assert [trajectory[f"failure_{what}"] for what in ("action_type", "app", "reason")] == [
        "click",
        "app1",
        "too_far",
    ]


def test_rows_out_of_order_and_double_keys_are_refused():
    frame = paths_frame([[1.0, 0.2], [1.0, 1.0]])
    for wrong in (frame.reverse(), pl.concat([frame[:1], frame])):
        with pytest.raises(InputError, match="sorted by episode_id, step_index, candidate_index"):
            shaped(wrong)


def test_no_rows_are_no_trouble():
    for alignment in ALIGNMENTS:
        rewards, trajectories = shaped(pl.DataFrame(schema=SCORED), alignment)
        assert rewards.schema == polars_schema("rewards") and rewards.height == 0
        assert trajectories.schema == polars_schema("trajectories") and trajectories.height == 0


# ---- laws


@settings(max_examples=300)
@given(scored_frames(), shaping_configs, st.sampled_from(["none", "std"]))
def test_every_column_equals_the_oracle(frame, config, scale):
    rewards, trajectories = shape(frame, config, AdvantageConfig(scale=scale))
    assert rewards.schema == polars_schema("rewards") and trajectories.schema == polars_schema("trajectories")
    passed_on = [name for name in SCORED if name != "ref_len"]
    assert rewards.select(passed_on).equals(frame.select(passed_on))
    steps, paths = oracle.shape(frame.to_dicts(), config, scale)
    assert [oracle.key(row) for row in rewards.iter_rows(named=True)] == sorted(steps)
    for row in rewards.iter_rows(named=True):
        assert {n: row[n] for n in steps[oracle.key(row)]} == close(steps[oracle.key(row)])
    assert trajectories.select(PATH).rows() == sorted(paths)
    for row in trajectories.iter_rows(named=True):
        want = paths[row["episode_id"], row["candidate_index"]]
        assert {n: row[n] for n in want} == close(want)


def close(values):
    return {k: pytest.approx(v, abs=1e-9, rel=1e-9) if isinstance(v, float) else v for k, v in values.items()}


@given(scored_frames(), shaping_configs)
def test_prefixes_are_valid_and_the_first_failure_is_not(frame, config):
    rewards, trajectories = shape(frame, config, PLAIN)
    steps = rewards.join(trajectories.select(*PATH, "first_failure_step", "valid_prefix_len"), on=PATH)
    failure = pl.col("first_failure_step")
    before = steps.filter(failure.is_null() | (pl.col("step_index") < failure))
    assert before["valid"].fill_null(True).all() and (before["segment_index"] == 0).all()
    at = steps.filter(pl.col("step_index") == failure)
    assert not at["valid"].any() and (at["position"] == "breakdown").all()
    assert (at["valid_prefix_len"] == at["step_index"]).all()


@given(scored_frames(), shaping_configs)
def test_rewards_sum_to_the_target_wherever_aligned(frame, config):
    rewards, trajectories = shape(frame, config, PLAIN)
    sums = rewards.group_by(PATH).agg(total=pl.col("reward").sum())
    joined = trajectories.join(sums, on=PATH)
    assert (joined["total"] - joined["reward_sum"]).abs().max() in (None, pytest.approx(0, abs=1e-9))
    aligned = joined.filter(pl.col("alignment") != "no_prefix")
    assert (aligned["reward_sum"] - aligned["target_reward"]).abs().max() in (
        None,
        pytest.approx(0, abs=1e-9),
    )
    if config.alignment == "paper" and config.suffix == "discard":
        assert (aligned["target_reward"] == aligned["trajectory_reward"]).all()


@given(scored_frames(), shaping_configs)
def test_the_gap_touches_valid_steps_only_and_no_invalid_step_is_positive(frame, config):
    rewards = shape(frame, config, PLAIN).rewards
    invalid = rewards.filter(~pl.col("valid"), pl.col("reward").is_not_null())
    assert (invalid["gap_share"] == 0.0).all() and (invalid["reward"] <= 0.0).all()
    assert (rewards["base_reward"] + rewards["gap_share"]).equals(rewards["reward"])
    unscored = rewards.filter(pl.col("raw_score").is_null())
    assert (
        unscored.select(pl.col("base_reward", "gap_share", "reward", "advantage").is_null().all()).row(0)
        == (True,) * 4
    )
    if config.alignment == "segments":
        assert not (rewards["position"] == "after").any()


@given(scored_frames(thresholds=(0.5, 0.8)), st.sampled_from(ALIGNMENTS))
def test_failures_stay_below_0_6_and_successes_reach_0_85(frame, alignment):
    judged = shaped(frame, alignment).trajectories.filter(pl.col("trajectory_reward").is_not_null())
    assert (judged.filter(~pl.col("success"))["trajectory_reward"] < 0.6).all()
    assert (judged.filter("success")["trajectory_reward"] >= 0.85 - 1e-12).all()


@given(scored_frames(), st.sampled_from(["discard", "penalise"]), st.sampled_from(["none", "unit_mass"]))
def test_prefix_mean_gives_the_prefix_the_mean_r_traj(frame, suffix, normalisation):
    rewards, trajectories = shaped(frame, "prefix_mean", suffix=suffix, normalisation=normalisation)
    prefix = rewards.filter(pl.col("position") == "prefix", pl.col("raw_score").is_not_null())
    means = prefix.group_by(PATH).agg(mean=pl.col("reward").mean()).join(trajectories, on=PATH)
    assert (means["mean"] - means["trajectory_reward"]).abs().max() in (None, pytest.approx(0, abs=1e-9))


@given(st.integers(2, 12), st.floats(0, 0.49))
def test_prefix_mean_never_pays_an_earlier_failure_more(length, s):
    firsts = []
    for at in range(1, length + 1):
        scores = [1.0] * at + ([s] + [1.0] * (length - at - 1) if at < length else [])
        firsts.append(path_rewards(*scores, alignment="prefix_mean")[0][0])
    assert all(a <= b + 1e-12 for a, b in itertools.pairwise(firsts))


@given(st.lists(st.floats(0.5, 1.0), min_size=1, max_size=8), st.booleans(), st.data())
def test_duplicating_a_valid_step_beyond_n_ref_pays_at_most_by_the_mean(scores, fails, data):
    n_ref = len(scores)
    duplicate = data.draw(st.sampled_from(scores))
    ending = [data.draw(st.floats(0.0, 0.49))] if fails else []
    before, after = (
        shaped(paths_frame([path + ending], ref_len=n_ref)).trajectories.row(0, named=True)
        for path in (scores, [*scores, duplicate])
    )
    kept = scores + ending
    mean_term = 0.3 * (duplicate - math.fsum(kept) / len(kept)) / (len(kept) + 1)
    assert after["success"] == before["success"] == (not fails)
    assert after["trajectory_reward"] - before["trajectory_reward"] == pytest.approx(mean_term, abs=1e-12)


@given(scored_frames(whole=True), shaping_configs, st.randoms(use_true_random=False))
def test_permuting_candidates_permutes_outputs(frame, config, random):
    n = frame["candidate_index"].max() + 1
    swap = dict(enumerate(random.sample(range(n), n)))
    renamed = pl.col("candidate_index").replace(swap)
    one, other = shape(frame, config, PLAIN), shape(frame.with_columns(renamed).sort(KEY), config, PLAIN)
    for table, key in (("rewards", KEY), ("trajectories", PATH)):
        want = getattr(one, table).with_columns(renamed).sort(key)
        assert_frame_equal(want, getattr(other, table), rel_tol=0, abs_tol=1e-9)


@given(scored_frames(whole=True, min_candidates=2), shaping_configs)
def test_equal_trajectories_get_equal_advantages(frame, config):
    twin = frame.filter(pl.col("candidate_index") == 0).with_columns(candidate_index=pl.lit(77, pl.Int32))
    rewards = shape(pl.concat([frame, twin]).sort(KEY), config, PLAIN).rewards
    first, second = (rewards.filter(pl.col("candidate_index") == c)["advantage"] for c in (0, 77))
    assert first.equals(second)


@given(scored_frames(), shaping_configs, st.sampled_from(["none", "std"]))
def test_advantages_sum_to_zero_in_each_group(frame, config, scale):
    rewards = shape(frame, config, AdvantageConfig(scale=scale)).rewards
    assert rewards["advantage"].is_null().equals(rewards["reward"].is_null())
    groups = rewards.drop_nulls("reward").group_by("episode_id", "step_index")
    sums = groups.agg(
        pl.col("advantage").sum(), pl.len(), spread=pl.col("reward").max() - pl.col("reward").min()
    )
    assert sums["advantage"].abs().max() in (None, pytest.approx(0, abs=1e-9))
    flat = rewards.join(
        sums.filter((pl.col("len") == 1) | (pl.col("spread") == 0)), on=["episode_id", "step_index"]
    )
    assert (flat.drop_nulls("reward")["advantage"] == 0.0).all()


@given(scored_frames(), shaping_configs)
def test_shaping_twice_and_in_shards_gives_the_same_bits(frame, config):
    once = shape(frame, config, PLAIN)
    shards = [shape(part, config, PLAIN) for part in frame.partition_by("episode_id", maintain_order=True)]
    for table in ("rewards", "trajectories"):
        want = getattr(once, table)
        assert want.equals(getattr(shape(frame, config, PLAIN), table))
        if shards:
            assert want.equals(pl.concat([getattr(part, table) for part in shards]))


@given(scored_frames(), shaping_configs)
def test_no_number_is_a_minus_zero_or_not_a_number(frame, config):
    for table in shape(frame, config, PLAIN):
        for column in table.select(pl.col(pl.Float64)):
            values = column.drop_nulls().to_numpy()
            assert np.isfinite(values).all()
            assert not (np.signbit(values) & (values == 0)).any(), column.name


@given(st.lists(unit, min_size=1, max_size=5), st.sampled_from(ALIGNMENTS))
def test_a_reshape_needs_nothing_but_the_scores(scores, alignment):
    frame = paths_frame([scores, scores[::-1]])
    again = shaped(frame, "paper").rewards.join(frame.select(*KEY, "ref_len"), on=KEY, maintain_order="left")
    for one, other in zip(shaped(frame, alignment), shaped(again, alignment), strict=True):
        assert one.equals(other)


def test_scored_row_is_a_row_of_the_schema():
    assert set(scored_row("e", 0, 0, 1.0, True, 1)) == set(SCORED)
