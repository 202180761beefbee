"""The columns equal the loops, row by row, wherever rules turn; and a verdict depends on its own row alone."""

import random
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from loops_r1 import LOOPS  # noqa: E402
from rows import frame, row, rows  # noqa: E402

from solar_rl.errors import InputError  # noqa: E402
from solar_rl.protocols import NEUTRAL, PROTOCOLS, VERDICT, get_protocol  # noqa: E402

MANY = st.lists(rows(), min_size=1, max_size=30)


def complete(name, verdict):
    """Fill a loop's verdict with nulls, as a protocol's columns are."""
    return {column: verdict.get(column) for column in PROTOCOLS[name].columns}


@settings(max_examples=50)
@given(drawn=MANY)
def test_columns_equal_the_loops(drawn):
    judged = frame(*drawn)
    for name, loop in LOOPS.items():
        got = PROTOCOLS[name].judge(judged).to_dicts()
        want = [complete(name, loop(each)) for each in judged.to_dicts()]
        for verdict, expected in zip(got, want, strict=True):
            assert verdict.keys() == expected.keys(), name
            for field, value in expected.items():
                same = pytest.approx(value, abs=1e-9) if isinstance(value, float) else value
                assert verdict[field] == same, (name, field)


def test_every_peer_has_a_loop():
    assert set(LOOPS) == set(PROTOCOLS) - {"solar"}


@settings(max_examples=10, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking takes minutes
@given(drawn=st.lists(rows(), min_size=6, max_size=8), seed=st.integers(0, 99))
def test_order_and_neighbours_are_no_matter(drawn, seed):
    order = random.Random(seed).sample(range(len(drawn)), len(drawn))
    for protocol in PROTOCOLS.values():
        together = protocol.judge(frame(*drawn))
        assert protocol.judge(frame(*(drawn[i] for i in order))).equals(together[order])
        alone = pl.concat(protocol.judge(frame(each)) for each in drawn)
        assert alone.equals(together)


@settings(max_examples=30)
@given(drawn=MANY)
def test_verdicts_are_0_1_or_null_and_dropped_means_null(drawn):
    for name, protocol in PROTOCOLS.items():
        verdicts = protocol.judge(frame(*drawn))
        assert dict(verdicts.schema) == protocol.columns
        assert list(VERDICT) == verdicts.columns[:4]
        for column in ("type_match", "exact_match"):
            assert set(verdicts[column].drop_nulls()) <= {0, 1}
        dropped = verdicts.filter(pl.col("dropped").is_not_null())
        assert dropped.drop("dropped").null_count().row(0) == (dropped.height,) * (verdicts.width - 1)
        kept = verdicts.filter(pl.col("dropped").is_null())
        assert kept["type_match"].null_count() == 0
        exact_alone = kept.filter((pl.col("exact_match") == 1) & (pl.col("type_match") == 0))
        assert not exact_alone.height or name == "guir1_eval"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_no_rows_are_no_verdicts(name):
    assert PROTOCOLS[name].judge(frame()).shape == (0, len(PROTOCOLS[name].columns))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_far_numbers_raise_nothing(name):
    far = [
        row(("click", 5, 5), ("click", x, -x), boxes=[(-x, -x, x, x)], single=(-x, -x, x, x))
        for x in (1e300, 0, 1e18)
    ]
    verdicts = PROTOCOLS[name].judge(frame(*far))
    assert verdicts["reward"].is_nan().sum() == 0


def test_a_missing_column_is_named():
    with pytest.raises(InputError, match="single_box, pred_whole"):
        get_protocol("uis1_eval").judge(frame(row(("wait",))).drop("single_box", "pred_whole"))


def test_an_unknown_protocol_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean agentcpm_eval_014"):
        get_protocol("agentcpm_eval_14")


def test_help_says_source_version_and_faults():
    for protocol in PROTOCOLS.values():
        assert protocol.source in protocol.help
        assert f"version {protocol.version}" in protocol.help
        assert protocol.rules.faults in protocol.help


def test_neutral_columns_are_all_that_is_read():
    more = frame(row(("wait",), ("wait",))).with_columns(noise=pl.lit(1))
    assert set(NEUTRAL) < set(more.columns)
    assert PROTOCOLS["uis1_eval"].judge(more)["exact_match"].to_list() == [1]
