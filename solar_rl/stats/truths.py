"""What to know about the labels of a dataset before a score on it is believed.

Every kind of oddity was found in data that many compare on: clicks beyond the screen, labels without a box or in
a box as large as the screen, empty instructions, goals that occur again, episodes ending in wait, and
instructions whose words contradict the label. None of them is an error of the build; each can move a score. "Clicks"
are all point actions, boxes are measured by the share of the screen that they cover, and an instruction or text
of blanks alone counts as none. "Box from 10%" asks for a click's largest box: where the boxes are an accessibility
tree's nodes, its root holds every point and these rows say 100 %; "smallest box from 25%" is what tells there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from solar_rl.actions import POINT_ACTIONS
from solar_rl.query import cursor_for
from solar_rl.stats.question import Question, answer, share

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.query import Connection

OVERSIZED = (0.1, 0.25, 0.5, 0.75)
"""Shares of the screen from which a box is called oversized."""

_POINT = f"action_type IN {POINT_ACTIONS}"
_AREA = "greatest(0, least(b[3], 1) - greatest(b[1], 0)) * greatest(0, least(b[4], 1) - greatest(b[2], 0))"
_BOXES = "if(len(candidate_boxes) = 0 AND target_box IS NOT NULL, [target_box], candidate_boxes)"
_PLACES = f"""(
    SELECT outside, n_boxes > 0 AS boxed, inside, beyond, n_flat > 0 AS flat, smallest >= 0.25 AS only_large,
      {" + ".join(f"(largest >= {area})::INT" for area in OVERSIZED)} AS size,
      count(*) AS n, min(episode_id || ', step ' || step_index) AS first
    FROM (
      SELECT episode_id, step_index, outside, n_boxes, inside, beyond, n_boxes - list_count(areas) AS n_flat,
        list_min(areas) AS smallest, list_max(areas) AS largest
      FROM (
        SELECT episode_id, step_index, x NOT BETWEEN 0 AND 1 OR y NOT BETWEEN 0 AND 1 AS outside,
          len(boxes) AS n_boxes, list_transform(boxes, lambda b: nullif({_AREA}, 0)) AS areas,
          list_bool_or(list_transform(boxes, lambda b: x BETWEEN b[1] AND b[3] AND y BETWEEN b[2] AND b[4])) AS inside,
          list_bool_or(list_transform(boxes, lambda b: least(b[1], b[2]) < 0 OR greatest(b[3], b[4]) > 1)) AS beyond
        FROM (SELECT episode_id, step_index, x, y, {_BOXES} AS boxes FROM steps WHERE {_POINT})
      )
    ) GROUP BY ALL
)"""
"""Clicks by what holds of them: a handful of rows, so that each oddity is counted without another pass."""


def _counted(source: str, truths: list[tuple[str, str]]) -> str:
    """Count what meets each condition in one pass over rows with ``n`` and ``first``, an example."""
    rows = ", ".join(
        f"{{what: '{what}', cases: coalesce(sum(n) FILTER ({condition}), 0), whole: coalesce(sum(n), 0), "
        f"first: min(first) FILTER ({condition})}}"
        for what, condition in truths
    )
    return f"SELECT unnest([{rows}]) AS row FROM {source}"


_ONE = "1 AS n, episode_id || ', step ' || step_index AS first"
_ENDS = (
    f"(SELECT action_type, {_ONE} FROM steps JOIN episodes USING (episode_id) WHERE step_index = ref_len - 1)"
)
_GOALS = """(
    SELECT count(*) AS n, count(*) AS same, min(episode_id) || ', step 0' AS first FROM episodes GROUP BY lower(trim(goal))
)"""
_BEFORE = f"""(
    SELECT *, {_ONE}, said <> 0 AND said = lag(said) OVER (PARTITION BY episode_id ORDER BY step_index) AS again
    FROM (
      SELECT episode_id, step_index,
        if(trim(coalesce(instruction, '')) = '', 0, hash(trim(instruction))) AS said,
        action_type = 'input_text' AND trim(coalesce(text, '')) = '' AS types_nothing, screen_size <> 'stated' AS guessed
      FROM steps
    )
)"""
_BY_SOURCE: tuple[tuple[str, list[tuple[str, str]]], ...] = (
    (
        _PLACES,
        [
            ("clicks beyond the screen", "outside"),
            ("clicks without a box", "NOT boxed"),
            ("clicks outside all boxes", "boxed AND NOT inside"),
            *((f"clicks, box from {area:.0%}", f"size > {at}") for at, area in enumerate(OVERSIZED)),
            ("clicks, smallest box from 25%", "only_large"),
            ("clicks, box without area", "flat"),
            ("clicks, box off the screen", "beyond"),
        ],
    ),
    (
        _BEFORE,
        [
            ("steps without instruction", "said = 0"),
            ("steps, instruction repeated", "again"),
            ("steps that type nothing", "types_nothing"),
            ("steps, size not stated", "guessed"),
        ],
    ),
    (_GOALS, [("episodes, goal repeated", "same > 1")]),
    (
        _ENDS,
        [
            ("episodes ending in wait", "action_type = 'wait'"),
            ("episodes without finished", "action_type <> 'finished'"),
        ],
    ),
)


class Truths:
    """What to know about the labels: clicks, whose boxes take as long as all else, beside the rest."""

    title = "What to know about these labels"

    def ask(self, con: Connection) -> dict[str, pl.DataFrame]:
        """Answer with one table: cases, of how many, their share, and an example."""
        import polars as pl

        clicks, rest = _told(_BY_SOURCE[0]), _told(*_BY_SOURCE[1:])
        with ThreadPoolExecutor(1) as thread:
            first = thread.submit(answer, cursor_for(con, clicks), clicks)
            others = answer(con, rest)
            return {self.title: pl.concat([first.result(), others])}


def _told(*sources: tuple[str, list[tuple[str, str]]]) -> str:
    return f"""
        SELECT row.what AS what, row.cases AS cases, row.whole AS of,
          {share("row.cases", "row.whole")} AS share,
          row.first AS example
        FROM ({" UNION ALL ".join(_counted(*each) for each in sources)})
        """


TRUTHS = (Truths(),)

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
