"""Answers that were sampled elsewhere, read from JSONL or parquet."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from solar_rl.config import RecordedSampler
from solar_rl.errors import ConfigError, InputError
from solar_rl.sampling.base import Completion, Request
from solar_rl.schema import LARGEST_LOGPROB

_Id = Annotated[int, Field(ge=0, lt=2**31)]
_Logprob = Annotated[float, Field(allow_inf_nan=False, le=LARGEST_LOGPROB)]
_Key = tuple[str, int, int]


class RecordedAnswer(BaseModel):
    """One row of the file; other columns are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    episode_id: str
    step_index: int = Field(ge=0)
    candidate_index: int = Field(ge=0)
    completion: str
    token_ids: list[_Id] | None = None
    sampling_logprobs: list[_Logprob] | None = None
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    sampler_id: str | None = None

    @property
    def key(self) -> _Key:
        """Return what the answer is found by."""
        return self.episode_id, self.step_index, self.candidate_index


class _Kept(NamedTuple):
    """What is kept of a row, numbers in arrays: hundreds of thousands of answers must fit into memory."""

    text: str
    seed: int | None
    token_ids: array[int] | None
    logprobs: array[float] | None


class Recorded:
    """Answers requests from a file.

    A row without a seed gets the request's. ``sampler_id`` is the file's where all rows agree on one, else
    ``recorded/`` and the file's name.

    Args:
        config: Names the file.

    Raises:
        ConfigError: There is no such file, or it is neither JSONL nor parquet.
        InputError: A row is broken or appears twice; names the file and the row.
    """

    def __init__(self, config: RecordedSampler) -> None:
        self._path = Path(config.path)
        self._answers: dict[_Key, _Kept] = {}
        ids = set()
        for place, data in _rows(self._path):
            answer = _checked(data, place)
            if answer.key in self._answers:
                raise InputError(f"{_name(*answer.key)} appears twice", where=place)
            self._answers[answer.key] = _kept(answer)
            ids.add(answer.sampler_id)
        only = ids.pop() if len(ids) == 1 else None
        self.sampler_id = only or f"recorded/{self._path.stem}"
        self._asked: set[_Key] = set()

    @property
    def extra_rows(self) -> int:
        """Return how many rows no request has asked for so far."""
        return len(self._answers) - len(self._asked)

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yield the recorded answers of each request.

        Raises:
            InputError: An answer is missing; names the episode, the step and the candidate.
        """
        for request in requests:
            yield [self._answer(request, request.first + k) for k in range(request.n)]

    def _answer(self, request: Request, k: int) -> Completion:
        key = (request.episode.episode_id, request.step.step_index, k)
        answer = self._answers.get(key)
        if answer is None:
            raise InputError(
                f"no answer for {_name(*key)}",
                where=str(self._path),
                hint=f"the file must hold candidates 0 to {request.first + request.n - 1} of every step; lower sampler.n?",
            )
        self._asked.add(key)
        return Completion(
            answer.text,
            request.seed + k - request.first if answer.seed is None else answer.seed,
            None if answer.token_ids is None else tuple(answer.token_ids),
            None if answer.logprobs is None else tuple(answer.logprobs),
        )


def _kept(answer: RecordedAnswer) -> _Kept:
    ids, logprobs = answer.token_ids, answer.sampling_logprobs
    return _Kept(
        answer.completion,
        answer.seed,
        None if ids is None else array("i", ids),
        None if logprobs is None else array("d", logprobs),
    )


def _name(episode_id: str, step_index: int, candidate_index: int) -> str:
    return f"episode {episode_id}, step {step_index}, candidate {candidate_index}"


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    if not path.is_file():
        raise ConfigError("no such file", where=f"sampler.path {path}")
    if path.suffix == ".parquet":
        yield from _parquet_rows(path)
    elif path.suffix in (".jsonl", ".ndjson"):
        yield from _json_rows(path)
    else:
        raise ConfigError("expected a .jsonl or a .parquet file", where=f"sampler.path {path}")


def _json_rows(path: Path) -> Iterator[tuple[str, Any]]:
    import orjson

    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            place = f"{path}:{number}"
            if line.strip():
                try:
                    yield place, orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    raise InputError(f"is not JSON: {error}", where=place) from None


def _parquet_rows(path: Path) -> Iterator[tuple[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        known = [name for name in file.schema_arrow.names if name in RecordedAnswer.model_fields]
        rows = (row for batch in file.iter_batches(columns=known) for row in batch.to_pylist())
        for number, row in enumerate(rows):
            yield f"{path}, row {number}", row
    except pa.ArrowInvalid as error:
        raise InputError(f"can't be read as parquet: {error}", where=str(path)) from None


def _checked(data: Any, place: str) -> RecordedAnswer:
    try:
        answer = RecordedAnswer.model_validate(data)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"])) or "the row"
        raise InputError(f"'{key}': {problem['msg']}", where=place) from None
    ids, logprobs = answer.token_ids, answer.sampling_logprobs
    if logprobs is not None and ids is None:
        raise InputError("has sampling_logprobs without the token_ids that they belong to", where=place)
    if ids is not None and logprobs is not None and len(ids) != len(logprobs):
        raise InputError(f"{len(ids)} token_ids but {len(logprobs)} sampling_logprobs", where=place)
    return answer
