"""Where trajectories fail first, and what a mode that truncates there throws away."""

from __future__ import annotations

from solar_rl.stats.question import BUCKETS, Breakdown, Question, share

# one row per (end, length): a few hundred rows stand for all trajectories
_ENDS = """
WITH ends AS (
  SELECT first_failure_step AS failed_at, coalesce(first_failure_step, ref_len) AS k, ref_len, count(*) AS n
  FROM trajectories GROUP BY ALL
), places AS (
  SELECT unnest(range(coalesce((SELECT max(ref_len) FROM trajectories), 0))) AS step
), met AS (
  SELECT step, ref_len, failed_at, k, n FROM places, ends WHERE step < ref_len
)
"""
_REACHED = "coalesce(sum(n) FILTER (k >= step), 0)"
_FAILED = "coalesce(sum(n) FILTER (failed_at = step), 0)"
_HAZARD = f"""
  {_REACHED} AS reached,
  {_FAILED} AS failed,
  {share(_FAILED, _REACHED)} AS failure_rate
"""

FIRST_FAILURE = (
    Question(
        "First failure by step",
        f"{_ENDS} SELECT step, {_HAZARD} FROM met GROUP BY step HAVING reached > 0 ORDER BY step",
    ),
    Question(
        "First failure by relative position (tenths of the recorded steps)",
        f"{_ENDS} SELECT 10 * step // ref_len AS tenth, {_HAZARD} FROM met GROUP BY tenth ORDER BY tenth",
    ),
    Breakdown(
        {"action_type": "First failure by action type", "app": "First failure by app"},
        f"""
        count(*) FILTER (position = 'breakdown') AS failed,
        count(*) AS reached,
        {share("count(*) FILTER (position = 'breakdown')", "count(*)")} AS failure_rate
        """,
        "rewards WHERE segment_index = 0",
    ),
    Question(
        "First failure by reason",
        f"""
        SELECT failure_reason, count(*) AS failed, {share("count(*)", "sum(count(*)) OVER ()")} AS share
        FROM trajectories WHERE first_failure_step IS NOT NULL
        GROUP BY failure_reason ORDER BY failed DESC, failure_reason
        """,
    ),
    Question(
        "Trajectories by length",
        f"""
        SELECT {BUCKETS}, count(*) AS trajectories, count(*) FILTER (success) AS succeeded,
          {share("count(*) FILTER (success)", "count(*)")} AS success_rate,
          {share("sum(least(valid_prefix_len, ref_len))", "sum(ref_len)")} AS goal_progress
        FROM trajectories GROUP BY length, buckets ORDER BY min(ref_len)
        """,
    ),
)

_KEPT = "coalesce(first_failure_step + 1, ref_len)"
_LOSS = f"""
  sum(ref_len) AS sampled,
  sum({_KEPT}) AS kept,
  sum(ref_len - {_KEPT}) AS lost,
  {share(f"sum(ref_len - {_KEPT})", "sum(ref_len)")} AS lost_share
"""

TRUNCATION = (
    Question(
        "Sampled actions after the first failure (thrown away by a truncating mode)",
        f"SELECT count(*) AS trajectories, {_LOSS} FROM trajectories",
    ),
    Question(
        "Truncation loss by length",
        f"SELECT {BUCKETS}, count(*) AS trajectories, {_LOSS} "
        "FROM trajectories GROUP BY length, buckets ORDER BY min(ref_len)",
    ),
    Question(
        "Truncation loss by step",
        f"""
        {_ENDS} SELECT step, sum(n) AS sampled, {_REACHED} AS kept,
          {share(f"sum(n) - {_REACHED}", "sum(n)")} AS lost_share
        FROM met GROUP BY step ORDER BY step
        """,
    ),
    Question(
        "What this build does with them",
        """
        SELECT coalesce(position, 'no trajectory or unscored') AS position, count(*) AS candidates,
          count(reward) AS in_play
        FROM rewards GROUP BY ALL ORDER BY candidates DESC
        """,
    ),
)
