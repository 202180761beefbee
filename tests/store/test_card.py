"""The card is what the Hub wants, Croissant what mlcroissant wants, and both say what was built."""

import json
import subprocess
import sys

import pytest
import yaml
from lawful_dataset import write_small_dataset
from PIL import Image

from solar_rl.config import load_dataset_config
from solar_rl.pipeline import build
from solar_rl.schema import TABLES, arrow_schema
from solar_rl.shipped import shipped_path
from solar_rl.store.card import front_matter, markdown_text, render_card
from solar_rl.store.croissant import render_croissant
from solar_rl.store.manifest import Attribution, CheckEntry, read_manifest
from solar_rl.validate.texts import NAMES


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    overrides = {"source.options.episodes": "8", "sampler.n": "3"}
    config = load_dataset_config(shipped_path("datasets", "phone", "dataset.yaml"), overrides)
    folder = tmp_path_factory.mktemp("card") / "phone"
    build(config, folder)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return write_small_dataset(tmp_path_factory.mktemp("small"))


def test_the_hubs_own_code_reads_the_card(built):
    hub = pytest.importorskip("huggingface_hub")
    card = hub.DatasetCard.load(built / "README.md")
    assert card.data.license == "apache-2.0"
    assert card.data.language == ["en"]
    assert card.data.pretty_name == "phone"
    assert "solar-rl" in card.data.tags
    front = yaml.safe_load((built / "README.md").read_text().split("---\n")[1])
    assert yaml.safe_load(card.data.to_yaml()) == front
    assert card.text.lstrip().startswith("# phone 1.0.0")


def test_datasets_own_code_finds_configs_features_and_sizes(built):
    script = f"""
import json
from datasets.info import DatasetInfosDict
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard
data = DatasetCard.load({str(built / "README.md")!r}).data
configs, infos = MetadataConfigs.from_dataset_card_data(data), DatasetInfosDict.from_dataset_card_data(data)
print(json.dumps([configs.get_default_config_name(), list(configs), {{
    name: [list(info.features), {{split: s.num_examples for split, s in info.splits.items()}}] for name, info in infos.items()
}}]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    default, configs, infos = json.loads(done.stdout)
    manifest = read_manifest(built)
    assert default == "preview"
    assert set(configs) == set(infos) == set(TABLES)
    for name, (features, splits) in infos.items():
        assert features == arrow_schema(name).names
        assert splits == {split: rows for split, rows in manifest.table_rows(name).items() if rows}


def test_the_card_tells_how_it_was_made_and_what_was_checked(built):
    text, manifest = (built / "README.md").read_text(), read_manifest(built)
    for words in (
        "](episode.png)",
        f"build | `{manifest.build_id}`",
        f"shape `{manifest.stages['shape']}`",
        "R_traj = 0.3 score, 0.3 progress, 0.4 success",
        "valid from click 0.5, text 0.5, launch 0.8",
        f"All {len(manifest.checks)} checks passed in the build",
        "nothing was masked",
        "@misc{solarrl2026",
        "## Limits",
    ):
        assert words in text, words
    assert all(f"`{check.name}`" in text for check in manifest.checks)
    assert "None" not in text
    assert "\n\n\n" not in text


def test_the_manifest_names_every_check_and_schema(built):
    manifest = read_manifest(built)
    names = [check.name for check in manifest.checks]
    assert len(names) == len(set(names))
    assert {*NAMES.values(), "steps_keys_are_unique", "labels_are_actions", "rewards_sum_to_target"} <= set(
        names
    )
    assert "steps_have_n_candidates" in names
    assert all(check.passed and not check.count for check in manifest.checks)
    assert set(manifest.schemas) == set(TABLES)


def test_the_picture_is_small_and_shows_something(built):
    with Image.open(built / "episode.png") as image:
        assert image.width <= 1600
        assert len(image.convert("RGB").getcolors(1 << 20)) > 30
    assert (built / "episode.png").stat().st_size < 400_000


def test_failed_checks_and_found_strings_are_told(small):
    checks = (
        CheckEntry(name="rewards_sum_to_target", passed=False, count=1200),
        CheckEntry(
            name="no_email_addresses", passed=True, count=3, note="steps.text 3; allowed: <public> | *really*"
        ),
    )
    manifest = read_manifest(small)
    config = manifest.config | {"privacy": {"mask": True, "allow": {"email": "public"}}}
    text = render_card(manifest.model_copy(update={"checks": checks, "config": config}), {})
    assert "1 of 2 checks failed in the build:** `rewards_sum_to_target` (1,200)" in text
    assert "allowed: &lt;public> \\| \\*really\\*" in text
    assert "Texts hold e-mail addresses: public." in text
    assert "Screenshots are not masked" in text
    assert markdown_text("a_b") == "a\\_b"


def test_a_model_its_revision_and_adaptive_sampling_are_told(small):
    sampler = {"type": "transformers", "model": "Qwen/Qwen2.5-VL-7B-Instruct", "revision": "abc", "n": 8}
    manifest = read_manifest(small)
    config = manifest.config | {"sampler": sampler | {"temperature": 1.0, "adaptive": True}}
    text = render_card(manifest.model_copy(update={"config": config}), {})
    assert "transformers, model `Qwen/Qwen2.5-VL-7B-Instruct` at revision `abc`, N = 8" in text
    assert "adaptive (a pilot first)" in text
    assert "scripted noisy expert" not in text


def test_several_sources_are_credited_one_by_one(small):
    parts = (Attribution("first", "mit", "https://a.example"), Attribution("second", "cc-by-4.0"))
    source = Attribution("first + second", None, citation="@misc{first}", parts=parts)
    manifest = read_manifest(small).model_copy(update={"config": {}})
    text = render_card(manifest, {}, {}, source)
    assert "| first | mit | https://a.example |" in text
    assert "| second | cc-by-4.0 |" in text
    assert front_matter(manifest, source)["license"] == "other"


# Croissant


def test_croissant_names_every_file_with_its_hash_and_every_column(built):
    manifest, found = read_manifest(built), json.loads((built / "croissant.json").read_text())
    files = {
        item["@id"]: item["sha256"] for item in found["distribution"] if item["@type"] == "cr:FileObject"
    }
    assert files == {e.path: e.sha256 for e in manifest.files if e.path.startswith("data/")}
    sets = {item["name"]: item for item in found["recordSet"]}
    assert set(sets) == set(TABLES)
    for name, record_set in sets.items():
        assert [field["name"] for field in record_set["field"]] == list(TABLES[name].names)
        assert [key["@id"] for key in record_set["key"]] == [
            f"{name}/{column}" for column in TABLES[name].key
        ]
    fields = {field["@id"]: field for record_set in found["recordSet"] for field in record_set["field"]}
    assert fields["steps/image_sha256"]["references"] == {"field": {"@id": "images/sha256"}}
    assert "references" not in fields["episodes/episode_id"]
    assert fields["candidates/token_ids"]["repeated"] is True
    assert found["license"] == "apache-2.0"
    assert all(
        field["references"]["field"]["@id"] in fields for field in fields.values() if "references" in field
    )


def test_croissant_of_a_table_without_rows_leaves_it_out(small):
    manifest = read_manifest(small)
    entries = tuple(
        e.model_copy(update={"rows": 0}) if e.path.startswith("data/preview/") else e for e in manifest.files
    )
    found = json.loads(render_croissant(manifest.model_copy(update={"files": entries})))
    assert "preview" not in {item["name"] for item in found["recordSet"]}
    assert "citeAs" not in found


def test_mlcroissant_accepts_it_and_reads_every_table(built):
    import mlcroissant

    dataset = mlcroissant.Dataset(built / "croissant.json")
    rows = read_manifest(built).counts
    for name in ("trajectories", "images"):
        assert sum(1 for _ in dataset.records(name)) == rows[name]
