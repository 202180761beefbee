"""Lay out the other right answers of a step as labels of their own, and take the best verdict back."""

from __future__ import annotations

from typing import Any

import polars as pl

from solar_rl.actions import ACTION_FIELDS

GATES = ("parse", "type", "argument")
"""What stands for the rule of an answer that never reached one."""


def as_labels(rows: pl.DataFrame, texts: pl.Series, dtypes: dict[str, Any]) -> pl.DataFrame:
    """Put each alternative of a step in the place of the step's label.

    Args:
        rows: What ``validity.score`` judges: ``row``, label, boxes and answer.
        texts: Column ``alternatives`` of the same rows.
        dtypes: Type of each label column and of ``target_box``.

    Returns:
        One row an alternative, none for rows without: as ``rows`` with the alternative's action and box (it has
        no candidate boxes), and its ``text``.
    """
    several = rows.with_columns(text=texts).filter(pl.col("text").list.len() > 0).explode("text")
    fields = {name: dtypes[name] for name in ACTION_FIELDS}
    written = pl.Struct({**fields, "box": dtypes["target_box"]})
    action = pl.col("text").str.json_decode(written).struct
    return several.with_columns(
        *(action.field(name) for name in ACTION_FIELDS),
        target_box=action.field("box"),
        candidate_boxes=pl.lit([], dtypes["candidate_boxes"]),
    )


def best(own: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Choose for each row the best of the verdicts by its label and by its alternatives.

    The valid one and the higher score go first; of equal ones that in which the answer is of the judged type,
    so that what is said of it is worth reading; then the label's; then by the alternative's text, so that the
    order of alternatives is no matter. A row whose own label can't be judged stays unscored, since alternatives
    alone would call a right answer wrong; an alternative that can't be judged is left out.

    Args:
        own: ``row`` and the verdict by the label.
        others: ``row`` and the verdicts by the alternatives, with their ``text``.

    Returns:
        ``row`` and the best verdict, for the rows of ``own`` in their order.
    """
    judged = own.filter(pl.col("raw_score").is_not_null()).select("row")
    rivals = others.filter(pl.col("raw_score").is_not_null()).join(judged, on="row", how="semi")
    if rivals.is_empty():
        return own
    contested = own.join(rivals, on="row", how="semi").with_columns(text=pl.lit(None, pl.String))
    won = (
        pl.concat([contested, rivals.select(contested.columns)])
        .sort(
            "row",
            ~pl.col("valid"),
            -pl.col("raw_score"),
            pl.col("rule").is_in(GATES),
            "text",
        )
        .unique("row", keep="first", maintain_order=True)
        .drop("text")
    )
    return pl.concat([own.join(won, on="row", how="anti"), won]).sort("row")
