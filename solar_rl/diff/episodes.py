"""Find the episodes that differ between two datasets, by what of them differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from solar_rl.diff.rows import Row, pair
from solar_rl.schema import SCORE_COLUMNS, TABLES
from solar_rl.stats.question import answer
from solar_rl.store.manifest import Manifest

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.query import Connection


class _Part(NamedTuple):
    """A part of an episode: the columns of a table that make it up."""

    name: str
    table: str
    columns: frozenset[str]


_SHOWN = ("goal", "ref_len", "validity", "mean_reward", "success_rate")


def _all_but(table: str, *left_out: str) -> frozenset[str]:
    return frozenset(TABLES[table].names) - {"episode_id", *left_out}


_SCORES = frozenset(column.name for column in SCORE_COLUMNS)
_RETURN = frozenset({"trajectory_reward"})  # R_traj, and nothing else is called the return
_TARGETS = frozenset({"target_reward", "reward_sum", "alignment"})
_REPEATED = frozenset(
    {"app", "action_type", "pred_action_type"}
)  # of rewards: steps and candidates have them
_PARTS = (
    _Part("goal", "episodes", _all_but("episodes", "split")),
    _Part("split", "episodes", frozenset({"split"})),
    _Part("steps", "steps", _all_but("steps")),
    _Part("answers", "candidates", _all_but("candidates", "sampler_id")),
    _Part("scores", "rewards", _SCORES | {"step_index", "candidate_index"}),
    _Part("rewards", "rewards", _all_but("rewards", *_SCORES, *_REPEATED)),
    _Part("failures", "trajectories", _all_but("trajectories", *_RETURN, *_TARGETS)),
    _Part("targets", "trajectories", _TARGETS | {"candidate_index"}),
    _Part("returns", "trajectories", _RETURN | {"candidate_index"}),
)
_FIGURES = """
  SELECT e.episode_id, goal, ref_len, validity, mean_reward, goal_progress, success_rate
  FROM episodes AS e LEFT JOIN (
    SELECT episode_id, count(*) FILTER (valid) / nullif(count(valid), 0)::DOUBLE AS validity,
      fsum(reward) / nullif(count(reward), 0) AS mean_reward
    FROM rewards GROUP BY episode_id
  ) USING (episode_id) LEFT JOIN (
    SELECT episode_id, count(*) FILTER (success) / count(*)::DOUBLE AS success_rate,
      favg(valid_prefix_len / ref_len) AS goal_progress
    FROM trajectories GROUP BY episode_id
  ) USING (episode_id)
"""


class Episodes(NamedTuple):
    """How the episodes of two datasets compare.

    Args:
        counts: Rows that count the episodes by what changed; one episode may count in several.
        paired: Rows of figures over the episodes whose demonstration is the same on both sides: mean of each
            side, mean difference, and half the width of its 95 % interval over episodes.
        differing: One row an episode that isn't the same: episode_id, ``status`` (changed, added, removed),
            ``parts`` (of a changed one), and goal, ref_len, validity, mean reward and success rate on both
            sides; the largest change of validity, then of reward, comes first.
    """

    counts: list[Row]
    paired: list[Row]
    differing: pl.DataFrame


def compare_episodes(a: Connection, b: Connection, first: Manifest, second: Manifest) -> Episodes:
    """Compare the episodes of two datasets by content."""
    import polars as pl

    both = _side_by_side(_figures(a), _figures(b))
    parts = [part for part in _PARTS if not same_files(first, second, part.table)]
    for part in parts:
        both = both.join(_compared(a, b, part), on="episode_id", how="left", maintain_order="left")
    both = _described(both, [part.name for part in parts])
    differing = both.filter((pl.col("status") != "changed") | (pl.col("parts").list.len() > 0))
    rows = [_row("the same", both.height - differing.height, both.height)]
    for status in ("changed", "added", "removed"):
        rows.append(_row(status, differing.filter(status=status).height, both.height))
    for part in _PARTS:
        having = differing.filter(pl.col("parts").list.contains(part.name)).height
        rows.append(_row(f"{part.name} changed", having, both.height))
    return Episodes(rows, list(_paired(both)), _sorted(differing))


def _described(both: pl.DataFrame, parts: list[str]) -> pl.DataFrame:
    """Turn the parts' columns of truth values into ``status`` and a list of the parts that differ."""
    import polars as pl

    in_a, in_b = pl.col("goal_a").is_not_null(), pl.col("goal_b").is_not_null()
    changed = pl.concat_list([pl.when(pl.col(name)).then(pl.lit(name)) for name in parts] or [pl.lit(None)])
    status = (
        pl.when(~in_a).then(pl.lit("added")).when(~in_b).then(pl.lit("removed")).otherwise(pl.lit("changed"))
    )
    listed = changed.cast(pl.List(pl.String)).list.drop_nulls()
    return both.with_columns(status=status, parts=pl.when(in_a & in_b).then(listed)).drop(parts)


def _paired(both: pl.DataFrame) -> Iterator[Row]:
    import polars as pl

    shared = both.filter(
        pl.col("parts").is_not_null(),
        ~pl.col("parts").list.contains("goal"),
        ~pl.col("parts").list.contains("steps"),
    )
    for name in ("validity", "mean_reward", "goal_progress", "success_rate"):
        pairs = shared.select(a=f"{name}_a", b=f"{name}_b").drop_nulls()
        n, change = pairs.height, pairs["b"] - pairs["a"]
        spread = change.std() if n > 1 else None
        half = 1.96 * float(spread) / n**0.5 if isinstance(spread, float) else None
        yield {"figure": name, "episodes": n, **pair(pairs["a"].mean(), pairs["b"].mean()), "within": half}


def _figures(con: Connection) -> pl.DataFrame:
    return answer(con, _FIGURES)


def _side_by_side(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    def named(frame: pl.DataFrame, side: str) -> pl.DataFrame:
        return frame.rename({name: f"{name}_{side}" for name in frame.columns if name != "episode_id"})

    both = named(a, "a").join(named(b, "b"), on="episode_id", how="full", coalesce=True)
    return both.sort("episode_id")  # a join promises no order, and a mean's last digit hangs on it


def same_files(a: Manifest, b: Manifest, table: str) -> bool:
    """Tell whether a table's files are the same bytes on both sides."""
    first, second = (
        {(e.path, e.sha256) for e in manifest.files if e.path.startswith(f"data/{table}/")}
        for manifest in (a, b)
    )
    return first == second


def _compared(a: Connection, b: Connection, part: _Part) -> pl.DataFrame:
    """Return episode_id and, under the part's name, whether it differs, for episodes that both have."""
    import polars as pl

    known = part.columns.intersection(*(_columns(con, part.table) for con in (a, b)))
    found = ", ".join(sorted(known))
    # keys are unique, so that no two equal rows of an episode cancel out
    sql = f"SELECT episode_id, bit_xor(hash({found})) AS content FROM {part.table} GROUP BY episode_id"
    both = answer(a, sql).join(answer(b, sql), on="episode_id", how="full", coalesce=True, suffix="_b")
    return both.select("episode_id", pl.col("content").ne_missing(pl.col("content_b")).alias(part.name))


def _columns(con: Connection, table: str) -> list[str]:
    """List a table's columns as its files have them: of a dataset on the Hub, once they are here."""
    return list(con.sql(f"SELECT * FROM {table} LIMIT 0").columns)


def _row(what: str, count: int, total: int) -> Row:
    return {"what": what, "episodes": count, "share": count / total if total else None}


def _sorted(episodes: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    by = [
        (pl.col(f"{name}_b") - pl.col(f"{name}_a")).abs().fill_null(-1.0)
        for name in ("validity", "mean_reward")
    ]
    return episodes.sort(*by, pl.col("episode_id"), descending=[True, True, False]).select(
        "episode_id", "status", "parts", *(f"{name}_{side}" for name in _SHOWN for side in "ab")
    )
