"""Splits, finer splits, and which rule chose a box: what AndroidControl's episodes say beside their steps."""

from __future__ import annotations

import json

import pytest
from android_control_writer import Recording, forest, node, notes_screen, window, write_shard

from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError

SUBSPLITS = {"IDD": [2], "app_unseen": [3, 4], "task_unseen": [4], "category_unseen": ["5"]}


@pytest.fixture
def shards(tmp_path):
    records = [Recording(episode_id=i) for i in range(1, 6)]
    write_shard(tmp_path / "android_control-00000-of-00001", records)
    return tmp_path


def test_finer_splits_come_from_the_file_beside_the_shards_or_from_the_option(shards, read):
    assert {e.subsplits for e in read("android_control", shards)} == {()}
    (shards / "splits.json").write_text(json.dumps({"train": [1], "test": [2, 3, 4, 5], "validation": []}))
    (shards / "test_subsplits.json").write_text(json.dumps(SUBSPLITS))
    episodes = read("android_control", shards)
    assert [e.subsplits for e in episodes] == [
        (),
        ("IDD",),
        ("app_unseen",),
        ("app_unseen", "task_unseen"),
        ("category_unseen",),
    ]
    assert [e.split for e in episodes] == ["train", "test", "test", "test", "test"]
    other = shards / "other.json"
    other.write_text(json.dumps({"IDD": [1, 1]}))
    assert read("android_control", shards, subsplits=str(other))[0].subsplits == ("IDD",)


def test_a_finer_split_is_one_of_the_test_split_where_no_splits_file_says_so(shards, read):
    (shards / "test_subsplits.json").write_text(json.dumps(SUBSPLITS))
    assert [e.split for e in read("android_control", shards)] == ["train", "test", "test", "test", "test"]


def test_both_files_are_part_of_what_a_build_is_made_of(shards):
    (shards / "splits.json").write_text("{}")
    (shards / "test_subsplits.json").write_text("{}")
    builder = load_builder(SourceConfig(builder="android_control", path=str(shards)))
    assert [file.name for file in builder.source_files()] == [
        "android_control-00000-of-00001",
        "splits.json",
        "test_subsplits.json",
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("splits.json", '{"train": [1], "test": ["1"]}', "episode 1 is in train and in test"),
        ("splits.json", '{"dev": []}', "unknown split 'dev'"),
        ("splits.json", "[1]", "expected an object of lists"),
        ("test_subsplits.json", '{"IDD": 3}', "expected an object of lists"),
        ("test_subsplits.json", "{", "can't be read as JSON"),
    ],
)
def test_a_broken_file_of_splits_is_said_before_any_work(shards, read, name, text, message):
    (shards / name).write_text(text)
    with pytest.raises(ConfigError, match=message):
        read("android_control", shards)
    with pytest.raises(ConfigError, match="no such file"):
        read("android_control", shards, subsplits=str(shards / "absent.json"), splits=str(shards / "no.json"))


def test_the_rule_that_chose_a_box_is_named(read_shard):
    alone = forest(window([node((80, 20, 100, 30), text="Close ad")]))
    clicks = [{"action_type": "click", "x": x, "y": y} for x, y in ((35, 115), (90, 25), (5, 5))]
    trees = [notes_screen(), alone, alone, alone]
    [episode] = read_shard([Recording(actions=clicks, trees=trees)])
    assert [s.box_rule for s in episode.steps] == ["smallest_clickable", "smallest", None]
    assert [s.target_box is None for s in episode.steps] == [False, False, True]
