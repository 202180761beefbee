"""The size an image has after Qwen2-VL's smart_resize: what its pixel coordinates are divided by."""

from __future__ import annotations

import math

from solar_rl.errors import InputError

MAX_RATIO = 200


def smart_resize(
    width: int, height: int, *, factor: int = 28, min_pixels: int = 3136, max_pixels: int = 12_845_056
) -> tuple[int, int]:
    """Return the (width, height) that Qwen2-VL and Qwen2.5-VL resize an image to.

    Both sides become multiples of ``factor``, the area lies between the two limits, and the aspect ratio
    is kept as closely as that allows.

    Args:
        width: Pixels of the image.
        height: The same down the height.
        factor: Side of the square of pixels that becomes one token (patch 14 times merge 2).
        min_pixels: Smallest area.
        max_pixels: Largest area.

    Raises:
        InputError: A side is not positive, or one is more than 200 times the other.

    Source: transformers' image processor of Qwen2-VL; tested to agree with it.

    >>> smart_resize(1080, 2400)
    (1092, 2408)
    """
    if min(width, height) < 1:
        raise InputError(f"an image of {width}x{height} pixels has no area")
    if max(width, height) > MAX_RATIO * min(width, height):
        raise InputError(
            f"an image of {width}x{height} pixels is too narrow, the sides may differ {MAX_RATIO} times"
        )
    wide, high = (round(side / factor) * factor for side in (width, height))
    if wide * high > max_pixels:
        shrink = math.sqrt(width * height / max_pixels)
        wide, high = (max(factor, math.floor(side / shrink / factor) * factor) for side in (width, height))
    elif wide * high < min_pixels:
        grow = math.sqrt(min_pixels / (width * height))
        wide, high = (math.ceil(side * grow / factor) * factor for side in (width, height))
    return wide, high
