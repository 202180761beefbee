"""A full disk, a read-only folder, a source that vanishes: one clear line, and the build goes on afterwards."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from test_pipeline import config, hashes

from solar_rl import pipeline
from solar_rl.actions import Action
from solar_rl.builder import Builder
from solar_rl.errors import InputError
from solar_rl.pipeline.work import locked
from solar_rl.schema import Episode, Reject, Step

HERE = Path(__file__).parent
# Whatever file grows beyond a limit fails, as on a full disk (RLIMIT_FSIZE; its signal is ignored).
FULL = """
import resource, signal, sys
sys.path.insert(0, {here!r})
from solar_rl.cli import main
import test_pipeline, toy_source
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
main(["build", sys.argv[3], "--out", sys.argv[1]])
"""
CONFIG = """
name: toy
shard_episodes: 3
source: {builder: "toy_source:ToyBuilder"}
"""


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("straight") / "ds"
    pipeline.build(config(), out)
    return out


@pytest.mark.parametrize("limit", [300, 2_000, 8_000, 20_000])
def test_a_full_disk_is_one_clear_line_and_the_build_goes_on_after(
    straight: Path, tmp_path: Path, limit: int
) -> None:
    (tmp_path / "toy.yaml").write_text(CONFIG)
    command = [sys.executable, "-c", FULL.format(here=str(HERE)), "ds", str(limit), "toy.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "run the same command again" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "ds" / "manifest.json").exists()
    pipeline.build(config(), tmp_path / "ds")
    assert hashes(tmp_path / "ds") == hashes(straight)


@pytest.mark.parametrize("at", [1, 9, 25, 60])
def test_no_space_left_at_a_sync_is_told_as_that(
    straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    real, calls = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"No space left on device.*goes on where it stopped"):
        pipeline.build(config(), tmp_path / "ds")
    monkeypatch.undo()
    monkeypatch.syspath_prepend(HERE)
    pipeline.build(config(), tmp_path / "ds")
    assert hashes(tmp_path / "ds") == hashes(straight)


def test_a_read_only_folder_is_told_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder)
    with pytest.raises(InputError, match="can't be written to"):
        pipeline.build(config(), folder / "ds")
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux")
def test_a_place_where_no_lock_can_be_made_is_told_as_that() -> None:
    with pytest.raises(InputError, match="can't be written to"), locked(Path("/proc/none-of-ours")):
        pass


def test_a_broken_manifest_in_the_folder_says_how_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text("{")
    with pytest.raises(InputError, match="no JSON") as caught:
        pipeline.build(config(), tmp_path / "out")
    assert "delete it and build again" in str(caught.value)
    (tmp_path / "out" / "manifest.json").unlink()
    assert pipeline.build(config(), tmp_path / "out").changed


def test_a_source_file_that_vanished_is_told_and_the_build_goes_on_when_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.json").write_text(json.dumps({"id": name}))
    given = config(source={"builder": f"{__name__}:Files", "path": str(folder)}, shard_episodes=1)
    pipeline.build(given, tmp_path / "straight")
    hidden = tmp_path / "b.json"
    Files.before_b = lambda: (folder / "b.json").rename(hidden)
    with pytest.raises(InputError, match=r"b\.json"):
        pipeline.build(given, tmp_path / "ds")
    Files.before_b = None
    with pytest.raises(InputError, match=r"b\.json"):
        pipeline.build(given, tmp_path / "ds")
    hidden.rename(folder / "b.json")
    pipeline.build(given, tmp_path / "ds")
    assert hashes(tmp_path / "ds") == hashes(tmp_path / "straight")


class Files(Builder):
    """One episode a file."""

    name = "files"
    before_b: Callable[[], object] | None = None

    def shards(self) -> list[str]:
        return ["a", "b", "c"]

    def source_files(self) -> list[Path]:
        return [self.path / f"{shard}.json" for shard in self.shards()]

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        if shard == "b" and Files.before_b is not None:
            Files.before_b()
        (self.path / f"{shard}.json").read_text()
        yield Episode(shard, "files", "android", f"do {shard}", (Step(0, Action("wait"), 90, 160),))
