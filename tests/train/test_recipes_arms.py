"""Both families of recipes hold the same arms, and each differs from its sibling in what it is about alone."""

from importlib.util import find_spec

import pytest
import yaml

from solar_rl.shipped import shipped_path
from solar_rl.train.keys import SCRIPTS, read_settings
from solar_rl.train.launch import check_rows, recipe_names
from solar_rl.train.naming import default_output

pytestmark = pytest.mark.train

FAMILIES = ("phone_cpu", "qwen2_5_vl_7b")
ARMS = {  # what an arm says otherwise than stage2_trajectory
    "stage2_trajectory": {},
    "baseline_sparse": {"credit": "sparse"},
    "baseline_sparse_rtraj": {"credit": "sparse_rtraj", "advantage_weight": "std"},
    "baseline_step_local": {"credit": "step_local"},
    "baseline_ui_s1": {"credit": "ui_s1"},
    "baseline_step_local_anchor": {"credit": "step_local", "expert_anchor": 0.3},
    "log_step": {"credit": "step_local", "advantage_weight": "log_success"},
    "log_step_anchor": {"credit": "step_local", "advantage_weight": "log_success", "expert_anchor": 0.1},
    "solar_log": {"advantage_weight": "log_success"},
}
GRPO_ONLY = {
    "credit",
    "off_policy",
    "num_generations",
    "max_completion_length",
    "temperature",
    "epsilon",
    "beta",
    "scale_rewards",
}


def settings(family: str, name: str) -> dict:
    return yaml.safe_load(shipped_path("recipes", family, f"{name}.yaml").read_text())


def difference(one: dict, other: dict) -> dict:
    """What ``other`` says otherwise than ``one``; None for what it leaves out."""
    return {key: other.get(key) for key in one | other if one.get(key) != other.get(key)}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_arm_is_there(family):
    names = {name.split("/")[1] for name in recipe_names() if name.startswith(f"{family}/")}
    assert names >= {"stage1_atomic", "baseline_sft", *ARMS}
    others = names - {"stage1_atomic", "baseline_sft", *ARMS}
    assert all("lora" in name or name.startswith("fresh") for name in others)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ARMS)
def test_an_arm_differs_from_stage_2_in_what_it_is_about(family, name):
    assert difference(settings(family, "stage2_trajectory"), settings(family, name)) == ARMS[name]


@pytest.mark.parametrize("family", FAMILIES)
def test_stages_differ_in_start_credit_sampling_and_length(family):
    found = difference(settings(family, "stage1_atomic"), settings(family, "stage2_trajectory"))
    assert set(found) <= {"model_name_or_path", "credit", "upsample_rare", "max_steps", "learning_rate"}
    assert found["credit"] == "solar"
    assert found["upsample_rare"] is None


@pytest.mark.parametrize("family", FAMILIES)
def test_sft_starts_where_its_siblings_do_and_reads_as_many_steps(family):
    grpo, sft = settings(family, "stage2_trajectory"), settings(family, "baseline_sft")
    found = difference(grpo, sft)
    assert set(found) - GRPO_ONLY <= {
        "trainer",
        "loss_type",
        "learning_rate",
        "rows_per_update",
        "per_device_train_batch_size",
        "gradient_accumulation_steps",
    }
    assert sft["rows_per_update"] * grpo["num_generations"] == grpo["rows_per_update"]
    assert sft["max_steps"] == grpo["max_steps"]


@pytest.mark.parametrize("name", recipe_names())
def test_a_later_recipe_starts_where_an_earlier_one_ends(name):
    start = settings(*name.split("/"))["model_name_or_path"]
    places = {
        f"./{default_output(['--config', str(shipped_path('recipes', f'{n}.yaml'))])}" for n in recipe_names()
    }
    assert start in places | {"./demo/policy", "Qwen/Qwen2.5-VL-7B-Instruct"}
    assert start.startswith("./runs/") == (name.split("/")[1] not in STARTS)


STARTS = {"stage1_atomic", "stage1_atomic_lora_80gb", "stage1_atomic_lora_24gb"}


def test_the_papers_figures_are_kept():
    stage1, stage2 = (settings("qwen2_5_vl_7b", name) for name in ("stage1_atomic", "stage2_trajectory"))
    assert stage1["max_steps"] + stage2["max_steps"] == 650
    for recipe in (stage1, stage2):
        assert recipe["num_generations"] == 8
        assert recipe["rows_per_update"] == 128 * 8
        assert (recipe["learning_rate"], recipe["beta"], recipe["epsilon"]) == (1e-6, 1e-3, 0.2)


@pytest.mark.parametrize("gb", [80, 24])
@pytest.mark.parametrize("stage", ["stage1_atomic", "stage2_trajectory"])
def test_a_lora_recipe_differs_in_adapters_and_micro_batches(stage, gb):
    found = difference(settings("qwen2_5_vl_7b", stage), settings("qwen2_5_vl_7b", f"{stage}_lora_{gb}gb"))
    adapters = {
        "use_peft",
        "lora_r",
        "lora_alpha",
        "lora_dropout",
        "lora_target_modules",
        "dtype",
        "learning_rate",
    }
    batches = {"per_device_train_batch_size", "gradient_accumulation_steps", "steps_per_generation"}
    room = {"dataset", "dataset_max_pixels", "model_name_or_path", "max_completion_length"}
    assert set(found) - adapters - batches <= room


@pytest.mark.parametrize("name", recipe_names())
def test_the_size_of_an_update_adds_up_on_the_machine_that_the_recipe_names(name):
    recipe = settings(*name.split("/"))
    alone = name.startswith("phone_cpu") or "lora" in name
    check_rows(recipe, name, processes=1 if alone else 32)


@pytest.mark.parametrize("name", recipe_names())
def test_every_key_is_one_that_the_recipes_script_takes(name):
    path = shipped_path("recipes", f"{name}.yaml")
    assert read_settings(path, [])["dataset"]


def test_every_trainer_has_a_script_and_a_class_in_trl():
    for trainer, script in SCRIPTS.items():
        assert shipped_path("recipes", script).is_file()
        assert find_spec(f"trl.trainer.{trainer}_trainer") is not None
