"""Draw the picture of a dataset's card: one telling episode, small enough for a README."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from solar_rl.report.picks import pick_episodes
from solar_rl.report.picture import draw, pixels
from solar_rl.report.strip import images_of, make_strip, read_records, telling_candidates

if TYPE_CHECKING:
    from PIL import Image

    from solar_rl.query import Connection
    from solar_rl.report.strip import Images

PICTURE = "episode.png"
_MOST_STEPS, _CANDIDATES, _COLOURS = 10, 3, 128
_WIDEST = 1600


def write_picture(folder: Path, con: Connection, read: Images | None = None) -> str | None:
    """Write the card's picture into a dataset's folder: same dataset, same bytes.

    Args:
        folder: The dataset's folder.
        con: A connection to it of its own, from ``query.connect`` or ``cursor``.
        read: Reads screenshots (default: from the dataset's own table).

    Returns:
        Its path in the folder; None where no episode has a scored trajectory or few enough steps.
    """
    for pick in pick_episodes(con):
        records = read_records(con, [pick.episode_id])[pick.episode_id]
        if len(records.steps) <= _MOST_STEPS:
            strip = make_strip(records, telling_candidates(records.trajectories, _CANDIDATES))
            images = images_of(con, [records], [strip], read)
            (folder / PICTURE).write_bytes(_small(pixels(draw(strip, images))))
            return PICTURE
    return None


def _small(image: Image.Image) -> bytes:
    """Shrink a picture to a palette and a width that a README shows anyway."""
    from PIL import Image

    image.thumbnail((_WIDEST, _WIDEST))
    out = io.BytesIO()
    image.quantize(_COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()
