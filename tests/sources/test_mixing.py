"""Several sources become one: what is drawn depends on seed and id alone, and what isn't is counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solar_rl import pipeline
from solar_rl.builder import load_builder
from solar_rl.config import DatasetConfig, SourceConfig, load_dataset_config
from solar_rl.errors import CheckFailed, ConfigError, InputError
from solar_rl.mixing import Mix
from solar_rl.schema import Episode, Reject
from solar_rl.shipped import shipped_path
from solar_rl.store.dataset import open_dataset

sys.path.append(str(Path(__file__).parents[1] / "builders"))  # its writers of the sources' files

from android_control_writer import Recording, write_shard
from gui_odyssey_writer import CLICK, DONE, annotation
from gui_odyssey_writer import write as write_odyssey

NUMBERED, COUSIN = "numbered_source:Numbered", "numbered_source:Cousin"


def mix(**sources) -> Mix:
    more = {name: sources.pop(name) for name in ("seed", "episodes", "splits") if name in sources}
    return load_builder(SourceConfig(sources=sources, **more))


def items(builder):
    return [item for shard in builder.shards() for item in builder.read(shard)]


def ids(builder) -> list[str]:
    return sorted(item.episode_id for item in items(builder) if isinstance(item, Episode))


def block(builder=NUMBERED, count=20, **more):
    options = {
        name: more.pop(name) for name in ("shards", "backwards", "broken", "license", "shots") if name in more
    }
    return {"builder": builder, "options": {"count": count, **options}, **more}


def test_ids_are_led_by_their_source_and_the_rest_is_untouched():
    both = mix(a=block(count=2), b=block(COUSIN, count=2))
    assert ids(both) == ["a:0", "a:1", "b:0", "b:1"]
    assert both.shards() == ["a/part-0", "a/part-1", "b/part-0", "b/part-1"]
    assert {item.source for item in items(both)} == {"numbered", "cousin"}
    assert both.filtered() == {}, "nothing was left out, and nothing read twice for it"


def test_a_missing_path_is_asked_for_by_the_key_of_its_source():
    with pytest.raises(ConfigError, match=r"source 'gui_odyssey'.*add --sources\.gui_odyssey\.path "):
        mix(gui_odyssey={})


def test_rejects_name_their_source():
    [reject] = [i for i in items(mix(a=block(count=3, broken=(1,)))) if isinstance(i, Reject)]
    assert (reject.file, reject.episode_id, reject.reason) == ("a/part-1", "a:1", "bad_json")


@given(
    st.integers(1, 30),
    st.integers(0, 3),
    st.integers(1, 7),
    st.booleans(),
    st.integers(1, 7),
)
def test_a_draw_hangs_on_seed_and_ids_alone(wanted, seed, shards, backwards, others):
    one = mix(seed=seed, a=block(count=30, episodes=wanted, shards=others))
    two = mix(seed=seed, a=block(count=30, episodes=wanted, shards=shards, backwards=backwards))
    assert ids(one) == ids(two) and len(ids(one)) == wanted
    fewer = mix(seed=seed, a=block(count=30, episodes=max(1, wanted - 3)))
    assert set(ids(fewer)) <= set(ids(one)), "a larger draw holds the smaller one"


def test_another_seed_draws_others_and_each_source_draws_its_own():
    drawn = [ids(mix(seed=seed, a=block(count=200, episodes=20))) for seed in (0, 1)]
    assert drawn[0] != drawn[1]
    both = mix(a=block(count=200, episodes=20), b=block(count=200, episodes=20))
    numbers = [{i.partition(":")[2] for i in ids(both) if i.startswith(name)} for name in "ab"]
    assert len(numbers[0]) == len(numbers[1]) == 20 and numbers[0] != numbers[1]


def test_every_episode_is_as_likely_as_any_other():
    times = dict.fromkeys(range(40), 0)
    for seed in range(300):
        for each in ids(mix(seed=seed, a=block(count=40, episodes=10))):
            times[int(each.partition(":")[2])] += 1
    assert max(abs(n - 75) for n in times.values()) < 40, "75 expected, deviation 7.5"


def test_shares_divide_a_given_total_or_the_largest_possible_one():
    third = mix(episodes=12, a=block(count=20, share=2), b=block(count=20, share=1))
    assert [sum(i.startswith(name) for i in ids(third)) for name in "ab"] == [8, 4]
    largest = mix(a=block(count=20, share=0.5), b=block(count=6, share=0.25), c=block(count=90, share=0.25))
    assert [sum(i.startswith(name) for i in ids(largest)) for name in "abc"] == [12, 6, 6]
    assert largest.filtered()["b"] == {"good": 6, "drawn": 6}
    assert largest.filtered()["c"] == {"good": 90, "not_drawn": 84, "drawn": 6}


@given(
    st.lists(st.integers(1, 50), min_size=2, max_size=4),
    st.lists(st.integers(1, 9), min_size=4, max_size=4),
)
def test_no_source_gives_more_than_it_has(counts, shares):
    blocks = {
        f"s{i}": block(count=count, share=share)
        for i, (count, share) in enumerate(zip(counts, shares, strict=False))
    }
    drawn = [found["drawn"] for found in mix(**blocks).filtered().values()]
    assert all(n <= count for n, count in zip(drawn, counts, strict=True))
    whole = sum(shares[: len(counts)])
    for n, share in zip(drawn, shares, strict=False):
        assert abs(n - sum(drawn) * share / whole) < 1


def test_a_source_with_too_few_says_what_is_missing():
    assert mix(a=block(count=5, episodes=9)).filtered() == {"a": {"good": 5, "drawn": 5, "missing": 4}}
    short = mix(episodes=20, a=block(count=5, share=1), b=block(count=20, share=1))
    assert short.filtered()["a"] == {"good": 5, "drawn": 5, "missing": 5}


@pytest.mark.parametrize(
    ("filters", "kept", "reasons"),
    [
        ({"min_steps": 2, "max_steps": 4}, "1 2 3 6 7 8", {"too_short": 2, "too_long": 2}),
        ({"action_types": ["press"]}, "0 4 8", {"action_type": 7}),
        ({"subsplits": ["odd", "x"]}, "1 3 5 7 9", {"subsplit": 5}),
        ({"platforms": ["web"]}, "", {"platform": 10}),
        ({"licenses": ["cc0-1.0"]}, "", {"license": 10}),
        ({"licenses": ["mit"]}, "0 1 2 3 4 5 6 7 8 9", {}),
        ({"success": "not_failed"}, "0 2 3 5 6 8 9", {"failed": 3}),
        ({"success": "recorded"}, "0 3 6 9", {"failed": 3, "success_unknown": 3}),
        ({"screenshots": True}, "", {"no_screenshot": 10}),
        ({"goal_scripts": ["latin"]}, "1 2 3 4 5 6 8 9", {"goal_script": 2}),
        ({"goal_scripts": ["CJK"]}, "0 7", {"goal_script": 8}),
    ],
)
def test_filters_keep_what_they_say_and_count_the_rest_by_reason(filters, kept, reasons):
    through = mix(a=block(count=10, filters=filters))
    assert ids(through) == [f"a:{n}" for n in kept.split()]
    assert through.filtered() == {"a": {"good": 10, **reasons, "drawn": len(kept.split())}}


def test_splits_filter_before_the_draw():
    both = mix(a=block(count=40, splits="test", episodes=3), b=block(count=40))
    assert [i for i in ids(both) if i.startswith("a")] and both.filtered()["a"]["split"] == 36
    assert {i.split for i in items(both) if i.episode_id.startswith("a:")} == {"test"}
    assert both.filtered()["a"]["drawn"] == 3
    all_test = mix(splits="test", a=block(count=40), b=block(count=40))
    assert {i.split for i in items(all_test)} == {"test"}


def test_one_source_with_filters_keeps_its_ids():
    alone = load_builder(
        SourceConfig(builder=NUMBERED, options={"count": 10}, filters={"success": "recorded"})
    )
    assert ids(alone) == ["0", "3", "6", "9"] and alone.shards() == ["part-0", "part-1"]
    assert alone.filtered() == {"numbered": {"good": 10, "failed": 3, "success_unknown": 3, "drawn": 4}}


def test_the_validity_of_a_reference_policy_filters(tmp_path):
    rewards = pl.DataFrame(
        {
            "episode_id": ["0", "0", "1", "1", "a:2", "a:2", "3"],
            "valid": [True, True, True, False, False, False, None],
        }
    )
    (tmp_path / "data" / "rewards").mkdir(parents=True)
    rewards.write_parquet(tmp_path / "data" / "rewards" / "train-00000-of-00001.parquet")
    (tmp_path / "manifest.json").write_text("{}")
    filters = {"reference": str(tmp_path), "min_validity": 0.1, "max_validity": 0.9}
    asked = mix(a=block(count=4, filters=filters))
    assert ids(asked) == ["a:1"], "always right, half right, always wrong, never judged"
    found = {"not_in_reference": 1, "validity_above": 1, "validity_below": 1}
    assert asked.filtered() == {"a": {"good": 4, **found, "drawn": 1}}
    assert [name for name, _ in asked.named_files()] == ["reference-0/manifest.json"]
    with pytest.raises(ConfigError, match="no finished dataset"):
        mix(a=block(filters={**filters, "reference": str(tmp_path / "absent")}))


def test_many_broken_records_stop_a_mix_by_their_share_of_the_source_not_of_the_draw():
    few = block(count=300, broken=tuple(range(10)), episodes=5)
    assert len(ids(mix(a=few))) == 5, "10 of 300 are broken, which is no 5 %"
    with pytest.raises(CheckFailed, match="source a") as error:
        mix(a=block(count=300, broken=tuple(range(250, 300)))).filtered()
        mix(a=block(count=300, broken=tuple(range(0, 300, 3)), episodes=5)).filtered()
    assert "max_reject_rate 5%" in str(error.value)


def test_a_second_process_finds_what_the_first_has_drawn(tmp_path, monkeypatch):
    first = mix(a=block(count=30, episodes=4))
    first.prepare(tmp_path)
    second = mix(a=block(count=30, episodes=4))
    monkeypatch.setattr(Mix, "_survey", lambda *_: pytest.fail("read twice"))
    second.prepare(tmp_path)
    assert ids(first) == ids(second) and first.filtered() == second.filtered()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"sources": {"a": block(episodes=3, share=1)}}, "give episodes or share"),
        ({"sources": {"a": block(share=1), "b": block()}}, "every source a share"),
        ({"sources": {"a": block()}, "episodes": 5}, "they have none"),
        ({"sources": {"a": block()}, "path": "x"}, "none in common"),
        ({"sources": [block(), block()]}, "two sources are named"),
        ({"sources": {"a b": block()}}, "sources"),
        ({"builder": NUMBERED, "episodes": 3}, "one source has limit"),
        ({"sources": {"a": {"builder": NUMBERED, "filters": {"min_steps": 5, "max_steps": 2}}}}, "is above"),
        ({"sources": {"a": block(filters={"action_types": ["tap"]})}}, "unknown type 'tap'"),
        ({"sources": {"a": block(filters={"min_validity": 0.5})}}, "need reference"),
        ({"sources": {"a": block(episodes=0)}}, "greater than or equal to 1"),
        ({}, "builder is missing"),
    ],
)
def test_a_wrong_mix_is_one_clear_line(tmp_path, source, message):
    file = tmp_path / "dataset.yaml"
    file.write_text(json.dumps({"name": "m", "source": source}))
    with pytest.raises(ConfigError, match=message):
        load_dataset_config(file)


def test_a_wrong_source_is_named():
    with pytest.raises(ConfigError, match=r"needs source\.path") as error:
        mix(ui_s1={})
    assert "source 'ui_s1'" in str(error.value)
    with pytest.raises(ConfigError, match="no builder is named 'nothing'"):
        mix(nothing={})
    with pytest.raises(InputError, match="builder 'numbered_source:Faulty' failed: ZeroDivisionError: oops"):
        items(mix(a=block("numbered_source:Faulty")))


CONFIG = """
name: mixed
sources:
  a: {builder: "numbered_source:Numbered", options: {count: 12, shots: true}, episodes: 6}
  b: {builder: "numbered_source:Cousin", options: {count: 12, shots: true, broken: [3]}, filters: {max_steps: 3}}
prompt: {format: json, observation: text}
sampler: {type: scripted, n: 2}
shard_episodes: 4
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "dataset.yaml").write_text(CONFIG)
    config = load_dataset_config(folder / "dataset.yaml")
    return folder, config, pipeline.build(config, folder / "out")


def test_a_mix_builds_like_any_source(built):
    folder, _, result = built
    assert result.filtered == {
        "a": {"good": 12, "not_drawn": 6, "drawn": 6},
        "b": {"good": 11, "too_long": 3, "drawn": 8},
    }
    assert result.rejects == {"bad_json": 1}
    data = open_dataset(folder / "out")
    assert data.sql("SELECT source, count(*) AS n FROM episodes GROUP BY source ORDER BY source").rows() == [
        ("cousin", 8),
        ("numbered", 6),
    ]
    assert data.manifest.filtered == result.filtered
    assert set(data.manifest.config["source"]["sources"]) == {"a", "b"}


def test_one_screenshot_of_two_sources_and_splits_is_stored_once(built):
    folder, _, _ = built
    rows = open_dataset(folder / "out").sql(
        "SELECT (SELECT count(*) FROM images) AS stored, count(DISTINCT source) AS sources,"
        " count(DISTINCT split) AS splits, count(image_sha256) AS shown FROM steps JOIN episodes USING (episode_id)"
    )
    assert rows.rows() == [(1, 2, 2, 14)]


def test_the_card_lists_every_source_with_its_licence_and_what_was_left_out(built):
    folder, _, _ = built
    card = (folder / "out" / "README.md").read_text()
    assert "license: other" in card, "two licences are not one"
    for line in (
        "| numbered | mit | https://example.org/numbered |",
        "| cousin | cc-by-4.0 | https://example.org/cousin |",
        "| source | good | not drawn | too long | drawn |",
        "| a | 12 | 6 | 0 | 6 |",
        "@misc{numbered}",
        "@misc{cousin}",
    ):
        assert line in card, line


def test_the_same_mix_written_as_a_list_or_in_another_order_is_the_same_build(built, tmp_path):
    _, config, result = built
    data = config.model_dump(mode="json")
    sources = data["source"]["sources"]
    listed = [{"name": name, **sources[name]} for name in reversed(sources)]
    again = DatasetConfig.model_validate({**data, "source": {**data["source"], "sources": listed}})
    other = pipeline.build(again, tmp_path / "out")
    assert other.build_id == result.build_id
    files = [{f.path: f.sha256 for f in open_dataset(r.folder).manifest.files} for r in (result, other)]
    assert files[0] == files[1]


def test_a_build_again_does_nothing(built):
    folder, config, result = built
    again = pipeline.build(config, folder / "out")
    assert not again.changed and again.filtered == result.filtered


def test_paths_of_the_machine_stay_out_of_the_manifest(tmp_path):
    lines = {"goal": "wait", "steps": [{"action_content": {"action": "wait"}, "screenshot": "5_0.png"}]}
    (tmp_path / "lines.jsonl").write_text(json.dumps(lines))
    path = str(tmp_path / "lines.jsonl")
    config = DatasetConfig(
        name="m", source=SourceConfig(sources={"ui_s1": {"path": path}}), sampler={"type": "scripted", "n": 2}
    )
    built = pipeline.build(config, tmp_path / "out")
    text = (built.folder / "manifest.json").read_text()
    assert str(tmp_path) not in text
    assert json.loads(text)["source_files"][0]["path"] == "ui_s1/lines.jsonl"


def test_a_source_of_the_mix_is_set_on_the_command_line(tmp_path):
    file = tmp_path / "dataset.yaml"
    file.write_text("name: m\nsources: {ui_s1: {episodes: 3}}\n")
    config = load_dataset_config(file, {"sources.ui_s1.path": "there", "sources.ui_s1.episodes": "2"})
    [(_, found)] = config.source.sources.items()
    assert (found.path, found.episodes) == ("there", 2)
    with pytest.raises(ConfigError, match=r"sources\.ui_s1\.pth"):
        load_dataset_config(file, {"sources.ui_s1.pth": "x"})


def test_a_source_of_a_list_is_set_by_its_name(tmp_path):
    file = tmp_path / "dataset.yaml"
    file.write_text("name: m\nsources: [{builder: ui_s1, episodes: 3}, {name: b, builder: jsonl, path: x}]\n")
    config = load_dataset_config(file, {"sources.ui_s1.path": "there", "sources.b.episodes": "2"})
    found = config.source.sources
    assert (found["ui_s1"].path, found["ui_s1"].episodes, found["b"].episodes) == ("there", 3, 2)
    file.write_text("name: m\nsource: {sources: [{builder: ui_s1}]}\n")
    again = load_dataset_config(file, {"source.sources.ui_s1.path": "there"})
    assert again.source.sources["ui_s1"].path == "there"
    file.write_text("name: m\nsources: [{builder: ui_s1}, {builder: ui_s1}]\n")
    with pytest.raises(ConfigError, match="two sources are named 'ui_s1'"):
        load_dataset_config(file, {"sources.ui_s1.path": "there"})


def test_the_shipped_mix_builds_from_files_of_its_sources(tmp_path):
    """On a few generated episodes: an Odyssey episode without all its screenshots, and one that gave up, stay out."""
    annotations = [annotation(CLICK, DONE, episode=f"{n:04d}") for n in range(4)]
    gave_up = {"action": "INCOMPLETE", "info": "", "ps": "no such shop"}
    annotations.append(annotation(CLICK, gave_up, episode="0004"))
    write_odyssey(tmp_path / "odyssey", annotations, missing=["0003_0.png"])
    (tmp_path / "control").mkdir()
    for shard in range(2):
        records = [Recording(episode_id=10 * shard + n) for n in range(3)]
        write_shard(tmp_path / "control" / f"android_control-0000{shard}-of-00002", records)
    paths = {"android_control": tmp_path / "control", "gui_odyssey": tmp_path / "odyssey"}
    given = {f"sources.{name}.path": str(path) for name, path in paths.items()}
    given |= {"sources.android_control.episodes": "4", "sampler.n": "2"}
    files = []
    for workers in (1, 2):
        config = load_dataset_config(
            shipped_path("datasets", "solar_mix", "dataset.yaml"), given | {"executor.workers": str(workers)}
        )
        built = pipeline.build(config, tmp_path / f"out{workers}")
        files.append({f.path: f.sha256 for f in open_dataset(built.folder).manifest.files})
    assert files[0] == files[1], "two workers draw and write what one does"
    assert built.filtered == {
        "android_control": {"good": 6, "not_drawn": 2, "drawn": 4},
        "gui_odyssey": {"good": 5, "failed": 1, "no_screenshot": 1, "drawn": 3, "missing": 1397},
    }
    assert built.counts["episodes"] == 7
