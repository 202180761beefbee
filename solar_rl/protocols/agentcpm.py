"""AgentCPM-GUI's compact JSON as columns: what the evaluation and the reward both read.

An answer is {POINT}, {POINT, duration} (long press), {POINT, to} (scroll, the finger's direction), {TYPE},
{PRESS}, {duration} (wait) or {STATUS}, and has to pass a JSON schema without further keys: a point of two
integers in 0..1000, ``int(1000 * x / width)``; a direction of four. So a foreign key, a point beyond the
screen, a missing argument (which leaves {}) and an action without a word (open_app) make it unreadable.
"""

from __future__ import annotations

import polars as pl

from solar_rl.protocols.matching import ratio, whole
from solar_rl.protocols.neutral import POINTED

KEYS = {
    "click": "POINT",
    "long_press": "POINT duration",
    "scroll": "POINT to",
    "input_text": "TYPE",
    "wait": "duration",
    "navigate_back": "PRESS",
    "navigate_home": "PRESS",
    "navigate_recent": "PRESS",
    "keyboard_enter": "PRESS",
    "status": "STATUS",
}
"""Keys of each action, in alphabetical order."""

GRID = 1000


def thousandths(who: str) -> list[pl.Expr]:
    """Return the point of ``expert`` or ``pred`` on the grid: columns ``expert_gx``, ``expert_gy``, ..."""
    return [
        whole(ratio(pl.col(f"{who}_{axis}"), pl.col(f"screen_{size}")) * GRID).alias(f"{who}_g{axis}")
        for axis, size in (("x", "w"), ("y", "h"))
    ]


def readable() -> pl.Expr:
    """Tell whether an answer passes the schema; needs the columns pred_gx and pred_gy."""
    kind = pl.col("pred_type")
    on_grid = pl.col("pred_gx").is_between(0, GRID) & pl.col("pred_gy").is_between(0, GRID)
    complete = (
        pl.when(kind.is_in(POINTED)).then(on_grid)
        .when(kind == "scroll").then(direction().is_in(["up", "down", "left", "right"]))
        .when(kind == "input_text").then(pl.col("pred_text").is_not_null())
        .when(kind == "status").then(pl.col("pred_status").is_not_null())
        .otherwise(kind.is_in(list(KEYS)))
    )  # fmt: skip
    return (complete & ~pl.col("pred_foreign")).fill_null(False)


def direction() -> pl.Expr:
    """Return the answer's direction in lower case; as finger or as content, it is the same comparison."""
    return pl.col("pred_direction").str.to_lowercase()
