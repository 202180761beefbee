"""Rows come in whole groups, in an order that a seed and an epoch decide."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solar_rl.train.sampler import GroupSampler

pytestmark = pytest.mark.train


@given(
    groups=st.integers(1, 12),
    size=st.integers(1, 5),
    batch=st.integers(1, 5),
    repeat=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_every_batch_holds_whole_groups_and_every_group_comes(groups, size, batch, repeat, seed):
    sampler = GroupSampler(range(groups), size=size, batch=batch, repeat=repeat, seed=seed)
    rows = list(sampler)
    assert len(rows) == len(sampler)
    assert len(rows) % (size * batch * repeat) == 0
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        assert block == list(range(block[0], block[0] + size))
        assert block[0] % size == 0
    assert {row // size for row in rows} == set(range(groups))


def test_a_batch_is_read_as_often_as_trl_reads_it():
    rows = list(GroupSampler(range(4), size=2, batch=2, repeat=3, shuffle=False))
    assert rows == [0, 1, 2, 3] * 3 + [4, 5, 6, 7] * 3


def test_the_last_batch_is_filled_from_the_start():
    rows = list(GroupSampler(range(3), size=1, batch=2, shuffle=False))
    assert rows == [0, 1, 2, 0]


def test_epochs_differ_and_repeat_themselves():
    epoch = 0
    sampler = GroupSampler(range(20), size=1, batch=4, seed=7, epoch=lambda: epoch)
    first, again = list(sampler), list(sampler)
    epoch = 1
    assert first == again
    assert list(sampler) != first
    assert sorted(sampler) == sorted(first)


def test_an_up_sampled_group_comes_more_often():
    rows = list(GroupSampler([0, 1, 1, 1], size=2, batch=2, seed=1))
    assert Counter(row // 2 for row in rows) == {0: 2, 1: 6}  # rows
