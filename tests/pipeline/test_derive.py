from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from test_pipeline import config, hashes

from solar_rl import open_dataset, pipeline
from solar_rl.errors import ConfigError, InputError
from solar_rl.pipeline import derive


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("derive") / "toy-1.0.0"
    pipeline.build(config(), out)
    return out


@pytest.mark.parametrize("alignment", ["off", "paper", "prefix_mean"])
def test_shaping_again_equals_building_with_that_config(built: Path, tmp_path: Path, alignment: str) -> None:
    plan = derive.plan(built, {"shaping.alignment": alignment}, tmp_path / "shaped", "2.0.0", "shape")
    derive.run(plan)
    straight = config(version="2.0.0", shaping={"alignment": alignment})
    pipeline.build(straight, tmp_path / "straight")
    assert hashes(tmp_path / "shaped") == hashes(tmp_path / "straight")


def test_a_shape_links_what_it_does_not_change(built: Path, tmp_path: Path) -> None:
    plan = derive.plan(built, {"shaping.alignment": "paper"}, tmp_path / "shaped", None, "shape")
    derive.run(plan)
    for table in ("episodes", "steps", "images", "candidates"):
        for path in (built / "data" / table).iterdir():
            assert path.samefile(tmp_path / "shaped" / "data" / table / path.name)
    ours, theirs = open_dataset(built), open_dataset(tmp_path / "shaped")
    assert theirs.manifest.version == "1.0.1"
    assert not ours.rewards.collect().equals(theirs.rewards.collect())


def test_the_default_folder_is_beside_the_old_one(built: Path) -> None:
    plan = derive.plan(built, {}, None, None, "shape")
    assert plan.out == built.parent / "toy-1.0.1"
    assert derive.plan(built, {}, None, "3.1.4", "shape").out == built.parent / "toy-3.1.4"


def test_scoring_again_with_a_lenient_validity_finds_more_valid(built: Path, tmp_path: Path) -> None:
    derive.run(derive.plan(built, {"validity.preset": "lenient"}, tmp_path / "lenient", None, "score"))
    share = "SELECT avg(valid::int) AS share FROM rewards WHERE action_type = 'click'"
    strict, lenient = (open_dataset(f).sql(share)["share"][0] for f in (built, tmp_path / "lenient"))
    assert lenient > strict


def test_a_version_is_never_overwritten(built: Path) -> None:
    before = hashlib.sha256((built / "manifest.json").read_bytes()).hexdigest()
    with pytest.raises(InputError, match="never overwritten"):
        derive.plan(built, {}, built, None, "shape")
    assert hashlib.sha256((built / "manifest.json").read_bytes()).hexdigest() == before


def test_a_stage_takes_its_own_fields_only(built: Path) -> None:
    with pytest.raises(ConfigError, match=r"'shape' can't change 'validity\.preset'"):
        derive.plan(built, {"validity.preset": "lenient"}, None, None, "shape")
    with pytest.raises(ConfigError, match="did you mean 'alignment'"):
        derive.plan(built, {"shaping.alignmet": "paper"}, None, None, "shape")
