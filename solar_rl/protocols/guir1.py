"""How GUI-R1 writes an answer and reads it back: shared by its evaluation and its reward.

The answer is the Python text of ``[{'action': ..., 'point': [x, y], 'input_text': ...}]`` in answer tags, with
the names of their Android prompt; actions without a point have [-100, -100], those without a text "no input
text". Regular expressions read it back, and so lose some:

* A point that isn't two runs of digits (a minus sign, a decimal point, one number) is read as (0, 0).
* A text is what stands between single quotes up to the first of them; Python writes a text that holds an
  apostrophe in double quotes, so it is read as "no input text", and escapes unprintable characters.
"""

from __future__ import annotations

import re

import polars as pl

from solar_rl.protocols.matching import renamed

NAMES = {
    "click": "click",
    "long_press": "long_press",
    "scroll": "scroll",
    "input_text": "type",
    "open_app": "open_app",
    "wait": "wait",
    "navigate_back": "press_back",
    "navigate_home": "press_home",
    "navigate_recent": "press_recent",
    "keyboard_enter": "press_enter",
    "status": "complete",
    "other": "other",
}
LABELS = ("click", "long_press", "scroll", "input_text", "open_app", "wait", "navigate_back", "navigate_home")
"""Labels that their action names can say."""
NO_TEXT = "no input text"
NO_POINT = -100.0
_TEXT = re.compile(r"'input_text':\s*'(.*?)'")


def written_text(who: str) -> pl.Expr:
    """Return the input_text that an action is written with."""
    kind = pl.col(f"{who}_type")
    text = (
        pl.when(kind == "scroll").then(pl.col(f"{who}_direction"))
        .when(kind.is_in(["input_text", "open_app"])).then(pl.col(f"{who}_text"))
    )  # fmt: skip
    return text.fill_null(NO_TEXT)


def same_type() -> pl.Expr:
    """Tell whether both actions have the same name."""
    return (renamed("expert_type", NAMES) == renamed("pred_type", NAMES)).fill_null(False)


def not_theirs() -> pl.Expr:
    """Return why a label can't occur, null if it can."""
    return pl.when(~pl.col("expert_type").is_in(LABELS)).then(pl.lit("not in the GUI-R1 action space"))


def read_back(text: str) -> str:
    r"""Return what their regular expression finds of a text that Python wrote.

    >>> read_back("cat's"), read_back("a\nb")
    ('no input text', 'a\\nb')
    """
    found = _TEXT.search(f"'input_text': {text!r}")
    return found.group(1) if found else NO_TEXT


def token_f1(predicted: str, label: str) -> float:
    """Return the F1 of the sets of lower-cased words without square brackets; 1 if one word holds the other.

    Words part at white space, and only texts of one distinct word each are compared by containment.

    >>> token_f1("cat videos", "funny cat videos"), token_f1("down", "downwards"), token_f1("", "a")
    (0.8, 1.0, 0.0)
    """
    a, b = (set(text.replace("[", "").replace("]", "").lower().split()) for text in (predicted, label))
    if len(a) == len(b) == 1:
        (one,), (other,) = a, b
        if one in other or other in one:
            return 1.0
    common = len(a & b)
    if not common:
        return 0.0
    precision, recall = common / len(a), common / len(b)
    return 2 * (precision * recall) / (precision + recall)


def texts_agree(predicted: str, label: str) -> bool:
    """Tell whether a predicted text, as it is read back, has a token F1 of at least 0.5 with the label's."""
    return token_f1(read_back(predicted), label) >= 0.5
