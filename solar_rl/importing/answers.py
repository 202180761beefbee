"""Read a file of sampled answers, JSONL or parquet, and refuse it before any work if it doesn't fit a dataset."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import orjson
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from solar_rl.errors import InputError, RecordError
from solar_rl.lines import read_lines
from solar_rl.schema import LARGEST_LOGPROB, TABLES

KEY = ("episode_id", "step_index", "candidate_index")
_Id = Annotated[int, Field(ge=0, lt=2**31)]
_Logprob = Annotated[float, Field(allow_inf_nan=False, le=LARGEST_LOGPROB)]
_CHUNK = 20_000
_BOM = b"\xef\xbb\xbf"
_LIST, _HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*\{"), 4096
_SCHEMA: dict[str, Any] = {
    "place": pl.UInt32,
    "episode_id": pl.String,
    "step_index": pl.Int32,
    "candidate_index": pl.Int32,
    "completion": pl.String,
    "token_ids": pl.List(pl.Int32),
    "sampling_logprobs": pl.List(pl.Float32),
    "seed": pl.Int64,
    "sampler_id": pl.String,
    "finish_reason": pl.String,
    "history_dropped": pl.Int32,
}


class Answer(BaseModel):
    """One row of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    episode_id: str | int
    step_index: int = Field(ge=0, lt=2**31)
    candidate_index: int = Field(ge=0, lt=64)
    completion: str
    token_ids: list[_Id] | None = None
    sampling_logprobs: list[_Logprob] | None = None
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    sampler_id: str | None = None
    finish_reason: Literal["stop", "length"] | None = None
    history_dropped: int | None = Field(default=None, ge=0, lt=2**31)


DERIVED = frozenset(TABLES["candidates"].names) - Answer.model_fields.keys()
"""Columns of table ``candidates`` that may stand in a file and are worked out anew."""


def read_answers(path: Path) -> pl.DataFrame:
    """Read every row, sorted by key; ``place`` is its line or its place in a list from 1, or its parquet row from 0.

    Raises:
        InputError: No such file, neither JSONL, a JSON list nor parquet, a broken row, an unknown key or column (with a
            suggestion), or two rows for one candidate; says where.
    """
    if not path.is_file():
        raise InputError("no such file", where=str(path))
    with path.open("rb") as file:
        packed = file.read(4) == b"PAR1"
    listed = not packed and _LIST.match(path.read_bytes()[:_HEAD]) is not None
    rows = _parquet_rows(path) if packed else _listed_rows(path) if listed else _json_rows(path)
    word = "row" if packed else "item" if listed else "line"
    chunks = []
    while chunk := [_row(number, data, f"{path}, {word} {number}") for number, data in islice(rows, _CHUNK)]:
        chunks.append(pl.DataFrame(chunk, schema=_SCHEMA, orient="row"))
    if not chunks:
        raise InputError("holds no answer", where=str(path))
    answers = pl.concat(chunks).sort(*KEY, "place")
    again = answers.filter(pl.struct(KEY).is_duplicated())
    if again.height:
        places = again.filter(pl.struct(KEY) == again.select(pl.struct(KEY)).row(0)[0])["place"].to_list()
        raise InputError(
            f"{_named(again.row(0, named=True))} stands there {len(places)} times",
            where=f"{path}, {word}s {', '.join(map(str, places[:4]))}",
        )
    return answers


def check_fit(answers: pl.DataFrame, steps: pl.DataFrame, path: Path, *, adaptive: bool = False) -> int:
    """Check that there are equally many answers, numbered from 0, to every step of a dataset and to no other.

    Args:
        answers: What ``read_answers`` gave.
        steps: The dataset's steps: episode_id, step_index.
        path: The file, for messages.
        adaptive: A step may have one answer instead of N.

    Returns:
        N.

    Raises:
        InputError: What doesn't fit, how often, and the first of it.
    """
    key = ["episode_id", "step_index"]
    strange = answers.join(steps, on=key, how="anti", maintain_order="left")
    if strange.height:
        first = strange.row(0, named=True)
        known = steps.filter(pl.col("episode_id") == first["episode_id"]).height
        why = f"the episode has {known} steps" if known else "the dataset has no such episode"
        raise InputError(
            f"{strange.height:,} answers to other steps, the first to {_step(first)}: {why}", where=str(path)
        )
    missing = steps.join(answers, on=key, how="anti").sort(key)
    if missing.height:
        message = f"{missing.height:,} of {steps.height:,} steps have no answer, the first: {_step(missing.row(0, named=True))}"
        raise InputError(message, where=str(path), hint="every step needs the same number of answers")
    counts = answers.group_by(key).agg(pl.len().alias("n"), last=pl.col("candidate_index").max()).sort(key)
    n = int(counts["n"].max())  # type: ignore[arg-type]
    odd = counts.filter(~pl.col("n").is_in([1, n] if adaptive else [n]))
    if odd.height:
        first = odd.row(0, named=True)
        message = (
            f"{odd.height:,} steps have another number of answers than {n}: {_step(first)} has {first['n']}"
        )
        hint = "groups of 1 and N come from --sampler.adaptive true" if set(counts["n"]) == {1, n} else None
        raise InputError(message, where=str(path), hint=hint)
    gaps = counts.filter(pl.col("last") != pl.col("n") - 1)
    if gaps.height:
        first = gaps.row(0, named=True)
        message = f"{_step(first)} has {first['n']} answers, but one is candidate {first['last']}; they are numbered from 0"
        raise InputError(message, where=str(path))
    return n


def _row(number: int, data: Any, place: str) -> tuple[Any, ...]:
    try:
        answer = Answer.model_validate(data)
    except ValidationError as error:
        raise _problem(error, place) from None
    ids, logprobs = answer.token_ids, answer.sampling_logprobs
    if logprobs is not None and ids is None:
        raise InputError("has sampling_logprobs without the token_ids that they belong to", where=place)
    if ids is not None and logprobs is not None and len(ids) != len(logprobs):
        raise InputError(f"{len(ids)} token_ids but {len(logprobs)} sampling_logprobs", where=place)
    return (
        number,
        str(answer.episode_id),
        answer.step_index,
        answer.candidate_index,
        answer.completion,
        ids,
        logprobs,
        answer.seed,
        answer.sampler_id,
        answer.finish_reason,
        answer.history_dropped or 0,
    )


def _problem(error: ValidationError, place: str) -> InputError:
    problems = error.errors(include_url=False)
    problem = next((each for each in problems if each["type"] == "extra_forbidden"), problems[0])
    key = ".".join(str(part) for part in problem["loc"] if part not in ("str", "int"))
    if problem["type"] == "extra_forbidden":
        return _unknown(key, place)
    if problem["type"] == "missing":
        return InputError(f"key '{key}' is missing", where=place)
    return InputError(f"'{key or 'the row'}': {problem['msg']}, got {problem['input']!r:.80}", where=place)


def _unknown(key: str, place: str) -> InputError:
    known = list(Answer.model_fields)
    close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}"
    return InputError(f"unknown key '{key}'", where=place, hint=hint)


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    for number, line in read_lines(path):
        place = f"{path}, line {number}"
        if isinstance(line, RecordError):
            raise InputError(line.message, where=place, hint=line.hint)
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InputError(f"is no JSON: {error}", where=place) from None
        yield number, _without_derived(row) if isinstance(row, dict) else row


def _listed_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Read one JSON list of rows, as ``solar-rl query --format json`` writes it."""
    try:
        rows = orjson.loads(path.read_bytes().removeprefix(_BOM))
    except orjson.JSONDecodeError as error:
        raise InputError(f"is no JSON: {error}", where=str(path)) from None
    for number, row in enumerate(rows, start=1):
        yield number, _without_derived(row) if isinstance(row, dict) else row


def _parquet_rows(path: Path) -> Iterator[tuple[int, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        columns = [name for name in file.schema_arrow.names if name not in DERIVED]
        for name in columns:
            if name not in Answer.model_fields:
                raise _unknown(name, str(path))
        batches = file.iter_batches(columns=columns, batch_size=_CHUNK)
        yield from enumerate(row for batch in batches for row in batch.to_pylist())
    except pa.ArrowInvalid as error:
        raise InputError(f"can't be read as parquet: {error}", where=str(path)) from None


def _without_derived(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in DERIVED}


def _step(row: dict[str, Any]) -> str:
    return f"episode {row['episode_id']}, step {row['step_index']}"


def _named(row: dict[str, Any]) -> str:
    return f"{_step(row)}, candidate {row['candidate_index']}"
