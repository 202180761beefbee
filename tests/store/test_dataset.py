"""A dataset folder reads back the same through polars, Hugging Face datasets, and its card."""

import json
import subprocess
import sys

import polars as pl
import pytest
import yaml
from lawful_dataset import CONFIG, tables, write_small_dataset
from polars.testing import assert_frame_equal

import solar_rl
from solar_rl.columns import polars_schema
from solar_rl.errors import InputError
from solar_rl.schema import SPLITS, TABLES
from solar_rl.store import hub
from solar_rl.store.card import Attribution, figure, front_matter, markdown_table, render_card
from solar_rl.store.manifest import (
    FileEntry,
    Manifest,
    describe_files,
    make_build_id,
    read_manifest,
    write_manifest,
    write_text,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small_dataset(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("hf_cache"))


def load(folder, cache, name=None):
    from datasets import load_dataset

    return load_dataset(str(folder), name, cache_dir=cache)


# load_dataset


@pytest.mark.parametrize("table", TABLES)
def test_load_dataset_gives_every_row_of_every_table(folder, cache, table):
    loaded = load(folder, cache, table)
    assert list(loaded) == list(SPLITS)
    assert {split: len(rows) for split, rows in loaded.items()} == read_manifest(folder).table_rows(table)
    assert loaded["train"].column_names == list(TABLES[table].names)


def test_load_dataset_opens_the_preview_with_decoded_screenshots(folder, cache):
    row = load(folder, cache)["train"][0]
    assert list(row) == list(TABLES["preview"].names)
    assert row["image"].size == (36, 80)


def test_tables_without_rows_break_no_other_table(tmp_path, cache):
    frames = tables(4)
    frames["images"] = frames["images"].clear()
    frames["steps"] = frames["steps"].with_columns(image_sha256=pl.lit(None, pl.String))
    frames["preview"] = pl.DataFrame(schema=polars_schema("preview"))
    data = solar_rl.open_dataset(write_small_dataset(tmp_path, frames))
    assert data.images.collect().height == data.sql("FROM images").height == 0
    assert load(data.path, cache)["train"].column_names == list(TABLES["episodes"].names)  # the next config
    assert len(load(data.path, cache, "rewards")["train"]) > 0
    with pytest.raises(InputError, match="'images' has no rows"):
        data.to_hf("images")


def test_to_hf_is_load_dataset(folder, monkeypatch, cache):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", cache)
    loaded = solar_rl.open_dataset(folder).to_hf("trajectories")
    assert loaded["train"]["success"][:3] == load(folder, cache, "trajectories")["train"]["success"][:3]
    with pytest.raises(InputError, match="preview"):
        solar_rl.open_dataset(folder).to_hf("previews")


# SolarDataset


@pytest.mark.parametrize("table", [name for name in TABLES if name != "preview"])
def test_lazy_frames_hold_what_was_written(folder, table):
    found = getattr(solar_rl.open_dataset(folder), table).collect(engine="in-memory")
    key = TABLES[table].key
    wanted = tables()[table].select(TABLES[table].names)
    assert_frame_equal(found.sort(key), wanted.sort(key))


def test_one_split_alone(folder):
    data = solar_rl.open_dataset(str(folder))
    assert set(data.table("episodes", "test").collect()["split"]) == {"test"}
    assert "small 1.0.0" in repr(data)


def test_sql_answers_with_a_polars_frame(folder):
    data = solar_rl.open_dataset(folder)
    assert data.sql("SELECT count(*) AS n FROM episodes").rows() == [(18,)]
    assert data.sql("SELECT count(*) AS n FROM steps").item() == data.manifest.counts["steps"]


def test_a_folder_with_odd_characters_in_its_name(tmp_path):
    folder = write_small_dataset(tmp_path / "it's [a] *star* 'n' 100%", tables(3))
    data = solar_rl.open_dataset(folder)
    assert data.episodes.collect().height == data.sql("SELECT count(*) FROM episodes").item() == 3


def test_an_unfinished_build_is_no_dataset(tmp_path):
    folder = write_small_dataset(tmp_path / "d", tables(3))
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match="unfinished build"):
        solar_rl.open_dataset(folder)


@pytest.mark.parametrize("text", ["./nowhere/at/all", "/nowhere", "just-a-name"])
def test_no_such_dataset(text):
    with pytest.raises(InputError, match=r"no such folder.*owner/name"):
        solar_rl.open_dataset(text)


def test_an_empty_folder_is_no_dataset(tmp_path):
    with pytest.raises(InputError, match=r"no manifest\.json"):
        solar_rl.open_dataset(tmp_path)


def test_a_repository_is_asked_for_by_name_and_revision(folder, monkeypatch):
    asked = []

    def open_snapshot(repo, revision, first):
        asked.append((repo, revision))
        return hub.Snapshot(repo, "0" * 40, folder)

    monkeypatch.setattr(hub, "open_snapshot", open_snapshot)
    assert solar_rl.open_dataset("owner/name", revision="v2.0.0").commit == "0" * 40
    solar_rl.open_dataset("hf://datasets/owner/name@v1.0.0")
    assert asked == [("owner/name", "v2.0.0"), ("owner/name", "v1.0.0")]


def test_revision_of_a_folder_is_refused(folder):
    with pytest.raises(InputError, match="revision"):
        solar_rl.open_dataset(folder, revision="v1")


def test_reading_loads_neither_hub_nor_hugging_face_datasets(folder):
    code = (
        "import sys, solar_rl; d = solar_rl.open_dataset(sys.argv[1]); d.episodes.collect(); d.sql('FROM steps');"
        "print([m for m in ('torch', 'datasets', 'huggingface_hub', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Manifest


def test_two_writes_give_the_same_bytes_everywhere(folder, tmp_path):
    again = write_small_dataset(tmp_path / "again")
    assert describe_files(again) == describe_files(folder)
    assert (again / "manifest.json").read_bytes() == (folder / "manifest.json").read_bytes()


def test_manifest_round_trips_and_counts_rows_by_split(folder):
    manifest = read_manifest(folder)
    assert manifest.config == CONFIG
    assert manifest.table_rows("episodes") == {"train": 12, "validation": 3, "test": 3}
    assert list(manifest.libraries)[:2] == ["datasets", "duckdb"]
    listed = {entry.path for entry in manifest.files}
    assert {"README.md", "views.sql", "rejects.jsonl"} <= listed
    assert "manifest.json" not in listed


def test_nothing_in_a_manifest_tells_when_or_where_it_was_built(folder):
    text = (folder / "manifest.json").read_text()
    assert str(folder) not in text
    assert "2026" not in text.replace("2604", "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[: len(text) // 2], "no JSON"),
        (lambda text: text.replace('"build_id"', '"build"'), "wrong at"),
        (lambda text: json.dumps(json.loads(text) | {"schema_version": 99}), "upgrade"),
        (lambda text: "[]", "wrong at"),
    ],
)
def test_a_broken_manifest_is_one_clear_line(folder, tmp_path, change, words):
    (tmp_path / "data").mkdir()
    (tmp_path / "manifest.json").write_text(change((folder / "manifest.json").read_text()))
    with pytest.raises(InputError, match=words):
        read_manifest(tmp_path)


def test_known_entries_are_not_hashed_again(folder):
    marked = FileEntry(path="views.sql", sha256="taken over", bytes=1)
    assert marked in describe_files(folder, {"views.sql": marked})


def test_build_id_follows_config_and_source_bytes_but_not_order():
    one, two = FileEntry(path="a", sha256="1", bytes=1), FileEntry(path="b", sha256="2", bytes=1)
    assert make_build_id("x", [one, two]) == make_build_id("x", [two, one])
    assert len({make_build_id("x", [one]), make_build_id("y", [one]), make_build_id("x", [two])}) == 3


def test_manifest_is_never_seen_half_written(tmp_path):
    path = write_manifest(tmp_path, Manifest(name="n", version="1.0.0", build_id="b", config={}))
    assert path.read_text().endswith("}\n")
    assert [p.name for p in tmp_path.iterdir()] == ["manifest.json"]


# Card


def test_card_front_matter_is_what_the_hub_wants(folder):
    text = (folder / "README.md").read_text()
    front = yaml.safe_load(text.split("---\n")[1])
    assert front["license"] == "cc-by-4.0"
    assert front["size_categories"] == ["n<1K"]
    configs = {config["config_name"]: config for config in front["configs"]}
    assert list(configs) == ["preview", *(name for name in TABLES if name != "preview")]
    assert [name for name, config in configs.items() if config.get("default")] == ["preview"]
    assert configs["rewards"]["data_files"][2] == {"split": "test", "path": "data/rewards/test-*.parquet"}
    info = {entry["config_name"]: entry for entry in front["dataset_info"]}
    assert info["images"]["features"][1] == {"name": "image", "dtype": "image"}


def test_card_tells_method_licence_source_and_limits(folder):
    text = (folder / "README.md").read_text()
    for words in (
        "2604.22558",
        "not by its authors",
        "https://example.org",
        "@misc{handmade}",
        "alignment `segments`",
        "scripted noisy expert",
        "| validity | 0.7123 |",
        "No record of the source was rejected",
    ):
        assert words in text, words
    assert "None" not in text
    assert "\n\n\n" not in text


def test_card_lists_rejects_and_statistics(folder):
    manifest = read_manifest(folder).model_copy(update={"rejects": {"bad_crc": 2, "bad_image": 1}})
    text = render_card(manifest, {}, {"Validity by app": pl.DataFrame({"app": ["a|b"], "valid": [1200]})})
    assert "3 in all" in text
    assert "bad_crc 2, bad_image 1" in text
    assert "### Validity by app" in text
    assert "| a\\|b | 1,200 |" in text


def test_card_of_an_unlicensed_source_says_other(folder):
    manifest = read_manifest(folder).model_copy(update={"config": {}})
    front = front_matter(manifest, Attribution("somewhere"))
    assert (front["license"], front["license_name"]) == ("other", "see-source")
    assert "that of its source" in render_card(manifest, {}, {}, Attribution("somewhere"))


def test_card_needs_every_table():
    with pytest.raises(InputError, match="'episodes'"):
        front_matter(Manifest(name="n", version="1.0.0", build_id="b", config={}))


def test_long_tables_are_cut_and_say_so():
    text = markdown_table(pl.DataFrame({"step": list(range(25))}), rows=20)
    assert "| 19 |" in text
    assert "| 20 |" not in text
    assert text.endswith("And 5 more rows.")
    assert figure("<tool_call>\n|") == "&lt;tool_call> \\|"
    assert figure(True) == "True"


def test_no_text_file_holds_nul(tmp_path):
    """A goal may hold one; a page with it would be a binary file to grep, git and the Hub."""
    path = write_text(tmp_path / "report.html", "<p>Set an\0 alarm</p>")
    assert path.read_text(encoding="utf-8") == "<p>Set an\ufffd alarm</p>"
