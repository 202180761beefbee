"""Starting a recipe: what is refused before anything heavy is loaded, and the command that is run."""

import inspect
import re
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from trl import GRPOTrainer

from solar_rl.errors import ConfigError, InputError
from solar_rl.schema import SCHEMA_VERSION
from solar_rl.shipped import shipped_path
from solar_rl.train.keys import known_fields, parse_overrides, read_settings
from solar_rl.train.launch import (
    Machines,
    check_arguments,
    find_accelerate,
    find_recipe,
    launch,
    make_command,
)
from solar_rl.train.naming import recipe_name

pytestmark = pytest.mark.train

PHONE = shipped_path("recipes", "phone_cpu")


@pytest.fixture
def recipe(tmp_path, dataset, policy_folder) -> Path:
    path = tmp_path / "mine.yaml"
    settings = {"dataset": str(dataset.folder), "model_name_or_path": str(policy_folder), "use_cpu": True}
    path.write_text(yaml.safe_dump(settings))
    return path


def test_a_shipped_recipe_is_found_by_name_with_or_without_its_ending():
    assert (
        find_recipe("phone_cpu/log_step") == find_recipe("phone_cpu/log_step.yaml") == PHONE / "log_step.yaml"
    )


def test_an_unknown_recipe_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'phone_cpu/log_step'"):
        find_recipe("phone_cpu/log_stp")


def test_an_unknown_key_in_the_file_is_answered_with_the_nearest(recipe):
    recipe.write_text(recipe.read_text() + "learning_rte: 1\n")
    with pytest.raises(ConfigError, match=r"unknown key 'learning_rte'.*did you mean 'learning_rate'"):
        launch(recipe)


def test_an_unknown_override_is_answered_with_the_nearest(recipe):
    with pytest.raises(ConfigError, match=r"command line: unknown key 'credt'.*did you mean 'credit'"):
        launch(recipe, ["--credt", "solar"])


def test_a_stray_word_is_refused():
    with pytest.raises(ConfigError, match="'10' belongs to no key"):
        parse_overrides(["10", "--max_steps"])


@pytest.mark.parametrize(
    "words",
    [
        ["--max_steps", "2", "foo"],
        ["--credit=sparse", "foo"],
        ["--use_cpu", "true", "foo"],
        ["--off_policy", "behaviour", "foo", "bar", "--max_steps", "2"],
        ["--output_dir", "a b", "foo"],
    ],
)
def test_a_second_word_behind_a_key_that_takes_one_is_refused(recipe, words):
    with pytest.raises(ConfigError, match=r"command line: 'foo' belongs to no key .*takes one value"):
        read_settings(recipe, words)


def test_a_key_that_takes_several_words_keeps_them(recipe):
    settings = read_settings(recipe, ["--lora_target_modules", "q_proj", "v_proj", "--output_dir", "a b"])
    assert (settings["lora_target_modules"], settings["output_dir"]) == ("q_proj v_proj", "a b")


def test_screenshots_larger_than_a_recipe_is_reckoned_with_are_refused(recipe):
    with pytest.raises(
        InputError, match=r"prompt.max_pixels of the dataset is 25088.*--prompt.max_pixels 25087"
    ):
        launch(recipe, ["--dataset_max_pixels", "25087"], dry_run=True)
    for words in (["--dataset_max_pixels", "25088"], ["--dataset_max_pixels", "none"], []):
        assert launch(recipe, words, dry_run=True) == 0


def test_a_recipe_is_named_as_shipped_or_by_its_file(recipe):
    assert recipe_name(["--config", str(PHONE / "log_step.yaml"), "--max_steps", "2"]) == "phone_cpu/log_step"
    assert recipe_name(["--config", str(recipe)]) == "mine.yaml"
    assert recipe_name(["--max_steps", "2"]) is None


def test_a_missing_dataset_is_refused_with_what_to_do(recipe):
    with pytest.raises(InputError, match=r"/nowhere: is no built dataset.*solar-rl build"):
        launch(recipe, ["--dataset", "/nowhere"])


HUB = [
    "Some-Org/phone-1.0",
    "Some-Org/phone@v1.0.0",
    "hf://datasets/Some-Org/phone@main",
    "hf://Some-Org/phone",
]


@pytest.mark.parametrize("name", HUB)
def test_a_dataset_on_the_hub_is_left_to_the_run(recipe, name):
    assert launch(recipe, ["--dataset", name], dry_run=True) == 0
    assert launch(recipe, ["--dataset", name.partition("@v")[0], "--revision", "v2"], dry_run=True) == 0


@pytest.mark.parametrize("name", ["hf://nope", "hf://a/b/c/d", "hf://datasets/a/b@", "a/b/c", "a/b@@c"])
def test_what_is_no_name_on_the_hub_is_refused(recipe, name):
    with pytest.raises(InputError, match=r"is no name on the Hub|is no built dataset"):
        launch(recipe, ["--dataset", name], dry_run=True)


def test_a_revision_of_a_folder_is_refused(recipe):
    with pytest.raises(InputError, match="revision goes with a dataset of the Hub"):
        launch(recipe, ["--revision", "v1.0.0"], dry_run=True)


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_a_recipe_for_another_schema_version_is_refused(recipe, version):
    recipe.write_text(recipe.read_text() + f"schema_version: {version}\n")
    with pytest.raises(ConfigError, match=f"schema version {version}, this solar-rl reads {SCHEMA_VERSION}"):
        launch(recipe, dry_run=True)
    assert launch(recipe, ["--schema_version", str(SCHEMA_VERSION)], dry_run=True) == 0


def test_a_missing_policy_folder_is_refused(recipe):
    with pytest.raises(InputError, match=r"no such policy folder.*earlier one's output_dir"):
        launch(recipe, ["--model_name_or_path=./nowhere"])


def test_a_missing_earlier_stage_is_named_with_its_command(recipe):
    with pytest.raises(InputError, match=r"run it first: solar-rl train phone_cpu/stage1_atomic"):
        launch(recipe, ["--model_name_or_path", "./runs/phone_cpu/stage1_atomic"])


@pytest.mark.parametrize("policy", ["nope", "/nope", "../nope", "~/nope", "runs/phone_cpu/nope", "nope/", ""])
def test_what_is_neither_a_folder_nor_the_shape_of_a_hub_id_is_refused(recipe, policy):
    with pytest.raises(InputError):
        launch(recipe, ["--model_name_or_path", policy], dry_run=True)


def test_a_hub_id_and_a_relative_folder_are_policies(recipe, policy_folder, monkeypatch):
    assert launch(recipe, ["--model_name_or_path", "Some-Org/Model-2.5.B"], dry_run=True) == 0
    monkeypatch.chdir(policy_folder.parent)
    assert launch(recipe, ["--model_name_or_path", policy_folder.name], dry_run=True) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--credit", "nope"], "'credit' is 'nope', expected one of solar, atomic, step_local"),
        (["--credit", "atomi"], "did you mean 'atomic'"),
        (["--learning_rate", "abc"], "'learning_rate' is 'abc', expected a number"),
        (["--max_steps=1.5"], "'max_steps' is '1.5', expected a whole number"),
        (["--use_cpu", "perhaps"], "'use_cpu' is 'perhaps', expected true or false"),
        (["--weight_floor", "abc"], "'weight_floor' is 'abc', expected a number"),
        (["--learning_rate", "nan"], "'learning_rate' is 'nan', expected a number"),
        (["--tis_clip", "-1"], "'tis_clip' is '-1', expected above 0"),
        (["--expert_anchor", "-1"], "'expert_anchor' is '-1', expected at least 0"),
        (["--upsample_rare", "5"], "'upsample_rare' is '5', expected at least 0 and at most 1"),
        (["--weight_floor", "0"], "'weight_floor' is '0', expected above 0 and at most 1"),
        (["--collapse_patience", "0"], "'collapse_patience' is '0', expected at least 1"),
        (["--loss_type", "grop"], "did you mean 'grpo'"),
        (["--dtype", "float33"], "'dtype' is 'float33', expected one of auto, bfloat16"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_runs(recipe, words, message):
    with pytest.raises(ConfigError, match=f"command line: .*{message}") as error:
        launch(recipe, words, dry_run=True)
    assert error.value.exit_code == 2
    assert "\n" not in str(error.value)


def test_every_loss_of_trl_is_known():
    source = inspect.getsource(GRPOTrainer._compute_loss)
    named = {
        word
        for found in re.findall(r"self\.loss_type (?:==|in|!=) (\[[^]]*\]|\"\w+\")", source)
        for word in re.findall(r"\w+", found)
    }
    assert named == set(known_fields("grpo")["loss_type"].choices)


def test_a_wrong_value_in_the_file_names_the_file(recipe):
    recipe.write_text(recipe.read_text() + "credit: nope\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml: 'credit' is 'nope'"):
        launch(recipe, dry_run=True)


def test_right_values_are_left_alone(recipe):
    words = ["--weight_floor", "none", "--learning_rate=1e-6", "--max_steps", "-1", "--bf16", "No"]
    assert launch(recipe, words, dry_run=True) == 0


def test_of_a_repeated_override_the_last_wins():
    assert parse_overrides(["--max_steps", "1", "--max_steps=2"]) == {"max_steps": "2"}


def test_what_only_the_parser_knows_is_refused_in_one_line(recipe, tmp_path):
    command = make_command(recipe, ["--lr_scheduler_type", "sideways"], {"use_cpu": True}, 1)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage:" not in done.stderr
    assert "lr_scheduler_type" in done.stderr.splitlines()[-1]


def test_the_command_line_wins_over_the_file(recipe):
    assert read_settings(recipe, ["--learning-rate", "1e-3", "--bf16"])["learning_rate"] == "1e-3"


def test_a_dry_run_prints_the_command_and_runs_nothing(recipe, capfd):
    assert launch(recipe, ["--max_steps", "1"], dry_run=True) == 0
    out = capfd.readouterr().out
    assert "grpo.py --config" in out
    assert out.rstrip().endswith("--max_steps 1 --processes 1")


def test_several_processes_on_a_cpu_are_started_by_torchrun(recipe):
    words = make_command(recipe, [], {"use_cpu": True}, 2)
    assert words[1:6] == ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    assert words[-2:] == ["--processes", "2"]


def test_gpus_are_left_to_accelerate(recipe, monkeypatch):
    monkeypatch.setattr("solar_rl.train.launch._gpu_count", lambda: 4)
    words = make_command(recipe, [], {}, None)
    assert words[1:3] == ["-m", "accelerate.commands.launch"]
    assert "--multi_gpu" in words
    assert words[words.index("--num_processes") + 1] == words[-1] == "4"


def test_checking_a_recipe_imports_nothing_heavy(recipe):
    code = (
        "import sys; from solar_rl.train.launch import launch; "
        f"launch({str(recipe)!r}, ['--max_steps', '1'], dry_run=True); "
        "print([m for m in ('torch', 'transformers', 'trl', 'datasets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "package"),
    [
        (["--report_to", "wandb"], "wandb"),
        (["--report_to", "none", "trackio"], "trackio"),
        (["--report_to", "mlflow"], "mlflow"),
        (["--optim", "adamw_bnb_8bit"], "bitsandbytes"),
        (["--optim", "paged_adamw_32bit"], "bitsandbytes"),
        (["--use_liger_kernel"], "liger_kernel"),
    ],
)
def test_a_package_that_a_key_needs_is_asked_for_before_anything_runs(recipe, words, package, monkeypatch):
    found = find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(InputError, match=f"needs {package}, which isn't installed"):
        launch(recipe, words, dry_run=True)


@pytest.mark.parametrize("key", ["load_in_4bit", "load_in_8bit"])
def test_a_key_that_would_have_no_effect_is_refused(recipe, key):
    with pytest.raises(ConfigError, match=f"'{key}' isn't supported"):
        launch(recipe, [f"--{key}"], dry_run=True)


def test_vllm_is_refused_where_nothing_is_sampled(recipe):
    with pytest.raises(ConfigError, match="'use_vllm' goes with mode: fresh"):
        launch(recipe, ["--use_vllm"], dry_run=True)


# --- rows an update ------------------------------------------------------------------------------------


def test_an_update_of_another_size_is_refused_with_the_accumulation_that_fits(recipe):
    recipe.write_text(recipe.read_text() + "rows_per_update: 1024\nper_device_train_batch_size: 4\n")
    with pytest.raises(
        ConfigError, match=r"2 processes x 4 rows x 1 .* make 8 rows an update.* 1024"
    ) as error:
        launch(recipe, dry_run=True, processes=2)
    assert error.value.hint == "add --gradient_accumulation_steps 128"
    assert launch(recipe, ["--gradient_accumulation_steps", "128"], dry_run=True, processes=2) == 0


def test_processes_that_can_never_fit_are_told_so(recipe):
    words = ["--rows_per_update", "1024", "--per_device_train_batch_size", "8"]
    with pytest.raises(ConfigError, match="3 processes and per_device_train_batch_size must divide 1024"):
        launch(recipe, words, dry_run=True, processes=3)


def test_rows_of_an_update_can_be_left_open(recipe):
    assert launch(recipe, ["--rows_per_update", "none"], dry_run=True, processes=3) == 0


def test_a_script_started_on_its_own_checks_the_same(recipe, monkeypatch):
    words = ["--config", str(recipe), "--rows_per_update", "16"]
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert check_arguments(words)["rows_per_update"] == "16"
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(ConfigError, match="--gradient_accumulation_steps 2"):
        check_arguments(words)
    with pytest.raises(ConfigError, match="unknown key 'learning_rte'"):
        check_arguments([*words, "--learning_rte", "1"])


def test_the_script_itself_refuses_an_unknown_key_in_one_line(recipe):
    script = str(shipped_path("recipes", "grpo.py"))
    command = [sys.executable, script, "--config", str(recipe), "--credt", "solar"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "did you mean 'credit'" in done.stderr.splitlines()[-1]


# --- accelerate and machines ---------------------------------------------------------------------------


def test_an_accelerate_config_goes_into_the_command(recipe, monkeypatch):
    monkeypatch.setattr("solar_rl.train.launch._gpu_count", lambda: 8)
    config = find_accelerate("fsdp2", {})
    words = make_command(recipe, [], {}, None, accelerate=config)
    assert words[words.index("--config_file") + 1] == str(config)
    assert words[words.index("--num_processes") + 1] == words[-1] == "8"
    assert "--mixed_precision" not in words, "the config file says it"


def test_each_machine_gets_its_place(recipe, monkeypatch):
    monkeypatch.setattr("solar_rl.train.launch._gpu_count", lambda: 8)
    place = Machines(4, 2, "node1:29500")
    words = make_command(recipe, [], {}, None, accelerate=find_accelerate("multi_node", {}), machines=place)
    given = dict(pairwise(words))
    assert given["--num_processes"] == given["--processes"] == "32"
    assert given["--num_machines"] == "4"
    assert given["--machine_rank"] == "2"
    assert (given["--main_process_ip"], given["--main_process_port"]) == ("node1", "29500")


def test_machines_without_gpus_meet_by_torchrun(recipe):
    words = make_command(recipe, [], {"use_cpu": True}, 4, machines=Machines(2, 1, "node1:29500"))
    given = dict(pairwise(words))
    assert (given["--nnodes"], given["--node_rank"], given["--nproc_per_node"]) == ("2", "1", "2")
    assert (given["--master_addr"], given["--master_port"]) == ("node1", "29500")


@pytest.mark.parametrize("host", ["node1", ":29500", "node1:port"])
def test_an_address_without_host_or_port_is_refused(recipe, host):
    with pytest.raises(ConfigError, match="is no HOST:PORT"):
        make_command(recipe, [], {"use_cpu": True}, 2, machines=Machines(2, 0, host))


def test_an_unknown_accelerate_config_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'zero3'"):
        find_accelerate("zero_3", {})


def test_on_a_cpu_accelerate_is_refused_since_it_would_share_nothing(recipe):
    with pytest.raises(ConfigError, match=r"for GPUs.*torchrun"):
        launch(recipe, accelerate="fsdp2", processes=2)


def test_a_gpu_config_is_shown_anywhere_and_run_on_gpus_only(recipe, capfd):
    words = ["--use_cpu", "false"]
    assert launch(recipe, words, accelerate="fsdp2", dry_run=True) == 0
    assert "fsdp2.yaml --num_processes 8" in capfd.readouterr().out
    with pytest.raises(InputError, match="no GPU is here"):
        launch(recipe, words, accelerate="fsdp2")
