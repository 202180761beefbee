"""What to know about the labels of a dataset before a score on it is believed.

Every kind of oddity was found in data that many compare on: clicks beyond the screen, labels without a box or in
a box as large as the screen, empty instructions, goals that occur again, episodes ending in wait, and
instructions whose words contradict the label. None of them is an error of the build; each moves a score. "Clicks"
are all point actions, boxes are measured by the share of the screen that they cover, and an instruction or text
of blanks alone counts as none.
"""

from __future__ import annotations

from solar_rl.actions import POINT_ACTIONS
from solar_rl.stats.question import Question, share

OVERSIZED = (0.1, 0.25, 0.5, 0.75)
"""Shares of the screen from which a box is called oversized."""

_POINT = f"action_type IN {POINT_ACTIONS}"
_WIDE, _HIGH = "(least(b[3], 1) - greatest(b[1], 0))", "(least(b[4], 1) - greatest(b[2], 0))"
_BOXES = "if(len(candidate_boxes) = 0 AND target_box IS NOT NULL, [target_box], candidate_boxes)"
_PLACES = f"""
    SELECT episode_id, step_index, x, y, boxes,
      list_transform(boxes, lambda b: if({_WIDE} > 0 AND {_HIGH} > 0, {_WIDE} * {_HIGH}, 0)) AS areas,
      list_bool_or(list_transform(boxes, lambda b: x BETWEEN b[1] AND b[3] AND y BETWEEN b[2] AND b[4])) AS inside,
      list_bool_or(list_transform(boxes, lambda b: b[1] < 0 OR b[2] < 0 OR b[3] > 1 OR b[4] > 1)) AS beyond
    FROM (SELECT episode_id, step_index, x, y, {_BOXES} AS boxes FROM steps WHERE {_POINT})
"""


def _counted(what: str, condition: str, source: str) -> str:
    """Count rows that meet a condition, with the first of them as an example."""
    first = f"min((episode_id, step_index)) FILTER ({condition})"
    return f"""
    SELECT '{what}' AS what, count(*) FILTER ({condition}) AS cases, count(*) AS of,
      {share(f"count(*) FILTER ({condition})", "count(*)")} AS share,
      ({first})[1] || ', step ' || ({first})[2] AS example
    FROM {source}
    """


_SHARES = [(f"clicks, box from {share_of:.0%}", share_of) for share_of in OVERSIZED]
_ENDS = (
    "(SELECT * FROM steps QUALIFY row_number() OVER (PARTITION BY episode_id ORDER BY step_index DESC) = 1)"
)
_GOALS = """(
    SELECT episode_id, 0 AS step_index, count(*) OVER (PARTITION BY lower(trim(goal))) AS same FROM episodes
)"""
_BEFORE = """(
    SELECT *, lag(trim(instruction)) OVER (PARTITION BY episode_id ORDER BY step_index) AS earlier FROM steps
)"""
_TRUTHS = (
    ("clicks beyond the screen", "x NOT BETWEEN 0 AND 1 OR y NOT BETWEEN 0 AND 1", "places"),
    ("clicks without a box", "len(boxes) = 0", "places"),
    ("clicks outside all boxes", "len(boxes) > 0 AND NOT inside", "places"),
    *((what, f"list_max(areas) >= {area}", "places") for what, area in _SHARES),
    (
        "clicks, smallest box from 25%",
        "list_min(list_filter(areas, lambda a: a > 0)) >= 0.25",
        "places",
    ),
    ("clicks, box without area", "list_min(areas) = 0", "places"),
    ("clicks, box off the screen", "beyond", "places"),
    ("steps without instruction", "trim(coalesce(instruction, '')) = ''", "steps"),
    (
        "steps, instruction repeated",
        "trim(instruction) <> '' AND trim(instruction) = earlier",
        _BEFORE,
    ),
    ("steps that type nothing", "action_type = 'input_text' AND trim(coalesce(text, '')) = ''", "steps"),
    ("steps, size not stated", "screen_size <> 'stated'", "steps"),
    ("episodes, goal repeated", "same > 1", _GOALS),
    ("episodes ending in wait", "action_type = 'wait'", _ENDS),
    ("episodes without finished", "action_type <> 'finished'", _ENDS),
)

TRUTHS = (
    Question(
        "What to know about these labels",
        f"WITH places AS ({_PLACES})" + " UNION ALL ".join(_counted(*truth) for truth in _TRUTHS),
    ),
    Question(
        "Goals that occur again",
        """
        SELECT min(goal) AS goal, count(*) AS episodes, count(DISTINCT split) AS splits, min(episode_id) AS example
        FROM episodes GROUP BY lower(trim(goal)) HAVING count(*) > 1 ORDER BY episodes DESC, goal LIMIT 50
        """,
    ),
)

WORDING = (
    Question(
        "Scrolls: the instruction's words against the label",
        """
        SELECT words, direction AS label, count(*) AS steps, min((episode_id, step_index))[1] AS example
        FROM (
          SELECT regexp_extract(lower(instruction), '(scroll|swipe) (up|down|left|right)') AS words, direction,
            episode_id, step_index
          FROM steps WHERE action_type = 'scroll'
        ) WHERE words <> '' GROUP BY words, direction ORDER BY steps DESC, words, label
        """,
    ),
)
