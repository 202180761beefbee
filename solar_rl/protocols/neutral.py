"""The neutral rows that every peer's rule reads: one label and one answer in AndroidControl's words.

Lengths are device pixels of the screen that the row states, since that is what AndroidControl records and
what each peer's own pipeline starts from; a rule brings them into its own frame. A null says that the
answer lacks the argument; a null ``pred_type`` that nothing could be read at all.
"""

from __future__ import annotations

import polars as pl

from solar_rl.actions import ACTION_FIELDS
from solar_rl.columns import polars_schema
from solar_rl.protocols.matching import ratio, unit_corners

ACTIONS = (
    "click",
    "long_press",
    "scroll",
    "input_text",
    "open_app",
    "wait",
    "navigate_back",
    "navigate_home",
    "navigate_recent",
    "keyboard_enter",
    "status",
    "other",
)
"""AndroidControl's actions, AndroidWorld's ``status`` and ``keyboard_enter``, and two of ours:
``navigate_recent``, and ``other`` for what these words can't say (drag, hover, hotkeys, ...)."""

POINTED = ("click", "long_press")
_FLOAT, _BOX = pl.Float64(), pl.List(pl.Float64)
NEUTRAL: dict[str, pl.DataType] = {
    "screen_w": _FLOAT,
    "screen_h": _FLOAT,
    "boxes": pl.List(_BOX),
    "single_box": _BOX,
    **{
        f"{who}_{name}": dtype
        for who in ("expert", "pred")
        for name, dtype in {
            "type": pl.String(),
            "x": _FLOAT,
            "y": _FLOAT,
            "direction": pl.String(),
            "text": pl.String(),
            "status": pl.String(),
        }.items()
    },
    "pred_foreign": pl.Boolean(),
    "pred_whole": pl.Boolean(),
}
"""Columns of a neutral frame.

``boxes`` are all candidate boxes, ``single_box`` the smallest of them with an area that holds the label
(null without one), both x1 y1 x2 y2. ``text`` is the typed text or the app's name. ``direction`` is the
content's, as it was written: any word, any case. ``pred_foreign``: the answer has a key that its action
doesn't take. ``pred_whole``: its coordinates were written as whole numbers.
"""

_WORDS = {
    **{name: name for name in ("click", "long_press", "scroll", "input_text", "open_app", "wait")},
    "finished": "status",
}
_BUTTONS = {
    "back": "navigate_back",
    "home": "navigate_home",
    "recent": "navigate_recent",
    "enter": "keyboard_enter",
}
SIZE = pl.concat_list("screen_w", "screen_h", "screen_w", "screen_h")
"""What a box in the unit square is multiplied by."""
_STEADY = 6  # decimals of a pixel that survive: 542/1080*1080 is 542 again, not 541.9999999999999


_STEPS = polars_schema("steps")
_FIELDS: dict[str, pl.DataType] = {name: _STEPS[name] for name in ACTION_FIELDS}
_CANONICAL: dict[str, pl.DataType] = {
    "screen_width": _FLOAT,
    "screen_height": _FLOAT,
    "candidate_boxes": pl.List(_BOX),
    "target_box": _BOX,
    "parse_error": pl.String(),
    **{f"{prefix}{name}": dtype for prefix in ("", "pred_") for name, dtype in _FIELDS.items()},
}


def neutral_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Say canonical labels and candidates in neutral words.

    Args:
        frame: One row per candidate, as ``validity.score`` reads it (see ``columns.label_columns``):
            the columns of ``steps`` with screen_width, screen_height, target_box and candidate_boxes,
            and ``parse_error`` and the pred_ columns of ``candidates``.

    Returns:
        The columns ``NEUTRAL``, one row per candidate in the same order. The target box, where there is
        one, is the single box, and stands for the candidate boxes where there are none.
    """
    rows = frame.select(pl.col(name).cast(dtype) for name, dtype in _CANONICAL.items())
    rows = rows.rename({"screen_width": "screen_w", "screen_height": "screen_h"})
    answered = pl.col("parse_error").is_null() & pl.col("pred_action_type").is_not_null()
    rows = rows.select(
        "screen_w",
        "screen_h",
        "candidate_boxes",
        "target_box",
        *_said("expert", "", pl.lit(True)),
        *_said("pred", "pred_", answered),
        pred_foreign=pl.lit(False),
        pred_whole=pl.lit(True),
    )
    boxes = _pixel_boxes(rows)
    return rows.with_columns(boxes, single_box=_single(rows, boxes)).select(
        pl.col(name).cast(dtype) for name, dtype in NEUTRAL.items()
    )


def canonical_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Say neutral rows in canonical words, for ``validity.score``; ``other`` becomes an unreadable answer.

    Args:
        frame: The columns ``NEUTRAL``.

    Returns:
        The label, pred_ and box columns that ``validity.score`` reads, in the same order. Directions are
        lower-cased, as the parsers do.
    """
    offered = frame.select("screen_w", "screen_h", box="boxes").with_row_index("row").explode("box")
    shares = offered.drop_nulls("box").with_columns(box=pl.concat_list(*unit_corners()))
    single = frame.select("screen_w", "screen_h", box="single_box").with_columns(
        box=pl.when(pl.col("box").is_not_null()).then(pl.concat_list(*unit_corners()))
    )
    return frame.select(
        *_meant("expert", ""),
        *_meant("pred", "pred_"),
        parse_error=pl.when(pl.col("pred_type").is_null() | (pl.col("pred_type") == "other")).then(
            pl.lit("unreadable")
        ),
        target_box=single["box"],
        candidate_boxes=_gathered(shares, frame.height),
    )


def _said(who: str, prefix: str, answered: pl.Expr) -> list[pl.Expr]:
    """Return the neutral columns of the label or the answer, from the canonical ones."""
    kind, keys = pl.col(f"{prefix}action_type"), pl.col(f"{prefix}keys")
    only_key = pl.when(keys.list.len() == 1).then(keys.list.first())
    pressed = pl.coalesce(f"{prefix}button", only_key).replace_strict(
        _BUTTONS, default="other", return_dtype=pl.String
    )
    word = kind.replace_strict(_WORDS, default="other", return_dtype=pl.String)
    word = pl.when(kind == "press").then(pressed).otherwise(word)
    text = pl.coalesce(f"{prefix}app_name", f"{prefix}text")
    points = kind.is_in(POINTED)
    return [
        pl.when(answered).then(word).alias(f"{who}_type"),
        *(
            pl.when(points & answered)
            .then((pl.col(f"{prefix}{axis}") * pl.col(size)).round(_STEADY))
            .alias(f"{who}_{axis}")
            for axis, size in (("x", "screen_w"), ("y", "screen_h"))
        ),
        pl.col(f"{prefix}direction").alias(f"{who}_direction"),
        text.alias(f"{who}_text"),
        pl.col(f"{prefix}status").alias(f"{who}_status"),
    ]


def _meant(who: str, prefix: str) -> list[pl.Expr]:
    """Return the canonical columns of the label or the answer, from the neutral ones."""
    kind = pl.col(f"{who}_type")
    words = {word: name for name, word in _WORDS.items()} | dict.fromkeys(_BUTTONS.values(), "press")
    buttons = {word: name for name, word in _BUTTONS.items()}
    typed = pl.col(f"{who}_text")
    made = {
        "action_type": kind.replace_strict(words, default=None, return_dtype=pl.String),
        "x": ratio(pl.col(f"{who}_x"), pl.col("screen_w")),
        "y": ratio(pl.col(f"{who}_y"), pl.col("screen_h")),
        "direction": pl.col(f"{who}_direction").str.to_lowercase(),
        "text": pl.when(kind != "open_app").then(typed),
        "app_name": pl.when(kind == "open_app").then(typed),
        "button": kind.replace_strict(buttons, default=None, return_dtype=pl.String),
        "status": pl.col(f"{who}_status"),
    }
    empty = {"keys": pl.lit(None, _FIELDS["keys"])}
    return [
        made.get(name, empty.get(name, pl.lit(None, _FLOAT))).alias(f"{prefix}{name}")
        for name in ACTION_FIELDS
    ]


def _pixel_boxes(rows: pl.DataFrame) -> pl.Series:
    """Return each row's candidate boxes, or its target box where it has none, in pixels."""
    sized = rows.select("candidate_boxes", "target_box", size=SIZE).with_row_index("row")
    offered = sized.select("row", "size", box="candidate_boxes").explode("box")
    meant = sized.filter(pl.col("candidate_boxes").list.len().fill_null(0) == 0)
    every = pl.concat([offered, meant.select("row", "size", box="target_box")])
    pixels = (pl.col("box") * pl.col("size")).list.eval(pl.element().round(_STEADY))
    return _gathered(every.drop_nulls("box").with_columns(box=pixels), rows.height)


def _single(rows: pl.DataFrame, boxes: pl.Series) -> pl.Series:
    """Return the target box in pixels, or else the smallest box with an area that holds the label."""
    corners = ("x1", "y1", "x2", "y2")
    offered = pl.DataFrame({"x": rows["expert_x"], "y": rows["expert_y"], "box": boxes}).with_row_index("row")
    offered = offered.explode("box").with_columns(
        pl.col("box").list.get(i, null_on_oob=True).alias(corner) for i, corner in enumerate(corners)
    )
    area = (pl.col("x2") - pl.col("x1")) * (pl.col("y2") - pl.col("y1"))
    inside = pl.col("x").is_between("x1", "x2") & pl.col("y").is_between("y1", "y2")
    smallest = (
        offered.filter((pl.col("x1") < pl.col("x2")) & (pl.col("y1") < pl.col("y2")) & inside)
        .sort("row", area, maintain_order=True)
        .unique("row", keep="first", maintain_order=True)
    )
    index = pl.DataFrame({"row": pl.int_range(rows.height, dtype=pl.get_index_type(), eager=True)})
    found = index.join(smallest, on="row", how="left", maintain_order="left")["box"]
    pixels = (pl.col("target_box") * SIZE).list.eval(pl.element().round(_STEADY))
    return rows.select(pl.coalesce(pixels, found).alias("single_box")).to_series()


def _gathered(boxes: pl.DataFrame, height: int) -> pl.Series:
    """Collect (row, box) into one list of boxes a row, in their order; an empty list where there is none."""
    lists = boxes.group_by("row", maintain_order=True).agg("box")
    index = pl.DataFrame({"row": pl.int_range(height, dtype=pl.get_index_type(), eager=True)})
    found = index.join(lists, on="row", how="left", maintain_order="left")["box"]
    return found.fill_null(pl.Series([[]], dtype=NEUTRAL["boxes"])).alias("boxes")
