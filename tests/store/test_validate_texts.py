"""Private strings are found by column and kind, never quoted, and allowed by name alone."""

import json

import polars as pl
import pytest
from lawful_dataset import CONFIG, tables, write_small_dataset

from solar_rl.cli import main
from solar_rl.schema import TABLES
from solar_rl.store.fingerprint import schema_hash, schema_hashes
from solar_rl.store.manifest import describe_files, read_manifest, write_manifest
from solar_rl.validate import validate
from solar_rl.validate.texts import TEXT_COLUMNS, scan

# words of ours, keys, and names of closed sets: nobody's free text
CLOSED = {
    "episodes": {"episode_id", "source", "platform", "split", "license", "subsplits", "screen_hash"},
    "steps": {
        *("episode_id", "image_sha256", "action_type", "direction", "keys", "button", "status"),
        *("screen_size", "app", "box_rule"),
    },
    "images": {"sha256"},
    "candidates": {
        *("episode_id", "pred_action_type", "pred_direction", "pred_keys", "pred_button", "pred_status"),
        *("sampler_id", "finish_reason"),
    },
    "rewards": {
        *("episode_id", "app", "action_type", "unscored_reason", "rule", "failure_reason", "position"),
        "pred_action_type",
    },
    "trajectories": {"episode_id", "alignment", "failure_action_type", "failure_app", "failure_reason"},
    "preview": {"episode_id", "position"},
}


def test_every_column_of_texts_is_scanned_or_known_to_be_closed():
    for name, table in TABLES.items():
        texts = {c.name for c in table.columns if c.dtype in ("string", "list<string>")}
        assert texts == CLOSED[name] | set(TEXT_COLUMNS.get(name, ())), name


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    frames = tables()
    first = pl.int_range(pl.len()) == 0
    typed = '{"text": "ann@shop.com"}'
    frames |= {
        "episodes": frames["episodes"].with_columns(
            goal=pl.when(first).then(pl.lit("call (212) 555-0123")).otherwise("goal")
        ),
        "candidates": frames["candidates"].with_columns(
            completion=pl.when(pl.col("step_index") == 0).then(pl.lit(typed)).otherwise("completion")
        ),
        "steps": frames["steps"].with_columns(
            alternatives=pl.when(first).then(pl.lit(['{"text": "bob@shop.com"}'])).otherwise("alternatives")
        ),
    }
    folder = write_small_dataset(tmp_path_factory.mktemp("private"), frames)
    reject = {"file": "f", "record": "r", "reason": "empty_text", "message": "got sk-" + "a1" * 12}
    (folder / "rejects.jsonl").write_text(json.dumps(reject) + "\n")
    manifest = read_manifest(folder).model_copy(update={"rejects": {"empty_text": 1}})
    write_manifest(folder, manifest.model_copy(update={"files": tuple(describe_files(folder))}))
    return folder


def private(folder, **options):
    return {
        c.name: c for c in validate(folder, **options) if c.name.startswith("no_") and "machine" not in c.name
    }


def test_findings_are_counted_by_kind_and_column(folder):
    found = {(f.kind, f.column): (f.strings, f.different) for f in scan(folder)}
    assert found[("email", "candidates.completion")] == (18 * 3, 1)
    assert found[("email", "steps.alternatives")] == (1, 1)
    assert found[("phone", "episodes.goal")] == (1, 1)
    assert found[("secret", "rejects.jsonl")] == (1, 1)


def test_each_kind_is_a_check_that_says_where_and_quotes_nothing(folder):
    checks = private(folder)
    assert not any(check.passed for check in checks.values())
    assert checks["no_email_addresses"].count == 55
    assert "candidates.completion 54 (1 different)" in checks["no_email_addresses"].detail
    assert "episode_id e000" in checks["no_phone_numbers"].detail
    told = " ".join(check.detail for check in checks.values())
    assert not any(text in told for text in ("ann@", "555", "sk-"))


def test_a_kind_is_allowed_by_the_config_with_its_reason_or_by_the_call(folder, tmp_path):
    assert private(folder, allow=["email"])["no_email_addresses"].passed
    assert not private(folder, allow=["email"])["no_phone_numbers"].passed
    manifest = read_manifest(folder)
    try:
        allowed = CONFIG | {"privacy": {"allow": {"phone": "public hotlines"}}}
        write_manifest(folder, manifest.model_copy(update={"config": allowed}))
        check = private(folder)["no_phone_numbers"]
        assert check.passed
        assert check.detail.endswith("allowed: public hotlines")
    finally:
        write_manifest(folder, manifest)


def run(capsys, *argv):
    with pytest.raises(SystemExit) as stop:
        main([*map(str, argv)])
    return stop.value.code or 0, *capsys.readouterr()


def test_the_verb_says_what_to_do(folder, capsys):
    code, out, err = run(capsys, "validate", folder)
    assert code == 1
    assert "FAIL 55 no_email_addresses" in out
    assert "--allow email" in err
    allowed = ("--allow", "email", "--allow", "phone", "--allow", "secret")
    code, out, _ = run(capsys, "validate", folder, *allowed)
    assert code == 0
    assert "checks passed" in out


def test_a_schema_hash_is_told_and_compared(folder):
    from solar_rl.schema import arrow_schema

    assert {name: schema_hash(arrow_schema(name)) for name in TABLES} == schema_hashes()
    assert len(set(schema_hashes().values())) == len(TABLES)
    manifest = read_manifest(folder)
    try:
        wrong = {**manifest.schemas, "steps": "0" * 16}
        write_manifest(folder, manifest.model_copy(update={"schemas": wrong}))
        checks = {check.name: check for check in validate(folder)}
        assert not checks["schema_of_steps"].passed
        assert checks["schema_of_steps"].detail == f"{schema_hashes()['steps']}, recorded is {'0' * 16}"
        assert checks["schema_of_images"].detail == schema_hashes()["images"]
    finally:
        write_manifest(folder, manifest)
