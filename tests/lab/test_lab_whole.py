"""A whole lab run, as small as it gets: the machinery, not the science."""

import shutil

import pytest

from solar_rl.errors import InputError
from solar_rl.lab import load_plan
from solar_rl.lab.courses import follow, training_keys
from solar_rl.lab.folder import Folder, read_json
from solar_rl.lab.lab import run_lab
from solar_rl.lab.piloting import pilot
from solar_rl.lab.preparing import sampled_config
from solar_rl.lab.results import write_results
from solar_rl.lab.running import left
from solar_rl.lab.training import train
from solar_rl.pipeline import build
from solar_rl.store.dataset import open_dataset
from solar_rl.store.manifest import read_manifest
from solar_rl.validate import validate

pytestmark = pytest.mark.train

TINY = {
    "workers": "1",
    "seeds": "[0]",
    "arms": "[step_local_anchor, solar_paper, sft]",
    "demonstrations": "12",
    "sampled": "4",
    "n": "2",
    "size": "{width: 32, layers: 1, heads: 2, inner: 32, vocabulary: 500}",
    "warm.updates": "2",
    "warm.every": "1",
    "train.rows": "4",
    "train.updates": "2",
    "measure.episodes": "2",
    "measure.unseen": "1",
    "measure.closed": "{short: 1, super_long: 1}",
    "measure.max_steps": "{short: 2, super_long: 3}",
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    plan, root = load_plan("quick", TINY), tmp_path_factory.mktemp("lab") / "run"
    ticks: list[tuple[int, int]] = []
    folder = run_lab(plan, root, tick=lambda done, total: ticks.append((done, total)))
    return plan, folder, ticks


def test_every_run_has_its_curve_and_its_episodes(lab):
    plan, folder, ticks = lab
    assert left(plan, folder) == []
    assert ticks[-1] == (3, 3)
    result = folder.read("runs/sft-0/result.json")
    assert [point["updates"] for point in result["curve"]] == [1, 2]
    assert {one["task"] for one in result["closed_loop"]} == {"short", "super_long"}
    assert all(one["steps"] <= 3 for one in result["closed_loop"])
    assert set(result["unseen"]) == {"unseen_apps", "unseen_templates"}


@pytest.mark.parametrize("workers", [1, 2])
def test_the_pilot_sets_the_updates_once_and_within_bounds(lab, tmp_path, workers):
    plan, folder, _ = lab
    train = plan.train.model_copy(update={"updates": None, "least": 2, "most": 4, "checkpoints": 2})
    timed, said = plan.model_copy(update={"train": train, "minutes": 0.01, "workers": workers}), []
    place = Folder(tmp_path / "timed")
    shutil.copytree(folder.root, place.root)
    assert pilot(timed, place, 0.0, said.append) == 2, "no time is left for more than the least"
    found = place.read("pilot.json")
    assert found["fitting"] < 2 and min(found["seconds"].values()) >= 0
    assert found["seconds"]["closed"] > 0 and len(said) == 1
    assert not list(place.root.glob("pilot-*")), "what was timed is gone"
    assert pilot(timed, place, 0.0, said.append) == 2 and len(said) == 1, "it is timed once"


def test_the_versions_share_their_candidates_and_obey_every_law(lab):
    _, folder, _ = lab
    tables = [
        open_dataset(folder.dataset(name)).table("candidates").collect(engine="in-memory")
        for name in ("segments", "paper", "prefix_mean")
    ]
    assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])
    assert [check for check in validate(folder.dataset("paper")) if not check.passed] == []
    assert read_manifest(folder.dataset("paper")).config["shaping"]["alignment"] == "paper"


def test_the_labs_policy_is_no_larger_than_half_a_million_weights(tmp_path):
    from transformers import AutoModelForCausalLM

    from solar_rl.train.tiny_text import Size, make_text_policy

    policy = make_text_policy(tmp_path, ["Turn on Wi-Fi."] * 9, size=Size(**load_plan("lab").size))
    assert sum(p.numel() for p in AutoModelForCausalLM.from_pretrained(policy).parameters()) <= 500_000


def test_what_was_killed_is_done_again_and_nothing_else(lab):
    plan, folder, _ = lab
    before = folder.result("sft", 0).stat().st_mtime_ns
    shutil.rmtree(folder.run("solar_paper", 0))
    said: list[str] = []
    run_lab(plan, folder.root, say=said.append)
    assert said == ["1 of 3 runs to do, 2 updates each"]
    assert folder.result("sft", 0).stat().st_mtime_ns == before


def test_results_can_be_written_from_it(lab, tmp_path):
    plan, folder, _ = lab
    text = write_results(plan, folder, tmp_path / "results.md", "solar-rl lab quick").read_text()
    assert "## Lab run `quick`" in text
    assert "Unfinished" not in text


def test_another_plan_can_not_use_the_folder(lab):
    plan, folder, _ = lab
    with pytest.raises(InputError, match="another plan: n differ"):
        run_lab(plan.model_copy(update={"n": 3}), folder.root)


def test_two_stages_share_the_updates(lab):
    plan, folder, _ = lab
    points = follow(plan, folder, "two_stage_log_step", 0, 3)
    # with random weights either stage may have nothing to compare: the policy then stays what it was
    assert points[-1].updates == 3
    assert (points[-1].policy / "config.json").is_file()


def test_each_round_samples_with_the_newest_policy_and_leaves_only_what_is_measured(lab):
    plan, folder, _ = lab
    rounds = plan.model_copy(update={"rounds": 1})
    points = follow(rounds, folder, "step_local_anchor", 5, 2)
    assert [point.updates for point in points] == [1, 2]
    assert (
        len({point.policy for point in points}) == 2
    )  # the recorded action alone teaches: both rounds trained
    assert not list(folder.run("step_local_anchor", 5).glob("round-*"))


def test_more_sequences_make_up_for_those_that_truncation_takes_out_of_play(lab):
    plan, folder, _ = lab
    kept = plan.model_copy(update={"kept": True})
    everything = training_keys(kept, folder, "step_local_anchor", 0, 2, folder.root)["rows_per_update"]
    assert everything >= plan.train.rows
    assert everything % plan.n == 0


@pytest.mark.parametrize("change", [{"history": "candidate"}, {"adaptive": True}, {"thoughts": True}])
def test_other_ways_to_sample_are_built_and_trained_on(lab, tmp_path, change):
    plan, folder, _ = lab
    other = plan.model_copy(update=change)
    config = sampled_config(other, folder.start, "segments", 2)
    build(config, tmp_path / "sampled")
    found = read_manifest(tmp_path / "sampled").config
    assert found["prompt"]["history"] == other.history
    assert found["sampler"]["adaptive"] is other.adaptive
    assert found["prompt"]["history_thoughts"] is other.thoughts
    keys = training_keys(other, folder, "step_local_anchor", 0, 1, tmp_path / "policy")
    keys["dataset"] = str(tmp_path / "sampled")
    assert train("phone_cpu/baseline_step_local_anchor", keys, tmp_path / "log")


def test_a_lab_with_screenshots_trains_the_tiny_qwen2_5_vl(tmp_path):
    given = {
        "observation": "image",
        "options.pictures": "true",
        "warm.prompt_weight": "0",
        "prompt_tokens": "1024",
    }
    plan = load_plan("quick", TINY | given)
    folder = run_lab(plan, tmp_path / "run")
    assert not left(plan, folder)
    assert read_json(folder.start / "config.json")["model_type"] == "qwen2_5_vl"
    assert read_manifest(folder.dataset("segments")).config["prompt"]["observation"] == "image"
    text = write_results(plan, folder, tmp_path / "results.md", "a test").read_text()
    assert "Phone with screenshots" in text
