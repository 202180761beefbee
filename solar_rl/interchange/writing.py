"""Write episodes as interchange lines with their screenshots beside them: from any builder, or a built dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from solar_rl.actions import Box
from solar_rl.columns import episode_of, step_of
from solar_rl.errors import InputError
from solar_rl.schema import SPLITS, Alternative, Episode, Step

EPISODES = "episodes.jsonl"
IMAGES = "images"
_SUFFIXES = ((b"\x89PNG", ".png"), (b"\xff\xd8\xff", ".jpg"), (b"RIFF", ".webp"))
ImageOf = Callable[[Step], tuple[str, str] | None]
"""Gives the path and the sha256 of a step's screenshot, None where it has none."""


def write_episodes(episodes: Iterable[Episode], folder: str | Path) -> int:
    """Write ``episodes.jsonl`` and ``images/`` into a new or empty folder; each distinct screenshot once.

    Args:
        episodes: From any builder; they are written as they come.
        folder: Where to.

    Returns:
        The number of episodes.

    Raises:
        InputError: The folder holds something already.
    """
    with _whole(folder) as root:
        return _write_lines(root, episodes)


def _write_lines(root: Path, episodes: Iterable[Episode]) -> int:
    def save(step: Step) -> tuple[str, str] | None:
        if step.screenshot is None:
            return None
        return _save_image(root, step.screenshot.sha256, step.screenshot.data)

    return _write(root, (line_of(episode, save) for episode in episodes))


def export_dataset(dataset: str | Path, folder: str | Path) -> int:
    """Write a built dataset's demonstrations as interchange lines; candidates and rewards stay behind.

    Building the lines again with the same config gives the same tables. Memory is that of one batch of rows.

    Args:
        dataset: Folder of a built dataset.
        folder: A new or empty folder.

    Returns:
        The number of episodes.

    Raises:
        InputError: The folder holds something already, or no dataset lies there.
    """
    source = Path(dataset)
    if not (source / "manifest.json").is_file():
        raise InputError("no built dataset lies there", where=str(source))
    with _whole(folder) as root:
        paths: dict[str, str] = {}
        for row in _rows(source, "images", "*"):
            paths[row["sha256"]] = _save_image(root, row["sha256"], row["image"]["bytes"])[0]
        return _write(root, _dataset_lines(source, paths))


def line_of(episode: Episode, image_of: ImageOf) -> bytes:
    """Write one episode as a line, in the unit square so that no number changes."""
    head = {
        "episode_id": episode.episode_id,
        "goal": episode.goal,
        "platform": episode.platform,
        "coordinates": "unit",
        "split": episode.split,
        "app": episode.app,
        "category": episode.category,
        "subsplits": list(episode.subsplits),
        "recorded_success": episode.recorded_success,
        "source": episode.source,
        "license": episode.license,
    }
    steps = [_step(step, image_of(step)) for step in episode.steps]
    return orjson.dumps(_stated(head) | {"steps": steps})


def _step(step: Step, image: tuple[str, str] | None) -> dict[str, Any]:
    path, sha256 = image or (None, None)
    return _stated(
        {
            "step_index": step.step_index,
            "action": _stated(asdict(step.action)),
            "image": path,
            "image_sha256": sha256,
            "screen_width": step.screen_width,
            "screen_height": step.screen_height,
            "screen_size": step.screen_size,
            "instruction": step.instruction,
            "thought": step.thought,
            "app": step.app,
            "screen_text": step.screen_text,
            "target_box": _edges(step.target_box),
            "candidate_boxes": [_edges(box) for box in step.candidate_boxes],
            "box_rule": step.box_rule,
            "alternatives": [_alternative(each) for each in step.alternatives],
        }
    )


def _alternative(alternative: Alternative) -> dict[str, Any]:
    return _stated(asdict(alternative.action) | {"box": _edges(alternative.box)})


def _edges(box: Box | None) -> list[float] | None:
    return list(box) if box else None


def _stated(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what has nothing to say: nulls and empty lists."""
    return {name: value for name, value in values.items() if value is not None and value != []}


@contextmanager
def _whole(folder: str | Path) -> Iterator[Path]:
    """Yield a folder to write to, whose contents are in ``folder`` when all is written, and gone after an error."""
    root = Path(folder)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise InputError("is not empty", where=str(root), hint="name a new folder")
    above = root.resolve().parent
    above.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{root.name}.", dir=above) as beside:
        yield Path(beside)
        root.mkdir(exist_ok=True)
        for path in sorted(Path(beside).iterdir(), key=lambda path: path.name == EPISODES):
            path.rename(root / path.name)


def _save_image(root: Path, sha256: str, data: bytes) -> tuple[str, str]:
    suffix = next((suffix for start, suffix in _SUFFIXES if data.startswith(start)), "")
    name = f"{IMAGES}/{sha256[:2]}/{sha256}{suffix}"
    path = root / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return name, sha256


def _write(root: Path, lines: Iterable[bytes]) -> int:
    count = 0
    with (root / EPISODES).open("wb") as file:
        for line in lines:
            file.write(line + b"\n")
            count += 1
    return count


def _dataset_lines(folder: Path, paths: Mapping[str, str]) -> Iterator[bytes]:
    for split in SPLITS:
        steps = groupby(_rows(folder, "steps", split), key=lambda row: row["episode_id"])
        for episode, (episode_id, rows) in zip(_rows(folder, "episodes", split), steps, strict=True):
            assert episode["episode_id"] == episode_id, "both tables are sorted by episode"
            shots: dict[int, str] = {}
            found = []
            for row in rows:
                found.append(step_of(row))
                if row["image_sha256"]:
                    shots[row["step_index"]] = row["image_sha256"]

            def image_of(step: Step, shots: Mapping[int, str] = shots) -> tuple[str, str] | None:
                sha256 = shots.get(step.step_index)
                return (paths[sha256], sha256) if sha256 else None

            yield line_of(episode_of(episode, found), image_of)


def _rows(folder: Path, table: str, split: str) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    for path in sorted((folder / "data" / table).glob(f"{split}-*.parquet")):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=64 if table == "images" else 1024):
                yield from batch.to_pylist()
