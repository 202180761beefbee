"""A build whose answers come from a server is killed at random moments: nothing is lost, doubled or asked for nothing."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from chat_server import ChatServer, serving

IN_FLIGHT, AT_ONCE = 4, 8
"""Calls at once, and requests that may be answered but not yet kept when a kill comes: twice as many."""
EPISODES = 8
CONFIG = """
name: phone
source:
  builder: phone
  options: {episodes: %d, buckets: {short: 1.0, long: 0, super_long: 0}}
prompt: {format: json, observation: text}
shard_episodes: 2
sampler: {type: openai, model: m, n: 4, endpoints: [%s], in_flight: %d, key_env: SECRET_KEY}
"""
KEY = "sk-never-to-be-written"


class Killer:
    """Kills a build when the server has received so many calls."""

    def __init__(self) -> None:
        self.victim: subprocess.Popen[bytes] | None = None
        self.left, self.lock = 0, threading.Lock()

    def run(self, command: list[str], after: int) -> int:
        with self.lock:
            self.left = after
            self.victim = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={"SECRET_KEY": KEY}
            )
        _, said = self.victim.communicate()
        assert self.victim.returncode in (-9, 0), said.decode()
        return self.victim.returncode

    def seen(self, body: object) -> None:
        with self.lock:
            self.left -= 1
            if self.left == 0 and self.victim is not None:
                self.victim.kill()


def hashes(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def command(folder: Path, name: str) -> list[str]:
    words = ["build", folder / "dataset.yaml", "--out", folder / name, "--cache", folder / f"{name}-cache"]
    return [sys.executable, "-m", "solar_rl.cli", *map(str, words)]


MANY = pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])


@pytest.mark.parametrize("kills", [2, MANY])
def test_kills_at_random_moments_lose_nothing_double_nothing_and_cost_few_calls(tmp_path, kills):
    killer, rng = Killer(), random.Random(11)
    server = ChatServer(seen=killer.seen)
    with serving(server):
        (tmp_path / "dataset.yaml").write_text(CONFIG % (EPISODES, json.dumps(server.url), IN_FLIGHT))
        assert killer.run(command(tmp_path, "straight"), after=-1) == 0
        steps = Counter(server.counts)
        assert set(steps.values()) == {1}
        server.counts.clear()
        done = 0
        while done < kills and killer.run(command(tmp_path, "ds"), after=rng.randint(1, 4)) != 0:
            done += 1
        assert killer.run(command(tmp_path, "ds"), after=-1) == 0
    assert server.counts.keys() == steps.keys(), "the same requests, each of them"
    extra = sum(server.counts.values()) - len(steps)
    print(f"{done} kills, {len(steps)} steps, {sum(server.counts.values())} calls: {extra} asked again")
    assert done == kills
    assert extra <= done * AT_ONCE
    assert hashes(tmp_path / "ds") == hashes(tmp_path / "straight")
    rows = pl.read_parquet(tmp_path / "ds" / "data" / "candidates" / "*.parquet")
    assert not rows.select("episode_id", "step_index", "candidate_index").is_duplicated().any()
    assert rows.height == 4 * len(steps)


def test_neither_key_nor_address_is_written_anywhere(tmp_path):
    killer, server = Killer(), ChatServer()
    with serving(server):
        (tmp_path / "dataset.yaml").write_text(CONFIG % (1, json.dumps(server.url), IN_FLIGHT))
        assert killer.run(command(tmp_path, "ds"), after=-1) == 0
    written = [path.read_bytes() for name in ("ds", "ds-cache") for path in (tmp_path / name).rglob("*.*")]
    assert len(written) > 8
    address = server.url.removeprefix("http://").removesuffix("/v1").encode()
    assert not [data for data in written if KEY.encode() in data or address in data]
