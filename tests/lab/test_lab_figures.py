"""Figures of a lab run: intervals, pairs, collapse, rank correlation."""

import math

import numpy as np
import pytest
from made_up import run

from solar_rl.lab.figures import (
    closed_loop,
    collapse,
    mean_t,
    paired,
    paired_closed_loop,
    press_back,
    rank_correlation,
)
from solar_rl.lab.tables import PRIMARY, winners


def test_students_interval_is_the_textbooks():
    found = mean_t([1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.value == 3.0
    assert found.high - found.value == pytest.approx(2.776 * math.sqrt(2.5) / math.sqrt(5))


def test_an_interval_of_one_value_is_unknown():
    assert math.isnan(mean_t([0.5]).low)
    assert math.isnan(mean_t([]).value)


def test_values_that_are_not_known_are_left_out():
    assert mean_t([1.0, float("nan"), 3.0]).value == 2.0


def test_pairs_go_by_seed_and_lack_what_one_side_lacks():
    ours = [run("log_step", seed, [0.5 + 0.1 * seed], 0.4) for seed in (0, 1, 2)]
    theirs = [run("sft", seed, [0.4 + 0.1 * seed], 0.4) for seed in (2, 1)]
    found = paired(ours, theirs, lambda one: one["curve"][-1]["step_accuracy"])
    assert found.value == pytest.approx(0.1)
    assert found.high - found.low == pytest.approx(0.0, abs=1e-9)


def test_a_paired_difference_in_closed_loop_is_of_the_same_episodes():
    ours = [run("log_step", seed, [0.5], 0.6) for seed in (0, 1)]
    theirs = [run("sft", seed, [0.5], 0.4) for seed in (0, 1)]
    found = paired_closed_loop(ours, theirs, "progress", "super_long")
    assert tuple(found) == pytest.approx((0.2, 0.2, 0.2))  # episodes differ among themselves, pairs don't
    assert closed_loop(ours, "progress", "super_long").high > 0.6


def test_the_interval_covers_what_it_should():
    """Two-way bootstrap on noise of both kinds: about 95 % of intervals hold the truth."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(40):
        of_seed, of_episode = rng.normal(0, 0.1, 8), rng.normal(0, 0.1, 12)
        runs = []
        for seed in range(8):
            one = run("sft", seed, [0.5], 0.0)
            one["closed_loop"] = [
                {"task": "long", "seed": k, "progress": of_seed[seed] + of_episode[k] + rng.normal(0, 0.1)}
                for k in range(12)
            ]
            runs.append(one)
        found = closed_loop(runs, "progress")
        hits += found.low <= 0.0 <= found.high
    assert hits >= 34


def test_collapse_counts_from_the_best_checkpoint_the_start_included():
    rising, falling = run("sft", 0, [0.6, 0.7], 0), run("sft", 1, [0.45, 0.4], 0)
    found = collapse([rising, falling], 0.5)
    assert found.best_at == 10.0  # 20 updates, and the start
    assert found.drop == pytest.approx(0.05)  # 0, and 0.5 - 0.4
    assert (found.below_start, found.runs) == (1, 2)


def test_rank_correlation_follows_order_alone_and_means_ties():
    assert rank_correlation([(1, 1), (2, 4), (3, 9)]) == 1.0
    assert rank_correlation([(1, 9), (2, 4), (3, 1)]) == -1.0
    assert rank_correlation([(1, 1), (1, 2), (2, 3)]) == pytest.approx(0.8660254)
    assert math.isnan(rank_correlation([(1, 5), (2, 5), (3, 5)]))


def test_precision_of_back_is_unknown_where_it_is_never_pressed():
    assert press_back({"press_back": {"predicted": 4, "right": 3, "recorded": 9}}) == 0.75
    assert math.isnan(press_back({"press_back": {"predicted": 0, "right": 0, "recorded": 9}}))


def test_a_winner_beats_all_four_baselines():
    def arm(name, progress):
        return [run(name, seed, [0.5], progress) for seed in (0, 1)]

    baselines = {name: arm(name, 0.4) for name in ("sparse", "step_local", "sft", "step_local_anchor")}
    assert winners(baselines | {"log_step": arm("log_step", 0.5)}, PRIMARY) == ["log_step"]
    better_sft = baselines | {"sft": arm("sft", 0.6), "log_step": arm("log_step", 0.5)}
    assert winners(better_sft, PRIMARY) == []
    assert winners({"log_step": arm("log_step", 0.5)}, PRIMARY) == []  # nothing to beat: no claim
