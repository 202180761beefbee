"""What is written of a lab run: every figure from its runs, nothing claimed that isn't there."""

from types import SimpleNamespace

import pytest
from made_up import finished_lab

from solar_rl.errors import InputError
from solar_rl.lab.folder import Folder, read_json, write_json
from solar_rl.lab.plan import load_plan
from solar_rl.lab.results import write_results

PROGRESS = {"sparse": 0.4, "step_local": 0.4, "sft": 0.4, "step_local_anchor": 0.4, "log_step": 0.5}


@pytest.fixture
def counted(monkeypatch):
    """A dataset's manifest, of which the counts alone are read."""
    monkeypatch.setattr(
        "solar_rl.store.manifest.read_manifest", lambda folder: SimpleNamespace(counts={"steps": 321})
    )


def test_results_hold_the_figures_and_the_claim(tmp_path, counted):
    plan, folder = finished_lab(tmp_path / "lab", PROGRESS)
    text = write_results(plan, folder, tmp_path / "docs" / "results.md", "solar-rl lab quick").read_text()
    assert "every interval above 0: log_step." in text
    assert "**+0.100 [+0.100, +0.100]**" in text
    assert "`solar-rl lab quick`" in text
    assert "0.58 to 0.60" in text  # the paper's own, in a column that says so
    assert "paper: High Super Long" in text
    assert (tmp_path / "docs" / "images" / "lab_quick_forest.svg").is_file()
    assert (tmp_path / "docs" / "images" / "lab_quick_curves.svg").is_file()


def test_no_claim_where_nothing_wins(tmp_path, counted):
    plan, folder = finished_lab(tmp_path / "lab", PROGRESS | {"log_step": 0.4})
    text = write_results(plan, folder, tmp_path / "results.md", "x").read_text()
    assert "every interval above 0: none." in text


def test_an_unfinished_lab_says_so(tmp_path, counted):
    plan, folder = finished_lab(tmp_path / "lab", PROGRESS)
    folder.result("sft", 1).unlink()
    text = write_results(plan, folder, tmp_path / "results.md", "x").read_text()
    assert "Unfinished: 9 of 10 runs" in text


def test_a_section_is_replaced_and_the_rest_stays(tmp_path, counted):
    plan, folder = finished_lab(tmp_path / "lab", PROGRESS)
    out = tmp_path / "results.md"
    out.write_text("# Results\n\nwritten by hand\n")
    once = write_results(plan, folder, out, "first command").read_text()
    twice = write_results(plan, folder, out, "second command").read_text()
    assert once.startswith("# Results\n\nwritten by hand")
    assert "first command" not in twice
    assert twice.count("<!-- lab quick -->") == 1


def test_no_results_without_runs(tmp_path):
    with pytest.raises(InputError, match="no run is finished"):
        write_results(load_plan("quick"), Folder(tmp_path), tmp_path / "results.md", "x")


def test_a_plan_without_all_baselines_claims_nothing(tmp_path, counted):
    plan, folder = finished_lab(tmp_path / "lab", {"sft": 0.2, "log_step": 0.5})
    text = write_results(plan, folder, tmp_path / "results.md", "x").read_text()
    assert "No claim can be made here: sparse success, step_local, step_local + expert anchor not run" in text


def test_a_sweep_is_compared_with_the_plan_that_it_shares(tmp_path, counted):
    finished_lab(tmp_path / "lab", {"sft": 0.2, "log_step": 0.3})
    plan, folder = finished_lab(tmp_path / "sweep", {"log_step": 0.5})
    sweep = plan.model_copy(update={"shares": "lab", "name": "sweep"})
    text = write_results(sweep, folder, tmp_path / "results.md", "x").read_text()
    assert "less the same arm of `lab`" in text
    assert "| log_step | **+0.200 [+0.200, +0.200]** |" in text


def test_a_sweep_is_not_compared_with_runs_of_another_length(tmp_path, counted):
    _, lab = finished_lab(tmp_path / "lab", {"sft": 0.2, "log_step": 0.3})
    for seed in (0, 1):
        write_json(lab.result("log_step", seed), read_json(lab.result("log_step", seed)) | {"updates": 400})
    plan, folder = finished_lab(tmp_path / "sweep", {"log_step": 0.5})
    sweep = plan.model_copy(update={"shares": "lab", "name": "sweep"})
    text = write_results(sweep, folder, tmp_path / "results.md", "x").read_text()
    assert "No arm of this plan was run in `lab` with one of its seeds and as many updates." in text


def test_each_arm_is_compared_with_the_start(tmp_path, counted):
    plan, folder = finished_lab(tmp_path / "lab", PROGRESS)
    text = write_results(plan, folder, tmp_path / "results.md", "x").read_text()
    assert "| arm | less the start | less sparse success |" in text
    assert "| log_step | **+0.300 [+0.300, +0.300]** | **+0.100 [+0.100, +0.100]** |" in text
