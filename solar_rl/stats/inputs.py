"""What went in: the sampler's answers and the labels they are held against."""

from __future__ import annotations

from solar_rl.actions import ACTION_TYPES
from solar_rl.stats.question import Breakdown, Question, mean, share

DIVERSITY_ROWS = 50_000
"""Completions are long: their diversity is measured on the first rows of the table alone."""

_OFF_SCREEN = " OR ".join(f"{name} NOT BETWEEN 0 AND 1" for name in ("x", "y", "x2", "y2"))

# a number for each action type, 0 for an answer that didn't parse: a set of them is a bit mask
_KIND = f"coalesce(list_position({list(ACTION_TYPES)}, pred_action_type), 0)"

SAMPLING = (
    Breakdown(
        {"everything": "Pass@1 and pass@N", "action_type": "Pass@1 and pass@N by action type"},
        f"""
        count(*) AS steps,
        {mean("n")} AS candidates_a_step,
        {share("sum(valid)", "sum(scored)")} AS pass_at_1,
        {share("count(*) FILTER (valid > 0)", "count(*) FILTER (scored > 0)")} AS pass_at_n,
        {share("count(*) FILTER (scored > 0 AND valid = scored)", "count(*) FILTER (scored > 0)")} AS all_valid,
        {mean("kinds")} AS action_types_a_step,
        {share("sum(unparsed)", "sum(n)")} AS parse_error_rate
        """,
        f"""(
          SELECT 'all' AS everything, first(action_type) AS action_type, count(*) AS n,
            count(raw_score) AS scored, count(*) FILTER (valid) AS valid, count(*) FILTER (pred_action_type IS NULL) AS unparsed,
            bit_count(bit_or(1 << {_KIND})) AS kinds
          FROM rewards GROUP BY episode_id, step_index
        )""",
    ),
    Question(
        "Parse errors",
        f"""
        SELECT parse_error, count(*) AS candidates, {share("count(*)", "(SELECT count(*) FROM candidates)")} AS share
        FROM candidates WHERE parse_error IS NOT NULL GROUP BY parse_error ORDER BY candidates DESC, parse_error
        """,
    ),
    Question(
        f"Diversity of answers (the first {DIVERSITY_ROWS:,})",
        f"""
        SELECT count(*) AS steps, {mean("n")} AS candidates_a_step, {mean("different")} AS different_a_step,
          {share("count(*) FILTER (different = 1 AND n > 1)", "count(*)")} AS all_equal
        FROM (
          SELECT sum(n) AS n, count(*) AS different FROM (
            SELECT episode_id, step_index, count(*) AS n
            FROM (SELECT episode_id, step_index, completion FROM candidates LIMIT {DIVERSITY_ROWS})
            GROUP BY episode_id, step_index, completion
          ) GROUP BY episode_id, step_index
        )
        """,
    ),
)

DIRECTIONS = (
    Question(
        "Scrolls: predicted direction against the label's",
        """
        SELECT s.direction AS label, c.pred_direction AS predicted, count(*) AS candidates
        FROM candidates AS c JOIN steps AS s USING (episode_id, step_index)
        WHERE s.action_type = 'scroll' AND c.pred_action_type = 'scroll'
        GROUP BY ALL ORDER BY label, candidates DESC, predicted
        """,
    ),
    Question(
        "Scrolls: right, reversed, across",
        f"""
        SELECT label, count(*) AS candidates, {share("count(*) FILTER (said = label)", "count(*)")} AS same,
          {share("count(*) FILTER (said = opposite)", "count(*)")} AS reversed,
          {share("count(*) FILTER (said NOT IN (label, opposite))", "count(*)")} AS across
        FROM (
          SELECT s.direction AS label, c.pred_direction AS said,
            CASE s.direction WHEN 'up' THEN 'down' WHEN 'down' THEN 'up' WHEN 'left' THEN 'right' ELSE 'left' END
              AS opposite
          FROM candidates AS c JOIN steps AS s USING (episode_id, step_index)
          WHERE s.action_type = 'scroll' AND c.pred_action_type = 'scroll'
        ) GROUP BY label ORDER BY label
        """,
    ),
    Question(
        "Scroll labels: direction against the finger's path",
        """
        SELECT direction, count(*) AS steps, count(x2) AS with_path,
          count(*) FILTER (x2 IS NOT NULL AND direction <> CASE
            WHEN abs(x2 - x) > abs(y2 - y) THEN if(x2 > x, 'left', 'right') ELSE if(y2 > y, 'up', 'down') END
          ) AS path_disagrees
        FROM steps WHERE action_type = 'scroll' GROUP BY direction ORDER BY direction
        """,
    ),
)

LABELS = (
    Question(
        "Labels by action type (a box of a quarter of the screen or more is a container)",
        f"""
        SELECT action_type, count(*) AS steps, count(*) FILTER (targeted) AS with_target_box,
          count(smallest) AS with_boxes, count(*) FILTER (largest >= 0.25) AS with_container,
          count(*) FILTER (smallest >= 0.25) AS containers_alone, {mean("smallest")} AS mean_smallest_area,
          count(*) FILTER ({_OFF_SCREEN}) AS off_screen,
          count(*) FILTER (action_type = 'input_text' AND trim(coalesce(text, '')) = '') AS empty_text,
          count(*) FILTER (instructed) AS with_instruction, count(*) FILTER (shown) AS with_screenshot
        FROM (
          SELECT action_type, x, y, x2, y2, text, target_box IS NOT NULL AS targeted,
            instruction IS NOT NULL AS instructed, image_sha256 IS NOT NULL AS shown,
            list_min(areas) AS smallest, list_max(areas) AS largest
          FROM (
            SELECT *, list_transform(candidate_boxes, lambda b: (b[3] - b[1]) * (b[4] - b[2])) AS areas FROM steps
          )
        ) GROUP BY action_type ORDER BY steps DESC, action_type
        """,
    ),
    Question(
        "Where screen sizes come from",
        """
        SELECT screen_size, screen_width, screen_height, count(*) AS steps
        FROM steps GROUP BY ALL ORDER BY steps DESC, screen_width, screen_height, screen_size
        """,
    ),
    Question(
        "Labels that can't be judged",
        """
        SELECT unscored_reason, action_type, count(*) AS candidates
        FROM rewards WHERE unscored_reason IS NOT NULL GROUP BY ALL ORDER BY candidates DESC, unscored_reason, action_type
        """,
    ),
)
