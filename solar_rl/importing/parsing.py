"""Turn answers into rows of table ``candidates``: each is read in its step's frame, as after sampling."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import polars as pl

from solar_rl.columns import candidates_frame
from solar_rl.config import DatasetConfig, PromptConfig
from solar_rl.formats import FORMATS, parse_completion
from solar_rl.formats.base import Frame
from solar_rl.prompts import frame_for
from solar_rl.sampling.base import candidate_seed
from solar_rl.schema import Candidate

_CHUNK = 20_000
_TRIED = 500


def candidate_rows(
    answers: pl.DataFrame, screens: pl.DataFrame, config: DatasetConfig, sampler_id: str | None, fallback: str
) -> Iterator[pl.DataFrame]:
    """Yield rows of table ``candidates`` in the answers' order.

    Args:
        answers: Sorted by key.
        screens: ``width``, ``height`` and ``has_image`` of every step, by key.
        config: Its prompt says how answers are read, its seed what a missing seed is.
        sampler_id: Written into every row (default: the row's own).
        fallback: The same for rows that have none.
    """
    for start in range(0, answers.height, _CHUNK):
        rows = answers.slice(start, _CHUNK)
        framed = rows.drop("token_ids", "sampling_logprobs").join(
            screens, on=["episode_id", "step_index"], how="left", maintain_order="left"
        )
        made = candidates_frame(
            _candidate(row, config, sampler_id or row["sampler_id"] or fallback)
            for row in framed.iter_rows(named=True)
        )
        yield made.with_columns(rows["token_ids"], rows["sampling_logprobs"])


def parsable(answers: pl.DataFrame, screens: pl.DataFrame, config: DatasetConfig) -> dict[str, float]:
    """Return the share of answers that each output format can read, of some spread over the file."""
    some = answers.gather_every(max(1, answers.height // _TRIED)).head(_TRIED)
    framed = some.join(screens, on=["episode_id", "step_index"], how="left", maintain_order="left")
    rows = list(framed.iter_rows(named=True))
    return {
        name: sum(
            parse_completion(name, row["completion"], _frame(row, config))[0] is not None for row in rows
        )
        / len(rows)
        for name in FORMATS
    }


def _candidate(row: dict[str, Any], config: DatasetConfig, sampler_id: str) -> Candidate:
    action, parse_error = parse_completion(config.prompt.format, row["completion"], _frame(row, config))
    seed = row["seed"]
    if seed is None:
        seed = candidate_seed(config.seed, row["episode_id"], row["step_index"]) + row["candidate_index"]
    return Candidate(
        row["episode_id"],
        row["step_index"],
        row["candidate_index"],
        row["completion"],
        sampler_id,
        seed,
        action,
        parse_error,
        finish_reason=row["finish_reason"],
        history_dropped=row["history_dropped"],
    )


def _frame(row: dict[str, Any], config: DatasetConfig) -> Frame:
    return _frame_of(row["width"], row["height"], row["has_image"], config.prompt)


@lru_cache(maxsize=1024)
def _frame_of(width: int, height: int, has_image: bool, prompt: PromptConfig) -> Frame:
    return frame_for(width, height, prompt, image=has_image)
