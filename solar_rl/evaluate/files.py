"""What an evaluation reads from disk: the dataset's steps, predictions, skip lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from solar_rl.config import PromptConfig, ValidityConfig, validate_config
from solar_rl.errors import InputError
from solar_rl.evaluate.predictions import Key
from solar_rl.formats.base import Frame
from solar_rl.parsing import json_object
from solar_rl.prompts import frame_for
from solar_rl.schema import SPLITS, TABLES
from solar_rl.store.dataset import SolarDataset, open_dataset
from solar_rl.verify import describe_steps


class EvaluationData:
    """The labels of a dataset, and what its config says about frames and validity.

    Args:
        path_or_repo: A built dataset.
        split: Only this split (default: all).

    Raises:
        InputError: No such dataset or split, or no steps in it.
    """

    def __init__(self, path_or_repo: str, split: str | None = None) -> None:
        if split is not None and split not in SPLITS:
            raise InputError(f"no split is named '{split}'", hint=f"there is: {', '.join(SPLITS)}")
        self.dataset: SolarDataset = open_dataset(path_or_repo)
        config = self.dataset.manifest.config
        where = f"{self.dataset.path}/manifest.json"
        self.prompt = validate_config(PromptConfig, config.get("prompt", {}), where=where)
        rules = {name: value for name, value in config.get("validity", {}).items() if name != "verifier"}
        self.validity = validate_config(ValidityConfig, rules, where=where)
        self.bucket_rule = "phone" if self._builder(config) == "phone" else "androidcontrol"
        self.episodes = self._sorted("episodes", split)
        self.steps = self._sorted("steps", split)
        if not self.steps.height:
            raise InputError(f"no steps{f' in split {split}' if split else ''}", where=str(self.dataset.path))

    def described_steps(self, candidates: pl.DataFrame, *, screenshots: bool) -> pl.DataFrame:
        """Return the steps that candidates answer, as verifiers read them (``verify.describe_steps``)."""
        key = ["episode_id", "step_index"]
        steps = self.steps.join(candidates, on=key, how="semi", maintain_order="left")
        wanted = steps.select("image_sha256").drop_nulls().unique()
        shots = self.dataset.images.select("sha256", screenshot=pl.col("image").struct.field("bytes"))
        shown = shots.join(
            wanted.lazy() if screenshots else wanted.lazy().head(0),
            left_on="sha256",
            right_on="image_sha256",
            how="semi",
        )
        return describe_steps(steps, self.episodes, shown.collect(engine="in-memory").unique("sha256"))

    def _sorted(self, table: str, split: str | None) -> pl.DataFrame:
        rows = self.dataset.table(table, split).collect(engine="in-memory")
        return rows.sort(TABLES[table].key)  # each split's file is sorted, but not all of them together

    @staticmethod
    def _builder(config: dict[str, Any]) -> str:
        return str(config.get("source", {}).get("builder", ""))

    def frames(self) -> Callable[[Key], Frame | None]:
        """Return the function from a step's key to the frame of a model's pixels, by the dataset's prompt."""
        sizes = self.dataset.images.select("sha256", "width", "height").collect(engine="in-memory")
        shown = self.steps.select("episode_id", "step_index", "screen_width", "screen_height", "image_sha256")
        found: dict[Key, Frame] = {}
        for episode, step, wide, high, sha, width, height in shown.join(
            sizes, left_on="image_sha256", right_on="sha256", how="left", maintain_order="left"
        ).iter_rows():
            size = (wide, high) if width is None else (width, height)
            found[episode, step] = frame_for(*size, self.prompt, image=sha is not None)
        return found.get


def open_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file.

    Raises:
        InputError: It can't be read.
    """
    try:
        with path.open("rb") as lines:
            yield from lines
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(path)) from None


def read_skip_list(path: Path, steps: pl.DataFrame) -> pl.DataFrame:
    """Read which steps to leave out: a line of JSON with episode_id and step_index each.

    A line without ``step_index`` names all steps of the episode.

    Returns:
        Keys of steps that the data have.

    Raises:
        InputError: A line is broken, or names an episode or step that the data don't have.
    """
    parts = []
    for number, line in enumerate(open_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        row = json_object(line, where=where)
        if row.get("episode_id") is None:
            raise InputError("'episode_id' is missing", where=where)
        named = pl.col("episode_id") == str(row["episode_id"])
        if row.get("step_index") is not None:
            if type(row["step_index"]) is not int:
                raise InputError("'step_index' is no whole number", where=where)
            named &= pl.col("step_index") == row["step_index"]
        found = steps.filter(named).select("episode_id", "step_index")
        if not found.height:
            raise InputError(
                "names a step that the data don't have", where=where, hint="check --data and --split"
            )
        parts.append(found)
    return (
        pl.concat(parts).unique(maintain_order=True)
        if parts
        else steps.head(0).select("episode_id", "step_index")
    )
