"""Any number of workers, in any order, leaves the same bytes as one."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from test_pipeline import config, hashes
from toy_source import ToyBuilder

from solar_rl import pipeline
from solar_rl.builder import load_builder
from solar_rl.config import DatasetConfig
from solar_rl.episodes import checked
from solar_rl.errors import CheckFailed, InputError
from solar_rl.pipeline import rank, settle
from solar_rl.pipeline.reading import Tally, read_items
from solar_rl.pipeline.units import UnitStore
from solar_rl.sampling import make_sampler
from solar_rl.schema import Episode, Reject

HERE = Path(__file__).parent


class Many(ToyBuilder):
    """Seven shards; some ids come twice, in one shard and across shards, and some records are broken."""

    name = "many"

    def shards(self) -> list[str]:
        return [f"shard {number}" for number in range(7)]

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        number = int(shard.split()[1])
        both = list(chain(super().read("even"), super().read("odd")))
        for item in both[number * 3 : number * 3 + 5]:
            yield item
            if number % 3 == 0:
                yield Reject(shard, f"record {number}", "bad_thing", "made up")


def many(**changes: Any) -> DatasetConfig:
    source = {"builder": f"{__name__}:Many", "options": {"episodes": 24, "screenshots": False}}
    source |= {"max_reject_rate": 1.0} | changes.pop("source", {})
    return config(source=source, sampler={"n": 2}, shard_episodes=2, **changes)


def units_of(given: DatasetConfig, root: Path, world: int, order: list[int] | None = None) -> settle.Settled:
    builder, store = load_builder(given.source), UnitStore(root, given.shard_episodes)
    store.make()
    for number in order or range(world):
        rank.run_rank(
            given, builder, lambda: make_sampler(given.sampler, given.prompt), store, number, world, print
        )
    shards = builder.shards()
    assert not store.unfinished(len(shards))
    return settle.settle(given, builder, store.units(len(shards)), shards)


def straight(given: DatasetConfig) -> tuple[list[str], list[Reject]]:
    """Read the source as one loop would: the law that ranks are held to."""
    builder = load_builder(given.source)
    ids: list[str] = []
    rejects: list[Reject] = []
    tally = Tally(given.source.max_reject_rate)
    for shard in builder.shards():
        for item in read_items(given, builder, shard):
            if isinstance(item, Episode) and item.episode_id in ids:
                (item,) = checked([item], file=shard, seen=set(ids))
            if isinstance(item, Reject):
                rejects.append(item)
            else:
                ids.append(item.episode_id)
            tally.add(item)
            if len(ids) == given.source.limit:
                return ids, rejects
    return ids, rejects


@pytest.mark.parametrize("limit", [None, 1, 5, 9, 13, 23, 24, 100])
@pytest.mark.parametrize("world", [1, 2, 3, 7])
def test_ranks_settle_to_what_one_loop_reads(tmp_path: Path, limit: int | None, world: int) -> None:
    given = many(source={"limit": limit})
    ids, rejects = straight(given)
    for name, order in (("up", list(range(world))), ("down", list(reversed(range(world))))):
        found = units_of(given, tmp_path / name, world, order)
        assert found.episode_ids == ids
        assert list(found.rejects) == rejects


def test_units_that_were_lost_are_made_again_and_others_kept(tmp_path: Path) -> None:
    import shutil

    given = many()
    whole = units_of(given, tmp_path, 1)
    before = {unit.folder: (unit.folder / "unit.json").stat().st_mtime_ns for unit in whole.units}
    lost = [unit.folder for unit in whole.units if unit.shard in (2, 5)][1:]
    for folder in lost:
        shutil.rmtree(folder)
    for shard in (2, 5):
        (tmp_path / "shards-2" / f"{shard:06d}.json").unlink()
    again = units_of(given, tmp_path, 3)
    assert again.episode_ids == whole.episode_ids
    assert again.rejects == whole.rejects
    same = {f for f, t in before.items() if (f / "unit.json").stat().st_mtime_ns == t}
    assert same == before.keys() - set(lost)


def test_the_share_of_rejects_is_held_over_all_shards(tmp_path: Path) -> None:
    broken = tuple(range(0, 240, 8))
    options = {"episodes": 240, "fault": "no_steps", "broken": broken, "screenshots": False}
    given = config(options=options, sampler={"n": 1})
    with pytest.raises(CheckFailed) as one:
        straight(given)
    with pytest.raises(CheckFailed) as two:
        units_of(given, tmp_path, 2)
    assert str(one.value) == str(two.value)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "ds"
    pipeline.build(config(), out)
    return out


def test_two_workers_leave_the_bytes_of_one(alone: Path, tmp_path: Path) -> None:
    heard: list[int] = []
    pipeline.build(
        config(executor={"workers": 2}),
        tmp_path / "ds",
        progress=lambda standing: heard.append(standing.episodes),
    )
    assert hashes(alone) == hashes(tmp_path / "ds")
    assert heard[-1] == 12


def test_what_stops_a_worker_is_told_as_one_clear_line(tmp_path: Path) -> None:
    wrong = config(executor={"workers": 2}, sampler={"type": "scripted", "errors": {"nonsense": 1.0}})
    with pytest.raises(InputError, match=r"sampler\.errors\.nonsense: 'nonsense' is not known"):
        pipeline.build(wrong, tmp_path / "ds")


def test_what_stops_a_worker_ends_the_others(tmp_path: Path) -> None:
    wrong = config(executor={"workers": 2}, source={"builder": "test_workers:Wrong"})
    began = time.monotonic()
    with pytest.raises(InputError, match="its own fault"):
        pipeline.build(wrong, tmp_path / "ds")
    assert time.monotonic() - began < 60, "the other one would have read for five minutes"


def test_a_fault_that_nobody_foresaw_stands_in_the_workers_log(tmp_path: Path) -> None:
    faulty = config(executor={"workers": 2}, source={"builder": "test_workers:Faulty"})
    with pytest.raises(CheckFailed, match="a worker failed") as told:
        pipeline.build(faulty, tmp_path / "ds")
    logs = sorted(Path(str(told.value.where)).glob("*.err"))
    assert any("ZeroDivisionError" in log.read_text() for log in logs)


class Faulty(ToyBuilder):
    """Gets ready everywhere but in a worker."""

    def prepare(self, work: Path) -> None:
        if multiprocessing.parent_process() is not None:
            raise ZeroDivisionError


class Wrong(ToyBuilder):
    """Fails at its second shard, once somebody reads the first."""

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        if shard == "odd":
            time.sleep(1)
            raise InputError("its own fault")
        time.sleep(300)
        return super().read(shard)


def test_a_worker_that_is_killed_is_told_and_the_build_goes_on_after(alone: Path, tmp_path: Path) -> None:
    deadly = config(executor={"workers": 2}, source={"builder": "test_workers:Deadly"})
    with pytest.raises(CheckFailed, match="was killed"):
        pipeline.build(deadly, tmp_path / "ds")
    pipeline.build(config(executor={"workers": 2}), tmp_path / "ds")
    assert hashes(alone) == hashes(tmp_path / "ds")


def test_a_build_whose_worker_was_killed_ends(tmp_path: Path) -> None:
    script = BUILD.replace("config(", 'config(source={{"builder": "test_workers:Deadly"}}, ')
    command = [sys.executable, "-c", script.format(here=str(HERE)), str(tmp_path / "ds"), "4", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert "a worker was killed" in ended.stderr


class Deadly(ToyBuilder):
    """Kills the process that reads its second shard."""

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        if shard == "odd":
            os.kill(os.getpid(), 9)
        return super().read(shard)


BUILD = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
from test_pipeline import config
from solar_rl import pipeline
pipeline.build(config(shard_episodes=int(sys.argv[2]), executor={{"workers": int(sys.argv[3])}}), Path(sys.argv[1]))
"""


def test_thread_counts_processes_and_units_change_no_byte(alone: Path, tmp_path: Path) -> None:
    runs = {"few": ("1", "4", "1", "0"), "many": ("4", "1", "2", "1")}
    for name, (threads, size, workers, seed) in runs.items():
        environment = os.environ | {
            "POLARS_MAX_THREADS": threads,
            "OMP_NUM_THREADS": threads,
            "PYTHONHASHSEED": seed,
        }
        command = [sys.executable, "-c", BUILD.format(here=str(HERE)), str(tmp_path / name), size, workers]
        subprocess.run(command, check=True, env=environment)
        assert hashes(tmp_path / name) == hashes(alone)
