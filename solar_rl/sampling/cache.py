"""Remember answers by what was asked, so that a costly model is asked once: across kills, configs and versions.

A request is known by the sampler's identity (its settings and model, without n), messages, images, screen and
base seed. Candidate k of it has seed base + k, so an entry made for 4 candidates serves the first half of 8. Each
writer appends to a segment file of its own; every record has a checksum, and what a kill left torn is dropped. No
locks and no shared files: it works on network file systems, for any number of ranks.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from solar_rl.config import DatasetConfig
from solar_rl.sampling.base import Completion, Request, Sampler, close, summary

COSTLY = ("transformers", "vllm", "openai")
"""Types of samplers whose answers are worth keeping."""
_MAGIC = b"solar-rl requests 1\n"
_HEAD = struct.Struct("<16sII")  # key, bytes of the payload, CRC-32 of key and payload
_SEEDS = 63
"""Bits of a seed that count candidates; see ``base.candidate_seed``."""
_KNOWN_AHEAD = 256
"""Known requests that may wait behind an unknown one; bounds memory where nearly all is known."""


class RequestStore:
    """Answers on disk, by key; see the module's text.

    Args:
        folder: Where the segments lie. Those that are there are read once, when it is opened.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._segments: list[Path] = []
        self._places: dict[bytes, list[tuple[int, int]]] = {}
        self._open: dict[int, BinaryIO] = {}
        self._own: BinaryIO | None = None
        for path in sorted(folder.glob("*.segment")):
            self._read_index(path)

    def get(self, key: bytes) -> dict[int, Completion]:
        """Return what is known of a request: candidate number to answer."""
        found: dict[int, Completion] = {}
        for segment, offset in self._places.get(key, ()):
            for number, fields in self._payload(segment, offset):
                found.setdefault(number, _completion(fields))
        return found

    def put(self, key: bytes, answers: dict[int, Completion]) -> None:
        """Append what was answered; it is safe from a kill of this process once this returns."""
        rows = [(number, _fields(answer)) for number, answer in answers.items()]
        payload = zlib.compress(json.dumps(rows, separators=(",", ":")).encode(), 1)
        file = self._own or self._begin()
        offset = file.tell()
        file.write(_HEAD.pack(key, len(payload), zlib.crc32(payload, zlib.crc32(key))) + payload)
        file.flush()
        self._places.setdefault(key, []).append((len(self._segments) - 1, offset))

    def close(self) -> None:
        """Sync and close the files."""
        if self._own is not None:
            os.fsync(self._own.fileno())
        for file in {*self._open.values(), *([self._own] if self._own else [])}:
            file.close()
        self._open, self._own = {}, None

    def _begin(self) -> BinaryIO:
        path = self._folder / f"{uuid.uuid4().hex}.segment"
        self._own = path.open("x+b")
        self._own.write(_MAGIC)
        self._segments.append(path)
        return self._own

    def _read_index(self, path: Path) -> None:
        """Note where each whole record of a segment lies; what follows a torn one can't be told and is left."""
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                return
            self._segments.append(path)
            while (offset := file.tell()) >= 0 and len(head := file.read(_HEAD.size)) == _HEAD.size:
                key, size, checksum = _HEAD.unpack(head)
                payload = file.read(size)
                if len(payload) < size or zlib.crc32(payload, zlib.crc32(key)) != checksum:
                    return
                self._places.setdefault(key, []).append((len(self._segments) - 1, offset))

    def _payload(self, segment: int, offset: int) -> list[tuple[int, list[object]]]:
        path = self._segments[segment]
        if segment not in self._open:
            self._open[segment] = path.open("rb")
        file = self._open[segment]
        file.seek(offset)
        _, size, _ = _HEAD.unpack(file.read(_HEAD.size))
        rows: list[tuple[int, list[object]]] = json.loads(zlib.decompress(file.read(size)))
        return rows


@dataclass
class _Entry:
    """A request on its way: what is known of it, and the stretches of candidates that were asked for."""

    request: Request
    key: bytes
    base: int
    found: dict[int, Completion]
    asked: deque[Request] = field(default_factory=deque)

    @property
    def numbers(self) -> range:
        first = self.request.seed - self.base
        return range(first, first + self.request.n)

    @property
    def whole(self) -> bool:
        return not self.asked

    def answers(self) -> list[Completion]:
        return [self.found[number] for number in self.numbers]


class Cached:
    """A sampler that asks another one only for what it doesn't know yet.

    Args:
        make: Sets the other sampler up; called when something is unknown for the first time.
        identity: What stands for the sampler and its model; n, and what changes only speed, are no part.
        settings: What its ``sampler_id`` hangs on, n included.
        folder: Where answers are kept.
    """

    def __init__(self, make: Callable[[], Sampler], identity: str, settings: str, folder: Path) -> None:
        self._make, self._identity = make, identity
        self._inner: Sampler | None = None
        self._store = RequestStore(folder)
        self._id_key = _key("sampler_id", identity, settings)
        self.asked = 0
        """Candidates asked for so far."""
        self.hits = 0
        """How many of them were known."""

    @cached_property
    def sampler_id(self) -> str:
        """Return the other sampler's id; it is remembered too, so that a known answer loads no model."""
        known = self._store.get(self._id_key)
        if not known:
            self._store.put(self._id_key, {0: Completion(self._sampler().sampler_id, 0)})
            known = self._store.get(self._id_key)
        return known[0].text

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yield the answers of each request, in the requests' order."""
        rest = iter(requests)
        for request in rest:
            entry = self._look_up(request)
            if entry.whole:
                yield entry.answers()
            else:
                yield from self._ask(entry, rest)

    def summary(self) -> dict[str, Any]:
        """Return what was asked for and known, with what the other sampler counted."""
        counted = summary(self._inner) if self._inner is not None else {}
        return {"asked": self.asked, "known": self.hits} | counted

    def close(self) -> None:
        """Close the files, and the other sampler."""
        self._store.close()
        if self._inner is not None:
            close(self._inner)

    def _ask(self, first: _Entry, rest: Iterator[Request]) -> Iterator[list[Completion]]:
        """Put unknown requests to the sampler until many known ones follow each other."""
        waiting: deque[_Entry] = deque()
        unanswered: deque[_Entry] = deque()

        def asks() -> Iterator[Request]:
            entry, known = first, 0
            while True:
                waiting.append(entry)
                known = known + 1 if entry.whole else 0
                for request in tuple(entry.asked):
                    unanswered.append(entry)
                    yield request
                following = next(rest, None) if known < _KNOWN_AHEAD else None
                if following is None:
                    return
                entry = self._look_up(following)

        for completions in self._sampler().sample(asks()):
            self._receive(unanswered.popleft(), completions)
            while waiting and waiting[0].whole:
                yield waiting.popleft().answers()
        while waiting:
            yield waiting.popleft().answers()

    def _receive(self, entry: _Entry, completions: list[Completion]) -> None:
        request = entry.asked.popleft()
        first = request.seed - entry.base
        answers = dict(enumerate(completions, start=first))
        self._store.put(entry.key, answers)
        entry.found |= answers

    def _look_up(self, request: Request) -> _Entry:
        base = request.seed & ~_SEEDS
        key = _request_key(self._identity, request, base)
        entry = _Entry(request, key, base, self._store.get(key))
        missing = [number for number in entry.numbers if number not in entry.found]
        entry.asked.extend(_stretches(request, base, missing))
        self.asked += request.n
        self.hits += request.n - len(missing)
        return entry

    def _sampler(self) -> Sampler:
        if self._inner is None:
            self._inner = self._make()
        return self._inner


def open_sampler(config: DatasetConfig, folder: Path | None, identity: str) -> Sampler:
    """Set up a build's sampler: behind the cache where its answers are worth keeping.

    Args:
        config: The dataset description.
        folder: The cache folder; None: no cache.
        identity: What stands for the sampler and its model.
    """
    from solar_rl.sampling import make_sampler

    def make() -> Sampler:
        return make_sampler(config.sampler, config.prompt)

    if folder is None or config.sampler.type not in COSTLY:
        return make()
    return Cached(make, identity, config.sampler.digest(), folder / "requests")


@contextmanager
def known_answers(
    config: DatasetConfig, folder: Path | None, identity: str
) -> Iterator[Callable[[Request], int]]:
    """Yield what tells how many answers of a request are known; no sampler is set up, nothing is written.

    Args:
        config: The dataset description.
        folder: The cache folder; None: no cache.
        identity: What stands for the sampler and its model.
    """
    if folder is None or config.sampler.type not in COSTLY or not (folder / "requests").is_dir():
        yield lambda request: 0
        return
    store = RequestStore(folder / "requests")

    def known(request: Request) -> int:
        base = request.seed & ~_SEEDS
        found = store.get(_request_key(identity, request, base))
        first = request.seed - base
        return sum(number in found for number in range(first, first + request.n))

    yield known
    store.close()


def _stretches(request: Request, base: int, missing: list[int]) -> Iterator[Request]:
    """Ask for runs of missing candidates: each run is one request for as many answers."""
    start = request.seed - base
    for at, number in enumerate(missing):
        if at and missing[at - 1] == number - 1:
            continue
        run = 1
        while number + run in missing[at + run : at + run + 1]:
            run += 1
        yield replace(request, seed=base + number, n=run, first=request.first + number - start)


def _request_key(identity: str, request: Request, base: int) -> bytes:
    messages = json.dumps(request.messages, sort_keys=True, ensure_ascii=False)
    images = [hashlib.sha256(image).hexdigest() for image in request.images]
    return _key(identity, messages, *images, str(tuple(request.frame)), str(base))


def _key(*parts: str) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()[:16]


def _fields(answer: Completion) -> list[object]:
    return [
        answer.text,
        answer.seed,
        answer.token_ids,
        answer.logprobs,
        answer.finish_reason,
        answer.history_dropped,
    ]


def _completion(fields: list[object]) -> Completion:
    text, seed, token_ids, logprobs, finish_reason, dropped = fields
    return Completion(
        text,  # type: ignore[arg-type]
        seed,  # type: ignore[arg-type]
        None if token_ids is None else tuple(token_ids),  # type: ignore[arg-type]
        None if logprobs is None else tuple(logprobs),  # type: ignore[arg-type]
        finish_reason,  # type: ignore[arg-type]
        dropped,  # type: ignore[arg-type]
    )
