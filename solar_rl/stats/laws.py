"""The laws of docs/method.md, section 3, as conditions that no row may meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.query import Connection

REWARD_LAWS = {
    "score_in_unit_interval": "raw_score NOT BETWEEN 0 AND 1",
    "numbers_are_finite": "NOT isfinite(coalesce(raw_score, 0) + coalesce(reward, 0) + coalesce(advantage, 0))",
    "scored_or_a_reason_why_not": "(raw_score IS NULL) <> (unscored_reason IS NOT NULL) OR (raw_score IS NULL) <> (valid IS NULL)",
    "unscored_is_null_throughout": "raw_score IS NULL AND coalesce(base_reward, gap_share, reward, advantage) IS NOT NULL",
    "in_play_all_or_nothing": "(reward IS NULL) <> (base_reward IS NULL) OR (reward IS NULL) <> (gap_share IS NULL) "
    "OR (reward IS NULL) <> (advantage IS NULL)",
    "prefix_is_valid": "position = 'prefix' AND NOT valid",
    "breakdown_is_invalid": "position = 'breakdown' AND valid IS DISTINCT FROM false",
    "invalid_is_never_positive": "NOT valid AND reward > 0",
    "gap_touches_valid_steps_only": "gap_share <> 0 AND NOT (valid AND position = 'prefix')",
    "reward_is_base_plus_gap": "abs(reward - (base_reward + gap_share)) > 1e-12",
    "base_has_the_sign_of_validity": "(valid AND base_reward < 0) OR (NOT valid AND base_reward > 0)",
    "failure_has_a_reason": "(valid = false) <> (failure_reason IS NOT NULL)",
    "place_and_segment_together": "(position IS NULL) <> (segment_index IS NULL) OR segment_index < 0",
}
"""Laws of single rows of ``rewards``: name and SQL of what breaks it."""

TRAJECTORY_LAWS = {
    "rewards_sum_to_target": "alignment = 'aligned' AND "
    "(target_reward IS NULL OR NOT abs(reward_sum - target_reward) <= 1e-9)",
    "success_means_no_failure": "success <> (first_failure_step IS NULL)",
    "failure_lies_in_the_episode": "first_failure_step NOT BETWEEN 0 AND ref_len - 1",
    "prefix_ends_at_the_failure": "valid_prefix_len <> coalesce(first_failure_step, ref_len)",
    "failure_is_described": "success = (failure_action_type IS NOT NULL) OR success = (failure_reason IS NOT NULL)",
    "return_is_known_where_scored": "(trajectory_reward IS NULL) <> (mean_raw_score IS NULL) "
    "OR (trajectory_reward IS NULL) <> (target_reward IS NULL)",
}
"""Laws of single rows of ``trajectories``."""


GROUP_LAWS = {
    "advantages_sum_to_zero": """
        SELECT episode_id, step_index FROM rewards GROUP BY ALL HAVING NOT abs(fsum(advantage)) <= 1e-9
    """,
}
"""Laws of groups: SQL of what breaks them, one row each."""


def check_laws(con: Connection) -> pl.DataFrame:
    """Check every law: one row each with its name, whether it holds, and how many rows break it."""
    import polars as pl

    found = {**_broken(con, "rewards", REWARD_LAWS), **_broken(con, "trajectories", TRAJECTORY_LAWS)}
    found |= {
        name: con.sql(f"SELECT count(*) FROM ({sql})").fetchall()[0][0] for name, sql in GROUP_LAWS.items()
    }
    return pl.DataFrame(
        {
            "name": list(found),
            "passed": [count == 0 for count in found.values()],
            "count": list(found.values()),
        },
        schema_overrides={"count": pl.Int64},
    )


def _broken(con: Connection, table: str, laws: dict[str, str]) -> dict[str, int]:
    """Count the rows that break each law, in one pass; count_if of nothing but nulls is null, not 0."""
    counts = ", ".join(f"coalesce(count_if({condition}), 0)" for condition in laws.values())
    return dict(zip(laws, con.sql(f"SELECT {counts} FROM {table}").fetchall()[0], strict=True))
