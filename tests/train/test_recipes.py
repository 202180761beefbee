"""Every recipe parses into TRL's own classes, and what is checked before torch is loaded agrees with them."""

import dataclasses
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
import yaml
from trl import GRPOConfig, ModelConfig, SFTConfig, TrlParser

from solar_rl.schema import SCHEMA_VERSION
from solar_rl.shipped import shipped_path
from solar_rl.train.keys import SCRIPTS, known_fields, known_keys
from solar_rl.train.launch import recipe_names

pytestmark = pytest.mark.train

RECIPES = recipe_names()
CLASSES = {"grpo": (GRPOConfig, ModelConfig), "sft": (SFTConfig, ModelConfig)}


def script(trainer: str):
    """Import a recipe script, which no package holds."""
    spec = spec_from_file_location(f"recipe_{trainer}", shipped_path("recipes", SCRIPTS[trainer]))
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def classes():
    return {trainer: (script(trainer).SolarArguments, *theirs) for trainer, theirs in CLASSES.items()}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_parses_into_trls_own_classes(name, classes, tmp_path):
    path = shipped_path("recipes", f"{name}.yaml")
    written = yaml.safe_load(path.read_text())
    parser = TrlParser(classes[written.get("trainer", "grpo")])
    parser.set_defaults_with_config(output_dir=str(tmp_path))
    words = ["--config", str(path), "--use_cpu", "true"]  # bf16 is refused where neither GPU nor this is
    solar, config, model = parser.parse_args_and_config(words, fail_with_unknown_args=True)
    assert solar.dataset == written["dataset"]
    assert solar.schema_version == SCHEMA_VERSION, "raise it in every recipe once their keys still hold"
    assert getattr(solar, "credit", None) == written.get("credit")
    assert config.learning_rate == float(written["learning_rate"])
    assert config.output_dir == str(tmp_path), "a recipe names no output_dir, so arms differ in their keys"
    assert model.model_name_or_path == written["model_name_or_path"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_says_its_hardware_and_command_first(name):
    head = shipped_path("recipes", f"{name}.yaml").read_text().split("\ndataset:")[0]
    assert "Hardware:" in head
    assert f"solar-rl train {name}" in head
    assert ("Not run here" in head) == name.startswith("qwen")


@pytest.mark.parametrize("trainer", CLASSES)
def test_keys_read_from_source_are_the_fields_that_are_parsed(trainer, classes):
    fields = {f.name for cls in classes[trainer] for f in dataclasses.fields(cls) if f.init}
    known = known_keys(known_fields(trainer))
    plain = {key for key in known if not key.startswith("no_") and key != "env"}
    assert fields <= known
    assert plain - fields <= {"_VALID_DICT_FIELDS", "no_cuda"} | {k for k in plain if k.startswith("_")}


def test_docs_list_every_key_of_ours_with_its_default(classes):
    """docs/training.md: a row a key, its values or default in the second column, its script in the third."""
    text = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    cells = (re.split(r"(?<!\\)\|", line)[1:4] for line in text.splitlines() if line.startswith("| `"))
    told = {key.strip().strip("`"): (default.strip(), script.strip()) for key, default, script in cells}
    ours = {trainer: {f.name: f for f in dataclasses.fields(classes[trainer][0])} for trainer in CLASSES}
    assert set(told) == {name for fields in ours.values() for name in fields}
    for name, (default, script) in told.items():
        trainers = [trainer for trainer in CLASSES if name in ours[trainer]]
        assert script == (trainers[0] if len(trainers) == 1 else "both"), name
        field = ours[trainers[0]][name]
        if field.default is dataclasses.MISSING or name == "trainer":
            continue
        shown = {None: "none", "": "empty"}.get(field.default, str(field.default))
        assert default.split(", ")[0] == shown, f"{name}: the default comes first"


@pytest.mark.parametrize("trainer", CLASSES)
def test_a_field_read_from_source_takes_what_the_parser_takes(trainer, classes):
    fields = known_fields(trainer)
    for cls in classes[trainer]:
        hints = get_type_hints(cls)
        for field in dataclasses.fields(cls):
            plain = {"int": int, "float": float, "bool": bool}.get(fields[field.name].kind)
            if field.init and plain:
                optional = fields[field.name].optional
                assert hints[field.name] == (plain | None if optional else plain), field.name
            if get_origin(hints[field.name]) is Literal:
                assert fields[field.name].choices == get_args(hints[field.name])
