"""Ask the named questions: where do trajectories fail, what is valid, what do the rewards look like.

Every answer is a table of figures that repeat to the last bit, whatever the number of threads.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from solar_rl.errors import InputError
from solar_rl.stats.failures import FIRST_FAILURE, TRUNCATION
from solar_rl.stats.inputs import DIRECTIONS, LABELS
from solar_rl.stats.laws import check_laws
from solar_rl.stats.leakage import LEAKAGE, Leakage
from solar_rl.stats.question import Breakdown, Question, mean, share
from solar_rl.stats.sampling import SAMPLING, Sampling
from solar_rl.stats.scores import GROUPS, REWARDS, VALIDITY
from solar_rl.stats.truths import TRUTHS, WORDING, Truths

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.query import Connection

_QUESTIONS: dict[str, tuple[Question | Breakdown | Leakage | Sampling | Truths, ...]] = {
    "first_failure": FIRST_FAILURE,
    "validity": VALIDITY,
    "rewards": REWARDS,
    "groups": GROUPS,
    "truncation": TRUNCATION,
    "sampling": SAMPLING,
    "directions": DIRECTIONS + WORDING,
    "labels": LABELS,
    "oddities": TRUTHS,
    "leakage": LEAKAGE,
}
NAMES: tuple[str, ...] = (*_QUESTIONS, "checks")
"""Names of the statistics, in the order in which they are printed."""


class Answers:
    """The statistics of one dataset, each asked once: what its checks, card and report share."""

    def __init__(self, con: Connection) -> None:
        self.con = con
        self._tables: dict[str, dict[str, pl.DataFrame]] = {}

    def compute(self, name: str) -> dict[str, pl.DataFrame]:
        """Answer a named statistic; see the function ``compute``."""
        if name not in self._tables:
            self._tables[name] = compute(self.con, name)
        return self._tables[name]

    @cached_property
    def headline(self) -> dict[str, float | int | None]:
        """Answer the headline figures; see the function ``headline``."""
        return headline(self.con)


def compute(con: Connection, name: str) -> dict[str, pl.DataFrame]:
    """Answer a named statistic.

    Args:
        con: From ``query.connect``.
        name: One of ``NAMES``.

    Returns:
        Tables by title. Shares and rates lie in [0, 1].

    Raises:
        InputError: No such statistic.
    """
    if name == "checks":
        return {"Laws": check_laws(con)}
    if name not in _QUESTIONS:
        raise InputError(f"no statistic is named '{name}'", hint=f"there is: {', '.join(NAMES)}")
    tables: dict[str, pl.DataFrame] = {}
    for question in _QUESTIONS[name]:
        tables |= question.ask(con)
    return tables


_HEADLINES = (
    "SELECT count(*) AS episodes FROM episodes",
    "SELECT count(*) AS steps, count(DISTINCT image_sha256) AS screenshots FROM steps",
    f"""
    SELECT count(*) AS candidates, {share("count(raw_score)", "count(*)")} AS scored_share,
      {share("count(*) FILTER (valid)", "count(raw_score)")} AS validity, {mean("raw_score")} AS mean_score,
      {share("count(*) FILTER (pred_action_type IS NULL)", "count(*)")} AS parse_error_rate,
      count(reward) AS candidates_in_play
    FROM rewards
    """,
    f"""
    SELECT count(*) AS trajectories, {share("count(*) FILTER (success)", "count(*)")} AS success_rate,
      {share("sum(valid_prefix_len)", "sum(ref_len)")} AS goal_progress,
      {mean("trajectory_reward")} AS mean_trajectory_reward,
      {share("sum(ref_len - coalesce(first_failure_step + 1, ref_len))", "sum(ref_len)")}
        AS after_first_failure_share,
      max(abs(reward_sum - target_reward)) FILTER (alignment = 'aligned') AS largest_sum_error
    FROM trajectories
    """,
    f"""
    SELECT count(*) AS groups, {share("count(*) FILTER (dropped_reason IS NOT NULL)", "count(*)")} AS groups_dropped_share
    FROM grpo_groups
    """,
)


def headline(con: Connection) -> dict[str, float | int | None]:
    """Return the figures that sum a dataset up, by name, for the card and the command line.

    A rate of nothing is None: the mean score of a dataset whose labels can't be judged, say.
    """
    figures: dict[str, float | int | None] = {}
    for sql in _HEADLINES:
        figures |= con.sql(sql).pl().row(0, named=True)
    return figures
