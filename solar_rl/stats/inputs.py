"""What went in: the labels that answers are held against, and where directions part."""

from __future__ import annotations

from solar_rl.stats.question import Question, mean, share

_OFF_SCREEN = " OR ".join(f"{name} NOT BETWEEN 0 AND 1" for name in ("x", "y", "x2", "y2"))

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
