"""Choose the few episodes whose strips the report shows: always the same ones for the same dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from solar_rl.report.words import decimal

if TYPE_CHECKING:
    from solar_rl.query import Connection

EACH = 2
"""Best and worst episodes shown, each."""

# favg compensates and the rounding hides what is left of the order of summation: ties stay ties.
_EPISODES = """
WITH per_episode AS (
  SELECT episode_id, any_value(ref_len) AS ref_len, count(*) AS n,
         count(*) FILTER (success) AS won,
         round(favg(trajectory_reward), 9) AS mean_reward,
         coalesce(max(valid_prefix_len) FILTER (NOT success), 0) AS longest
  FROM trajectories GROUP BY episode_id)
"""
_MIXED = """
SELECT * FROM per_episode WHERE longest > 0 AND mean_reward IS NOT NULL
ORDER BY won BETWEEN 1 AND n - 1 DESC, ref_len BETWEEN 5 AND 8 DESC, longest DESC, episode_id LIMIT 1
"""
_BEST = """
SELECT * FROM per_episode WHERE mean_reward IS NOT NULL
ORDER BY won / n DESC, ref_len <= 24 DESC, ref_len DESC, mean_reward DESC, episode_id LIMIT ?
"""
_WORST = """
SELECT * FROM per_episode WHERE mean_reward IS NOT NULL
ORDER BY won / n, mean_reward, ref_len DESC, episode_id LIMIT ?
"""


class Pick(NamedTuple):
    """One chosen episode, its heading and the sentence that says why it was chosen."""

    episode_id: str
    kind: str
    heading: str
    why: str


def pick_episodes(con: Connection) -> list[Pick]:
    """Choose one instructive episode, then the best and the worst ones; none twice.

    The instructive one has a candidate with a long valid prefix that fails after all, beside candidates
    that succeed; best and worst go by the share of successful candidates, then by length and mean R_traj.
    """
    mixed = con.sql(_EPISODES + _MIXED).pl().rows(named=True)
    taken = {row["episode_id"] for row in mixed}
    limit = [2 * EACH + 1]
    best = con.sql(_EPISODES + _BEST, params=limit).pl().rows(named=True)
    worst = con.sql(_EPISODES + _WORST, params=limit).pl().rows(named=True)
    picks = [
        Pick(row["episode_id"], "mixed", "A long valid prefix, then a failure", _why(row)) for row in mixed
    ]
    for kind, rows in (("best", best), ("worst", worst)):
        fresh = [row for row in rows if row["episode_id"] not in taken][:EACH]
        taken |= {row["episode_id"] for row in fresh}
        names = {"best": "Among the best", "worst": "Among the worst"}
        picks += [Pick(row["episode_id"], kind, names[kind], _why(row)) for row in fresh]
    return picks


def _why(row: dict[str, Any]) -> str:
    steps = "its only step" if row["ref_len"] == 1 else f"all {row['ref_len']} steps"
    won = f"{row['won']} of {row['n']} candidates get through {steps}"
    failed = f"; the longest failure holds for {row['longest']}" if row["won"] < row["n"] else ""
    return f"{won}{failed}. Mean R_traj {decimal(row['mean_reward'])}."
