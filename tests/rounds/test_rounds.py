"""Rounds: the order of stages, going on after a kill, early stop, disk care, and what is refused beforehand."""

import json
from pathlib import Path

import polars as pl
import pytest
import yaml

from solar_rl.errors import CheckFailed, ConfigError, InputError
from solar_rl.rounds import RoundsConfig, load_rounds_config, prepare, read_state
from solar_rl.rounds.config import dotted
from solar_rl.rounds.figures import trained
from solar_rl.rounds.stages import all_stages
from solar_rl.rounds.state import STATE, Stage

PROGRESS = {0: 0.10, 1: 0.20, 2: 0.30, 3: 0.30, 4: 0.25, 5: 0.60}


def config(policy="org/policy", **fields) -> RoundsConfig:
    given = {"dataset": "phone", "policy": policy, "recipe": "phone_cpu/log_step", "rounds": 3}
    return RoundsConfig(**given | {"build": {"sampler.n": 4}} | fields)


class Pretended:
    """Does stages by noting them; dies before the one that it is told to."""

    def __init__(self, made, dies_at: str | None = None, progress=PROGRESS) -> None:
        self.made, self.dies_at, self.progress, self.done = made, dies_at, progress, []

    def __call__(self, stage: Stage) -> dict:
        if stage.name == self.dies_at:
            raise CheckFailed("killed")
        self.done.append(stage.name)
        if stage.kind == "train":
            Path(self.made.stages.policy(stage.round)).mkdir(parents=True)
            return {"updates": 16, "groups": 40, "lag_mean": 7.5, "lag_max": 15, "ratio_max": 1.2}
        if stage.kind == "build":
            return {"version": f"1.{stage.round}.0", "valid": 0.5}
        return {"progress": self.progress[stage.round], "low": 0.0, "high": 1.0}


def names(rounds: int) -> list[str]:
    return [stage.name for stage in all_stages(rounds)]


# --- the order, and going on --------------------------------------------------------------------------


def test_each_round_builds_trains_and_evaluates_and_the_start_is_evaluated_too(tmp_path):
    made = prepare(config(), tmp_path / "run")
    work = Pretended(made)
    state = made.run(do=work)
    assert work.done == names(3)
    assert work.done[:4] == ["evaluate-0", "build-1", "train-1", "evaluate-1"]
    assert state.best == 2, "the earliest of equals"
    rows = json.loads((tmp_path / "run" / STATE).read_text())["rounds"]
    assert [row["round"] for row in rows] == [0, 1, 2, 3]
    assert rows[0]["version"] is None and rows[3]["version"] == "1.3.0"
    assert [row["progress"] for row in rows] == [0.10, 0.20, 0.30, 0.30]
    assert [row["lag_max"] for row in rows] == [None, 15, 15, 15]


@pytest.mark.parametrize("dies_at", names(2))
def test_a_run_that_dies_at_any_stage_goes_on_to_the_same_record(tmp_path, dies_at):
    straight = prepare(config(rounds=2), tmp_path / "straight")
    straight.run(do=Pretended(straight))
    first = prepare(config(rounds=2), tmp_path / "killed")
    before = Pretended(first, dies_at)
    with pytest.raises(CheckFailed, match="killed"):
        first.run(do=before)
    second = prepare(config(rounds=2), tmp_path / "killed")
    after = Pretended(second)
    second.run(do=after)
    assert before.done + after.done == names(2), "nothing is done twice, nothing is left out"
    assert (tmp_path / "killed" / STATE).read_bytes() == (tmp_path / "straight" / STATE).read_bytes()


def test_more_rounds_may_be_asked_for_later_and_another_config_is_refused(tmp_path):
    for rounds in (1, 3):
        made = prepare(config(rounds=rounds), tmp_path / "run")
        work = Pretended(made)
        made.run(do=work)
    assert work.done == names(3)[4:]
    with pytest.raises(InputError, match="holds rounds of another config"):
        prepare(config(updates_per_round=4), tmp_path / "run")
    prepare(config(rounds=9, patience=2, keep_checkpoints=5, processes=1), tmp_path / "run")


def test_two_runs_in_one_folder_are_refused(tmp_path):
    made = prepare(config(), tmp_path / "run")

    def meanwhile(stage):
        made.run(do=Pretended(made))

    with pytest.raises(InputError, match="is writing here"):
        made.run(do=meanwhile)


# --- early stop, disk ---------------------------------------------------------------------------------


def test_rounds_stop_when_held_out_progress_gains_nothing_for_so_many_rounds(tmp_path):
    made = prepare(config(rounds=5, patience=2), tmp_path / "run")
    work = Pretended(made)
    state = made.run(do=work)
    assert work.done == names(4), "round 5 would have been the best, but two rounds brought nothing"
    assert state.stopped == "no gain in held-out progress for 2 rounds"
    assert read_state(tmp_path / "run").stopped == state.stopped
    again = prepare(config(rounds=5, patience=2), tmp_path / "run")
    idle = Pretended(again)
    again.run(do=idle)
    assert idle.done == []
    patient = prepare(config(rounds=5, patience=3), tmp_path / "run")
    more = Pretended(patient)
    assert patient.run(do=more).stopped is None
    assert more.done == names(5)[-3:]


def test_a_gain_below_min_gain_is_none(tmp_path):
    made = prepare(config(rounds=5, patience=1, min_gain=0.15), tmp_path / "run")
    work = Pretended(made)
    assert made.run(do=work).stopped == "no gain in held-out progress for 1 rounds"
    assert work.done == names(1)


def test_policies_of_old_rounds_go_but_the_newest_and_the_best_stay(tmp_path):
    made = prepare(config(rounds=5, keep_checkpoints=1), tmp_path / "run")
    made.run(do=Pretended(made, progress=PROGRESS | {5: 0.0}))
    left = {number for number in range(1, 6) if Path(made.stages.policy(number)).exists()}
    assert left == {2, 5}


# --- what a stage works on ----------------------------------------------------------------------------


def test_a_round_samples_with_the_policy_before_it_and_is_a_version_of_its_own(tmp_path):
    stages = prepare(config(episodes_per_round=8), tmp_path / "run").stages
    one, two = (stages.dataset_config(Stage("build", number)) for number in (1, 2))
    assert (one.version, two.version) == ("1.1.0", "1.2.0")
    assert one.sampler.policy == "org/policy"
    assert two.sampler.policy == str(tmp_path / "run" / "round-1" / "policy")
    assert one.seed != two.seed, "each round draws anew"
    assert one.source.splits == ("train",)
    assert one.source.sources["phone"].episodes == 8
    assert one.source.seed != two.source.seed, "and other episodes"


def test_held_out_steps_are_answered_greedily_by_the_rounds_own_policy(tmp_path):
    stages = prepare(
        config(evaluate={"splits": ["validation", "test"], "episodes": 3}), tmp_path / "run"
    ).stages
    held = stages.dataset_config(Stage("evaluate", 2))
    assert held.name == "phone-heldout"
    assert held.source.splits == ("validation", "test")
    assert held.source.limit == 3
    assert (held.sampler.type, held.sampler.n, held.sampler.temperature) == ("transformers", 1, 0.0)
    assert held.sampler.model == str(tmp_path / "run" / "round-2" / "policy")
    assert stages.dataset_config(Stage("evaluate", 0)).sampler.model == "org/policy"


def test_a_suite_is_played_as_recorded_steps_are_asked(tmp_path):
    played = {"suite": "phone", "suite_episodes": 3, "max_new_tokens": 9}
    made = prepare(
        config(evaluate=played, build={"sampler.n": 4, "prompt.history_steps": 2}), tmp_path / "run"
    )
    plain = prepare(config(), tmp_path / "plain")
    for with_suite, without in zip(made.plan(), plain.plan(), strict=True):
        assert ("solar-rl evaluate" in with_suite["command"]) == (with_suite["stage"] == "evaluate")
        assert "solar-rl evaluate" not in without["command"]
    command = made.plan()[3]["command"].partition(" && ")[2]
    assert "--suite phone --model" in command and f"{Path('round-1', 'policy')}" in command
    assert "--limit 3" in command
    assert "--sampler.max_new_tokens 9" in command
    assert "--prompt.history_steps 2" in command


def test_a_real_sampler_keeps_its_settings_and_gets_the_policy(tmp_path):
    block = {"sampler": {"type": "transformers", "n": 4, "max_new_tokens": 40}}
    stages = prepare(config(build=block), tmp_path / "run").stages
    built = stages.dataset_config(Stage("build", 1)).sampler
    assert (built.type, built.n, built.max_new_tokens, built.model) == ("transformers", 4, 40, "org/policy")
    held = stages.dataset_config(Stage("evaluate", 1)).sampler
    assert (held.n, held.max_new_tokens, held.temperature) == (1, 40, 0.0)


def test_the_plan_says_what_is_done_and_the_command_of_each_stage(tmp_path):
    made = prepare(config(rounds=1), tmp_path / "run")
    made.run(do=Pretended(made, progress={0: 0.1, 1: 0.1}))
    plan = prepare(config(rounds=2), tmp_path / "run").plan()
    assert [each["state"] for each in plan] == ["done"] * 4 + ["to do"] * 3
    train = next(each["command"] for each in plan if each["stage"] == "train" and each["round"] == 2)
    assert train.startswith("solar-rl train phone_cpu/log_step ")
    assert f"--model_name_or_path {tmp_path}/run/round-1/policy" in train
    assert "--max_steps 16" in train


def test_lag_and_ratios_come_from_the_training_record(tmp_path):
    log = [
        {"step": 1, "policy/ratio": 1.0, "policy/ratio_max": 1.0, "policy/sample_share": 1.0},
        {"step": 2, "policy/ratio": 1.2, "policy/ratio_max": 3.0, "policy/sample_share": 0.4},
    ]
    record = {"steps": 5, "groups": {"kept": 9}, "margin": [], "log": log}
    (tmp_path / "training.json").write_text(json.dumps(record))
    found = trained(tmp_path)
    assert (found["updates"], found["groups"], found["lag_mean"], found["lag_max"]) == (5, 9, 2.0, 4)
    assert found["ratio"] == pytest.approx(1.1)
    assert (found["ratio_max"], found["sample_share"]) == (3.0, 0.4)


# --- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"build": {"sampler.type": "openai"}}, "sampler 'openai' can't be given each round's policy"),
        ({"build": {"sampler.n": 8}}, "num_generations is 4, but the dataset's sampler says 8"),
        ({"train": {"mode": "fresh"}}, "a recipe that samples while it trains needs no rounds"),
        ({"train": {"temperature": 0.7}}, "temperature is 0.7, but the dataset's sampler says 1.0"),
        ({"build": {"sampler.n": 4, "executor.type": "slurm"}}, "rounds wait for each build"),
        ({"recipe": "phone_cpu/logstep"}, "no such recipe"),
        ({"train": {"learningrate": 1}}, "unknown key 'learningrate'"),
        ({"train": {"per_device_train_batch_size": 8}}, "rows_per_update is 16"),
        ({"processes": 2}, "rows_per_update is 16"),
        ({"evaluate": {"suite": "phone_steps"}}, "isn't played in closed loop"),
        ({"train": {"schema_version": 1}}, "for datasets of schema version 1"),
        ({"train": {"credit": "sparse"}}, "log_success needs groups of one step"),
        (
            {"build": {"sampler.n": 4, "sampler.adaptive": True}, "train": {"credit": "solar"}},
            "credit: solar needs whole trajectories",
        ),
        ({"recipe": "phone_cpu/baseline_sft", "build": {"sampler.n": 8}}, "learns recorded actions"),
        ({"evaluate": {"splits": "train"}}, "split 'train' is trained on"),
        ({"evaluate": {"splits": ["validation", "train"]}}, "split 'train' is trained on"),
        ({"train": {"split": "test"}, "evaluate": {"splits": "test"}}, "split 'test' is trained on"),
        ({"train": {"load_in_4bit": True}}, "'load_in_4bit' isn't supported"),
        ({"accelerate": "fsdp2"}, "accelerate's configs are for GPUs"),
    ],
)
def test_what_does_not_fit_is_told_before_any_work(tmp_path, fields, message):
    with pytest.raises(ConfigError, match=message):
        prepare(config(**fields), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_screenshots_larger_than_the_recipe_is_reckoned_with_are_told_before_any_work(tmp_path):
    made = config(train={"dataset_max_pixels": 50175})
    with pytest.raises(InputError, match=r"prompt.max_pixels of the dataset is 50176"):
        prepare(made, tmp_path / "run")
    prepare(config(train={"dataset_max_pixels": 50176}), tmp_path / "run")


@pytest.mark.parametrize(
    "fields",
    [
        {"build": {"sampler.n": 4, "sampler.adaptive": True}, "train": {"credit": "step_local"}},
        {"train": {"credit": "sparse", "advantage_weight": "none"}},
        {"train": {"split": "validation"}, "evaluate": {"splits": "test"}},
    ],
)
def test_what_fits_is_let_through(tmp_path, fields):
    assert prepare(config(**fields), tmp_path / "run").plan()


def test_a_policy_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InputError, match="no such policy folder"):
        prepare(config(policy="./nowhere"), tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round: 3", "unknown key 'round'.*did you mean 'rounds'"),
        ("train: {max_steps: 4}", "'max_steps' is set by each round"),
        ("evaluate: {samples: 4}", "temperature 0 gives the same answer again"),
        ("evaluate: {suite_episodes: 3}", "suite_episodes goes with a suite"),
        ("evaluate: {bucket_rule: mine}", "bucket_rule: expected one of androidcontrol"),
    ],
)
def test_a_wrong_key_is_one_clear_line(tmp_path, text, message):
    path = tmp_path / "rounds.yaml"
    path.write_text(f"dataset: phone\npolicy: org/p\nrecipe: phone_cpu/log_step\n{text}\n")
    with pytest.raises(ConfigError) as caught:
        load_rounds_config(path)
    assert pl.Series([str(caught.value).replace("\n", " ")]).str.contains(message).all(), str(caught.value)


def test_a_record_of_something_else_is_refused(tmp_path):
    (tmp_path / STATE).write_text("[]")
    with pytest.raises(InputError, match="is no record of rounds"):
        read_state(tmp_path)


def test_nested_and_dotted_fields_mean_the_same():
    nested, flat = {"sampler": {"type": "vllm", "n": 4}}, {"sampler.type": "vllm", "sampler.n": 4}
    assert dict(dotted(nested)) == dict(dotted(flat)) == {"sampler.type": '"vllm"', "sampler.n": "4"}


def test_every_shipped_rounds_recipe_is_ready_to_go(tmp_path):
    from solar_rl.shipped import shipped_path

    found = sorted(shipped_path("recipes").glob("*/rounds*.yaml"))
    assert found
    for path in found:
        assert f"solar-rl rounds {path.parent.name}/{path.stem}" in path.read_text()
        written = load_rounds_config(path)
        assert yaml.safe_load(path.read_text())["dataset"] == written.dataset
        prepare(written.model_copy(update={"policy": "org/policy"}), tmp_path / path.stem)
