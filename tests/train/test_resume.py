"""Going on from a checkpoint: the losses of the unbroken run, or a clear refusal before the model loads."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from shutil import copytree

import psutil
import pytest
import torch
import yaml
from small_dataset import build_trainer, losses, make_dataset
from trl import GRPOConfig, GRPOTrainer, ModelConfig

from solar_rl.errors import InputError
from solar_rl.shipped import shipped_path
from solar_rl.train.arguments import RunArguments
from solar_rl.train.callbacks import RECORD
from solar_rl.train.health import COLLAPSE
from solar_rl.train.launch import make_command
from solar_rl.train.resume import IDENTITY, check_checkpoint, find_checkpoint, recipe_identity

pytestmark = pytest.mark.train

STEPS = 12
OPTIONS = {
    "credit": "solar",
    "num_generations": 4,
    "gradient_accumulation_steps": 1,
    "max_steps": STEPS,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "linear",
    "scale_rewards": "none",
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "logging_steps": 1,
    "save_strategy": "steps",
    "save_steps": 1,
    "save_total_limit": 3,
    "report_to": "none",
    "disable_tqdm": True,
    "margin_groups": 0,
    "resume_from_checkpoint": "latest",
}
WAYS = {
    "full": {},
    "lora": {"use_peft": True, "lora_r": 4, "lora_target_modules": ["q_proj", "v_proj"], "beta": 0.01},
    "anchored": {"expert_anchor": 0.2, "off_policy": "decoupled"},
}


def recipe(dataset, policy_folder, out, **options):
    out.mkdir(exist_ok=True)
    path = out / "recipe.yaml"
    settings = OPTIONS | {"dataset": str(dataset.folder), "model_name_or_path": str(policy_folder)}
    path.write_text(yaml.safe_dump(settings | {"output_dir": str(out), **options}))
    return path


def start(path, processes: int) -> subprocess.Popen:
    """Start the recipe script in a process group of its own."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    command = make_command(path, [], {"use_cpu": True}, processes)
    with (path.parent / "err").open("w") as err:
        return subprocess.Popen(
            command, cwd=path.parent, env=env, stdout=subprocess.DEVNULL, stderr=err, start_new_session=True
        )


def finish(path, processes: int) -> list[dict]:
    running = start(path, processes)
    assert running.wait(280) == 0, (path.parent / "err").read_text()[-3000:]
    return json.loads((path.parent / RECORD).read_text())["log"]


def kill_at(path, processes: int, step: int) -> None:
    """SIGKILL every process of a run once it has said that it took a step."""
    running, told = start(path, processes), path.parent / "err"
    try:
        while f"step {step}/" not in told.read_text():
            assert running.poll() is None, told.read_text()[-3000:]
            time.sleep(0.02)
    finally:
        family = [running, *psutil.Process(running.pid).children(recursive=True)]
        for each in family:  # torchrun's workers lead process groups of their own
            each.send_signal(signal.SIGKILL)
        running.wait()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    dataset, policy_folder, tmp_path, way, processes, request
):
    """Killed at a random step of the first epoch and again in the second, after 5 and after 10 groups."""
    options = WAYS[way] | {"per_device_train_batch_size": 8 // processes}
    straight = finish(recipe(dataset, policy_folder, tmp_path / "straight", **options), processes)
    broken = recipe(dataset, policy_folder, tmp_path / "broken", **options)
    draw = random.Random(request.node.name)
    first = draw.randint(2, 4)
    kill_at(broken, processes, first)
    kill_at(broken, processes, draw.randint(first + 3, STEPS - 2))
    resumed = finish(broken, processes)
    assert [entry["step"] for entry in resumed] == list(range(1, STEPS + 1))
    for one, other in zip(straight, resumed, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-6)
        assert one["grad_norm"] == pytest.approx(other["grad_norm"], abs=1e-5)


@pytest.mark.parametrize("save", [2, 6], ids=["within an epoch", "beyond an epoch"])
@pytest.mark.parametrize("way", ["full", "lora"])
def test_losses_after_a_resume_are_those_of_a_straight_run(dataset, policy_folder, tmp_path, way, save):
    options = {"max_steps": save + 2, "save_strategy": "steps", "save_steps": save}
    if way == "lora":
        options["lora"] = {"r": 4, "target_modules": ["q_proj", "v_proj"]}
    straight, *_ = build_trainer(dataset, policy_folder, tmp_path, **options)
    straight.train()
    assert (straight.state.epoch > 1) == (save == 6)
    resumed, *_ = build_trainer(dataset, policy_folder, tmp_path, **options)
    resumed.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{save}"))
    assert losses(resumed) == pytest.approx(losses(straight), abs=1e-6)
    assert len(losses(straight)) == save + 2


def test_a_finished_run_that_goes_on_takes_no_step_more(dataset, policy_folder, tmp_path):
    options = {"max_steps": 3, "save_strategy": "steps", "save_steps": 3}
    straight, *_ = build_trainer(dataset, policy_folder, tmp_path, **options)
    straight.train()
    resumed, *_ = build_trainer(dataset, policy_folder, tmp_path, **options)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert resumed.state.global_step == 3
    assert losses(resumed) == losses(straight)
    for one, two in zip(straight.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, two)


def test_after_a_collapse_the_latest_checkpoint_is_the_last_good_one(saved, tmp_path):
    copytree(saved, tmp_path / "run")
    assert find_checkpoint("latest", tmp_path / "run").name == "checkpoint-2"
    marker = {"last_good_checkpoint": str(tmp_path / "run" / "checkpoint-1")}
    (tmp_path / "run" / COLLAPSE).write_text(json.dumps(marker))
    assert find_checkpoint("latest", tmp_path / "run").name == "checkpoint-1"


def test_without_the_cure_a_resumed_qwen_would_start_from_its_first_weights(dataset, policy_folder, tmp_path):
    """transformers reads 1 of the 57 tensors back and only warns: when this fails, the cure can go."""
    options = {"max_steps": 4, "save_strategy": "steps", "save_steps": 3, "learning_rate": 1e-2}
    straight, *_ = build_trainer(dataset, policy_folder, tmp_path, **options)
    straight.train()

    def resume(cured: bool) -> float:
        trainer, *_ = build_trainer(dataset, policy_folder, tmp_path, **options)
        if not cured:
            trainer._load_from_checkpoint = lambda *a, **k: GRPOTrainer._load_from_checkpoint(
                trainer, *a, **k
            )
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
        return losses(trainer)[-1]

    assert resume(cured=True) == pytest.approx(losses(straight)[-1], abs=1e-6)
    assert resume(cured=False) != pytest.approx(losses(straight)[-1], abs=1e-3)


# --- what is refused ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(dataset, policy_folder, tmp_path_factory):
    """A run of two steps with a checkpoint after each."""
    out = tmp_path_factory.mktemp("saved") / "run"
    path = recipe(dataset, policy_folder, out, max_steps=2, per_device_train_batch_size=8)
    finish(path, 1)
    return out


@pytest.fixture
def refused(monkeypatch, policy_folder):
    """Run the script's main in this process; what it refuses must be refused before the model is looked at."""
    spec = spec_from_file_location("recipe_to_refuse", shipped_path("recipes", "grpo.py"))
    script = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, script)
    spec.loader.exec_module(script)

    def no_model(*args, **kwargs):
        raise AssertionError("the model was loaded first")

    monkeypatch.setattr(script, "load_start", no_model)

    def run(dataset, out, **options) -> str:
        path = recipe(dataset, policy_folder, out, per_device_train_batch_size=8, **options)
        monkeypatch.setattr(sys, "argv", ["grpo.py", "--config", str(path)])
        with pytest.raises(InputError) as error:
            script.main()
        assert "\n" not in str(error.value)
        return str(error.value)

    return run


def test_each_checkpoint_says_what_made_it(saved):
    identity = json.loads((saved / "checkpoint-2" / IDENTITY).read_text())
    assert identity["credit"] == "solar"
    assert identity["rows_per_update"] == 8
    assert identity["dataset"].startswith("small 1.0.0")


def test_going_on_with_another_recipe_is_refused(dataset, saved, tmp_path, refused):
    checkpoint = str(saved / "checkpoint-2")
    other = {"credit": "sparse", "learning_rate": 1e-4}
    line = refused(dataset, tmp_path, resume_from_checkpoint=checkpoint, **other)
    assert "another recipe's" in line
    assert "credit is solar there and sparse here" in line
    assert "learning_rate is 0.001 there and 0.0001 here" in line
    assert "--model_name_or_path" in line


def test_going_on_with_another_dataset_is_refused(saved, tmp_path, policy_folder, refused):
    other = make_dataset(tmp_path / "other", policy_folder, build_id="1" * 16)
    line = refused(other, tmp_path, resume_from_checkpoint=str(saved / "checkpoint-2"))
    assert "dataset is small 1.0.0 (0000000000000000) there and small 1.0.0 (1111111111111111) here" in line


def test_a_checkpoint_that_is_not_whole_is_refused_and_passed_over(dataset, saved, tmp_path, refused):
    copytree(saved, tmp_path / "run")
    (tmp_path / "run" / "checkpoint-2" / IDENTITY).unlink()
    assert find_checkpoint("latest", tmp_path / "run") == tmp_path / "run" / "checkpoint-1"
    assert find_checkpoint("latest", tmp_path) is None
    line = refused(dataset, tmp_path, resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-2"))
    assert "stopped while it was saved" in line
    assert "checkpoint-1" in line


def test_a_checkpoint_that_is_not_there_is_refused(dataset, tmp_path, refused):
    line = refused(dataset, tmp_path, resume_from_checkpoint=str(tmp_path / "none"))
    assert "no such checkpoint" in line


def test_a_checkpoint_amid_a_generation_batch_is_refused(saved, tmp_path):
    identity = json.loads((saved / "checkpoint-1" / IDENTITY).read_text())
    check_checkpoint(saved / "checkpoint-2", identity, span=8, accumulation=4)
    with pytest.raises(InputError, match=r"step 1 lies amid a generation batch.*save every 2 steps"):
        check_checkpoint(saved / "checkpoint-1", identity, span=8, accumulation=4)
    # a batch of two micro-batches can end amid an update of three
    check_checkpoint(saved / "checkpoint-2", identity, span=2, accumulation=3)
    with pytest.raises(InputError, match="save every 2 steps"):
        check_checkpoint(saved / "checkpoint-1", identity, span=2, accumulation=3)


@pytest.mark.parametrize(
    ("beta", "use_peft", "told"), [(0.0, False, False), (0.5, False, True), (0.0, True, True)]
)
def test_another_start_model_is_another_recipe_where_it_counts(tmp_path, beta, use_peft, told):
    """With a KL term it is the reference, with LoRA it is most of the weights."""
    marks = []
    for name, last in (("one", b"1"), ("same", b"1"), ("other", b"2")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(bytes(3 * 2**20) + last)
        config = GRPOConfig(output_dir=str(tmp_path), beta=beta, use_cpu=True, bf16=False)
        model = ModelConfig(model_name_or_path=str(folder), use_peft=use_peft)
        marks.append(recipe_identity(RunArguments("x"), config, model, "small 1.0.0"))
    assert marks[0] == marks[1]
    assert (marks[0] != marks[2]) is told


# --- other bad input ----------------------------------------------------------------------------------


def test_a_dataset_without_log_probs_is_refused_in_both_modes(tmp_path, refused):
    made = make_dataset(tmp_path / "dataset", None)
    for mode in ("behaviour", "decoupled"):
        line = refused(made, tmp_path, off_policy=mode)
        assert "have no token ids with a log-prob each" in line
        assert "--sampler.policy" in line


@pytest.mark.parametrize("version", [1, 99])
def test_another_schema_version_is_refused(tmp_path, refused, policy_folder, version):
    made = make_dataset(tmp_path / "dataset", policy_folder)
    manifest = made.folder / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"schema_version": version}))
    assert f"written with schema version {version}" in refused(made, tmp_path)


def test_a_limit_that_is_no_limit_is_refused(dataset, tmp_path, refused):
    assert "expected NAME=NUMBER" in refused(dataset, tmp_path, health_limits="clippd=1")
