"""AgentCPM-GUI's training rewards for type and arguments, and their mean.

Both are -1 for an unreadable answer (see ``agentcpm.py``). reward_type is 1 if the answer has exactly the
label's keys, else 0; so a wait and a swipe's missing finger differ, but back and home don't.
reward_args is the mean over the label's keys, less 0.1 for each further key of the answer and 0.3 for each
key that it lacks (which also scores 0 in the mean):

* POINT in the single box: 0.95 + 0.05 * (1 - the larger offset from its centre in device pixels / 1000)^3,
  the point being ``int(share * screen)``; outside it 1 - L1 / 2 in the unit square. Without a box (scrolls too):
  1 within 0.01 on both axes, else 1 - L1 / 2.
* TYPE: difflib's ratio, case and blanks counted. duration: 1 in (150, 5000] ms. to, PRESS, STATUS: equality.

Points are on the 0..1000 grid on both sides. Labels: a scroll starts at the centre (500, 500), a long press lasts
1000 ms and a wait 3000 ms, answers alike. open_app steps are dropped.
"""

from __future__ import annotations

from difflib import SequenceMatcher

import polars as pl

from solar_rl.protocols.agentcpm import GRID, KEYS, direction, readable, thousandths
from solar_rl.protocols.base import Protocol, Rules
from solar_rl.protocols.matching import by_pair, corner, ratio, renamed, whole
from solar_rl.protocols.neutral import POINTED

CENTRE = 500.0
EXTRA_KEY, MISSING_KEY = 0.1, 0.3


def judge(frame: pl.DataFrame) -> pl.DataFrame:
    """Judge neutral rows as ``_action_type_check`` and ``_action_args_check`` do."""
    rows = frame.with_columns(*thousandths("pred"), *thousandths("expert"))
    rows = rows.with_columns(readable=readable()).with_columns(
        *_at_the_centre("pred"), *_at_the_centre("expert")
    )
    rows = rows.with_columns(
        label=renamed("expert_type", KEYS), answer=pl.when("readable").then(renamed("pred_type", KEYS))
    )
    typed = (pl.col("label") == "TYPE") & (pl.col("answer") == "TYPE")
    rows = rows.with_columns(
        typed=by_pair(rows, typed, "pred_text", "expert_text", _ratio),
        off=by_pair(rows, pl.lit(True), "answer", "label", penalty),
        box="single_box",
    )
    rows = rows.with_columns(
        reward_type=(pl.col("answer") == pl.col("label")).cast(pl.Float64).fill_null(-1.0),
        reward_args=_arguments().fill_null(-1.0),
    )
    return rows.select(
        "reward_type",
        "reward_args",
        type_match=pl.col("reward_type") == 1.0,
        reward=(pl.col("reward_type") + pl.col("reward_args")) / 2,
        dropped=pl.when(pl.col("label").is_null()).then(
            pl.col("expert_type") + pl.lit(" not in the action space")
        ),
    )


def penalty(answer: str, label: str) -> float:
    """Return what is taken off for keys, given as words, that only one side has.

    >>> penalty("POINT duration", "POINT"), penalty("PRESS", "POINT to")
    (0.1, 0.7)
    """
    given, meant = set(answer.split()), set(label.split())
    return EXTRA_KEY * len(given - meant) + MISSING_KEY * len(meant - given)


def _ratio(predicted: str, label: str) -> float:
    return SequenceMatcher(None, predicted, label).ratio()


def _at_the_centre(who: str) -> list[pl.Expr]:
    """Put the start of a scroll at the centre of the screen."""
    scroll = pl.col(f"{who}_type") == "scroll"
    return [
        pl.when(scroll).then(CENTRE).otherwise(f"{who}_g{axis}").alias(f"{who}_g{axis}")
        for axis in ("x", "y")
    ]


def _arguments() -> pl.Expr:
    """Return the mean over the label's keys with its penalties, null for an unreadable answer."""
    alone = pl.col("label") == pl.col("answer")
    both = {
        key: pl.col("label").str.contains(key, literal=True)
        & pl.col("answer").str.contains(key, literal=True)
        for key in ("POINT", "duration", "to")
    }
    parts = [
        pl.when(both["POINT"]).then(_point()),
        pl.when(both["duration"]).then(1.0),
        pl.when(both["to"]).then((direction() == pl.col("expert_direction")).cast(pl.Float64)),
        pl.when(alone & (pl.col("label") == "TYPE")).then(pl.col("typed")),
        pl.when(alone & (pl.col("label") == "PRESS")).then(
            (pl.col("pred_type") == pl.col("expert_type")).cast(pl.Float64)
        ),
        pl.when(alone & (pl.col("label") == "STATUS")).then(
            (pl.col("pred_status") == pl.col("expert_status")).cast(pl.Float64)
        ),
    ]
    total = pl.sum_horizontal(part.otherwise(0.0) for part in parts)
    keys = pl.col("label").str.count_matches(" ", literal=True) + 1
    return pl.when(pl.col("answer").is_not_null()).then(ratio(total, keys) - pl.col("off"))


def _point() -> pl.Expr:
    """Score a point on the grid against the label's, by the single box where the label has one."""
    unit = {
        f"{who}{axis}": ratio(pl.col(f"{who}_g{axis}"), GRID)
        for who in ("pred", "expert")
        for axis in ("x", "y")
    }
    px, py, gx, gy = unit["predx"], unit["predy"], unit["expertx"], unit["experty"]
    far = 1 - ((px - gx).abs() + (py - gy).abs()) / 2
    x, y = whole(px * pl.col("screen_w")), whole(py * pl.col("screen_h"))
    inside = x.is_between(corner(0), corner(2)) & y.is_between(corner(1), corner(3))
    offset = pl.max_horizontal(
        (x - (corner(0) + corner(2)) / 2).abs(), (y - (corner(1) + corner(3)) / 2).abs()
    )
    central = 1 - ratio(offset, 1000)  # cubed by hand: pow rounds otherwise in another row of the same column
    by_box = pl.when(inside).then(0.95 + 0.05 * (central * central * central)).otherwise(far)
    at_label = px.is_between(gx - 0.01, gx + 0.01) & py.is_between(gy - 0.01, gy + 0.01)
    has_box = pl.col("expert_type").is_in(POINTED) & pl.col("box").is_not_null()
    return pl.when(has_box).then(by_box).when(at_label).then(1.0).otherwise(far)


PROTOCOL = Protocol(
    name="agentcpm_rft",
    kind="training reward",
    source="OpenBMB/AgentCPM-GUI acbaf509, rft/trainer/utils/gui_eval.py _action_type_check, _action_args_check",
    rules=Rules(
        radius="none: 1 - L1 / 2 in the unit square; without a box 1 within 0.01",
        boxes="the single box, as it is",
        text="difflib ratio, case counted",
        scroll="finger direction, half of the arguments' score",
        open_app="dropped",
        wait_finish="by keys: wait is a duration, finish a status",
        dropped="open_app",
        faults="a miss by 10 % scores 0.95, as much as a hit; type is a set of keys, so back equals home; no exact match",
    ),
    rows=judge,
    evidence={"reward_type": pl.Float64(), "reward_args": pl.Float64()},
)
