"""Desktop, web, rollout and TFRecord builders keep the contract, on samples that the tests' writers make."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from android_control_writer import Recording, notes_screen, png, write_shard
from desktop_writer import GOOD, PLAN, agentnet, mouse, write_opencua, write_session
from parquet_writer import gui_r1_row, mind2web_row, write_parquet
from test_fuzz_more_sources import CODES, ROLLOUT, TASK

from solar_rl.config import SourceConfig
from solar_rl.conformance import conform


def android_control(root: Path) -> None:
    write_shard(root / "android_control-00000-of-00002", [Recording(episode_id=1), Recording(episode_id=2)])
    write_shard(root / "android_control-00001-of-00002", [Recording(episode_id=3)])


def opencua(root: Path) -> None:
    write_opencua(root, agentnet(*CODES), agentnet(*CODES, task_id="t2"))
    (root / "task.json").write_text(json.dumps(TASK))


def screenagent(root: Path) -> None:
    for name in "ab":
        write_session(root / name, [PLAN], [mouse("click", (54, 60))], [mouse("scroll_down", (5, 6)), GOOD])


def android_world(root: Path) -> None:
    (root / "0.png").write_bytes(png())
    (root / "0.pb").write_bytes(notes_screen())
    rows = [ROLLOUT | {"episode_id": name} for name in "abc"]
    (root / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def gui_r1(root: Path) -> None:
    write_parquet(root / "train.parquet", *(gui_r1_row() for _ in range(3)))


def mind2web(root: Path) -> None:
    write_parquet(root / "train-0.parquet", *(mind2web_row("t", index) for index in range(3)))


SAMPLES = {
    make.__name__: make for make in (android_control, opencua, screenagent, android_world, gui_r1, mind2web)
}


@pytest.mark.parametrize("builder", SAMPLES)
def test_it_conforms(builder: str, tmp_path: Path) -> None:
    make: Callable[[Path], None] = SAMPLES[builder]
    root = tmp_path / builder
    root.mkdir()
    make(root)
    found = list(conform(SourceConfig(builder=builder, path=str(root))))
    assert [f"{each.name}: {each.detail}" for each in found if each.verdict == "fail"] == []


@pytest.mark.real_data
@pytest.mark.parametrize("builder", ["opencua", "screenagent"])
def test_it_conforms_on_real_files(builder: str, shared: Path) -> None:
    found = list(conform(SourceConfig(builder=builder, path=str(shared / builder))))
    assert [f"{each.name}: {each.detail}" for each in found if each.verdict == "fail"] == []
