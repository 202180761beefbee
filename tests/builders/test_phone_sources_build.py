"""The shipped dataset.yaml of each phone source builds a sound dataset, and each builder keeps the contract."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import aitw_writer
import aitz_writer
import amex_writer
import gui_odyssey_writer
import pytest

from solar_rl.cli import main
from solar_rl.config import SourceConfig
from solar_rl.conformance import conform
from solar_rl.store.dataset import open_dataset


def odyssey(root: Path) -> Path:
    click, done = gui_odyssey_writer.CLICK, gui_odyssey_writer.DONE
    keys = [{"action": "CLICK", "info": f"KEY_{key}"} for key in ("HOME", "BACK", "APPSELECT")]
    text, swipe = {"action": "TEXT", "info": "cats"}, {"action": "SCROLL", "info": [[500, 750], [500, 250]]}
    press, giving_up = {**click, "action": "LONG_PRESS"}, {"action": "INCOMPLETE", "ps": "no such app"}
    made = [
        gui_odyssey_writer.annotation(click, *keys, text, swipe, press, done, episode="01"),
        gui_odyssey_writer.annotation(click, giving_up, episode="02"),
    ]
    return gui_odyssey_writer.write(root, made, missing=["01_1.png"])


def aitz(root: Path) -> Path:
    kinds = [{"result_action_type": kind} for kind in (5, 6, 7, 10)]
    text, swipe = (
        {"result_action_type": 3, "result_action_text": "cats"},
        aitz_writer.dual((0.8, 0.5), (0.2, 0.5)),
    )
    aitz_writer.write(root, aitz_writer.steps(aitz_writer.TAP, text, swipe, *kinds))
    rows = aitz_writer.steps(
        {**aitz_writer.TAP, "result_action_type": 0}, {"result_action_type": 11}, episode="GENERAL-6"
    )
    return aitz_writer.write(root, rows, episode="GENERAL-6")


def aitw(root: Path) -> Path:
    kinds = [{"results/action_type": [kind]} for kind in (5, 6, 7, 10)]
    text = {"results/action_type": [3], "results/type_action": ["cats"]}
    swipe = {**aitw_writer.TAP, "results/yx_lift": [0.1, 0.25]}
    first = aitw_writer.episode("1", aitw_writer.TAP, text, swipe, *kinds)
    return aitw_writer.write(root, [*first, *aitw_writer.episode("2", {"results/action_type": [11]})])


def amex(root: Path) -> Path:
    buttons = [{"action": f"PRESS_{name}"} for name in ("BACK", "HOME", "ENTER")]
    swipe = {"action": "SWIPE", "touch_coord": [54, 180], "lift_coord": [54, 60]}
    text = {"action": "TYPE", "type_text": "cats"}
    first = amex_writer.instruction(amex_writer.TAP, swipe, text, *buttons, amex_writer.DONE)
    return amex_writer.write(
        root, first, amex_writer.instruction({"action": "TASK_IMPOSSIBLE"}, episode="f00")
    )


def solar(*words: object) -> str:
    """Run the command line in this process and return what it printed."""
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    assert not stop.value.code, out.getvalue()
    return out.getvalue()


SAMPLES = {"gui_odyssey": odyssey, "aitz": aitz, "aitw": aitw, "amex": amex}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_shipped_config_builds_every_episode_of_a_sample(tmp_path, name):
    root, out = SAMPLES[name](tmp_path / "source"), tmp_path / "out"
    printed = solar("build", name, "--source.path", root, "--out", out, "--sampler.n", 2)
    assert "2 episodes" in printed and "rejected" not in printed
    assert "checks passed" in solar("validate", out, "--all")
    dataset = open_dataset(out)
    episodes, steps = (t.collect(engine="in-memory").to_dicts() for t in (dataset.episodes, dataset.steps))
    assert {e["source"] for e in episodes} == {name} and len(episodes) == 2
    assert {True, False} == {e["recorded_success"] for e in episodes}
    shown = [s["image_sha256"] is not None for s in steps]
    assert shown.count(False) == (1 if name == "gui_odyssey" else 0)
    scrolls = [s for s in steps if s["action_type"] == "scroll"]
    assert [s["direction"] for s in scrolls] == ["down"] and scrolls[0]["y"] > scrolls[0]["y2"]


def test_stats_and_report_take_a_dataset_that_lacks_a_screenshot(tmp_path):
    out = tmp_path / "out"
    solar(
        "build", "gui_odyssey", "--source.path", odyssey(tmp_path / "source"), "--out", out, "--sampler.n", 2
    )
    assert "with_screenshot" in solar("stats", out, "--json")
    solar("report", out)
    assert (out / "report.html").is_file()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_builder_keeps_the_contract(tmp_path, name):
    findings = list(conform(SourceConfig(builder=name, path=str(SAMPLES[name](tmp_path)))))
    assert findings and not [f for f in findings if f.verdict == "fail"]


@pytest.mark.parametrize("name", SAMPLES)
def test_inspect_tells_the_format(tmp_path, name):
    assert f"builder: {name}" in solar("inspect", SAMPLES[name](tmp_path))


@pytest.mark.real_data
def test_files_of_the_real_shape_build(shared, tmp_path):
    out, path, splits = tmp_path / "out", shared / "guiodyssey_synthetic", json.dumps(["train", "test"])
    printed = solar("build", "gui_odyssey", "--source.path", path, "--source.splits", splits, "--out", out)
    assert "3 episodes" in printed and "rejected" not in printed
    assert "checks passed" in solar("validate", out)
