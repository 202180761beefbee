"""A build that is killed anywhere goes on when run again and leaves the bytes of a straight run."""

from __future__ import annotations

import ast
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_pipeline import config, hashes

from solar_rl import pipeline

HERE = Path(__file__).parent
KILLED = -signal.SIGKILL

# Dies right before the N-th time that it is about to make something durable: a sync, a rename, a link, a deletion,
# or a piece of a file. What it counts goes to stderr.
BUILD = """
import os, signal, sys
sys.path.insert(0, {here!r})
from pathlib import Path
at = int(sys.argv[2])
calls = 0
def deadly(name):
    made = getattr(os, name)
    def counted(*arguments, **named):
        global calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return made(*arguments, **named)
    setattr(os, name, counted)
from test_pipeline import config
from solar_rl import pipeline
for name in ("fsync", "rename", "replace", "link", "unlink", "rmdir", "mkdir"):
    deadly(name)
changes = eval(sys.argv[3])
pipeline.build(config(options={{"episodes": 6}}, shard_episodes=2, **changes), Path(sys.argv[1]))
print(calls, file=sys.stderr)
"""
NEW = "{'shaping': {'alignment': 'paper'}}"


def build(out: Path, at: int = 0, changes: str = "{}") -> subprocess.CompletedProcess[str]:
    script = BUILD.format(here=str(HERE))
    command = [sys.executable, "-c", script, str(out), str(at), changes]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def calls(done: subprocess.CompletedProcess[str]) -> int:
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-1])


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    out = tmp_path_factory.mktemp("straight") / "ds"
    return out, calls(build(out))


@pytest.fixture(scope="module")
def reshaped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    out = tmp_path_factory.mktemp("reshaped") / "ds"
    build(out)
    return out, calls(build(out, changes=NEW))


def kill_and_go_on(out: Path, at: int, changes: str = "{}") -> None:
    done = build(out, at, changes)
    assert done.returncode in (KILLED, 0), done.stderr
    build_here(out, changes)


def build_here(out: Path, changes: str = "{}") -> None:
    """Build in this process, which saves the imports."""
    given = config(options={"episodes": 6}, shard_episodes=2, **ast.literal_eval(changes))
    pipeline.build(given, out)


@pytest.mark.parametrize("where", [0.1, 0.5, 0.8])
def test_a_killed_build_goes_on(straight: tuple[Path, int], tmp_path: Path, where: float) -> None:
    whole, total = straight
    kill_and_go_on(tmp_path / "ds", round(total * where))
    assert hashes(tmp_path / "ds") == hashes(whole)


@pytest.mark.parametrize("before_end", [0, 2, 5])
def test_a_build_that_is_killed_while_the_version_takes_its_place_goes_on(
    reshaped: tuple[Path, int], tmp_path: Path, before_end: int
) -> None:
    whole, total = reshaped
    build_here(tmp_path / "ds")
    kill_and_go_on(tmp_path / "ds", total - before_end, NEW)
    assert hashes(tmp_path / "ds") == hashes(whole)


def test_what_a_killed_process_had_not_finished_never_gets_into_a_dataset(
    straight: tuple[Path, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(stage: Path, *rest: object) -> None:
        (stage / ".rejects.jsonl.elsewhere-1.tmp").write_bytes(b"half")
        (stage / "data" / "rewards" / ".train-00000.parquet.tmp").write_bytes(b"half")
        raise RuntimeError("killed")

    with monkeypatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr(sys.modules["solar_rl.pipeline.build"], "finish", die)
        build_here(tmp_path / "ds")
    build_here(tmp_path / "ds")
    assert hashes(tmp_path / "ds") == hashes(straight[0])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fifty_kills_all_over_a_build(straight: tuple[Path, int], tmp_path: Path) -> None:
    whole, total = straight
    moments = sorted({round(1 + number * (total - 1) / 49) for number in range(50)})
    for at in moments:
        out = tmp_path / str(at) / "ds"
        kill_and_go_on(out, at)
        assert hashes(out) == hashes(whole), at


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_kill_at_every_step_of_a_new_shaping(reshaped: tuple[Path, int], tmp_path: Path) -> None:
    whole, total = reshaped
    for at in range(1, total + 1):
        out = tmp_path / str(at) / "ds"
        build_here(out)
        kill_and_go_on(out, at, NEW)
        assert hashes(out) == hashes(whole), at


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_one_build_killed_again_and_again_at_random_moments(
    straight: tuple[Path, int], tmp_path: Path
) -> None:
    whole, _ = straight
    rng = random.Random(5)
    out = tmp_path / "ds"
    script = BUILD.format(here=str(HERE))
    kills = 0
    while kills < 50 and not (out / "manifest.json").exists():
        victim = subprocess.Popen(
            [sys.executable, "-c", script, str(out), "0", "{}"], stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0.5, 3.0))
        victim.kill()
        kills += victim.wait() == KILLED
    assert build(out).returncode == 0
    assert hashes(out) == hashes(whole)


def test_a_second_build_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    from solar_rl.pipeline.work import locked

    with locked(tmp_path / "ds"):
        done = build(tmp_path / "ds")
    assert done.returncode == 1
    assert f"another build (pid {os.getpid()}) is writing here" in done.stderr
