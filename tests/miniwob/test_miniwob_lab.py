"""A lab on MiniWoB++'s pages, as small as it gets: the machinery, not the science."""

import pytest

from solar_rl.lab import load_plan
from solar_rl.lab.lab import run_lab
from solar_rl.lab.results import write_results

pytestmark = [pytest.mark.browser, pytest.mark.train]

TINY = {
    "options": "{text: list, pictures: false, tasks: [click-button, enter-text]}",
    "workers": "1",
    "seeds": "[0]",
    "arms": "[sft]",
    "demonstrations": "4",
    "sampled": "4",
    "n": "2",
    "size": "{width: 32, layers: 1, heads: 2, inner: 32, vocabulary: 500}",
    "warm.updates": "2",
    "warm.every": "1",
    "train.rows": "4",
    "train.updates": "2",
    "train.checkpoints": "1",
    "measure.episodes": "4",
    "measure.closed": "{each: 2}",
    "measure.max_steps": "{each: 2}",
}


def test_a_lab_on_web_pages_plays_every_task_and_writes_what_it_found(a_browser, tmp_path):
    plan = load_plan("full_miniwob", TINY)
    folder = run_lab(plan, tmp_path / "run")
    result = folder.read("runs/sft-0/result.json")
    played = {(one["task"], one["seed"]) for one in result["closed_loop"]}
    assert played == {(task, seed) for task in ("click-button", "enter-text") for seed in (0, 1)}
    assert {one["progress"] for one in result["closed_loop"]} == {None}  # a page tells success alone
    text = write_results(plan, folder, tmp_path / "results.md", "test").read_text()
    assert "In closed loop 4 held-out episodes" in text
    assert "The primary metric, written down before any run: success in closed loop, all." in text
    assert "Beside the paper's ablation" not in text
