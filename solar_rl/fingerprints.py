"""Make the fingerprints by which near-duplicate episodes are found: of a goal's words, and of a screen.

Both are worked out once, when a dataset is built, so that asking which held-out episodes resemble a training one
takes milliseconds.
"""

from __future__ import annotations

import zlib

from solar_rl.errors import RecordError
from solar_rl.images import decode_image
from solar_rl.schema import Episode
from solar_rl.text import tokens

_COLUMNS, _ROWS = 8, 8
_THUMBNAIL = 4
"""Pixels a cell that an image is reduced to before it is averaged; the rest of it is read for nothing."""


def goal_words(goal: str) -> list[int]:
    """Return a hash of each different word of a goal.

    Words are those of ``text.tokens``: case, punctuation and order make no difference. How many hashes two goals share,
    divided by how many they have together, is their similarity.

    Returns:
        Distinct signed 32-bit integers in ascending order: CRC-32 of the words' UTF-8.

    >>> goal_words("Open the Mail app!") == goal_words("mail: open  the APP")
    True
    """
    return sorted({_signed(zlib.crc32(word.encode())) for word in tokens(goal)})


def screen_hash(episode: Episode) -> str | None:
    """Return the perceptual hash of an episode's middle screen; None when it has none that can be decoded.

    The middle one, because episodes begin and end on screens that many share. With an even number of
    screenshots it is the earlier of the two.
    """
    shown = [step.screenshot for step in episode.steps if step.screenshot is not None]
    if not shown:
        return None
    try:
        return difference_hash(shown[(len(shown) - 1) // 2].data)
    except RecordError:  # `validate --all` lists it; a build looks at no pixels
        return None


def difference_hash(data: bytes) -> str:
    """Return the difference hash (dHash) of an encoded image: 64 bits as 16 hex digits.

    The image is averaged to 9 x 8 gray cells; a bit tells whether a cell is brighter than its right neighbour.
    Another compression, size or small retouch flips few bits; a blank screen has none.

    Raises:
        RecordError: ``bad_image``: its pixels can't be decoded.

    Source: the dHash of N. Krawetz (2013); the averaging by boxes is ours.
    """
    from PIL import Image

    image = decode_image(data, (9 * _THUMBNAIL * 8, 8 * _THUMBNAIL * 8))
    gray = image.convert("L")  # before it is made smaller: one channel is averaged ten times as fast as four
    factor = max(1, min(image.width // ((_COLUMNS + 1) * _THUMBNAIL), image.height // (_ROWS * _THUMBNAIL)))
    gray = gray.reduce(factor).resize((_COLUMNS + 1, _ROWS), Image.Resampling.BOX)
    cells = gray.tobytes()
    bits = 0
    for row in range(_ROWS):
        for column in range(_COLUMNS):
            at = row * (_COLUMNS + 1) + column
            bits = bits << 1 | (cells[at] > cells[at + 1])
    return f"{bits:016x}"


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value
