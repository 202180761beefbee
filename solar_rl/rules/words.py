"""Judge what was typed, launched, pressed or declared: texts, names, keys and states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import polars as pl

from solar_rl.config import ValidityConfig
from solar_rl.text import app_key, compare_tokens, key_similarity, normalise, tokens

MODIFIERS = ("ctrl", "alt", "shift", "meta")
_KEY_NAMES = {
    **dict.fromkeys(("control", "ctrlleft", "ctrlright"), "ctrl"),
    **dict.fromkeys(("option", "altleft", "altright"), "alt"),
    **dict.fromkeys(("shiftleft", "shiftright"), "shift"),
    **dict.fromkeys(("cmd", "command", "win", "windows", "super", "winleft", "winright"), "meta"),
    **dict.fromkeys(("return", "numpadenter"), "enter"),
    **{f"arrow{way}": way for way in ("up", "down", "left", "right")},
    "esc": "escape",
    "del": "delete",
    "pgup": "pageup",
    "pgdn": "pagedown",
    " ": "space",
}
T = TypeVar("T")
_JOINT = "\x1f"  # between the keys of one press; no key has it in its name


def text(rows: pl.DataFrame, config: ValidityConfig) -> pl.DataFrame:
    """Judge typed text by token F1, valid from ``text_threshold`` on.

    Source: method.md, section 2 (ours, as peers).
    """
    cut = _each(tokens, rows["pred_text"], rows["text"])
    judged = _by_distinct(rows, ("pred_text", "text"), lambda p, t: compare_tokens(cut[p], cut[t]))
    return _verdict(judged, pl.col("raw_score") >= config.text_threshold, pl.lit("wrong_text"))


def launch(rows: pl.DataFrame, config: ValidityConfig) -> pl.DataFrame:
    """Judge a launched app by the similarity of its name, valid from ``launch_threshold`` on.

    Source: method.md, section 2 (ours; the exact match of notes on the paper is threshold 1.0).
    """
    keys = _each(app_key, rows["pred_app_name"], rows["app_name"])
    cut = _each(tokens, rows["pred_app_name"], rows["app_name"])

    def judge(predicted: str, label: str) -> tuple[float, str]:
        matched = compare_tokens(cut[predicted], cut[label]).matched
        return key_similarity(keys[predicted], keys[label]), matched

    judged = _by_distinct(rows, ("pred_app_name", "app_name"), judge)
    return _verdict(judged, pl.col("raw_score") >= config.launch_threshold, pl.lit("wrong_app"))


def press(rows: pl.DataFrame, _: ValidityConfig) -> pl.DataFrame:
    """Judge pressed buttons and keys: 1 if they are the same, else 0.

    A button equals the single key of that name. Modifiers may come in any order and place; other keys
    keep theirs. Names are compared without case, by their common spelling (control = ctrl).

    Source: method.md, section 2 (exact match: the paper; keys: ours).
    """
    joined = rows.with_columns(pl.col("keys", "pred_keys").list.join(_JOINT))
    columns = ("pred_button", "pred_keys", "button", "keys")
    judged = _by_distinct(joined, columns, _same_press)
    reason = (
        pl.when(pl.col("button").is_not_null()).then(pl.lit("wrong_button")).otherwise(pl.lit("wrong_keys"))
    )
    return _verdict(judged, pl.col("raw_score") == 1.0, reason)


def status(rows: pl.DataFrame, _: ValidityConfig) -> pl.DataFrame:
    """Judge the outcome that ``finished`` declares: 1 if it is the same, else 0.

    The text answer isn't judged: recorded answers are free prose, and token F1 would punish a right one
    in other words. Source: ours; the paper says exact match of the action.
    """
    judged = rows.with_columns(
        raw_score=(pl.col("pred_status") == pl.col("status")).cast(pl.Float64),
        matched_text=pl.lit(None, pl.String),
    )
    return _verdict(judged, pl.col("raw_score") == 1.0, pl.lit("wrong_status"))


def same_type(rows: pl.DataFrame, _: ValidityConfig) -> pl.DataFrame:
    """Judge actions that have nothing but a type (wait): 1, since another type never gets here."""
    judged = rows.with_columns(raw_score=pl.lit(1.0), matched_text=pl.lit(None, pl.String))
    return _verdict(judged, pl.lit(True), pl.lit(None, pl.String))


def pressed(button: str | None, keys: str | None) -> tuple[frozenset[str], tuple[str, ...]]:
    r"""Return what a press means: its modifiers as a set, and its other keys in order without repeats.

    >>> pressed(None, "Control\x1fc") == pressed(None, "c\x1fctrl")
    True
    """
    names = [button] if button is not None else (keys or "").split(_JOINT)
    plain = [_KEY_NAMES.get(name, name) for name in (_key_name(name) for name in names)]
    return frozenset(plain) & frozenset(MODIFIERS), tuple(
        dict.fromkeys(k for k in plain if k not in MODIFIERS)
    )


def _key_name(name: str) -> str:
    short = normalise(name).replace("_", "").replace(" ", "").replace("-", "")
    return short or name  # the space bar and the keys "_" and "-" themselves


def _same_press(
    pred_button: str | None, pred_keys: str | None, button: str | None, keys: str | None
) -> tuple[float, str]:
    modifiers, others = pressed(button, keys)
    same = pressed(pred_button, pred_keys) == (modifiers, others)
    return float(same), "+".join((*sorted(modifiers), *others)) if same else ""


def _each(function: Callable[[str], T], *columns: pl.Series) -> dict[str, T]:
    distinct = pl.concat([column.alias("text") for column in columns]).unique().to_list()
    return {value: function(value) for value in distinct}


def _by_distinct(
    rows: pl.DataFrame, columns: Sequence[str], judge: Callable[..., tuple[float, str]]
) -> pl.DataFrame:
    """Add raw_score and matched_text, with ``judge`` called once for each distinct set of values."""
    distinct = rows.select(columns).unique(maintain_order=True)
    verdicts = [judge(*values) for values in distinct.iter_rows()]
    judged = distinct.with_columns(
        raw_score=pl.Series([score for score, _ in verdicts], dtype=pl.Float64),
        matched_text=pl.Series([matched for _, matched in verdicts], dtype=pl.String),
    )
    return rows.join(judged, on=list(columns), how="left", nulls_equal=True, maintain_order="left")


def _verdict(judged: pl.DataFrame, valid: pl.Expr, reason: pl.Expr) -> pl.DataFrame:
    failure = pl.when(~valid).then(reason)
    return judged.select("row", "raw_score", "matched_text", valid=valid, failure_reason=failure)
