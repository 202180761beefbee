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


def _files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("name", ["toy", "another"])
def test_no_finished_dataset_is_overwritten_whatever_its_name(built: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    pipeline.build(config(name=name, version="7.0.0"), victim)
    before = _files(victim)
    with pytest.raises(InputError, match=rf"holds {name} 7\.0\.0.*never overwritten"):
        derive.plan(built, {"shaping.alignment": "paper"}, victim, None, "shape")
    planned = derive.draft(built, {"shaping.alignment": "paper"}, victim, None, "shape")
    with pytest.raises(InputError, match="never overwritten"):  # it came there after the plan
        derive.run(planned)
    assert _files(victim) == before


def test_the_folder_beside_is_no_exception(built: Path) -> None:
    derive.run(derive.plan(built, {"shaping.alignment": "paper"}, None, "5.0.0", "shape"))
    with pytest.raises(InputError, match=r"holds toy 5\.0\.0"):
        derive.plan(built, {"shaping.alignment": "off"}, None, "5.0.0", "shape")


def test_the_same_version_again_is_nothing_to_do(built: Path, tmp_path: Path) -> None:
    first, again = (
        derive.run(derive.plan(built, {"shaping.alignment": "paper"}, tmp_path / "x", None, "shape"))
        for _ in range(2)
    )
    assert (first.changed, again.changed, first.build_id == again.build_id) == (True, False, True)
    planned = derive.plan(built, {"shaping.alignment": "paper"}, tmp_path / "x", None, "shape")
    assert planned.as_dict()["would do"] == "nothing: this version is there"


def test_a_damaged_version_is_made_again(built: Path, tmp_path: Path) -> None:
    planned = derive.plan(built, {"shaping.alignment": "paper"}, tmp_path / "x", None, "shape")
    derive.run(planned)
    before = _files(tmp_path / "x")
    next((tmp_path / "x" / "data" / "rewards").iterdir()).unlink()
    assert derive.run(planned).changed
    assert _files(tmp_path / "x") == before


@pytest.mark.parametrize("after", [0, 4, "manifest.json"])
def test_a_derivation_that_was_stopped_while_it_took_its_place_goes_on(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int | str
) -> None:
    planned = derive.plan(built, {"shaping.alignment": "paper"}, tmp_path / "x", None, "shape")
    renamed, rename = [], Path.rename

    def stopped(path: Path, target: Path) -> Path:
        if after == len(renamed) or target == tmp_path / "x" / str(after):
            raise KeyboardInterrupt
        renamed.append(path)
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", stopped)
        with pytest.raises(KeyboardInterrupt):
            derive.run(planned)
    assert not (tmp_path / "x" / "manifest.json").exists()
    again = derive.plan(built, {"shaping.alignment": "paper"}, tmp_path / "x", None, "shape")
    assert derive.run(again).changed
    derive.run(derive.plan(built, {"shaping.alignment": "paper"}, tmp_path / "y", None, "shape"))
    assert _files(tmp_path / "x") == _files(tmp_path / "y")


def test_what_was_sampled_for_an_unfinished_build_stays(built: Path, tmp_path: Path) -> None:
    work = tmp_path / "x" / ".build" / "0123456789abcdef" / "units-8"
    work.mkdir(parents=True)
    (work / "unit").write_text("dear")
    with pytest.raises(InputError, match=r"holds '\.build/0123456789abcdef'"):
        derive.plan(built, {"shaping.alignment": "paper"}, tmp_path / "x", None, "shape")
    assert (work / "unit").read_text() == "dear"


def test_tables_whose_manifest_is_lost_stay(built: Path, tmp_path: Path) -> None:
    pipeline.build(config(name="another"), tmp_path / "x")
    (tmp_path / "x" / "manifest.json").unlink()
    before = _files(tmp_path / "x")
    with pytest.raises(InputError, match="no part of this version"):
        derive.plan(built, {"shaping.alignment": "paper"}, tmp_path / "x", None, "shape")
    assert _files(tmp_path / "x") == before


def test_a_stage_takes_its_own_fields_only(built: Path) -> None:
    with pytest.raises(ConfigError, match=r"'shape' can't change 'validity\.preset'"):
        derive.plan(built, {"validity.preset": "lenient"}, None, None, "shape")
    with pytest.raises(ConfigError, match="did you mean 'alignment'"):
        derive.plan(built, {"shaping.alignmet": "paper"}, None, None, "shape")
