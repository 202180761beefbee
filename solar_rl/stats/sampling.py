"""What the sampler answered, and whether its groups have anything to learn from before a GPU is paid for.

The tables of many rows are read once each; what is told comes from a few hundred counts. All of them are whole
numbers, so that figures repeat to the last bit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from solar_rl.actions import ACTION_TYPES
from solar_rl.query import cursor_for
from solar_rl.stats.question import answer, count, mean, share

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.query import Connection

FIRST_ROWS = 20_000
"""Completions are long: how they differ is looked at in the first rows of the table alone."""
TOKEN_ROWS = 5_000
"""Token ids and log-probs are longer still."""
CELLS = 25
"""Points in the same cell of a grid of so many a side are the same action: 0.04, as near as peers ask for. Ours."""

# a number for each action type, 0 for an answer that didn't parse: a set of them is a bit mask
_KIND = f"coalesce(list_position({list(ACTION_TYPES)}, pred_action_type), 0)"
_GROUPS = f"""
SELECT action_type, n, scored, valid, differs, pilot, count(*) AS steps, sum(unparsed) AS unparsed, sum(kinds) AS kinds
FROM (
  SELECT first(action_type) AS action_type, count(*) AS n, count(raw_score) AS scored,
    count(*) FILTER (valid) AS valid, count(*) FILTER (pred_action_type IS NULL) AS unparsed,
    bit_count(bit_or(1 << {_KIND}))::BIGINT AS kinds, max(raw_score) - min(raw_score) > 1e-12 AS differs,
    (bool_or(valid) FILTER (candidate_index = 0))::BIGINT AS pilot
  FROM rewards GROUP BY episode_id, step_index
) GROUP BY ALL
"""
_ANSWERS = f"""
SELECT finish_reason, parse_error, count(*) AS candidates, {count("history_dropped > 0")} AS shortened,
  max(history_dropped) AS most_dropped
FROM candidates GROUP BY finish_reason, parse_error
"""

_CELL = ", ".join(f"floor(pred_{name} * {CELLS})" for name in ("x", "y", "x2", "y2"))
_WORDS = "pred_action_type, pred_direction, pred_text, pred_app_name, pred_keys, pred_button, pred_status"
# entropy of n answers in groups of k: ln n - sum(k ln k) / n, over its largest value ln n; an unparsed answer is one kind
_ENTROPY = "CASE WHEN sum(n) > 1 THEN 1 - sum((1e9 * n * ln(n))::BIGINT) / 1e9 / (sum(n) * ln(sum(n))) END"
_FIRST = f"""
SELECT count(*) AS steps, {mean("n")} AS candidates_a_step, {mean("texts")} AS different_a_step,
  {mean("actions")} AS actions_a_step, {mean("entropy")} AS entropy,
  {share(count("texts = 1 AND n > 1"), count("n > 1"))} AS all_equal,
  {share(count("actions = 1 AND n > 1"), count("n > 1"))} AS all_alike,
  {share(count("actions = n AND n > 1"), count("n > 1"))} AS all_different,
  {share("sum(largest)", "sum(n)")} AS share_of_the_commonest
FROM (
  SELECT sum(n) AS n, sum(texts) AS texts, count(*) AS actions, max(n) AS largest, {_ENTROPY} AS entropy
  FROM (
    SELECT episode_id, step_index, count(*) AS n, count(DISTINCT text) AS texts
    FROM (
      SELECT episode_id, step_index, hash(completion) AS text, hash({_WORDS}, {_CELL}) AS action
      FROM candidates LIMIT {FIRST_ROWS}
    ) GROUP BY episode_id, step_index, action
  ) GROUP BY episode_id, step_index
)
"""
_TOKENS = f"""
SELECT count(*) AS candidates, count(logprobs) AS with_logprobs, sum(tokens) AS tokens,
  {mean("tokens")} AS tokens_an_answer, {mean("logprob")} AS mean_logprob_an_answer,
  -sum((1e6 * logprob)::BIGINT) / 1e6 / nullif(sum(tokens) FILTER (logprob IS NOT NULL), 0) AS entropy_a_token
FROM (
  SELECT CASE WHEN len(sampling_logprobs) = len(token_ids) THEN 1 END AS logprobs,
    len(coalesce(token_ids, sampling_logprobs)) AS tokens, list_sum(sampling_logprobs)::DOUBLE AS logprob
  FROM (SELECT token_ids, sampling_logprobs FROM candidates LIMIT {TOKEN_ROWS})
)
"""


@dataclass(frozen=True)
class Sign:
    """One sign of health: a figure, and from where on it is good or at least usable.

    Args:
        what: What is measured.
        good: A value at least as good as this is good.
        usable: One at least as good as this is usable.
        more: Whether more is better.
        otherwise: What to do where it is not good.
    """

    what: str
    good: float
    usable: float
    more: bool
    otherwise: str

    def verdict(self, value: float | None) -> str:
        """Judge a value."""
        if value is None:
            return "not known"
        sign = 1 if self.more else -1
        if sign * value >= sign * self.good:
            return "good"
        return "usable" if sign * value >= sign * self.usable else "bad"

    @property
    def wanted(self) -> str:
        """Say what is good."""
        return "all" if self.good == 1 else f"{'at least' if self.more else 'at most'} {self.good:.0%}"


SIGNS = {
    "mixed": Sign(
        "groups of several candidates, some valid and some not",
        0.25,
        0.1,
        True,
        "equal groups teach nothing: sample at a higher temperature, with more candidates, or other steps",
    ),
    "pass_at_n": Sign(
        "steps that at least one candidate gets right",
        0.7,
        0.4,
        True,
        "what no candidate finds can't be rewarded: train on the recorded actions first, or add an expert anchor",
    ),
    "unparsed": Sign(
        "answers that are no action",
        0.05,
        0.2,
        False,
        "look at the parse errors by reason, and whether format and template are the model's own",
    ),
    "cut": Sign("answers cut at the longest length", 0.01, 0.05, False, "raise sampler.max_new_tokens"),
    "dropped": Sign(
        "answers whose prompt lost its oldest actions",
        0.05,
        0.2,
        False,
        "raise max_prompt_tokens, or lower prompt.max_pixels or prompt.screenshots",
    ),
    "alike": Sign(
        "groups of several candidates, all the same text",
        0.3,
        0.6,
        False,
        "the policy repeats itself: sample at a higher temperature",
    ),
    "logprobs": Sign(
        "answers with a log-prob for each token",
        1.0,
        1.0,
        True,
        "training needs them: use a sampler that gives them, or a scripted one with --sampler.policy",
    ),
}
"""Signs of health by name; the bounds are ours, rules of thumb before any training."""


@dataclass(frozen=True)
class Figures:
    """The counts behind every table.

    Args:
        groups: How many steps have so many candidates, scored and valid ones, by action type.
        answers: How many answers end and fail to parse in which way.
        first: How the first answers differ within their groups.
        tokens: Figures on the tokens of the first answers.
    """

    groups: pl.DataFrame
    answers: pl.DataFrame
    first: dict[str, Any]
    tokens: dict[str, Any]

    @classmethod
    def read(cls, con: Connection) -> Figures:
        """Read them; what looks at the first rows alone keeps one core busy, and the rest has the other.

        Args:
            con: From ``query.connect``.
        """

        def first_rows(con: Connection) -> list[dict[str, Any]]:
            return [answer(con, sql).row(0, named=True) for sql in (_FIRST, _TOKENS)]

        with ThreadPoolExecutor(1) as thread:
            looking = thread.submit(first_rows, cursor_for(con, _FIRST, _TOKENS))
            groups, answers = answer(con, _GROUPS), answer(con, _ANSWERS)
            return cls(groups, answers, *looking.result())


@dataclass(frozen=True)
class Sampling:
    """Everything on the sampler's answers."""

    def ask(self, con: Connection) -> dict[str, pl.DataFrame]:
        """Answer it."""
        import polars as pl

        figures = Figures.read(con)
        first = figures.first
        texts = ("steps", "candidates_a_step", "different_a_step", "all_equal")
        actions = [name for name in first if name not in texts[1:]]
        return {
            "Is it worth training on?": _health(figures),
            "Pass@1 and pass@N": _passes(figures.groups.with_columns(everything=pl.lit("all")), "everything"),
            "Pass@1 and pass@N by action type": _passes(figures.groups, "action_type"),
            "What groups can teach, before any shaping": _outcomes(figures.groups),
            "Contexts and samples": _sizes(figures.groups),
            "Parse errors": _errors(figures.answers),
            "How answers end (length: cut at the longest answer)": _ends(figures.answers),
            f"Diversity of answers (the first {FIRST_ROWS:,})": pl.DataFrame(
                [{name: first[name] for name in texts}]
            ),
            f"Different actions in a group (the first {FIRST_ROWS:,} answers; entropy 0: all alike, 1: all different)": (
                pl.DataFrame([{name: first[name] for name in actions}])
            ),
            f"Tokens and log-probs (the first {TOKEN_ROWS:,} answers)": pl.DataFrame([figures.tokens]),
        }


def _passes(groups: pl.DataFrame, by: str) -> pl.DataFrame:
    import polars as pl

    steps, scored, valid = pl.col("steps"), pl.col("scored"), pl.col("valid")
    judged = steps.filter(scored > 0).sum()
    # Where some steps were asked once and the wrong ones again, the pool is full of hard steps: the pilots alone are fair.
    pooled = _share((valid * steps).sum(), (scored * steps).sum())
    pilots = _share((pl.col("pilot") * steps).sum(), steps.filter(pl.col("pilot").is_not_null()).sum())
    found = groups.group_by(by).agg(
        steps.sum(),
        candidates_a_step=_share((pl.col("n") * steps).sum(), steps.sum()),
        pass_at_1=pl.when(pl.col("n").min() == pl.col("n").max()).then(pooled).otherwise(pilots),
        pass_at_n=_share(steps.filter(valid > 0).sum(), judged),
        all_valid=_share(steps.filter((valid == scored) & (scored > 0)).sum(), judged),
        mixed=_share(steps.filter(_mixed()).sum(), judged),
        scores_differ=_share(steps.filter(pl.col("differs")).sum(), judged),
        action_types_a_step=_share(pl.col("kinds").sum(), steps.sum()),
        parse_error_rate=_share(pl.col("unparsed").sum(), (pl.col("n") * steps).sum()),
    )
    return found.sort("steps", by, descending=[True, False], nulls_last=True)


def _outcomes(groups: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    outcome = (
        pl.when(pl.col("scored") == 0)
        .then(pl.lit("not judged"))
        .when(pl.col("n") == 1)
        .then(pl.lit("one candidate"))
        .when(_mixed())
        .then(pl.lit("mixed"))
        .otherwise(
            pl.concat_str(
                pl.when(pl.col("valid") == 0).then(pl.lit("all wrong, ")).otherwise(pl.lit("all valid, ")),
                pl.when(pl.col("differs")).then(pl.lit("scores differ")).otherwise(pl.lit("all alike")),
            )
        )
    )
    found = groups.group_by(outcome=outcome).agg(
        contexts=pl.col("steps").sum(), samples=(pl.col("n") * pl.col("steps")).sum()
    )
    return _with_share(found, "contexts").sort("contexts", "outcome", descending=[True, False])


def _sizes(groups: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    found = groups.group_by(candidates="n").agg(contexts=pl.col("steps").sum())
    found = found.with_columns(samples=pl.col("candidates") * pl.col("contexts"))
    return found.with_columns(
        share_of_contexts=_share(pl.col("contexts"), pl.col("contexts").sum()),
        share_of_samples=_share(pl.col("samples"), pl.col("samples").sum()),
    ).sort("candidates")


def _errors(answers: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    found = answers.group_by("parse_error").agg(pl.col("candidates").sum())
    found = _with_share(found, "candidates").drop_nulls("parse_error")
    return found.sort("candidates", "parse_error", descending=[True, False])


def _ends(answers: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    lost = pl.col("candidates").filter(pl.col("parse_error").is_not_null()).sum()
    found = answers.group_by("finish_reason").agg(
        pl.col("candidates").sum(),
        parse_error_rate=_share(lost, pl.col("candidates").sum()),
        with_history_dropped=pl.col("shortened").sum(),
        most_dropped=pl.col("most_dropped").max(),
    )
    return _with_share(found, "candidates").sort(
        "candidates", "finish_reason", descending=[True, False], nulls_last=True
    )


def _health(figures: Figures) -> pl.DataFrame:
    """Judge the signs, a row each, and say what to do about one that is not good."""
    import polars as pl

    known = _signs(figures)
    rows = []
    for name, sign in SIGNS.items():
        verdict = sign.verdict(known[name])
        advice = sign.otherwise if verdict in ("usable", "bad") else None
        rows.append((sign.what, known[name], sign.wanted, verdict, advice))
    text = dict.fromkeys(("sign", "share", "wanted", "verdict", "advice"), pl.String)
    return pl.DataFrame(rows, schema=text | {"share": pl.Float64}, orient="row")


def _signs(figures: Figures) -> dict[str, float | None]:
    import polars as pl

    steps, several = pl.col("steps"), (pl.col("n") > 1) & (pl.col("scored") > 0)
    ended, candidates = pl.col("finish_reason").is_not_null(), pl.col("candidates")
    groups = figures.groups.select(
        mixed=_share(steps.filter(_mixed()).sum(), steps.filter(several).sum()),
        pass_at_n=_share(steps.filter(pl.col("valid") > 0).sum(), steps.filter(pl.col("scored") > 0).sum()),
        unparsed=_share(pl.col("unparsed").sum(), (pl.col("n") * steps).sum()),
    )
    answers = figures.answers.select(
        cut=_share(
            candidates.filter(pl.col("finish_reason") == "length").sum(), candidates.filter(ended).sum()
        ),
        dropped=_share(pl.col("shortened").sum(), candidates.sum()),
    )
    tokens = figures.tokens
    known = tokens["with_logprobs"] / tokens["candidates"] if tokens["candidates"] else None
    return {
        **groups.row(0, named=True),
        **answers.row(0, named=True),
        "alike": figures.first["all_equal"],
        "logprobs": known,
    }


def _mixed() -> pl.Expr:
    import polars as pl

    return pl.col("valid").is_between(1, pl.col("scored") - 1)


def _share(of: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Return a share in [0, 1], null of nothing."""
    import polars as pl

    return pl.when(whole > 0).then(of / whole)


def _with_share(table: pl.DataFrame, column: str) -> pl.DataFrame:
    import polars as pl

    return table.with_columns(share=_share(pl.col(column), pl.col(column).sum()))


SAMPLING = (Sampling(),)
