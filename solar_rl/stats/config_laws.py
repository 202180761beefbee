"""The laws that depend on how a dataset was sampled, judged and shaped: their SQL is made from its config.

They compute R_traj, the targets and the advantages anew from raw scores, in SQL, apart from the product's own
shaping, within 1e-9. Source: method.md, sections 2, 3 and 5.
"""

from __future__ import annotations

from typing import Any

from solar_rl.config import ValidityConfig


def config_laws(config: dict[str, Any]) -> dict[str, str]:
    """Make the laws that depend on the dataset's config; none of a block that it lacks.

    Args:
        config: The manifest's resolved config.
    """
    sampler, validity = config.get("sampler", {}), config.get("validity", {})
    laws = {}
    if "n" in sampler:
        laws["steps_have_n_candidates"] = _counts(sampler["n"], bool(sampler.get("adaptive")))
    if "click_threshold" in validity and not validity.get("verifier"):
        laws |= _validity_laws(ValidityConfig.model_validate(validity))
    return laws | _shaping_laws(config)


def _counts(n: int, adaptive: bool) -> str:
    """Allow n candidates a step; adaptive sampling may also stop at fewer."""
    least = 1 if adaptive else n
    return f"""
        SELECT episode_id, step_index, count(candidate_index) AS n
        FROM steps LEFT JOIN candidates USING (episode_id, step_index)
        GROUP BY ALL HAVING count(candidate_index) NOT BETWEEN {least} AND {n}
    """


def _validity_laws(config: ValidityConfig) -> dict[str, str]:
    """Make the laws of section 2: valid from the threshold on, and the kernel computed anew."""
    from_on = {
        "point": config.click_threshold,
        "drag": config.click_threshold,
        "text": config.text_threshold,
        "launch": config.launch_threshold,
        **dict.fromkeys(("press", "status", "type"), 1),
    }
    cases = " ".join(f"WHEN '{rule}' THEN {threshold!r}" for rule, threshold in from_on.items())
    sx, sy = (
        f"greatest({config.sigma0!r}, {config.box_sigma!r} * coalesce(box_{axis}2 - box_{axis}1, 0))"
        for axis in "xy"
    )
    kernel = f"exp(-0.5 * (((pred_x - x) / {sx}) ** 2 + ((pred_y - y) / {sy}) ** 2))"
    inside = "pred_x BETWEEN box_x1 AND box_x2 AND pred_y BETWEEN box_y1 AND box_y2"
    # a step with other right actions is judged by whichever fits best: only what holds of all is asked there
    judged = """rewards AS r JOIN steps AS s USING (episode_id, step_index)
        JOIN candidates AS c USING (episode_id, step_index, candidate_index) WHERE len(alternatives) = 0"""
    return {
        "valid_means_from_the_threshold_on": f"""
            SELECT episode_id, step_index, candidate_index, rule, raw_score, valid FROM rewards
            WHERE valid <> (raw_score >= CASE rule {cases} END)
        """,
        "no_whole_answer_scores_nothing": """
            SELECT episode_id, step_index, candidate_index, rule, raw_score, valid FROM rewards
            WHERE (rule IN ('parse', 'argument') OR failure_reason = 'wrong_type') AND (valid OR raw_score > 0)
        """,
        "points_follow_the_kernel": f"""
            SELECT r.episode_id, r.step_index, r.candidate_index, raw_score FROM {judged}
            AND rule = 'point' AND NOT abs(raw_score - greatest({kernel},
              CASE WHEN {inside} THEN {config.box_floor!r} ELSE 0 END)) <= 1e-9
        """,
        "distances_are_those_of_the_points": f"""
            SELECT r.episode_id, r.step_index, r.candidate_index, distance FROM {judged}
            AND rule = 'point' AND NOT abs(distance - sqrt((pred_x - x) ** 2 + (pred_y - y) ** 2)) <= 1e-9
        """,
        "scrolls_are_valid_by_direction": f"""
            SELECT r.episode_id, r.step_index, r.candidate_index, raw_score, valid FROM {judged}
            AND rule = 'scroll' AND (valid <> (pred_direction = direction)
              OR (pred_direction <> direction AND raw_score <> 0) OR (pred_direction = direction AND raw_score < 0.5))
        """,
        "boxes_used_are_no_containers": f"""
            SELECT episode_id, step_index, candidate_index, box_x1, box_y1, box_x2, box_y2 FROM rewards
            WHERE NOT (box_x2 - box_x1) * (box_y2 - box_y1) < {config.max_box_area!r}
        """,
    }


def _shaping_laws(config: dict[str, Any]) -> dict[str, str]:
    """Make the laws of sections 3 and 5."""
    shaping, advantage = config.get("shaping"), config.get("advantage", {})
    if not shaping or "score_weight" not in shaping:
        return {}
    laws = {
        "returns_follow_the_scores": _returns(shaping),
        "mean_prefix_reward_is_the_return": _mean_prefix(shaping),
        "alignment_says_what_carries_the_gap": _alignments(shaping),
        "what_comes_after_follows_the_suffix": _after(shaping),
        "flat_groups_have_no_advantage": _FLAT,
    }
    if shaping["alignment"] not in ("segments", "prefix_mean"):
        del laws["mean_prefix_reward_is_the_return"]
    if shaping["normalisation"] == "none":
        laws["bases_follow_the_scores"] = _BASES
    if shaping["normalisation"] == "none" or shaping["alignment"] == "paper":
        laws["targets_follow_the_alignment"] = _targets(shaping)
    if advantage.get("scale", "none") == "none":
        laws["advantages_are_rewards_less_their_mean"] = _ADVANTAGES
    if (least := _least_valid_score(config.get("validity", {}))) is not None:
        laws["success_pays_more_than_failure"] = _bounds(shaping, least)
    return laws


def _least_valid_score(validity: dict[str, Any]) -> float | None:
    """Return the score that every valid step reaches: 0.5; None under a verifier, or a threshold below that."""
    if "click_threshold" not in validity or validity.get("verifier"):
        return None
    return 0.5 if all(validity[f"{kind}_threshold"] >= 0.5 for kind in ("click", "text", "launch")) else None


def _bounds(shaping: dict[str, Any], least: float) -> str:
    """Return the trajectories whose R_traj is too large for a failure or too small for a success."""
    score, progress, success = (shaping[f"{name}_weight"] for name in ("score", "progress", "success"))
    return f"""
        SELECT episode_id, candidate_index, success, trajectory_reward FROM trajectories
        WHERE trajectory_reward NOT BETWEEN 0 AND {score + progress + success!r} + 1e-9
          OR (success AND trajectory_reward < {score * least + progress + success!r} - 1e-9)
          OR (NOT success AND trajectory_reward > {score + progress!r} + 1e-9)
    """


def _mean_prefix(shaping: dict[str, Any]) -> str:
    """Return the segments whose valid steps don't get R_g on average (prefix_mean: the first one's alone)."""
    which = "" if shaping["alignment"] == "segments" else "AND segment_index = 0"
    return f"""
        SELECT episode_id, candidate_index, segment_index, r, mean FROM ({_segments(shaping)}) JOIN (
          SELECT episode_id, candidate_index, segment_index, fsum(reward) / count(*) AS mean
          FROM rewards WHERE valid AND position = 'prefix' GROUP BY ALL
        ) USING (episode_id, candidate_index, segment_index) WHERE NOT abs(mean - r) <= 1e-9 {which}
    """


def _alignments(shaping: dict[str, Any]) -> str:
    """Return the trajectories whose ``alignment`` isn't no_prefix where no valid step carries the gap, or is elsewhere."""
    which = "" if shaping["alignment"] == "segments" else "FILTER (segment_index = 0)"
    carried = "off" if shaping["alignment"] == "off" else "aligned"
    return f"""
        SELECT episode_id, candidate_index, alignment, carriers FROM trajectories JOIN (
          SELECT episode_id, candidate_index, coalesce(sum(valid::INTEGER) {which}, 0) AS carriers
          FROM rewards GROUP BY ALL
        ) USING (episode_id, candidate_index)
        WHERE alignment <> CASE WHEN carriers > 0 THEN '{carried}' ELSE 'no_prefix' END
    """


def _after(shaping: dict[str, Any]) -> str:
    """Return the rows after t* that aren't called so, or are rewarded otherwise than the suffix says."""
    if shaping["alignment"] == "segments":
        return "SELECT episode_id, step_index, candidate_index FROM rewards WHERE position = 'after'"
    rewarded = (
        "reward IS NOT NULL" if shaping["suffix"] == "discard" else "(reward IS NULL) <> (raw_score IS NULL)"
    )
    return f"""
        SELECT episode_id, step_index, candidate_index, position, first_failure_step
        FROM rewards JOIN trajectories USING (episode_id, candidate_index)
        WHERE (position = 'after') <> coalesce(step_index > first_failure_step, false)
          OR (position = 'after' AND {rewarded})
    """


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
