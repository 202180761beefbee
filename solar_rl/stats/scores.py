"""How answers are judged, and what the shaped rewards look like."""

from __future__ import annotations

from solar_rl.stats.question import Breakdown, Question, count, mean, share, std

_JUDGED = f"""
  count(*) AS candidates,
  count(raw_score) AS scored,
  {count("valid")} AS valid,
  {share(count("valid"), "count(raw_score)")} AS validity,
  {mean("raw_score")} AS mean_score
"""

VALIDITY = (
    Breakdown(
        {
            "action_type": "Validity by action type",
            "step_index": "Validity by step",
            "app": "Validity by app",
        },
        _JUDGED,
        "rewards",
    ),
    Question(
        "Validity by relative position (tenths of the recorded steps)",
        f"""
        SELECT 10 * step_index // ref_len AS tenth, {_JUDGED}
        FROM rewards JOIN episodes USING (episode_id) GROUP BY tenth ORDER BY tenth
        """,
    ),
    Question(
        "Why answers are not valid",
        f"""
        SELECT failure_reason, action_type, count(*) AS candidates,
          {share("count(*)", "sum(count(*)) OVER ()")} AS share
        FROM rewards WHERE NOT valid
        GROUP BY failure_reason, action_type ORDER BY candidates DESC, failure_reason, action_type
        """,
    ),
)

_SHAPED = f"""
  count(*) AS candidates,
  count(reward) AS in_play,
  {mean("raw_score")} AS mean_score,
  {mean("gap_share")} AS mean_gap_share,
  {mean("reward")} AS mean_reward,
  min(reward) AS least_reward,
  max(reward) AS largest_reward,
  {count("reward < 0")} AS negative_rewards,
  {count("advantage < 0")} AS negative_advantages,
  {std("advantage")} AS std_advantage
"""


def _histogram(title: str, table: str, column: str, width: float) -> Question:
    """Count values in bins of equal width; a value on the edge belongs to the bin above."""
    return Question(
        title,
        f"""
        SELECT round(bin * {width}::DOUBLE, 9) AS at_least, round((bin + 1) * {width}::DOUBLE, 9) AS below, n,
          {share("n", "sum(n) OVER ()")} AS share
        FROM (
          SELECT floor({column} / {width} + 1e-9)::BIGINT AS bin, count(*) AS n
          FROM {table} WHERE {column} IS NOT NULL GROUP BY bin
        ) ORDER BY bin
        """,
    )


REWARDS = (
    Question(
        "Rewards of valid, invalid and unscored answers",
        f"""
        SELECT CASE valid WHEN true THEN 'valid' WHEN false THEN 'invalid' ELSE 'unscored' END AS answer, {_SHAPED}
        FROM rewards GROUP BY valid ORDER BY valid DESC NULLS LAST
        """,
    ),
    _histogram("Distribution of rewards", "rewards", "reward", 0.1),
    _histogram("Distribution of R_traj", "trajectories", "trajectory_reward", 0.05),
    Question(
        "Sum of rewards against target",
        f"""
        SELECT alignment, count(*) AS trajectories, {mean("trajectory_reward")} AS mean_r_traj,
          {mean("target_reward")} AS mean_target, {mean("reward_sum")} AS mean_sum,
          max(abs(reward_sum - target_reward)) AS largest_difference,
          {count("abs(reward_sum - target_reward) > 1e-9")} AS beyond_1e9
        FROM trajectories GROUP BY alignment ORDER BY alignment
        """,
    ),
    Question(
        "R_traj by first failure",
        f"""
        SELECT first_failure_step, count(*) AS trajectories, {mean("trajectory_reward")} AS mean_r_traj,
          min(trajectory_reward) AS least, max(trajectory_reward) AS largest,
          {mean("reward_sum / ref_len")} AS mean_reward_a_step
        FROM trajectories GROUP BY first_failure_step ORDER BY first_failure_step NULLS LAST
        """,
    ),
)

_GROUPS = """(
  SELECT first(action_type) AS action_type, step_index, count(reward)::INTEGER AS in_play,
    (count(*) FILTER (valid))::INTEGER AS valid, max(reward) - min(reward) AS spread,
    CASE WHEN count(reward) = 0 THEN 'nothing in play' WHEN count(reward) = 1 THEN 'one candidate'
      WHEN max(reward) - min(reward) <= 1e-12 THEN 'no spread' ELSE 'kept' END AS outcome
  FROM rewards GROUP BY episode_id, step_index
)"""

GROUPS = (
    Breakdown(
        {
            "outcome": "Groups that teach, and those without spread",
            "action_type": "Groups by action type",
            "step_index": "Groups by step",
            "in_play": "Groups by number of candidates in play",
            "valid": "Groups by number of valid candidates",
        },
        f"""
        count(*) AS groups,
        {count("outcome = 'kept'")} AS kept,
        {share(count("outcome = 'kept'"), "count(*)")} AS kept_share,
        {mean("spread")} AS mean_spread
        """,
        _GROUPS,
    ),
)
