"""A rebuild runs the stages that a change touches, keeps the rest as it is, and says why."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from test_pipeline import config, hashes

from solar_rl import open_dataset, pipeline
from solar_rl.errors import InputError
from solar_rl.pipeline import Options
from solar_rl.pipeline.code import builder_code, code_behind
from solar_rl.pipeline.hashes import FileHashes

SAMPLED = ("episodes", "steps", "images", "candidates")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rebuild") / "toy-1.0.0"
    pipeline.build(config(), out)
    return out


@pytest.fixture
def built(first: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(first, tmp_path / "toy-1.0.0"))


def forbid_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("a sampler was set up")

    monkeypatch.setattr("solar_rl.sampling.make_sampler", refuse)


def told(out: Path, **changes: Any) -> dict[str, Any]:
    return pipeline.plan(config(**changes), out)


@pytest.mark.parametrize(
    ("changes", "runs"),
    [
        ({"description": "new words"}, ("write",)),
        ({"version": "1.0.1"}, ("write",)),
        ({"shaping": {"alignment": "paper"}}, ("shape", "write")),
        ({"validity": {"preset": "lenient"}}, ("score", "shape", "write")),
        ({"sampler": {"n": 4}}, ("read", "sample", "score", "shape", "write")),
    ],
)
def test_a_change_runs_its_stage_and_what_follows(
    built: Path,
    tmp_path: Path,
    changes: dict[str, Any],
    runs: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = told(built, **changes)
    assert tuple(stage for stage in pipeline.keys.STAGES if plan[stage] != "keep") == runs
    before = {
        table: (built / "data" / table / "train-00000-of-00001.parquet").stat().st_ino for table in SAMPLED
    }
    if "sample" not in runs:
        forbid_sampling(monkeypatch)
    result = pipeline.build(config(**changes), built)
    assert isinstance(result, pipeline.Built)
    assert result.ran == runs
    after = {
        table: (built / "data" / table / "train-00000-of-00001.parquet").stat().st_ino for table in SAMPLED
    }
    assert (after == before) == ("sample" not in runs)
    monkeypatch.undo()
    monkeypatch.syspath_prepend(Path(__file__).parent)
    pipeline.build(config(**changes), tmp_path / "elsewhere" / "ds")
    assert hashes(built) == hashes(tmp_path / "elsewhere" / "ds")


def test_the_plan_names_the_field_the_module_and_the_stage_before(built: Path) -> None:
    plan = told(built, shaping={"alignment": "paper"})
    assert plan["shape"] == "run: config shaping.alignment: segments -> paper"
    assert plan["write"] == "run: shape runs"
    assert plan["sample"] == "keep"
    assert told(built, sampler={"n": 4})["sample"] == "run: config sampler.n: 8 -> 4"
    assert "config source.options.episodes: None -> 10" in told(built, options={"episodes": 10})["read"]
    manifest = open_dataset(built).manifest
    changed = manifest.model_copy(
        update={
            "code": manifest.code | {"score solar_rl.validity": "0" * 16},
            "stages": manifest.stages | dict.fromkeys(("score", "shape", "write"), "0" * 16),
            "build_id": "0" * 16,
        }
    )
    from solar_rl.store.manifest import write_manifest

    write_manifest(built, changed)
    assert told(built)["score"] == "run: code of solar_rl.validity"
    assert told(built)["read"] == "keep"


def test_a_new_version_starts_from_the_one_beside_it(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_sampling(monkeypatch)
    new = built.parent / "toy-1.1.0"
    result = pipeline.build(config(version="1.1.0", shaping={"alignment": "off"}), new)
    assert isinstance(result, pipeline.Built)
    assert result.kept_from == built
    assert (new / "data/candidates/train-00000-of-00001.parquet").samefile(
        built / "data/candidates/train-00000-of-00001.parquet"
    )


def test_a_broken_folder_beside_it_is_no_hindrance(built: Path) -> None:
    (built.parent / "toy-0.1.0").mkdir()
    (built.parent / "toy-0.1.0" / "manifest.json").write_text('{"schema_version": 99}')
    assert told(built.parent / "toy-1.1.0", version="1.1.0")["would do"] == "write"


def test_from_a_version_with_other_candidates_is_refused_with_the_reason(built: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config sampler\.n: 8 -> 4"):
        pipeline.build(config(sampler={"n": 4}), tmp_path / "new", options=Options(base=built))


def test_a_damaged_dataset_is_no_base(built: Path) -> None:
    path = built / "data/candidates/train-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    assert told(built, shaping={"alignment": "paper"})["sample"] != "keep"
    result = pipeline.build(config(), built)
    assert result.changed  # type: ignore[union-attr]


def test_speed_only_fields_change_nothing(built: Path) -> None:
    faster = config(shard_episodes=7, executor={"workers": 3})
    assert not pipeline.build(faster, built).changed  # type: ignore[union-attr]


def test_a_recorded_file_that_changed_samples_again(tmp_path: Path) -> None:
    from solar_rl.pipeline.keys import sampler_files

    answers = tmp_path / "answers.jsonl"
    answers.write_text("{}")
    named = config(sampler={"type": "recorded", "path": str(answers)})
    before = sampler_files(named, FileHashes(None))
    answers.write_text("{ }")
    assert before.keys() == {"sampler.path/answers.jsonl"} == sampler_files(named, FileHashes(None)).keys()
    assert before != sampler_files(named, FileHashes(None))


def test_hashes_are_remembered_and_can_be_distrusted(tmp_path: Path) -> None:
    file, cache = tmp_path / "source", tmp_path / "cache"
    file.write_text("one")
    old = time.time_ns() - 10_000_000_000
    import os

    os.utime(file, ns=(old, old))
    hashed = FileHashes(cache)
    digest = hashed.sha256(file)
    hashed.save()
    file.write_text("two")  # same size, and the clock is put back: only a distrustful look sees it
    os.utime(file, ns=(old, old))
    assert FileHashes(cache).sha256(file) == digest
    assert FileHashes(cache, trust=False).sha256(file) != digest
    os.utime(file, ns=(old + 1, old + 1))
    assert FileHashes(cache).sha256(file) != digest
    (cache / "hashes.json").write_text("torn")
    assert FileHashes(cache).sha256(file) != digest


def test_stages_hang_on_their_own_modules_alone() -> None:
    sample = code_behind(["solar_rl.sampling.drive"], without=["solar_rl.sampling.judged"])
    assert {"solar_rl.prompts", "solar_rl.schema"} <= sample.keys()
    assert not {
        name for name in sample if name.startswith(("solar_rl.report", "solar_rl.train", "solar_rl.stats"))
    }
    assert "solar_rl.validity" not in sample
    shape = code_behind(["solar_rl.shaping"])
    assert {"solar_rl.advantage", "solar_rl.reconstruct"} <= shape.keys()
    assert "solar_rl.validity" not in shape


def test_a_builder_hangs_on_what_it_imports_and_on_no_other_builder(tmp_path: Path, monkeypatch) -> None:
    files = {
        "__init__": "",
        "_shared": "LIMIT = 1",
        "one": "from ._shared import LIMIT\nclass One: ...",
        "two": "from solar_rl.lines import is_gzip\nclass Two: ...",
    }
    folder = tmp_path / "builders"
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    spec = importlib.util.spec_from_file_location(
        "builders", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    monkeypatch.setitem(sys.modules, "builders", importlib.util.module_from_spec(spec))
    for name in ("_shared", "one", "two"):
        monkeypatch.delitem(sys.modules, f"builders.{name}", raising=False)
    one = importlib.import_module("builders.one").One
    two = importlib.import_module("builders.two").Two
    before = builder_code(one), builder_code(two)
    (folder / "_shared.py").write_text("LIMIT = 2")
    assert builder_code(one) != before[0] and builder_code(two) == before[1]
    (folder / "two.py").write_text("from solar_rl.peek import first_objects\nclass Two: ...")
    assert builder_code(two) != before[1]
