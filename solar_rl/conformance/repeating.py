"""Read a sample again in other ways, which must all give the same: again, backwards, alone, elsewhere."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from solar_rl.builder import Builder, load_builder
from solar_rl.config import SourceConfig
from solar_rl.conformance.finding import Finding
from solar_rl.conformance.items import Reading, digest


def repeats(source: SourceConfig, reading: Reading) -> Iterator[Finding]:
    """Compare other ways of reading with the first one."""
    shards = list(reading.digests)
    same = load_builder(source)
    yield Finding.of("reads_the_same_again", _differences(reading, _read(same, shards)))
    yield Finding.of("reads_shards_in_any_order", _differences(reading, _read(same, shards[::-1])))
    alone: dict[str, list[str]] = {}
    for shard in shards[::-1]:
        alone |= _read(load_builder(source), [shard])
    yield Finding.of("reads_a_shard_alone", _differences(reading, alone))
    yield Finding.of("works_in_another_process", _elsewhere(source, reading, type(same)))


def _read(builder: Builder, shards: list[str]) -> dict[str, list[str]]:
    return {shard: [digest(item) for item in builder.read(shard)] for shard in shards}


def _differences(reading: Reading, again: dict[str, list[str]]) -> Iterator[str]:
    for shard, digests in reading.digests.items():
        if len(again[shard]) != len(digests):
            yield f"shard {shard}: {len(again[shard])} items instead of {len(digests)}"
        elif again[shard] != digests:
            first = next(
                i for i, pair in enumerate(zip(digests, again[shard], strict=True)) if len(set(pair)) > 1
            )
            yield f"shard {shard}: item {first} is another"


def _elsewhere(source: SourceConfig, reading: Reading, cls: type[Builder]) -> Iterator[str]:
    """Read in a new process: the builder must be found by its name, and lean on no hash order or global."""
    try:
        pickle.dumps(cls)
    except (pickle.PicklingError, AttributeError) as error:
        yield f"the class can't be sent to a process: {error}"
        return
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            again = pool.submit(_read_here, source.model_dump(), list(reading.digests)).result()
        except BrokenProcessPool as error:
            yield f"the process died: {error}"
        except Exception as error:
            yield f"raises {type(error).__name__}: {error}"
        else:
            yield from _differences(reading, again)


def _read_here(source: dict[str, Any], shards: list[str]) -> dict[str, list[str]]:
    return _read(load_builder(SourceConfig.model_validate(source)), shards)
