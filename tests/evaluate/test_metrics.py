"""Metrics against a plain reading of their definitions, and the laws of their intervals."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solar_rl.evaluate.bootstrap import Sums, intervals
from solar_rl.evaluate.buckets import RULES, bucket
from solar_rl.evaluate.metrics import METRICS, measure

SCHEMA = {
    "episode_id": pl.String,
    "action_type": pl.String,
    "type_match": pl.Int8,
    "exact_match": pl.Int8,
    "reward": pl.Float64,
    "whole": pl.Boolean,
}
verdict = st.sampled_from([None, 0, 1])
step = st.tuples(st.sampled_from(["click", "wait"]), verdict, verdict, st.sampled_from([None, 0.0, 0.5]))
episodes = st.lists(st.tuples(st.lists(step, min_size=1, max_size=5), st.booleans()), max_size=6)


def frame(found) -> pl.DataFrame:
    rows = [(f"e{i}", *one, whole) for i, (steps, whole) in enumerate(found) for one in steps]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def plainly(found) -> dict:
    """Read the definitions step by step."""
    every = [one for steps, _ in found for one in steps]

    def mean(values):
        values = [value for value in values if value is not None]
        return sum(values) / len(values) if values else None

    progress, success = [], []
    for steps, whole in found:
        exact = [one[2] for one in steps if one[2] is not None]
        if whole and exact:
            failure = exact.index(0) if 0 in exact else len(exact)
            progress.append(failure / len(exact))
            success.append(failure == len(exact))
    return {
        "type_match": mean(kind for _, kind, _, _ in every),
        "exact_match": mean(exact for _, _, exact, _ in every),
        "grounding": mean(exact for name, kind, exact, _ in every if name == "click" and kind == 1),
        "reward": mean(reward for *_, reward in every),
        "goal_progress": mean(progress),
        "task_sr": mean(success),
    }


@given(episodes)
def test_metrics_are_what_their_definitions_say(found):
    table = measure(frame(found), resamples=0, seed=0).metrics
    assert dict(table.select("metric", "value").iter_rows()) == pytest.approx(plainly(found))
    assert table["low"].null_count() == table["high"].null_count() == len(METRICS)


@given(episodes.filter(bool), st.integers(0, 5))
def test_intervals_repeat_and_stay_between_the_extremes(found, seed):
    table = measure(frame(found), resamples=60, seed=seed).metrics
    assert table.equals(measure(frame(found), resamples=60, seed=seed).metrics)
    for row in table.drop_nulls().iter_rows(named=True):
        assert 0 <= row["low"] <= row["high"] <= 1


def plain_resamples(draws, members, top, below):
    ratios = []
    for draw in draws:
        picked = [i for i in draw if i in members]
        ratios.append(
            [
                sum(top[i, m] for i in picked) / sum(below[i, m] for i in picked) if picked else np.nan
                for m in range(2)
            ]
        )
    return ratios


def test_the_vectorised_bootstrap_is_the_plain_one():
    rng = np.random.default_rng(3)
    top, below = rng.integers(0, 4, (9, 2)).astype(float), rng.integers(4, 7, (9, 2)).astype(float)
    part = np.array([1, 4, 8])
    whole, group = Sums(np.arange(9), top, below), Sums(part, top[part], below[part])
    found = intervals([whole, group], 9, resamples=100, seed=5)
    draws = np.random.default_rng(5).integers(9, size=(100, 9))
    for members, ends in ((range(9), found[0]), (part, found[1])):
        plain = plain_resamples(draws, members, top, below)
        assert ends.low == pytest.approx(np.nanquantile(plain, 0.025, axis=0))
        assert ends.high == pytest.approx(np.nanquantile(plain, 0.975, axis=0))


def test_an_interval_covers_the_truth_about_95_times_in_100():
    rng, hits = np.random.default_rng(0), 0
    for trial in range(200):
        top = rng.binomial(5, 0.7, size=(80, 1)).astype(float)
        sums = Sums(np.arange(80), top, np.full((80, 1), 5.0))
        (found,) = intervals([sums], 80, resamples=300, seed=trial)
        hits += int(found.low[0] <= 0.7 <= found.high[0])
    assert 178 <= hits <= 199


def test_steps_of_one_episode_are_drawn_together():
    """Ten episodes all right or all wrong are ten observations, however many steps they have."""
    short = frame([([("wait", 1, i % 2, None)], True) for i in range(10)])
    long = frame([([("wait", 1, i % 2, None)] * 50, True) for i in range(10)])
    ends = [
        measure(each, resamples=200, seed=1).metrics.filter(metric="exact_match") for each in (short, long)
    ]
    assert ends[0].select("low", "high").equals(ends[1].select("low", "high"))


@pytest.mark.parametrize("rule", RULES)
def test_buckets_come_in_the_order_of_their_rule(rule):
    lengths = pl.DataFrame({"ref_len": range(1, 30)})
    named = lengths.with_columns(bucket(rule))
    assert named["bucket"].null_count() == 0
    assert named["bucket"].unique(maintain_order=True).to_list() == [name for _, name in RULES[rule]]


def test_groups_come_by_size_and_enumerations_in_their_order():
    rows = frame([([("wait", 1, 1, None), ("click", 1, 0, None), ("click", 0, 0, None)], True)] * 2)
    rows = rows.with_columns(pl.Series("bucket", ["b", "a", "a"] * 2, pl.Enum(["b", "a"])))
    groups = {"action_type": ("exact_match",), "bucket": ("exact_match",)}
    found = measure(rows, groups, resamples=0, seed=0).by
    by_type = found["action_type"]
    assert by_type.select("action_type", "steps", "exact_match").rows() == [
        ("click", 4, 0.0),
        ("wait", 2, 1.0),
    ]
    by_bucket = found["bucket"]
    assert by_bucket["bucket"].to_list() == ["b", "a"]


@given(episodes.filter(bool))
def test_a_group_is_measured_as_if_it_stood_alone(found):
    rows = frame(found)
    table = measure(rows, {"action_type": METRICS}, resamples=0, seed=0).by["action_type"]
    for row in table.to_dicts():
        alone = measure(rows.filter(action_type=row["action_type"]), resamples=0, seed=0).metrics
        assert [row[name] for name in METRICS] == alone["value"].to_list()
