from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from solar_rl import open_dataset, pipeline
from solar_rl.config import DatasetConfig
from solar_rl.errors import CheckFailed, ConfigError, InputError
from solar_rl.validate import validate

HERE = Path(__file__).parent


def config(**changes: object) -> DatasetConfig:
    options = changes.pop("options", {})
    limit = changes.pop("limit", None)
    rate = changes.pop("max_reject_rate", 0.05)
    source = {"builder": "toy_source:ToyBuilder", "options": options, "limit": limit, "max_reject_rate": rate}
    return DatasetConfig.model_validate({"name": "toy", "source": source, "shard_episodes": 3} | changes)


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("toy") / "ds"
    pipeline.build(config(), out)
    return out


def test_a_build_holds_every_file_of_the_contract(built: Path) -> None:
    there = {path.name for path in built.iterdir()}
    listed = {"README.md", "manifest.json", "views.sql", "report.html", "rejects.jsonl", "data"}
    assert there == listed | {"croissant.json", "episode.png"}
    tables = {path.name for path in (built / "data").iterdir()}
    assert tables == {"episodes", "steps", "images", "candidates", "rewards", "trajectories", "preview"}
    names = {path.name for path in (built / "data" / "steps").iterdir()}
    assert names == {f"{split}-00000-of-00001.parquet" for split in ("train", "validation", "test")}


def test_counts_agree_with_the_source(built: Path) -> None:
    counts = open_dataset(built).manifest.counts
    steps = sum(2 + index % 5 for index in range(12))
    assert counts["episodes"] == 12
    assert counts["steps"] == steps
    assert counts["candidates"] == counts["rewards"] == 8 * steps
    assert counts["trajectories"] == 12 * 8


def test_images_are_stored_once_in_the_first_split_that_uses_them(built: Path) -> None:
    images = pl.concat([pl.read_parquet(p) for p in (built / "data" / "images").glob("*.parquet")])
    used = open_dataset(built).steps.select("image_sha256").collect()["image_sha256"]
    assert images["sha256"].is_unique().all()
    assert set(images["sha256"]) == set(used)
    data = images["image"].struct.field("bytes")
    assert all(hashlib.sha256(d).hexdigest() == s for d, s in zip(data, images["sha256"], strict=True))
    train = pl.read_parquet(next((built / "data" / "images").glob("train-*.parquet")))
    shared = set(
        open_dataset(built).sql(
            "SELECT image_sha256 FROM steps JOIN episodes USING (episode_id) WHERE split = 'train'"
        )["image_sha256"]
    )
    assert set(train["sha256"]) == shared


def test_the_same_config_gives_the_same_bytes_whatever_the_unit_size(built: Path, tmp_path: Path) -> None:
    pipeline.build(config(shard_episodes=5), tmp_path / "ds")
    ours, theirs = hashes(built), hashes(tmp_path / "ds")
    assert ours == theirs


def test_a_second_build_with_nothing_changed_does_nothing(built: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.rglob("*") if path.is_file()}
    result = pipeline.build(config(), built)
    assert not result.changed
    assert before == {path: path.stat().st_mtime_ns for path in built.rglob("*") if path.is_file()}


def test_work_left_by_a_kill_after_the_manifest_is_cleared(built: Path) -> None:
    (built / ".build" / "0123").mkdir(parents=True)
    assert not pipeline.build(config(), built).changed
    assert not (built / ".build").exists()


def test_a_folder_of_another_dataset_is_refused(built: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds dataset 'toy'"):
        pipeline.build(config().model_copy(update={"name": "other"}), built)
    (tmp_path / "thesis.txt").write_text("do not delete")
    with pytest.raises(InputError, match=r"'thesis\.txt', which is no part of a dataset"):
        pipeline.build(config(), tmp_path)
    assert (tmp_path / "thesis.txt").exists()


@pytest.mark.parametrize("place", ["data/notes.txt", "data/mine/a.parquet", "data/steps/notes.txt"])
def test_files_of_the_user_are_never_deleted(tmp_path: Path, place: str) -> None:
    precious = tmp_path / "ds" / place
    precious.parent.mkdir(parents=True)
    precious.write_text("precious")
    with pytest.raises(InputError, match="no part of a dataset"):
        pipeline.build(config(), tmp_path / "ds")
    assert precious.read_text() == "precious"


def test_a_build_without_any_mistake_is_a_build(tmp_path: Path) -> None:
    perfect = {"type": "scripted", "n": 2, "error_rate": 0.0}
    pipeline.build(config(sampler=perfect), tmp_path / "ds")
    assert open_dataset(tmp_path / "ds").trajectories.collect()["success"].all()
    assert all(check.passed for check in validate(tmp_path / "ds"))


def test_a_build_whose_labels_can_not_be_judged_is_a_build(tmp_path: Path) -> None:
    options = {"fault": "off_screen_inferred", "episodes": 1, "broken": (0,)}
    pipeline.build(config(options=options), tmp_path / "ds")
    assert all(check.passed for check in validate(tmp_path / "ds"))


def test_an_episode_that_the_format_can_not_write_is_rejected(tmp_path: Path) -> None:
    phone = {"builder": "phone", "options": {"episodes": 8}}
    named = config(source=phone, prompt={"format": "agentcpm_gui"}, sampler={"type": "scripted", "n": 2})
    result = pipeline.build(named, tmp_path / "ds")
    assert result.rejects["format_lacks_action"] > 0
    assert result.counts["episodes"] == 8 - result.rejects["format_lacks_action"]


BUILDER = """
from solar_rl.actions import Action
from solar_rl.builder import Builder
from solar_rl.schema import Episode, Step

class Mine(Builder):
    name = "mine"
    needs_path = False
    def shards(self):
        return ["only"]
    def read(self, shard):
        BODY
"""
GOOD = "Episode('e', 'mine', 'android', 'go', (Step(0, Action('wait'), 9, 9),))"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("yield 5", "not int"),
        ("raise KeyError('x')", "failed: KeyError: 'x'"),
        (f"yield {GOOD.replace(chr(39) + 'go' + chr(39), 'None')}", "malformed episode"),
        ("yield Episode('e', 'mine', 'android', 'go', (Step(0, Action('click'), 9, 9),))", "click needs 'x'"),
        (
            f"yield {GOOD.replace('9, 9', '9, 9, screenshot=b' + chr(39) + 'x' + chr(39))}",
            "malformed episode",
        ),
    ],
)
def test_a_fault_of_a_users_builder_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    module = f"mine_{hashlib.sha256(body.encode()).hexdigest()[:8]}"
    (tmp_path / f"{module}.py").write_text(BUILDER.replace("BODY", body))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=re.escape(words)):
        pipeline.build(config(source={"builder": f"{module}:Mine"}), tmp_path / "ds")


def test_a_builder_needs_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nameless.py").write_text(BUILDER.replace('name = "mine"', "pass").replace("BODY", "yield"))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="has no name"):
        pipeline.build(config(source={"builder": "nameless:Mine"}), tmp_path / "ds")


def test_load_dataset_reads_every_table(built: Path) -> None:
    from datasets import load_dataset

    rewards = load_dataset(str(built), "rewards", split="train")
    assert rewards.num_rows == open_dataset(built).manifest.table_rows("rewards")["train"]
    preview = load_dataset(str(built), split="train")
    assert preview[0]["image"].size == (90, 160)


def test_limit_keeps_the_first_good_episodes(tmp_path: Path) -> None:
    result = pipeline.build(config(limit=4), tmp_path / "ds")
    assert result.counts["episodes"] == 4


def test_a_source_without_screenshots_builds(tmp_path: Path) -> None:
    result = pipeline.build(config(options={"screenshots": False}), tmp_path / "ds")
    assert result.counts["images"] == 0
    assert result.counts["episodes"] == 12


@pytest.mark.parametrize(
    ("fault", "reason", "words"),
    [
        ("off_screen", "off_screen", "lies outside the screen"),
        ("empty_text", "empty_text", "input_text has no text"),
        ("bad_image", "bad_image", "PNG"),
        ("wrong_image_size", "bad_image", "stated is 91x160"),
        ("bad_number", "bad_number", "a box is"),
        ("step_gap", "step_gap", "step 0 has index 1"),
        ("duplicate_id", "duplicate_id", "already read"),
        ("no_steps", "no_steps", "has no steps"),
        ("bad_split", "bad_split", "split is 'dev'"),
        ("empty_goal", "empty_text", "goal is empty"),
        ("screen_size", "bad_value", "screen_size is 'guess'"),
        ("short_box", "bad_value", "a box has 3 numbers"),
    ],
)
def test_a_broken_episode_is_rejected_with_its_reason_and_the_rest_is_built(
    tmp_path: Path, fault: str, reason: str, words: str
) -> None:
    result = pipeline.build(config(options={"fault": fault}), tmp_path / "ds")
    assert result.counts["episodes"] == 11
    assert result.rejects == {reason: 1}
    reject = json.loads((tmp_path / "ds" / "rejects.jsonl").read_text())
    assert reject["file"] == "odd"
    assert words in reject["message"]


def test_an_off_screen_label_of_an_inferred_screen_is_kept_and_unscored(tmp_path: Path) -> None:
    pipeline.build(config(options={"fault": "off_screen_inferred"}), tmp_path / "ds")
    rows = open_dataset(tmp_path / "ds").sql(
        "SELECT raw_score, valid, reward, advantage, unscored_reason FROM rewards "
        "WHERE episode_id = 'e003' AND step_index = 0"
    )
    assert rows.height == 8
    assert rows.drop("unscored_reason").null_count().row(0) == (8, 8, 8, 8)
    assert rows["unscored_reason"].null_count() == 0


def test_too_many_rejects_stop_the_build_from_200_episodes_on(tmp_path: Path) -> None:
    broken = tuple(range(0, 240, 8))
    options = {"episodes": 240, "fault": "no_steps", "broken": broken, "screenshots": False}
    with pytest.raises(CheckFailed, match="max_reject_rate 5%"):
        pipeline.build(config(options=options, sampler={"type": "scripted", "n": 2}), tmp_path / "ds")
    assert not (tmp_path / "ds" / "manifest.json").exists()
    few = config(options=options | {"episodes": 190}, sampler={"type": "scripted", "n": 2})
    assert pipeline.build(few, tmp_path / "few").rejects == {"no_steps": 24}


def test_a_source_that_gives_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gave no episode"):
        pipeline.build(config(options={"episodes": 0}), tmp_path / "ds")
    with pytest.raises(ConfigError, match=r"did you mean 'episodes'"):
        pipeline.build(config(options={"episods": 3}), tmp_path / "ds")


BUILD = """
import sys
sys.path.insert(0, {here!r})
from pathlib import Path
from test_pipeline import config
from solar_rl import pipeline
pipeline.build(config(options={{"episodes": 24}}, shard_episodes=2), Path(sys.argv[1]))
"""


def test_a_killed_build_goes_on_and_gives_the_same_bytes(tmp_path: Path) -> None:
    script = BUILD.format(here=str(HERE))
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "straight")], check=True)
    for seconds in (0.05, 0.3, 0.8):
        victim = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "killed")])
        work = tmp_path / "killed" / ".build"
        while victim.poll() is None and not list(work.glob("*/units-2/0*")):
            time.sleep(0.01)
        time.sleep(seconds)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        shutil.rmtree(tmp_path / ".killed.lock", ignore_errors=True)
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "killed")], check=True)
    assert hashes(tmp_path / "killed") == hashes(tmp_path / "straight")


def test_two_builds_at_once_the_second_is_refused(tmp_path: Path) -> None:
    from solar_rl.pipeline.work import locked

    with locked(tmp_path / "ds"), pytest.raises(InputError, match=f"pid {os.getpid()}"):
        pipeline.build(config(), tmp_path / "ds")


def test_a_changed_builder_makes_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    source = (HERE / "toy_source.py").read_text()
    for folder, text in (("one", source), ("two", source.replace("do thing", "do the thing"))):
        (tmp_path / f"toy_{folder}.py").write_text(text)
        named = config(source={"builder": f"toy_{folder}:ToyBuilder", "options": {"episodes": 2}})
        pipeline.build(named.model_copy(update={"name": folder}), tmp_path / folder)
    manifests = [open_dataset(tmp_path / folder).manifest for folder in ("one", "two")]
    different = {name for name, digest in manifests[0].code.items() if manifests[1].code[name] != digest}
    assert different == {"read builder toy"}
    assert manifests[0].build_id != manifests[1].build_id
