"""Compare texts: normal forms, token F1 for typed text, similarity for the names of apps; show them safely.

Two texts that a person reads as the same are the same here: full-width and composed forms (NFKC), case,
and characters without a glyph of their own (soft hyphen, zero-width marks) make no difference.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

_VARIATION_SELECTORS = range(0xFE00, 0xFE10)
_ZERO_WIDTH_SPACE = "\u200b"
_CJK = (
    range(0x1100, 0x1200),  # Hangul jamo
    range(0x3005, 0x3008),  # iteration mark, closing mark, zero
    range(0x3040, 0x3100),  # kana
    range(0x3100, 0x3190),  # bopomofo, Hangul compatibility jamo
    range(0x31A0, 0x3200),  # bopomofo extended, kana extensions
    range(0x3400, 0x4DC0),  # Han, extension A
    range(0x4E00, 0xA000),  # Han
    range(0xAC00, 0xD7B0),  # Hangul syllables
    range(0xF900, 0xFB00),  # Han, compatibility
    range(0x1B000, 0x1B170),  # kana supplements
    range(0x20000, 0x323B0),  # Han, extensions B and later
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys instead of showing it, and marks that turn the order of what follows."""


class TextMatch(NamedTuple):
    """How alike two texts are, in [0, 1], and the tokens found in both, joined by spaces."""

    score: float
    matched: str


def visible(text: str) -> str:
    r"""Write control characters out, since a terminal would obey those that come with data.

    >>> print(visible("\x1b[31mred"))
    \x1b[31mred
    """
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def normalise(text: str) -> str:
    """Return the text after NFKC, casefold and trimming.

    NFKC runs once more at the end, since folding can undo it; so a normal form is its own normal form.

    Source: method.md, section 2 (ours, as peers).

    >>> normalise("  ＳＯＬＡＲ Straße ")
    'solar strasse'
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).strip()


def tokens(text: str) -> tuple[str, ...]:
    """Split a text into words at white space and punctuation, CJK into single characters.

    A symbol (currency, mathematics, emoji) is a token of its own. A text of nothing but punctuation
    has its characters as tokens, so that "!" and "?" differ. Characters without a glyph are skipped.

    Source: ours, because peers leave symbols, marks and punctuation-only texts open.

    >>> tokens("Jürgen's e-mail: 3 €")
    ('jürgen', 's', 'e', 'mail', '3', '€')
    >>> tokens("我想 buy 2 杯")
    ('我', '想', 'buy', '2', '杯')
    >>> tokens("?!")
    ('?', '!')
    """
    text = normalise(text)
    if text.isascii() and text.replace(" ", "").isalnum():
        return tuple(text.split())
    return tuple(_split(text)) or tuple(c for c in text if not c.isspace() and not _no_glyph(c))


def token_f1(predicted: str, label: str) -> TextMatch:
    """Compare two texts by the F1 of their tokens, each token counted as often as it occurs.

    Two texts without any token are equal (1); one alone without is a miss (0).

    Source: method.md, section 2 (ours, as peers).

    >>> token_f1("buy milk milk", "buy milk").score
    0.8
    >>> token_f1("Buy milk!", "buy  MILK")
    TextMatch(score=1.0, matched='buy milk')
    """
    return compare_tokens(tokens(predicted), tokens(label))


def compare_tokens(predicted: tuple[str, ...], label: tuple[str, ...]) -> TextMatch:
    """Compare two token lists by F1 with multiplicities; matched tokens come in the label's order."""
    if predicted == label:
        return TextMatch(1.0, " ".join(label))
    left = Counter(predicted)
    matched = [token for token in label if _take(left, token)]
    return TextMatch(2 * len(matched) / (len(predicted) + len(label)), " ".join(matched))


def app_key(name: str) -> str:
    r"""Return the form in which app names are compared: normal, no glyphless characters, single spaces.

    >>> app_key("Google\u00a0 Key\u00adboard\u200b")
    'google keyboard'
    """
    return " ".join("".join(c for c in normalise(name) if not _no_glyph(c)).split())


def similarity(predicted: str, label: str) -> float:
    """Return 1 - Levenshtein distance / length of the longer app name, 1 if equal, in [0, 1].

    Source: method.md, section 2 (ours; the authors name a similarity, notes on the paper an exact match).

    >>> similarity("Gmail", "gmail "), similarity("Clok", "Clock")
    (1.0, 0.8)
    """
    return key_similarity(app_key(predicted), app_key(label))


def key_similarity(predicted: str, label: str) -> float:
    """Return the similarity of two names that ``app_key`` has already brought into form."""
    longer = max(len(predicted), len(label))
    return 1.0 - Levenshtein.distance(predicted, label) / longer if longer else 1.0


def _take(left: Counter[str], token: str) -> bool:
    if not left[token]:
        return False
    left[token] -= 1
    return True


def _split(text: str) -> list[str]:
    found: list[str] = []
    last = "split"
    for char in text:
        kind = _kind(char)
        if kind == "skip":
            continue
        if (kind == last == "word") or (kind == "mark" and last != "split"):
            found[-1] += char
        elif kind != "split":
            found.append(char)
        if kind != "mark" or last == "split":
            last = "word" if kind == "mark" else kind
    return found


@cache
def _kind(char: str) -> str:
    """Return word, mark, single, skip or split: what a character does to the token before it."""
    category = unicodedata.category(char)
    if char == _ZERO_WIDTH_SPACE:
        return "split"
    if _no_glyph(char):
        return "skip"
    if category[0] == "M":
        return "mark"
    if category[0] in "LN":
        return "single" if _is_cjk(char) else "word"
    return "single" if category[0] == "S" else "split"


@cache
def _no_glyph(char: str) -> bool:
    return unicodedata.category(char) == "Cf" or ord(char) in _VARIATION_SELECTORS


def _is_cjk(char: str) -> bool:
    return any(ord(char) in block for block in _CJK)
