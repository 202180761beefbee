"""Score each candidate against the expert's action: s in [0, 1], valid or not, and the evidence.

Three questions in turn. Can the label be judged at all? If not the candidate is *unscored*: everything
is null but the reason, never 0. Is the answer an action of the label's type with all it needs? If not,
s = 0 and invalid, whatever the thresholds. The rest goes to the rule of its action type (solar_rl/rules).

A step may have other right answers beside its label: the source calls each of them right, so a candidate
has its best verdict over all of them, with that one's evidence (solar_rl/rules/alternatives.py).

Any function from the same rows to the same columns, such as a learned verifier, can stand in for
``score``: nothing downstream looks at anything but these columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from solar_rl.actions import ACTION_FIELDS, DIRECTIONS, POINT_ACTIONS
from solar_rl.columns import polars_type
from solar_rl.config import ValidityConfig
from solar_rl.rules import alternatives, places, words
from solar_rl.schema import SCORE_COLUMNS

Rule = Callable[[pl.DataFrame, ValidityConfig], pl.DataFrame]

RULES: dict[str, tuple[str, Rule]] = {
    **dict.fromkeys(POINT_ACTIONS, ("point", places.point)),
    "scroll": ("scroll", places.scroll),
    "drag": ("drag", places.drag),
    "input_text": ("text", words.text),
    "open_app": ("launch", words.launch),
    "press": ("press", words.press),
    "finished": ("status", words.status),
    "wait": ("type", words.same_type),
}
"""Rule of each action type: the name that is stored as evidence, and the function."""

_FLOATS = pl.List(pl.Float64)
_DTYPES: dict[str, pl.DataType] = {
    **dict.fromkeys(("x", "y", "x2", "y2"), pl.Float64()),
    "keys": pl.List(pl.String),
}
_INPUTS: dict[str, pl.DataType] = {
    "parse_error": pl.String(),
    "target_box": _FLOATS,
    "candidate_boxes": pl.List(_FLOATS),
    **{f"{who}{name}": _DTYPES.get(name, pl.String()) for who in ("", "pred_") for name in ACTION_FIELDS},
}
_OUTPUTS = {column.name: polars_type(column.dtype) for column in SCORE_COLUMNS}


def score(frame: pl.DataFrame, config: ValidityConfig) -> pl.DataFrame:
    """Score candidates against their labels.

    Args:
        frame: One row per candidate: the label columns of ``steps`` (with target_box and
            candidate_boxes, and ``alternatives`` where steps have any), ``parse_error`` and the pred_ columns
            of ``candidates``. More columns are ignored.
        config: Thresholds and kernel widths.

    Returns:
        The columns ``SCORE_COLUMNS``, one row per candidate in the order of the input.

    Source: method.md, section 2; the paper for what is compared, ours for every constant and for taking the
    best of several right answers.
    """
    rows = frame.select(pl.col(name).cast(dtype) for name, dtype in _INPUTS.items()).with_row_index("row")
    scores = _by_label(rows, config)
    if "alternatives" in frame.columns and frame["alternatives"].list.len().sum():
        others = alternatives.as_labels(rows, frame["alternatives"], _INPUTS)
        rivals = _by_label(others.drop("row").with_row_index("row"), config)
        rivals = rivals.with_columns(others.select("row", "text"))
        scores = alternatives.best(scores, rivals)
    return scores.select(list(_OUTPUTS))


def _by_label(rows: pl.DataFrame, config: ValidityConfig) -> pl.DataFrame:
    """Score rows against their own labels alone; returns ``row`` and the verdict, in the order of ``row``."""
    rows = rows.with_columns(unscored_reason=_label_fault())
    rows = rows.with_columns(fault=pl.when(pl.col("unscored_reason").is_null()).then(_answer_fault()))
    unscored, failed = rows["unscored_reason"].is_not_null(), rows["fault"].is_not_null()
    parts = [
        pl.DataFrame(schema={"row": rows.schema["row"], **_OUTPUTS}),
        rows.filter(unscored).select("row", "unscored_reason"),
        _failed(rows.filter(failed)),
        *_judge(rows.filter(~unscored & ~failed), config),
    ]
    return pl.concat(parts, how="diagonal").sort("row").select("row", *_OUTPUTS)


def _judge(rows: pl.DataFrame, config: ValidityConfig) -> Iterator[pl.DataFrame]:
    """Hand the rows of each action type to its rule."""
    for (kind,), of_kind in rows.partition_by("action_type", as_dict=True).items():
        name, rule = RULES[str(kind)]
        yield rule(of_kind, config).with_columns(rule=pl.lit(name))


def _failed(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the verdict on answers that never reach a rule: 0 and invalid."""
    stopped_by = {"parse_error": "parse", "wrong_type": "type", "missing_argument": "argument"}
    return rows.select(
        "row",
        raw_score=pl.lit(0.0),
        valid=pl.lit(False),
        rule=pl.col("fault").replace_strict(stopped_by, return_dtype=pl.String),
        failure_reason="fault",
    )


def _label_fault() -> pl.Expr:
    """Return why the label can't be judged, null if it can."""
    known = pl.col("action_type").is_in(list(RULES)).fill_null(False)
    faults = [_where(~known, "label_unknown_action")]
    faults += [_where(_is(kinds) & missing, f"label_missing_{what}") for kinds, what, missing in _needs("")]
    for kinds, columns in (((*POINT_ACTIONS, "scroll", "drag"), ("x", "y")), (("drag",), ("x2", "y2"))):
        outside = pl.any_horizontal(~pl.col(name).is_between(0.0, 1.0) for name in columns)
        faults.append(_where(_is(kinds) & outside, "label_off_screen"))
    return pl.coalesce(faults)


def _answer_fault() -> pl.Expr:
    """Return what is wrong with an answer before its arguments are looked at, null if nothing is."""
    unparsed = pl.col("parse_error").is_not_null() | pl.col("pred_action_type").is_null()
    faults = [
        _where(unparsed, "parse_error"),
        _where(pl.col("pred_action_type") != pl.col("action_type"), "wrong_type"),
    ]
    faults += [_where(_is(kinds) & missing, "missing_argument") for kinds, _, missing in _needs("pred_")]
    return pl.coalesce(faults)


def _where(condition: pl.Expr, reason: str) -> pl.Expr:
    return pl.when(condition).then(pl.lit(reason))


def _is(kinds: Sequence[str]) -> pl.Expr:
    return pl.col("action_type").is_in(list(kinds))


def _needs(who: str) -> list[tuple[tuple[str, ...], str, pl.Expr]]:
    """List, by action type, what an action needs and the expression that is true where it lacks it."""

    def no_number(*names: str) -> pl.Expr:
        return pl.any_horizontal(~pl.col(f"{who}{name}").is_finite().fill_null(False) for name in names)

    no_keys = pl.col(f"{who}keys").list.len().fill_null(0) == 0
    return [
        ((*POINT_ACTIONS, "drag"), "point", no_number("x", "y")),
        (("drag",), "point", no_number("x2", "y2")),
        (("scroll",), "direction", ~pl.col(f"{who}direction").is_in(DIRECTIONS).fill_null(False)),
        (("input_text",), "text", pl.col(f"{who}text").is_null()),
        (("open_app",), "app_name", pl.col(f"{who}app_name").str.strip_chars().fill_null("") == ""),
        (("press",), "key", pl.col(f"{who}button").is_null() & no_keys),
        (("finished",), "status", pl.col(f"{who}status").is_null()),
    ]
