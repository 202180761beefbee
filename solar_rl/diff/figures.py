"""Compare what two datasets measure: the same questions asked of both, row against row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from solar_rl import stats
from solar_rl.diff.rows import Row, merged, pair, pairs
from solar_rl.stats.question import answer, count, mean, share, std

if TYPE_CHECKING:
    from solar_rl.query import Connection

Figures = dict[Any, Any]
_REWARDS, _RETURNS = "Distribution of rewards", "Distribution of R_traj"

_ADVANTAGES = f"""
  SELECT count(advantage) AS in_play, {std("advantage")} AS std, min(advantage) AS least, max(advantage) AS largest,
    {share(count("advantage < 0"), "count(advantage)")} AS negative_share,
    {share(count("advantage = 0"), "count(advantage)")} AS zero_share,
    {share(count("valid AND advantage < 0"), count("valid AND advantage IS NOT NULL"))} AS negative_share_of_valid
  FROM rewards
"""
_SAMPLER = f"""
  SELECT {share(count("parse_error IS NOT NULL"), "count(*)")} AS parse_error_rate,
    {share(count("finish_reason = 'length'"), "count(finish_reason)")} AS cut_share,
    {share(count("history_dropped > 0"), "count(*)")} AS history_dropped_share,
    {mean("length(completion)")} AS mean_characters, {mean("len(token_ids)")} AS mean_tokens,
    {mean("list_avg(sampling_logprobs)")} AS mean_logprob,
    count(DISTINCT sampler_id) AS samplers
  FROM candidates
"""


def compare_figures(a: Connection, b: Connection, *, same_answers: bool) -> dict[str, list[Row]]:
    """Return the sections that are asked in SQL.

    Args:
        a: The first dataset.
        b: The second.
        same_answers: Their candidates are the same bytes: what is told of them needn't be asked twice.
    """
    answers = _one(a, _SAMPLER)
    return {
        "headline": pairs("figure", _headline(a), _headline(b)),
        "validity": _validity(a, b),
        "first_failure": _shares("step", _failures(a), _failures(b)),
        "rewards": _shares("at_least", _bins(a, _REWARDS), _bins(b, _REWARDS), width=0.1),
        "returns": _shares("at_least", _bins(a, _RETURNS), _bins(b, _RETURNS), width=0.05),
        "advantages": pairs("figure", _one(a, _ADVANTAGES), _one(b, _ADVANTAGES)),
        "sampler": pairs(
            "figure",
            answers | _health(a),
            (answers if same_answers else _one(b, _SAMPLER)) | _health(b),
        ),
    }


def _one(con: Connection, sql: str) -> Figures:
    return answer(con, sql).row(0, named=True)


def _headline(con: Connection) -> Figures:
    """Return the headline figures but the largest rounding error, which tells nothing here."""
    return {name: value for name, value in stats.headline(con).items() if name != "largest_sum_error"}


def _validity(a: Connection, b: Connection) -> list[Row]:
    first, second = (_by_type(con) for con in (a, b))
    return [
        {"action_type": kind, "scored_a": n_a, "scored_b": n_b, **pair(v_a, v_b)}
        for kind in merged(first, second)
        for (n_a, v_a), (n_b, v_b) in [(first.get(kind, (0, None)), second.get(kind, (0, None)))]
    ]


def _by_type(con: Connection) -> dict[str, tuple[int, float | None]]:
    sql = f"""
      SELECT action_type, count(valid), {share(count("valid"), "count(valid)")} FROM rewards
      GROUP BY action_type ORDER BY count(*) DESC, action_type
    """
    return {kind: (scored, validity) for kind, scored, validity in answer(con, sql).iter_rows()}


def _failures(con: Connection) -> Figures:
    """Return the share of trajectories that fail first at each step; null: none fails."""
    sql = f"""
      SELECT first_failure_step, {share("count(*)", "sum(count(*)) OVER ()")} FROM trajectories
      GROUP BY first_failure_step ORDER BY first_failure_step
    """
    return dict(answer(con, sql).iter_rows())


def _bins(con: Connection, title: str) -> Figures:
    rows = stats.compute(con, "rewards")[title]
    return dict(rows.select("at_least", "share").iter_rows())


def _shares(name: str, a: Figures, b: Figures, width: float = 1) -> list[Row]:
    """Put two histograms side by side over the same bins, empty ones between the ends included; null last."""
    numbers = [key for key in merged(a, b) if key is not None]
    keys: Iterable[Any] = []
    if numbers:
        low, high = round(min(numbers) / width), round(max(numbers) / width)
        keys = [k if width == 1 else round(k * width, 9) for k in range(low, high + 1)]
    rows = [pair(a.get(key, 0.0), b.get(key, 0.0), **{name: key}) for key in keys]
    ends = [pair(a.get(None, 0.0), b.get(None, 0.0), **{name: None})] if None in a or None in b else []
    return rows + ends


def _health(con: Connection) -> Figures:
    tables = stats.compute(con, "sampling")
    passed = tables["Pass@1 and pass@N"].row(0, named=True)
    different = next(table for title, table in tables.items() if title.startswith("Diversity")).row(
        0, named=True
    )
    kept = ("candidates_a_step", "pass_at_1", "pass_at_n", "all_valid", "action_types_a_step")
    found = {name: passed[name] for name in kept}
    return found | {"different_a_step": different["different_a_step"]}
