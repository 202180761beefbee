"""The laws that hold between tables: each a SELECT of the rows that break it, keys first."""

from __future__ import annotations

from collections.abc import Iterable

from solar_rl.actions import ACTION_TYPES, BUTTONS, DIRECTIONS, POINT_ACTIONS, STATUSES
from solar_rl.schema import LARGEST_LOGPROB, PLATFORMS, SCREEN_SIZES, SPLITS, TABLES


def _among(column: str, values: Iterable[str]) -> str:
    return f"{column} NOT IN ({', '.join(repr(value) for value in values)})"


def _wrong_action(prefix: str) -> str:
    """Return the condition of an action that lacks what its type needs, or has a word unknown to it."""
    kind = f"{prefix}action_type"
    needs = {
        "direction": ("scroll",),
        "text": ("input_text",),
        "app_name": ("open_app",),
        "status": ("finished",),
    }
    points = (*POINT_ACTIONS, "drag")
    conditions = [
        _among(kind, ACTION_TYPES),
        *(_among(f"{prefix}{name}", words) for name, words in _WORDS.items()),
        *(f"({kind} IN {_tuple(kinds)} AND {prefix}{name} IS NULL)" for name, kinds in needs.items()),
        f"({kind} IN {_tuple(points)} AND ({prefix}x IS NULL OR {prefix}y IS NULL))",
        f"({kind} = 'press' AND {prefix}button IS NULL AND coalesce(len({prefix}keys), 0) = 0)",
        *(f"NOT isfinite({prefix}{name})" for name in ("x", "y", "x2", "y2")),
    ]
    return " OR ".join(conditions)


_WORDS = {"direction": DIRECTIONS, "button": BUTTONS, "status": STATUSES}


def _tuple(values: Iterable[str]) -> str:
    return f"({', '.join(repr(value) for value in values)})"


def _orphans(table: str, of: str, key: str, parent_key: str | None = None) -> str:
    """Return the rows of a table that no row of another one stands behind."""
    on = " AND ".join(
        f"a.{mine} = b.{theirs}"
        for mine, theirs in zip(key.split(), (parent_key or key).split(), strict=True)
    )
    first = key.split()[0]
    return f"SELECT a.* FROM {table} AS a ANTI JOIN {of} AS b ON {on} WHERE a.{first} IS NOT NULL"


_BOX = "len({0}) <> 4 OR {0}[1] > {0}[3] OR {0}[2] > {0}[4]"

KEY_LAWS = {
    f"{name}_keys_are_unique": f"SELECT {', '.join(t.key)}, count(*) AS n FROM {name} GROUP BY ALL HAVING n > 1"
    for name, t in TABLES.items()
}

RECORD_LAWS = {
    "episodes_have_all_their_steps": """
        SELECT episode_id, ref_len, n FROM episodes LEFT JOIN (
          SELECT episode_id, count(*) AS n, min(step_index) AS first, max(step_index) AS last FROM steps GROUP BY ALL
        ) USING (episode_id) WHERE ref_len IS DISTINCT FROM n OR first <> 0 OR last <> ref_len - 1
    """,
    "steps_have_their_episode": _orphans("steps", "episodes", "episode_id"),
    "screenshots_exist": _orphans("steps", "images", "image_sha256", "sha256"),
    "images_are_shown_somewhere": "SELECT a.sha256 FROM images AS a ANTI JOIN steps AS b ON a.sha256 = b.image_sha256",
    "candidates_have_their_step": _orphans("candidates", "steps", "episode_id step_index"),
    "rewards_have_their_candidate": _orphans(
        "rewards", "candidates", "episode_id step_index candidate_index"
    ),
    "candidates_have_their_reward": _orphans(
        "candidates", "rewards", "episode_id step_index candidate_index"
    ),
    "episodes_are_well_described": f"""
        SELECT episode_id, platform, split, goal FROM episodes
        WHERE {_among("platform", PLATFORMS)} OR {_among("split", SPLITS)} OR trim(goal) = ''
    """,
    "labels_are_actions": f"SELECT episode_id, step_index, action_type FROM steps WHERE {_wrong_action('')}",
    "boxes_are_boxes": f"""
        SELECT episode_id, step_index FROM steps
        WHERE {_BOX.format("target_box")} OR len(list_filter(candidate_boxes, lambda b: {_BOX.format("b")})) > 0
    """,
    "screens_are_described": f"""
        SELECT episode_id, step_index, screen_width, screen_height, screen_size FROM steps
        WHERE screen_width < 1 OR screen_height < 1 OR {_among("screen_size", SCREEN_SIZES)}
    """,
    "candidates_count_from_zero": """
        SELECT episode_id, step_index, min(candidate_index) AS first, max(candidate_index) AS last, count(*) AS n
        FROM candidates GROUP BY episode_id, step_index HAVING first <> 0 OR last <> n - 1
    """,
    "answers_ended_or_were_cut": f"""
        SELECT episode_id, step_index, candidate_index, finish_reason, history_dropped FROM candidates
        WHERE {_among("finish_reason", ("stop", "length"))} OR history_dropped NOT BETWEEN 0 AND step_index
    """,
    "answers_are_actions_or_parse_errors": f"""
        SELECT episode_id, step_index, candidate_index, pred_action_type, parse_error FROM candidates
        WHERE (parse_error IS NULL) <> (pred_action_type IS NOT NULL) OR {_wrong_action("pred_")}
    """,
    "tokens_have_their_logprobs": f"""
        SELECT episode_id, step_index, candidate_index FROM candidates
        WHERE sampling_logprobs IS NOT NULL AND (
          len(token_ids) IS DISTINCT FROM len(sampling_logprobs) OR NOT list_max(sampling_logprobs) <= {LARGEST_LOGPROB})
    """,
}
"""Laws of the records and of their keys between tables."""

REWARD_TABLE_LAWS = {
    "rewards_repeat_labels_and_answers": """
        SELECT r.episode_id, r.step_index, r.candidate_index, r.action_type, s.action_type
        FROM rewards AS r JOIN steps AS s USING (episode_id, step_index)
        JOIN candidates AS c USING (episode_id, step_index, candidate_index)
        WHERE r.action_type <> s.action_type OR r.app IS DISTINCT FROM s.app
          OR r.pred_action_type IS DISTINCT FROM c.pred_action_type
    """,
    "whole_indices_form_trajectories": """
        SELECT coalesce(t.episode_id, r.episode_id) AS episode_id, candidate_index
        FROM trajectories AS t FULL JOIN (
          SELECT episode_id, candidate_index FROM rewards JOIN episodes USING (episode_id)
          GROUP BY episode_id, candidate_index HAVING count(*) = any_value(ref_len)
        ) AS r USING (episode_id, candidate_index) WHERE t.episode_id IS NULL OR r.episode_id IS NULL
    """,
    "trajectories_are_as_long_as_their_episode": """
        SELECT episode_id, candidate_index, t.ref_len, e.ref_len
        FROM trajectories AS t JOIN episodes AS e USING (episode_id) WHERE t.ref_len <> e.ref_len
    """,
    "first_failure_is_the_first": """
        SELECT episode_id, candidate_index, first_failure_step, first
        FROM trajectories JOIN (
          SELECT episode_id, candidate_index, min(step_index) FILTER (NOT valid) AS first FROM rewards GROUP BY ALL
        ) USING (episode_id, candidate_index) WHERE first IS DISTINCT FROM first_failure_step
    """,
    "failures_repeat_their_step": """
        SELECT t.episode_id, t.candidate_index, t.failure_action_type, t.failure_app, t.failure_reason
        FROM trajectories AS t JOIN rewards AS r ON t.episode_id = r.episode_id
          AND t.candidate_index = r.candidate_index AND t.first_failure_step = r.step_index
        WHERE t.failure_action_type <> r.action_type OR t.failure_app IS DISTINCT FROM r.app
          OR t.failure_reason IS DISTINCT FROM r.failure_reason
    """,
    "segments_count_earlier_breakdowns": """
        SELECT episode_id, step_index, candidate_index, segment_index, earlier FROM (
          SELECT episode_id, step_index, candidate_index, segment_index, coalesce(count(*) FILTER (NOT valid) OVER (
            PARTITION BY episode_id, candidate_index ORDER BY step_index
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS earlier
          FROM rewards WHERE segment_index IS NOT NULL
        ) WHERE segment_index <> earlier
    """,
    "whole_trajectories_have_a_place_at_every_step": """
        SELECT episode_id, step_index, candidate_index FROM rewards JOIN trajectories USING (episode_id, candidate_index)
        WHERE position IS NULL
    """,
    "rows_outside_trajectories_are_null": """
        SELECT r.episode_id, r.step_index, r.candidate_index FROM rewards AS r
        ANTI JOIN trajectories AS t ON r.episode_id = t.episode_id AND r.candidate_index = t.candidate_index
        WHERE r.position IS NOT NULL OR r.segment_index IS NOT NULL
          OR coalesce(r.base_reward, r.gap_share, r.reward, r.advantage) IS NOT NULL
    """,
    "gaps_are_shared_equally": """
        SELECT episode_id, candidate_index, segment_index, min(gap_share) AS least, max(gap_share) AS most
        FROM rewards WHERE valid AND position = 'prefix' GROUP BY ALL HAVING NOT most - least <= 1e-9
    """,
    "equal_trajectories_have_equal_advantages": """
        SELECT episode_id, step_index, min(advantage) AS least, max(advantage) AS most
        FROM rewards JOIN (
          SELECT episode_id, candidate_index, hash(list((raw_score, valid) ORDER BY step_index)) AS scores
          FROM rewards WHERE position IS NOT NULL GROUP BY ALL
        ) USING (episode_id, candidate_index)
        GROUP BY episode_id, step_index, scores HAVING NOT most - least <= 1e-9
    """,
    "sums_are_those_of_the_rewards": """
        SELECT episode_id, candidate_index, reward_sum, s FROM trajectories JOIN (
          SELECT episode_id, candidate_index, coalesce(fsum(reward), 0) AS s FROM rewards GROUP BY ALL
        ) USING (episode_id, candidate_index) WHERE NOT abs(reward_sum - s) <= 1e-9
    """,
    "preview_repeats_the_tables": """
        SELECT p.episode_id, p.candidate_index, p.step_index
        FROM preview AS p LEFT JOIN rewards AS r USING (episode_id, candidate_index, step_index)
        LEFT JOIN trajectories AS t USING (episode_id, candidate_index)
        WHERE r.episode_id IS NULL OR p.raw_score IS DISTINCT FROM r.raw_score OR p.reward IS DISTINCT FROM r.reward
          OR p.position IS DISTINCT FROM r.position OR p.valid IS DISTINCT FROM r.valid
          OR p.trajectory_reward IS DISTINCT FROM t.trajectory_reward
    """,
}
"""Laws between rewards, trajectories and the rest."""
