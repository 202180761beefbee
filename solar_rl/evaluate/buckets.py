"""Length buckets by recorded steps; a rule has a name, which is printed beside every number."""

from __future__ import annotations

import polars as pl

RULES: dict[str, tuple[tuple[int | None, str], ...]] = {
    "androidcontrol": ((5, "short (1-5)"), (10, "long (6-10)"), (None, "super long (> 10)")),
    "phone": ((5, "short (1-5)"), (14, "long (6-14)"), (None, "super long (> 14)")),
    "ui_genie": ((4, "easy (< 5)"), (9, "medium (5-9)"), (None, "hard (>= 10)")),
}
"""Rule to (longest length, name) of each bucket, short ones first. androidcontrol and phone: ours;
ui_genie: UI-Genie's evaluation."""


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
