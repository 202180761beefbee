"""Every recipe parses, and a baseline differs from the recipe it is compared with in one key."""

import dataclasses
import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import yaml

from solar_rl.shipped import shipped_path
from solar_rl.train.keys import known_fields, known_keys
from solar_rl.train.launch import default_output

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
