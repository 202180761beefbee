"""Put actions and numbers into words for a reader of the report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→"}
SPATIAL = ("click", "double_click", "right_click", "hover", "long_press", "scroll", "drag")
"""Action types that a picture of the screen can show as a point, an arrow or a path."""

MINUS = "\N{MINUS SIGN}"
THIN = "\N{NARROW NO-BREAK SPACE}"


def action_words(row: Mapping[str, Any], prefix: str = "") -> str:
    """Say a flat action as a short phrase.

    Args:
        row: Flat action columns, as in ``steps`` or (with a prefix) in ``candidates``.
        prefix: ``""`` for a label, ``"pred_"`` for a prediction.

    >>> action_words({"action_type": "scroll", "direction": "down"})
    'scroll ↓'
    """

    def get(name: str) -> Any:
        return row.get(prefix + name)

    kind = get("action_type")
    if kind is None:
        return "unparsable"
    if kind == "scroll":
        return f"scroll {ARROWS[get('direction')]}"
    if kind == "input_text":
        return f"type “{get('text')}”"
    if kind == "open_app":
        return f"open {get('app_name')}"
    if kind == "press":
        return f"press {get('button') or '+'.join(get('keys') or ())}"
    if kind == "finished" and get("status") != "complete":
        return f"finished: {get('status')}"
    return plain(kind)


def plain(name: str | None) -> str:
    """Turn a machine name into words; null is said as "unknown".

    >>> plain("long_press")
    'long press'
    """
    return "unknown" if name is None else name.replace("_", " ")


def integer(value: float) -> str:
    """Write a count with thin spaces between thousands.

    >>> integer(752000).replace(THIN, "_")
    '752_000'
    """
    return f"{round(value):,}".replace(",", THIN).replace("-", MINUS)


def decimal(value: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """Write a number with fixed digits and a real minus sign; null is a dash.

    >>> decimal(-0.8, sign=True)
    '−0.80'
    """
    if value is None or math.isnan(value):
        return "–"
    value = round(value, 9)  # a sum and its target, 1e-15 apart, must not round to different figures
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def percent(share: float | None, digits: int | None = None) -> str:
    """Write a share as per cent; one digit below 10 %, unless told otherwise.

    >>> percent(0.3141).replace(THIN, " "), percent(0.042).replace(THIN, " ")
    ('31 %', '4.2 %')
    """
    if share is None or math.isnan(share):
        return "–"
    if 0 < share < 0.0005 and digits is None:
        return f"< 0.1{THIN}%"
    if digits is None:
        digits = 1 if 0 < share < 0.0995 or 0.995 <= share < 1 else 0
    return f"{100 * share:.{digits}f}{THIN}%"


def tiny(value: float | None) -> str:
    """Write an error near zero as a power of ten.

    >>> tiny(4.4e-16).replace(THIN, " ")
    '4.4 × 10⁻¹⁶'
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.1e}".split("e")
    digits = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}{THIN}×{THIN}10{digits}"


def shorten(text: str, limit: int) -> str:
    """Cut a text at ``limit`` characters, with an ellipsis in the last place."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
