"""Length buckets by recorded steps; a rule has a name, which is printed beside every number."""

from __future__ import annotations

import polars as pl

from solar_rl.schema import LENGTH_BUCKETS as RULES

__all__ = ["RULES", "bucket"]


def bucket(rule: str) -> pl.Expr:
    """Return the bucket of column ``ref_len``, an enumeration in the order of the rule.

    >>> pl.select(ref_len=pl.Series([5, 6])).select(bucket("androidcontrol")).to_series().to_list()
    ['short (1-5)', 'long (6-10)']
    """
    found = pl.coalesce(
        pl.when(pl.lit(True) if longest is None else pl.col("ref_len") <= longest).then(pl.lit(name))
        for longest, name in RULES[rule]
    )
    return found.cast(pl.Enum([name for _, name in RULES[rule]])).alias("bucket")
