"""Every recipe parses, and a baseline differs from the recipe it is compared with in one key."""

import dataclasses
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import yaml

from solar_rl.errors import ConfigError, InputError
from solar_rl.shipped import shipped_path
from solar_rl.train.launch import (
    check_settings,
    default_output,
    find_recipe,
    known_fields,
    known_keys,
    launch,
    make_command,
    parse_overrides,
)

pytestmark = pytest.mark.train

RECIPES = sorted(shipped_path("recipes").glob("*/*.yaml"))
PHONE = shipped_path("recipes", "phone_cpu")


def keys_that_differ(first: str, second: str) -> dict[str, tuple]:
    one, two = (yaml.safe_load((PHONE / f"{name}.yaml").read_text()) for name in (first, second))
    return {key: (one.get(key), two.get(key)) for key in one | two if one.get(key) != two.get(key)}


@pytest.fixture(scope="module")
def grpo():
    spec = spec_from_file_location("recipe_grpo", shipped_path("recipes", "grpo.py"))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recipe_parses_into_trls_own_classes(path, grpo, tmp_path):
    parser = grpo.TrlParser((grpo.SolarArguments, grpo.GRPOConfig, grpo.ModelConfig))
    parser.set_defaults_with_config(output_dir=str(tmp_path))
    solar, config, model = parser.parse_args_and_config(["--config", str(path)])
    written = yaml.safe_load(path.read_text())
    assert solar.credit == written["credit"]
    assert config.learning_rate == float(written["learning_rate"])
    assert config.output_dir == str(tmp_path), (
        "a recipe names no output_dir, so that baselines differ in one key"
    )
    assert model.model_name_or_path == written["model_name_or_path"]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recipe_says_its_hardware_and_command_first(path):
    head = path.read_text().split("\ndataset:")[0]
    assert "Hardware:" in head
    assert f"solar-rl train {path.parent.name}/{path.stem}" in head


@pytest.mark.parametrize(
    ("name", "difference"),
    [
        ("baseline_sparse", {"credit": ("solar", "sparse")}),
        ("baseline_step_local", {"credit": ("solar", "step_local")}),
        ("log_step", {"credit": ("solar", "step_local"), "advantage_weight": (None, "log_success")}),
        ("solar_log", {"advantage_weight": (None, "log_success")}),
    ],
)
def test_a_baseline_differs_in_what_it_is_about_and_nothing_else(name, difference):
    assert keys_that_differ("stage2_trajectory", name) == difference


def test_stage_2_starts_where_stage_1_ends():
    settings = yaml.safe_load((PHONE / "stage2_trajectory.yaml").read_text())
    assert (
        settings["model_name_or_path"]
        == f"./{default_output(['--config', str(PHONE / 'stage1_atomic.yaml')])}"
    )


def test_keys_read_from_source_are_the_fields_that_are_parsed(grpo):
    classes = (grpo.SolarArguments, grpo.GRPOConfig, grpo.ModelConfig)
    fields = {f.name for cls in classes for f in dataclasses.fields(cls) if f.init}
    known = known_keys(known_fields())
    plain = {key for key in known if not key.startswith("no_") and key != "env"}
    assert fields <= known
    assert plain - fields <= {"_VALID_DICT_FIELDS", "no_cuda"} | {k for k in plain if k.startswith("_")}


def test_a_field_read_from_source_takes_what_the_parser_takes(grpo):
    fields = known_fields()
    for cls in (grpo.SolarArguments, grpo.GRPOConfig, grpo.ModelConfig):
        hints = get_type_hints(cls)
        for field in dataclasses.fields(cls):
            plain = {"int": int, "float": float, "bool": bool}.get(fields[field.name].kind)
            if field.init and plain:
                optional = fields[field.name].optional
                assert hints[field.name] == (plain | None if optional else plain), field.name
            if get_origin(hints[field.name]) is Literal:
                assert fields[field.name].choices == get_args(hints[field.name])


# --- launch --------------------------------------------------------------------------------------------


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


def test_a_missing_dataset_is_refused_with_what_to_do(recipe):
    with pytest.raises(InputError, match=r"/nowhere: is no built dataset.*solar-rl build"):
        launch(recipe, ["--dataset", "/nowhere"])


def test_a_missing_policy_folder_is_refused(recipe):
    with pytest.raises(InputError, match=r"no such policy folder.*earlier one's output_dir"):
        launch(recipe, ["--model_name_or_path=./nowhere"])


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
        (["--dtype", "float33"], "'dtype' is 'float33', expected one of auto, bfloat16"),
    ],
)
def test_a_wrong_value_is_refused_before_anything_runs(recipe, words, message):
    with pytest.raises(ConfigError, match=f"command line: .*{message}") as error:
        launch(recipe, words, dry_run=True)
    assert error.value.exit_code == 2
    assert "\n" not in str(error.value)


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
    assert check_settings(recipe, ["--learning-rate", "1e-3", "--bf16"])["learning_rate"] == "1e-3"


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
