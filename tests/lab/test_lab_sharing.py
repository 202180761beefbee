"""A sweep goes on from another plan: its start, as many updates, and the runs that both ask for."""

import pytest
from made_up import finished_lab

from solar_rl.errors import InputError
from solar_rl.lab.folder import Folder
from solar_rl.lab.piloting import pilot
from solar_rl.lab.sharing import CONFIG, FREE, take_over_runs, take_over_start


@pytest.fixture
def shared(tmp_path):
    """A finished plan of two arms, and a sweep of it with one arm more."""
    plan, folder = finished_lab(tmp_path / "quick", {"sft": 0.2, "log_step": 0.3})
    folder.start.mkdir()
    (folder.start / "config.json").write_text("{}")
    plan = plan.model_copy(update={"train": plan.train.model_copy(update={"updates": None})})
    folder.write(CONFIG, plan.model_dump(mode="json", exclude=FREE))
    arms = {"arms": ("sft", "log_step", "log_step_anchor"), "about": "one arm more"}
    return folder, plan.model_copy(update={"shares": "quick", "name": "sweep", **arms})


def never(line):
    raise AssertionError(line)


def test_a_sweep_has_the_start_and_the_updates_of_the_plan_that_it_shares(shared, tmp_path):
    other, sweep = shared
    folder = Folder(tmp_path / "sweep")
    take_over_start(sweep, folder)
    assert (folder.start / "config.json").is_file()
    assert folder.read("start.json") == other.read("start.json")
    with pytest.raises(InputError, match="how many updates"):
        pilot(sweep, folder, 0.0, never)
    other.write("pilot.json", {"updates": 20})
    assert pilot(sweep, folder, 0.0, never) == 20


def test_runs_that_both_ask_for_are_not_done_again(shared, tmp_path):
    other, sweep = shared
    folder = Folder(tmp_path / "sweep")
    assert take_over_runs(sweep, folder, 20) == 4
    assert folder.result("sft", 1).read_bytes() == other.result("sft", 1).read_bytes()
    assert take_over_runs(sweep, folder, 20) == 0


@pytest.mark.parametrize(
    ("change", "updates"),
    [({"history": "candidate"}, 20), ({"sampled": 99}, 20), ({"rounds": 4}, 20), ({}, 400)],
)
def test_runs_of_another_question_or_length_are_not_taken_over(shared, tmp_path, change, updates):
    _, sweep = shared
    folder = Folder(tmp_path / "sweep")
    assert take_over_runs(sweep.model_copy(update=change), folder, updates) == 0
    assert not folder.result("sft", 0).exists()
