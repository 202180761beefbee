"""The example of docs/builders.md builds, as it stands there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from toy_source import screenshot

from solar_rl import pipeline
from solar_rl.config import load_dataset_config

PAGE = Path(__file__).parents[2] / "docs" / "builders.md"


def test_the_example_builder_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = dict(re.findall(r"```(python|yaml)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    assert len(blocks["python"].splitlines()) < 60
    (tmp_path / "my_module.py").write_text(blocks["python"])
    (tmp_path / "dataset.yaml").write_text(blocks["yaml"])
    folder = tmp_path / "my_folder"
    folder.mkdir()
    (folder / "0.png").write_bytes(screenshot(3).data)
    tap = {"shot": "0.png", "x": 45, "y": 40, "box": [20, 30, 70, 60]}
    (folder / "a.json").write_text(json.dumps({"goal": "tap twice", "taps": [tap, tap]}))
    (folder / "b.json").write_text(json.dumps({"goal": "tap never", "taps": []}))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    built = pipeline.build(load_dataset_config("dataset.yaml"), tmp_path / "out")
    assert (built.counts["episodes"], built.counts["steps"], built.counts["images"]) == (1, 2, 1)
    assert built.rejects == {"no_steps": 1}
