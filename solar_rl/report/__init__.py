"""Show a dataset to people: report.html, one self-contained page, and a picture of one episode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solar_rl.diff import Difference
    from solar_rl.report.strip import Images
    from solar_rl.stats import Answers
    from solar_rl.store.manifest import Manifest

__all__ = ["episode_strip", "write_diff", "write_report"]


def write_report(
    folder: str | Path,
    manifest: Manifest | None = None,
    answers: Answers | None = None,
    images: Images | None = None,
) -> Path:
    """Write ``report.html`` into a dataset's folder: same dataset, same bytes.

    Args:
        folder: The dataset's folder.
        manifest: Name, version, build, config, counts and rejects, where manifest.json isn't written yet
            (a build writes it last). Default: the folder's.
        answers: The dataset's statistics, where some are known already.
        images: Reads screenshots (default: from the dataset's own table).

    Returns:
        The page's path.

    Raises:
        InputError: No complete dataset there.
    """
    from solar_rl.query import connect
    from solar_rl.report.page import REPORT, render_page
    from solar_rl.stats import Answers
    from solar_rl.store.manifest import read_manifest, write_text

    manifest = manifest or read_manifest(folder)
    if answers is not None:
        page = render_page(answers, manifest, images)
    else:
        with connect(folder, unfinished=True) as con:
            page = render_page(Answers(con), manifest, images)
    return write_text(Path(folder) / REPORT, page)


def write_diff(found: Difference, out: str | Path) -> Path:
    """Write a comparison of two datasets as one self-contained page; returns its path.

    Raises:
        InputError: The folder of the page doesn't exist.
    """
    from solar_rl.errors import InputError
    from solar_rl.report.diff_page import render_diff
    from solar_rl.store.manifest import write_text

    if not Path(out).parent.is_dir():
        raise InputError("no such folder", where=str(Path(out).parent))
    return write_text(out, render_diff(found))


def episode_strip(
    folder: str | Path, episode_id: str, candidates: int | Sequence[int] = 3, out: str | Path = "episode.png"
) -> Path:
    """Draw one episode as a picture: screens, a few candidates that differ, rewards and their sums.

    Args:
        folder: The dataset's folder.
        episode_id: Which episode.
        candidates: How many rows to draw (a success, the longest failure, the earliest one, then by
            index), or which candidates by index.
        out: Where to write; the ending .png or .svg decides the kind.

    Raises:
        InputError: No such episode or candidate, no complete dataset, or another ending.
    """
    from solar_rl.report.picture import draw_strip

    return draw_strip(Path(folder), episode_id, candidates, Path(out))
