"""The laws that hold between tables: each a SELECT of the rows that break it, keys first.

Where a law depends on how the dataset was shaped, its SQL is made from the resolved config.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from solar_rl.actions import ACTION_TYPES, BUTTONS, DIRECTIONS, POINT_ACTIONS, STATUSES
from solar_rl.schema import PLATFORMS, SCREEN_SIZES, SPLITS, TABLES


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
    "answers_are_actions_or_parse_errors": f"""
        SELECT episode_id, step_index, candidate_index, pred_action_type, parse_error FROM candidates
        WHERE (parse_error IS NULL) <> (pred_action_type IS NOT NULL) OR {_wrong_action("pred_")}
    """,
    "tokens_have_their_logprobs": """
        SELECT episode_id, step_index, candidate_index FROM candidates
        WHERE sampling_logprobs IS NOT NULL AND (
          len(token_ids) IS DISTINCT FROM len(sampling_logprobs) OR NOT list_max(sampling_logprobs) <= 1e-3)
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


def shaping_laws(config: dict[str, Any]) -> dict[str, str]:
    """Make the laws that depend on the dataset's config; none where it has no ``shaping``.

    They compute R_traj, the targets and the advantages anew from raw scores, in SQL, apart from the
    product's own shaping, within 1e-9. Source: method.md, sections 3 and 5.
    """
    shaping, advantage = config.get("shaping"), config.get("advantage", {})
    if not shaping or "score_weight" not in shaping:
        return {}
    laws = {"returns_follow_the_scores": _returns(shaping), "flat_groups_have_no_advantage": _FLAT}
    if shaping["normalisation"] == "none":
        laws["bases_follow_the_scores"] = _BASES
    if shaping["normalisation"] == "none" or shaping["alignment"] == "paper":
        laws["targets_follow_the_alignment"] = _targets(shaping)
    if advantage.get("scale", "none") == "none":
        laws["advantages_are_rewards_less_their_mean"] = _ADVANTAGES
    return laws


_FLAT = """
    SELECT episode_id, step_index, candidate_index FROM rewards JOIN grpo_groups USING (episode_id, step_index)
    WHERE dropped_reason IS NOT NULL AND advantage <> 0
"""
_ADVANTAGES = """
    SELECT episode_id, step_index, candidate_index FROM rewards JOIN grpo_groups USING (episode_id, step_index)
    WHERE dropped_reason IS NULL AND NOT abs(advantage - (reward - mean_reward)) <= 1e-9
"""
_BASES = """
    SELECT episode_id, step_index, candidate_index, raw_score, base_reward FROM rewards
    WHERE NOT abs(base_reward - CASE WHEN NOT valid THEN raw_score - 1 WHEN position = 'prefix' THEN raw_score ELSE 0 END)
      <= 1e-12
"""


def _segments(shaping: dict[str, Any]) -> str:
    """Return a SELECT of each segment: R_g as ``r``, its valid steps ``p``, what they and its breakdown score."""
    return f"""
        SELECT *, {shaping["score_weight"]} * m + {shaping["progress_weight"]} * least(1, k / ref_len)
          + {shaping["success_weight"]} * success::INTEGER AS r
        FROM (
          SELECT episode_id, candidate_index, segment_index, fsum(raw_score) / nullif(count(raw_score), 0) AS m,
            count(*) FILTER (valid IS NOT false) AS k, count(*) FILTER (valid) AS p,
            coalesce(fsum(raw_score) FILTER (valid), 0) AS gained,
            coalesce(fsum(raw_score - 1) FILTER (NOT valid), 0) AS broken
          FROM rewards WHERE segment_index IS NOT NULL GROUP BY ALL
        ) JOIN trajectories USING (episode_id, candidate_index)
    """


def _returns(shaping: dict[str, Any]) -> str:
    return f"""
        SELECT episode_id, candidate_index, trajectory_reward, r, mean_raw_score, m FROM ({_segments(shaping)})
        WHERE segment_index = 0 AND ((trajectory_reward IS NULL) <> (r IS NULL)
          OR abs(trajectory_reward - r) > 1e-9 OR abs(mean_raw_score - m) > 1e-9)
    """


def _targets(shaping: dict[str, Any]) -> str:
    aligned = "CASE WHEN p > 0 THEN p * r ELSE 0 END + broken"
    wanted = {
        "segments": aligned,
        "prefix_mean": f"CASE WHEN segment_index = 0 THEN {aligned} ELSE 0 END",
        "paper": "CASE WHEN segment_index = 0 THEN r ELSE 0 END",
        "off": "CASE WHEN segment_index = 0 THEN gained + broken ELSE 0 END",
    }[shaping["alignment"]]
    return f"""
        SELECT episode_id, candidate_index, target_reward, wanted FROM trajectories JOIN (
          SELECT episode_id, candidate_index, fsum({wanted}) AS wanted FROM ({_segments(shaping)}) GROUP BY ALL
        ) USING (episode_id, candidate_index) LEFT JOIN (
          SELECT episode_id, candidate_index, fsum(reward) AS later FROM rewards WHERE position = 'after' GROUP BY ALL
        ) USING (episode_id, candidate_index)
        WHERE target_reward IS NOT NULL AND alignment <> 'no_prefix'
          AND NOT abs(target_reward - wanted - coalesce(later, 0)) <= 1e-9
    """
