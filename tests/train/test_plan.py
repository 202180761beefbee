"""The memory plan: against numbers worked out by hand, and against a model that is there."""

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model

from solar_rl.errors import ConfigError, InputError
from solar_rl.policy import load_policy
from solar_rl.shipped import shipped_path
from solar_rl.train.keys import read_settings
from solar_rl.train.launch import find_recipe
from solar_rl.train.memory import (
    GB,
    OVERHEAD,
    SHARINGS,
    Eyes,
    Job,
    Shape,
    activations,
    context_of,
    logits,
    memory,
    pixels,
    read_job,
    smallest_card,
)
from solar_rl.train.shapes import first_model, read_shape

pytestmark = pytest.mark.train

ROOT = Path(__file__).parents[2]
SHAPE = Shape(
    parameters=1000,
    adapters=0,
    block=100,
    root=400,
    layers=4,
    hidden=10,
    keys=2,
    intermediate=20,
    vocabulary=50,
    eyes=Eyes(layers=3, hidden=6, intermediate=8, patch_values=12, merge=4),
)
JOB = Job(
    rows=2,
    held=8,
    context=30,
    answer=5,
    screens=16,
    weight_bytes=4,
    bf16=True,
    checkpointing=True,
    reference=True,
)


def of(shape: Shape, **changes) -> Shape:
    return Shape(**vars(shape) | changes)


def job(**changes) -> Job:
    return Job(**vars(JOB) | changes)


@pytest.fixture(scope="module")
def recipe():
    return read_settings(find_recipe("qwen2_5_vl_7b/stage1_atomic"), [])


@pytest.fixture(scope="module")
def seven(recipe):
    return read_shape(first_model(recipe), recipe)


def parts(sharing: str, gpus: int, **changes) -> tuple[float, ...]:
    found = memory(SHAPE, job(**changes), sharing, gpus)
    return tuple(found[name] for name in ("weights", "gradients", "optimiser", "reference", "gathered"))


# --- by hand -------------------------------------------------------------------------------------------


def test_data_parallel_keeps_everything_on_every_gpu():
    # 4 bytes a weight, 4 a gradient, 8 for two moments; 4 for the second model; DDP's buckets 4, autocast's copies 2
    assert parts("ddp", 4) == (4000, 4000, 8000, 4000, 4000 + 2000)
    assert parts("ddp", 1) == (4000, 4000, 8000, 4000, 2000)


def test_fsdp_shares_all_and_gathers_a_block_while_the_next_comes():
    # bf16: root 400, two blocks 200, and the gradients of root and block 500
    assert parts("fsdp2", 4) == (1000, 1000, 2000, 1000, 2 * (400 + 200 + 500))


def test_zero_2_keeps_weights_and_zero_3_shares_them():
    # bf16 weights and gradients; 12 bytes of float32 master and moments; buckets as large as the model at most
    assert parts("zero2", 4) == (2000, 500, 3000, 2000, 2 * 2000)
    assert parts("zero3", 4) == (500, 500, 3000, 500, 2000 + 2000)


def test_pure_bf16_halves_and_needs_no_copies():
    assert parts("ddp", 1, weight_bytes=2) == (2000, 2000, 4000, 2000, 0)


def test_adapters_alone_have_gradients_and_moments():
    lora = of(SHAPE, adapters=10)
    found = memory(lora, job(weight_bytes=2, reference=False), "ddp", 1)
    assert (found["weights"], found["gradients"], found["optimiser"]) == (2000 + 40, 40, 80)
    assert found["gathered"] == 20


def test_activations_are_inputs_of_blocks_and_one_block_in_full():
    text, seen = 2 * 30, 2 * 16 * 4  # tokens, patches
    block_text = text * 2 * (80 + 4 + 80)
    block_seen = seen * 2 * (60 + 32)
    inputs = 4 * text * 10 * 2 + 3 * seen * 6 * 2
    assert activations(SHAPE, JOB, "fsdp2") == inputs + 2 * max(block_text, block_seen)
    assert activations(SHAPE, JOB, "ddp") == 2 * inputs + 2 * max(block_text, block_seen), "a float32 stream"
    full = activations(SHAPE, job(checkpointing=False), "fsdp2")
    assert full == 4 * block_text + 3 * block_seen + max(block_text, block_seen)


def test_pixels_wait_for_every_row_of_a_generation_batch():
    assert pixels(SHAPE, JOB) == 8 * 16 * 4 * 12 * 4
    assert pixels(of(SHAPE, eyes=None), JOB) == 0


def test_logits_are_a_tile_and_the_gradients_of_states_and_head():
    assert logits(SHAPE, JOB) == 2 * 50 * (10 + 10) + 10 * 10 * 4 + 50 * 10 * 4
    assert logits(of(SHAPE, adapters=10), JOB) == 2 * 50 * (10 + 10) + 10 * 10 * 4


def test_the_smallest_card_that_holds_it_beside_vllm():
    assert smallest_card(47.9 * GB) == 48
    assert smallest_card(47.9 * GB, vllm=0.3) == 80
    assert smallest_card(142 * GB) is None


@pytest.mark.parametrize("sharing", SHARINGS)
def test_more_gpus_never_take_more_and_more_rows_never_less(sharing, seven, recipe):
    asked = read_job(recipe, seven, 6144)
    totals = [sum(memory(seven, asked, sharing, gpus).values()) for gpus in (2, 4, 8, 32)]
    assert totals == sorted(totals, reverse=True)
    larger = Job(**vars(asked) | {"rows": asked.rows + 1})
    assert sum(memory(seven, larger, sharing, 8).values()) > totals[2]


# --- against models ------------------------------------------------------------------------------------


def test_7b_is_counted_as_published(seven):
    assert seven.parameters == 8_292_166_656  # the released safetensors: 16,584,333,312 bytes in bf16
    assert seven.root + 28 * seven.block < seven.parameters
    assert seven.block == 3584 * (2 * 3584 + 2 * 512 + 3 * 18944) + (3584 + 2 * 512) + 2 * 3584
    assert memory(seven, read_job({}, seven, 6144), "ddp", 1)["weights"] == 4 * 8_292_166_656


def test_adapters_of_7b_are_rank_times_both_sides_of_every_matrix():
    settings = read_settings(find_recipe("qwen2_5_vl_7b/stage1_atomic_lora_24gb"), [])
    sides = 2 * 3584 + 2 * (3584 + 512) + 2 * 3584 + 3 * (3584 + 18944)
    assert read_shape(first_model(settings), settings).adapters == settings["lora_r"] * 28 * sides


def test_a_model_that_is_there_takes_the_bytes_that_are_planned(policy_folder):
    model = load_policy(policy_folder, device="cpu").model.train()
    optimiser = torch.optim.AdamW(model.parameters())
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    optimiser.step()
    moments = [s[name] for s in optimiser.state.values() for name in ("exp_avg", "exp_avg_sq")]
    shape = read_shape(str(policy_folder), {})
    planned = memory(shape, read_job({"bf16": False}, shape, 200), "ddp", 1)
    for name, tensors in (
        ("weights", list(model.parameters())),
        ("gradients", [weight.grad for weight in model.parameters()]),
        ("optimiser", moments),
    ):
        assert planned[name] == sum(each.numel() * each.element_size() for each in tensors), name
    assert planned["gathered"] == 0


def test_adapters_that_are_there_are_as_many_as_planned(policy_folder):
    targets = r".*language_model.*\.(q|v)_proj"
    settings = {"use_peft": True, "lora_r": 4, "lora_target_modules": [targets]}
    model = load_policy(policy_folder, device="cpu").model
    adapted = get_peft_model(model, LoraConfig(r=4, target_modules=targets))
    trained = sum(weight.numel() for weight in adapted.parameters() if weight.requires_grad)
    assert read_shape(str(policy_folder), settings).adapters == trained


@pytest.mark.parametrize(
    ("name", "gpus", "sharing", "context", "card"),
    [
        ("stage1_atomic", 32, "fsdp2", 6144, 48),
        ("stage2_trajectory", 32, "fsdp2", 6144, 48),
        ("baseline_sft", 32, "fsdp2", 6144, 48),
        ("stage1_atomic_lora_80gb", 1, "ddp", 6144, 80),
        ("stage2_trajectory_lora_80gb", 1, "ddp", 6144, 80),
        ("stage1_atomic_lora_24gb", 1, "ddp", 2136, 24),
        ("stage2_trajectory_lora_24gb", 1, "ddp", 2136, 24),
    ],
)
def test_a_recipe_fits_the_card_that_its_first_lines_name(name, gpus, sharing, context, card):
    settings = read_settings(find_recipe(f"qwen2_5_vl_7b/{name}"), [])
    shape = read_shape(first_model(settings), settings)
    taken = memory(shape, read_job(settings, shape, context), sharing, gpus)
    assert smallest_card(sum(taken.values())) == card
    assert (
        f"{card} GB"
        in shipped_path("recipes", "qwen2_5_vl_7b", f"{name}.yaml").read_text().split("\ndataset:")[0]
    )


# --- the verb ------------------------------------------------------------------------------------------


def test_the_context_follows_from_the_datasets_pixels(dataset):
    screens = 28 * 28 * 32 // (28 * 28)
    assert context_of({"dataset": str(dataset.folder), "max_completion_length": 128}) == (
        screens + 600 + 128,
        screens,
    )
    assert context_of({"dataset": "./nowhere"}) == (6144, None)
    limited = {"dataset": "./nowhere", "dataset_max_pixels": 28 * 28 * 1280, "max_completion_length": 256}
    assert context_of(limited) == (1280 + 600 + 256, 1280)
    assert context_of(limited | {"dataset": str(dataset.folder)})[1] == screens, "what is there tells more"


@pytest.mark.parametrize("name", ["stage1_atomic_lora_24gb", "stage2_trajectory_lora_24gb"])
def test_a_recipe_is_planned_with_its_own_pixels_before_its_dataset_is_there(
    name, capsys, tmp_path, monkeypatch
):
    from solar_rl.commands_train import plan

    monkeypatch.chdir(tmp_path)
    plan(f"qwen2_5_vl_7b/{name}", [], processes=None, context=None, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["job"]["context"], found["bytes"][0]["fits"]) == (2136, 24)


def test_a_plan_without_the_policy_folder_says_what_makes_it(tmp_path, monkeypatch):
    from solar_rl.commands_train import plan

    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError, match=r"demo/policy: no such policy folder \(the demo makes it: make demo"
    ):
        plan("phone_cpu/stage1_atomic", [], processes=None, context=None, as_json=False)


def test_the_plan_is_printed_without_dataset_or_weights(capsys):
    from solar_rl.cli import main

    with pytest.raises(SystemExit) as end:
        main(["train", "qwen2_5_vl_7b/stage2_trajectory", "--plan", "--json"])
    assert not end.value.code
    found = json.loads(capsys.readouterr().out)
    assert (found["model"], found["gpus"]) == ("Qwen/Qwen2.5-VL-7B-Instruct", 32)
    rows = {row["sharing"]: row for row in found["bytes"]}
    assert set(rows) == set(SHARINGS)
    named = (
        "weights",
        "gradients",
        "optimiser",
        "reference",
        "gathered",
        "activations",
        "pixels",
        "logits",
        "overhead",
    )
    for row in rows.values():
        assert row["total"] == pytest.approx(sum(row[name] for name in named))
        assert row["overhead"] == OVERHEAD
    assert rows["ddp"]["fits"] is None


def test_too_short_a_context_is_refused():
    from solar_rl.commands_train import plan

    with pytest.raises(ConfigError, match="don't hold an answer of 512"):
        plan("qwen2_5_vl_7b/stage1_atomic", [], processes=None, context=512, as_json=False)


def test_the_page_prints_what_the_plan_says():
    spec = spec_from_file_location("refresh_memory", ROOT / "docs" / "refresh_memory.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "memory.md").read_text()
    assert module.refreshed(page) == page, "run python docs/refresh_memory.py"
    assert page.count("\n| fsdp2 | ") == 3
