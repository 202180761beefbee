"""The SFT baseline: the same prompts, pixels and actions as the GRPO recipes, the loss on the answer alone."""

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest
import torch
import yaml
from small_dataset import LABELS, PROMPT
from trl import SFTConfig

from solar_rl.errors import InputError
from solar_rl.formats import get_format
from solar_rl.policy import answer_ids, encode, load_policy
from solar_rl.shipped import shipped_path
from solar_rl.train.callbacks import RECORD
from solar_rl.train.launch import launch
from solar_rl.train.saving import ADAPTER
from solar_rl.train.sft import DemonstrationTrainer, load_demonstrations

pytestmark = pytest.mark.train

OPTIONS = {
    "per_device_train_batch_size": 3,
    "max_length": None,
    "learning_rate": 3e-3,
    "lr_scheduler_type": "constant",
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "logging_steps": 1,
    "save_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
}


@pytest.fixture(scope="module")
def sft():
    spec = spec_from_file_location("recipe_sft", shipped_path("recipes", "sft.py"))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(sft, dataset, policy_folder, tmp_path, monkeypatch):
    """Run the recipe script in this process and return its record."""

    def run(name: str, **options):
        out = tmp_path / name
        given = {"dataset": str(dataset.folder), "model_name_or_path": str(policy_folder)}
        path = tmp_path / f"{name}.yaml"
        path.write_text(
            yaml.safe_dump(OPTIONS | given | {"trainer": "sft", "output_dir": str(out)} | options)
        )
        monkeypatch.setattr(sys, "argv", ["sft.py", "--config", str(path)])
        sft.main()
        return out, json.loads((out / RECORD).read_text())

    return run


def losses(record) -> list[float]:
    return [entry["loss"] for entry in record["log"]]


@pytest.fixture(scope="module")
def demonstrations(dataset):
    return load_demonstrations(dataset.folder)


@pytest.fixture(scope="module")
def policy(policy_folder):
    limits = {name: PROMPT[name] for name in ("min_pixels", "max_pixels")}
    return load_policy(policy_folder, device="cpu", **limits)


def test_every_recorded_action_is_an_answer_in_the_datasets_format(demonstrations):
    assert demonstrations.counts == {"written": 15}
    for index, answer in demonstrations.answers.items():
        row, frame = demonstrations.contexts.step(index), demonstrations.contexts.frame(index)
        label = LABELS[(int(row["episode_id"][1:]) + row["step_index"]) % len(LABELS)]
        assert get_format("json").parse(answer, frame) == label


def test_a_batch_holds_the_samplers_prompt_and_pixels_and_learns_the_answer_alone(
    demonstrations, policy, tmp_path
):
    trainer = DemonstrationTrainer(
        contexts=demonstrations.contexts,
        model=policy.model,
        processing_class=policy.processor,
        args=SFTConfig(
            output_dir=str(tmp_path), **OPTIONS | {"per_device_train_batch_size": 1, "max_steps": 1}
        ),
        train_dataset=demonstrations.rows(policy),
    )
    rows = trainer.train_dataset
    assert sorted(rows["images"]) == sorted(demonstrations.answers)
    for number in (0, 7, 14):
        batch = trainer.data_collator([dict(rows[number])])
        context = rows[number]["images"]
        prompt = encode(
            policy, demonstrations.contexts.messages(context), demonstrations.contexts.encoded(context)
        )
        answer = list(answer_ids(policy, demonstrations.answers[context]))
        assert batch["input_ids"][0].tolist() == prompt["input_ids"][0].tolist() + answer
        assert batch["labels"][0].tolist() == [-100] * prompt["input_ids"].shape[1] + answer
        assert torch.equal(batch["pixel_values"], prompt["pixel_values"])
        assert torch.equal(batch["image_grid_thw"], prompt["image_grid_thw"])


def test_a_loss_on_prompts_is_for_screens_as_text(run):
    with pytest.raises(InputError, match="prompt_weight is for screens as text"):
        run("reads", prompt_weight=0.3, max_steps=1)


def test_rows_of_different_lengths_are_padded_outside_the_loss(demonstrations, policy, tmp_path):
    trainer = DemonstrationTrainer(
        contexts=demonstrations.contexts,
        model=policy.model,
        processing_class=policy.processor,
        args=SFTConfig(output_dir=str(tmp_path), **OPTIONS | {"max_steps": 1}),
        train_dataset=demonstrations.rows(policy),
    )
    batch = trainer.data_collator([dict(trainer.train_dataset[number]) for number in range(4)])
    learned = [[i for i in row.tolist() if i != -100] for row in batch["labels"]]
    answers = [demonstrations.answers[context] for context in list(demonstrations.answers)[:4]]
    assert learned == [list(answer_ids(policy, answer)) for answer in answers]
    assert (batch["labels"][batch["attention_mask"] == 0] == -100).all()


def test_training_learns_and_leaves_what_the_next_stage_starts_from(run, dataset, capfd):
    out, record = run("plain", max_steps=12)
    assert losses(record)[-1] < losses(record)[0] - 0.5
    assert record["counts"] == {"written": 15}
    assert record["dataset"].startswith("small 1.0.0")
    assert capfd.readouterr().out.splitlines() == ["steps: 15 written"]
    assert load_policy(out, device="cpu").processor is not None
    words = ["--dataset", str(dataset.folder), "--model_name_or_path", str(out)]
    assert launch("phone_cpu/stage2_trajectory", words, dry_run=True) == 0


def test_going_on_from_a_checkpoint_equals_a_straight_run(run):
    saving = {"save_strategy": "steps", "save_steps": 3, "max_steps": 6}
    whole, straight = run("straight", **saving)
    _, resumed = run("resumed", **saving, resume_from_checkpoint=str(whole / "checkpoint-3"))
    assert losses(resumed)[-3:] == pytest.approx(losses(straight)[-3:], abs=1e-6)


def test_another_recipes_checkpoint_is_refused_before_the_model_loads(run):
    whole, _ = run("saved", max_steps=2, save_strategy="steps", save_steps=1)
    with pytest.raises(InputError, match=r"another recipe's: learning_rate is 0\.003 there and 0\.001 here"):
        run(
            "other",
            max_steps=3,
            learning_rate=1e-3,
            resume_from_checkpoint=str(whole / "checkpoint-1"),
            model_name_or_path="no/model-is-loaded",
        )


def test_nothing_in_a_saved_policy_tells_of_the_machine(run):
    out, _ = run("saved", max_steps=1)
    found = [
        path.name for path in out.rglob("*") if path.is_file() and str(out).encode() in path.read_bytes()
    ]
    assert not found
    assert not list(out.glob("*.bin"))


def test_adapters_are_merged_into_a_policy_that_loads(run, policy_folder):
    lora = {"use_peft": True, "lora_r": 4, "lora_target_modules": [r".*language_model.*\.(q|v)_proj"]}
    out, _ = run("lora", max_steps=4, learning_rate=3e-2, **lora)
    assert (out / ADAPTER / "adapter_config.json").is_file()
    start, end = (load_policy(folder, device="cpu").model.state_dict() for folder in (policy_folder, out))
    changed = {name for name in start if not torch.equal(start[name], end[name])}
    assert changed
    assert all(name.endswith(("q_proj.weight", "v_proj.weight")) and "visual" not in name for name in changed)
