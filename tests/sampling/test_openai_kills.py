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

import pytest
from chat_server import ChatServer, serving

IN_FLIGHT, AT_ONCE = 4, 8
"""Calls at once, and requests that may be answered but not yet kept when a kill comes: twice as many."""
EPISODES = 5
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


def killed_again_and_again(kills: int, folder: Path) -> None:
    killer, rng = Killer(), random.Random(11)
    server = ChatServer(seen=killer.seen)
    with serving(server):
        config = folder / "dataset.yaml"
        config.write_text(CONFIG % (EPISODES, json.dumps(server.url), IN_FLIGHT))

        def command(name: str) -> list[str]:
            words = ["build", config, "--out", folder / name, "--cache", folder / f"{name}-cache"]
            return [sys.executable, "-m", "solar_rl.cli", *map(str, words)]

        assert killer.run(command("straight"), after=-1) == 0
        steps = Counter(server.counts)
        assert set(steps.values()) == {1}
        server.counts.clear()
        done = 0
        for _ in range(kills):
            if killer.run(command("ds"), after=rng.randint(1, 4)) == 0:
                break
            done += 1
        assert killer.run(command("ds"), after=-1) == 0
    assert server.counts.keys() == steps.keys(), "the same requests, each of them"
    extra = sum(server.counts.values()) - len(steps)
    print(f"{done} kills, {len(steps)} steps, {sum(server.counts.values())} calls: {extra} asked again")
    assert done >= min(kills, 2)
    assert extra <= done * AT_ONCE
    assert hashes(folder / "ds") == hashes(folder / "straight")
    written = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not [data for data in written if KEY.encode() in data]


def test_two_kills(tmp_path):
    killed_again_and_again(2, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_twenty_kills(tmp_path):
    killed_again_and_again(20, tmp_path)
