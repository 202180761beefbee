"""A sound dataset passes; each kind of damage is found by the check that is named for it."""

import hashlib
import json
import shutil
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lawful_dataset import CONFIG, tables, write_small_dataset

from solar_rl.config import AdvantageConfig, ShapingConfig
from solar_rl.errors import InputError
from solar_rl.shaping import shape
from solar_rl.store.manifest import describe_files, read_manifest, write_manifest
from solar_rl.store.parquet import table_files
from solar_rl.validate import validate


@pytest.fixture(scope="module")
def frames():
    return tables()


@pytest.fixture(scope="module")
def sound(tmp_path_factory, frames):
    return write_small_dataset(tmp_path_factory.mktemp("sound"), frames)


@pytest.fixture
def folder(sound, tmp_path):
    return shutil.copytree(sound, tmp_path / "data set")


def failed(folder: Path, **options) -> dict[str, str]:
    return {check.name: check.detail for check in validate(folder, **options) if not check.passed}


def change_manifest(folder: Path, **update) -> None:
    write_manifest(folder, read_manifest(folder).model_copy(update=update))


def rehash(folder: Path) -> None:
    """Make a forger's manifest: hashes that fit what now lies there."""
    change_manifest(folder, files=tuple(describe_files(folder)))


def test_a_sound_dataset_passes_every_check(sound):
    checks = validate(sound, all_images=True)
    assert [check.name for check in checks if not check.passed] == []
    assert len({check.name for check in checks}) == len(checks) > 60
    assert all(check.count == 0 for check in checks)
    told = {check.name: check.detail for check in checks if check.detail}
    assert told == {f"schema_of_{table}": hash_ for table, hash_ in read_manifest(sound).schemas.items()}


# Files


def test_no_manifest_is_an_unfinished_build(folder):
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match="unfinished build"):
        validate(folder)


@pytest.mark.parametrize("name", ["README.md", "data/rewards/test-00000-of-00001.parquet"])
def test_a_missing_file(folder, name):
    (folder / name).unlink()
    assert failed(folder)["files_exist"] == name


def test_a_file_that_nobody_listed(folder):
    shutil.copy(
        folder / "data/steps/train-00000-of-00001.parquet", folder / "data/steps/train-00001-of-00002.parquet"
    )
    found = failed(folder)
    assert found["files_are_listed"] == "data/steps/train-00001-of-00002.parquet"
    assert "steps_keys_are_unique" in found


def test_a_longer_file(folder):
    with (folder / "views.sql").open("a") as file:
        file.write("-- more")
    assert failed(folder) == {"file_sizes": "views.sql"}


@pytest.mark.parametrize("table", ["candidates", "images", "trajectories"])
@pytest.mark.parametrize("place", [0.02, 0.3, 0.6, 0.999])
def test_a_flipped_byte_anywhere(folder, table, place):
    path = table_files(folder, table)[0]
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 0x40
    path.write_bytes(data)
    found = failed(folder, all_images=True)
    assert found["file_hashes"] == f"data/{table}/{path.name}"


def test_a_wrong_row_count(folder):
    entries = read_manifest(folder).files
    more = tuple(e.model_copy(update={"rows": 99}) if "data/steps/test" in e.path else e for e in entries)
    change_manifest(folder, files=more)
    assert {"row_counts", "counts_are_rows"} <= set(failed(folder))


# Manifest and texts


def test_a_check_that_failed_in_the_build(folder):
    checks = [c.model_copy(update={"passed": False}) for c in read_manifest(folder).checks]
    change_manifest(folder, checks=tuple(checks))
    assert failed(folder) == {"build_checks_passed": "keys"}


@pytest.mark.parametrize("path", ["/home/ann/episodes", "C:\\Users\\ann", "see /tmp/x/y"])
def test_a_path_of_somebodys_machine(folder, path):
    change_manifest(folder, config=CONFIG | {"source": {"path": path}})
    assert set(failed(folder)) == {"no_machine_paths"}


def test_rejects_that_were_not_counted(folder):
    (folder / "rejects.jsonl").write_text(
        json.dumps({"file": "a", "record": "0", "reason": "bad_crc", "message": ""}) + "\n"
    )
    rehash(folder)
    assert failed(folder) == {"rejects_are_counted": "bad_crc: 1"}


# Schema


def rewrite(folder: Path, table: str, change, split: str = "train", **options) -> None:
    """Change a file's rows behind the writer's back, and the manifest with it."""
    path = folder / "data" / table / f"{split}-00000-of-00001.parquet"
    pq.write_table(change(pq.read_table(path)), path, compression="zstd", **options)
    rehash(folder)


def test_a_column_of_another_type(folder):
    def widen(table: pa.Table) -> pa.Table:
        at = table.column_names.index("step_index")
        return table.set_column(at, "step_index", table["step_index"].cast(pa.int64()))

    rewrite(folder, "rewards", widen)
    assert "step_index is" in failed(folder)["schemas_are_exact"]


def test_a_missing_column_and_missing_features(folder):
    rewrite(folder, "episodes", lambda table: table.drop_columns("license"))
    assert "columns are" in failed(folder)["schemas_are_exact"]


def test_features_for_load_dataset_are_part_of_the_schema(folder):
    rewrite(folder, "preview", lambda table: table.replace_schema_metadata(None))
    assert "load_dataset" in failed(folder)["schemas_are_exact"]


def test_row_groups_of_another_size(folder):
    rewrite(folder, "images", lambda table: table, row_group_size=7)
    assert failed(folder) == {"row_groups_are_exact": "data/images/train-00000-of-00001.parquet"}


# Keys, splits and records


def rebuilt(tmp_path: Path, frames: dict[str, pl.DataFrame], **changed: pl.DataFrame) -> set[str]:
    return set(failed(write_small_dataset(tmp_path / "changed", {**frames, **changed}), all_images=True))


def test_rows_out_of_order(folder):
    rewrite(folder, "steps", lambda table: table.take([1, 0, *range(2, table.num_rows)]))
    assert failed(folder) == {"steps_are_sorted": "data/steps/train-00000-of-00001.parquet, row 1"}


def test_a_row_twice(folder):
    rewrite(folder, "trajectories", lambda table: table.take([0, 0, *range(1, table.num_rows)]))
    found = failed(folder)
    assert {"trajectories_are_sorted", "trajectories_keys_are_unique"} <= set(found)


def test_an_episode_in_two_splits(folder):
    rewrite(folder, "rewards", lambda table: table, split="train")
    rows = pq.read_table(folder / "data/rewards/test-00000-of-00001.parquet")
    rewrite(
        folder, "rewards", lambda table: pa.concat_tables([table.slice(0, table.num_rows), rows.slice(0, 3)])
    )
    assert {"rows_lie_in_their_split", "rewards_keys_are_unique"} <= set(failed(folder))


def test_an_image_in_a_later_split(folder):
    shared = pq.read_table(folder / "data/steps/test-00000-of-00001.parquet")["image_sha256"][0].as_py()
    rows = pq.read_table(folder / "data/images/train-00000-of-00001.parquet")
    mask = pa.compute.equal(rows["sha256"], shared)
    rewrite(folder, "images", lambda table: table.filter(pa.compute.invert(mask)))
    rewrite(
        folder, "images", lambda table: pa.concat_tables([table, rows.filter(mask)]).sort_by("sha256"), "test"
    )
    assert "images_lie_in_their_first_split" in failed(folder)


FIRST = pl.int_range(pl.len()) == 4


@pytest.mark.parametrize(
    ("table", "change", "law"),
    [
        ("episodes", {"ref_len": pl.col("ref_len") + FIRST}, "episodes_have_all_their_steps"),
        (
            "episodes",
            {"goal": pl.when(FIRST).then(pl.lit(" ")).otherwise("goal")},
            "episodes_are_well_described",
        ),
        (
            "episodes",
            {"platform": pl.when(FIRST).then(pl.lit("watch")).otherwise("platform")},
            "episodes_are_well_described",
        ),
        (
            "steps",
            {"image_sha256": pl.when(FIRST).then(pl.lit("00")).otherwise("image_sha256")},
            "screenshots_exist",
        ),
        (
            "steps",
            {"direction": pl.when(FIRST).then(pl.lit("north")).otherwise("direction")},
            "labels_are_actions",
        ),
        ("steps", {"x": pl.lit(None, pl.Float64)}, "labels_are_actions"),
        ("steps", {"y": pl.when(pl.col("y").is_not_null()).then(float("nan"))}, "labels_are_actions"),
        ("steps", {"target_box": pl.lit([0.9, 0.1, 0.2, 0.3])}, "boxes_are_boxes"),
        ("steps", {"candidate_boxes": pl.lit([[0.1, 0.2, 0.3]])}, "boxes_are_boxes"),
        ("steps", {"screen_size": pl.lit("guessed")}, "screens_are_described"),
        (
            "candidates",
            {"parse_error": pl.when(FIRST).then(pl.lit("why")).otherwise(None)},
            "answers_are_actions_or_parse_errors",
        ),
        ("candidates", {"token_ids": pl.col("token_ids").list.head(2)}, "tokens_have_their_logprobs"),
        (
            "candidates",
            {"sampling_logprobs": pl.lit([0.5, -1.0, -1.0], pl.List(pl.Float32))},
            "tokens_have_their_logprobs",
        ),
        ("rewards", {"app": pl.lit("other")}, "rewards_repeat_labels_and_answers"),
        ("rewards", {"pred_action_type": pl.lit("wait")}, "rewards_repeat_labels_and_answers"),
        ("trajectories", {"failure_app": pl.lit("other")}, "failures_repeat_their_step"),
    ],
)
def test_a_record_that_contradicts_itself_or_another(tmp_path, frames, table, change, law):
    changed = frames[table].with_columns(**change)
    extra = {"preview": pl.DataFrame(schema=_preview_schema())} if law == "screenshots_exist" else {}
    assert law in rebuilt(tmp_path, frames, **{table: changed}, **extra)


def _preview_schema():
    from solar_rl.columns import polars_schema

    return polars_schema("preview")


@pytest.mark.parametrize(
    ("table", "law"),
    [
        ("steps", "episodes_have_all_their_steps"),
        ("steps", "candidates_have_their_step"),
        ("images", "screenshots_exist"),
        ("candidates", "rewards_have_their_candidate"),
        ("rewards", "candidates_have_their_reward"),
        ("trajectories", "whole_indices_form_trajectories"),
        ("episodes", "steps_have_their_episode"),
    ],
)
def test_a_row_that_is_gone(tmp_path, frames, table, law):
    preview = {"preview": pl.DataFrame(schema=_preview_schema())}
    if table == "episodes":  # its rows stay where they are, in the files of their split
        folder = write_small_dataset(tmp_path / "changed", frames)
        rewrite(folder, "episodes", lambda rows: rows.slice(1))
        assert law in failed(folder)
        return
    assert law in rebuilt(tmp_path, frames, **{table: frames[table][1:]}, **preview)


def test_an_image_that_no_step_shows(tmp_path, frames):
    data = b"stray"
    stray = frames["images"][:1].with_columns(
        sha256=pl.lit(hashlib.sha256(data).hexdigest()),
        image=pl.struct(bytes=pl.lit(data), path=pl.lit(None, pl.String)),
    )
    images = pl.concat([frames["images"], stray]).sort("sha256")
    found = rebuilt(tmp_path, frames, images=images)
    assert {"images_are_shown_somewhere", "images_can_be_decoded"} <= found


def test_an_image_that_is_not_what_its_key_says(tmp_path, frames):
    images = frames["images"].with_columns(image=pl.col("image").first())
    assert rebuilt(tmp_path, frames, images=images, preview=pl.DataFrame(schema=_preview_schema())) == {
        "images_can_be_decoded"
    }


def test_an_image_of_another_size_than_it_is_said_to_be(tmp_path, frames):
    assert rebuilt(tmp_path, frames, images=frames["images"].with_columns(width=37)) == {
        "images_can_be_decoded"
    }


# Rewards: an edit is found even by somebody who also edits the hashes


@pytest.mark.parametrize(
    ("change", "laws"),
    [
        (
            {"reward": pl.col("reward") + 0.001 * FIRST},
            {"reward_is_base_plus_gap", "sums_are_those_of_the_rewards"},
        ),
        (
            {"reward": pl.col("reward") + 0.001 * FIRST, "gap_share": pl.col("gap_share") + 0.001 * FIRST},
            {"sums_are_those_of_the_rewards", "advantages_are_rewards_less_their_mean"},
        ),
        ({"raw_score": pl.col("raw_score") * 1.5}, {"score_in_unit_interval", "bases_follow_the_scores"}),
        ({"raw_score": pl.when(FIRST).then(0.75).otherwise("raw_score")}, {"bases_follow_the_scores"}),
        (
            {"valid": ~pl.col("valid")},
            {"prefix_is_valid", "breakdown_is_invalid", "first_failure_is_the_first"},
        ),
        ({"advantage": pl.col("advantage") + 0.5}, {"advantages_sum_to_zero"}),
        ({"advantage": pl.lit(0.0)}, {"advantages_are_rewards_less_their_mean"}),
        ({"gap_share": pl.lit(0.1)}, {"gap_touches_valid_steps_only", "unscored_is_null_throughout"}),
        ({"segment_index": pl.lit(0)}, {"segments_count_earlier_breakdowns"}),
        ({"unscored_reason": pl.lit("no label")}, {"scored_or_a_reason_why_not"}),
        ({"failure_reason": pl.lit(None, pl.String)}, {"failure_has_a_reason"}),
        ({"advantage": pl.lit(None, pl.Float64)}, {"in_play_all_or_nothing"}),
        ({"reward": pl.lit(float("nan"))}, {"numbers_are_finite", "sums_are_those_of_the_rewards"}),
        ({"position": pl.lit(None, pl.String)}, {"place_and_segment_together"}),
    ],
)
def test_an_edited_reward(tmp_path, frames, change, laws):
    assert laws <= rebuilt(tmp_path, frames, rewards=frames["rewards"].with_columns(**change))


@pytest.mark.parametrize(
    ("change", "laws"),
    [
        (
            {"target_reward": pl.col("target_reward") + 1e-6},
            {"rewards_sum_to_target", "targets_follow_the_alignment"},
        ),
        (
            {"target_reward": pl.col("target_reward") + 0.5, "reward_sum": pl.col("reward_sum") + 0.5},
            {"sums_are_those_of_the_rewards", "targets_follow_the_alignment"},
        ),
        ({"trajectory_reward": pl.col("trajectory_reward") * 0.9}, {"returns_follow_the_scores"}),
        ({"mean_raw_score": pl.col("mean_raw_score") * 0.9}, {"returns_follow_the_scores"}),
        ({"success": ~pl.col("success")}, {"success_means_no_failure", "failure_is_described"}),
        ({"valid_prefix_len": pl.col("valid_prefix_len") + 1}, {"prefix_ends_at_the_failure"}),
        (
            {"first_failure_step": pl.col("first_failure_step") + 9},
            {"failure_lies_in_the_episode", "first_failure_is_the_first"},
        ),
        ({"failure_reason": pl.lit(None, pl.String)}, {"failure_is_described", "failures_repeat_their_step"}),
        ({"target_reward": pl.lit(None, pl.Float64)}, {"return_is_known_where_scored"}),
    ],
)
def test_an_edited_trajectory(tmp_path, frames, change, laws):
    assert laws <= rebuilt(tmp_path, frames, trajectories=frames["trajectories"].with_columns(**change))


def test_a_preview_that_says_something_else(folder):
    def brighten(table: pa.Table) -> pa.Table:
        return pl.from_arrow(table).with_columns(reward=pl.lit(1.0)).to_arrow().cast(table.schema)

    rewrite(folder, "preview", brighten, row_group_size=100)
    assert set(failed(folder)) == {"preview_repeats_the_tables"}


# Laws that depend on the config hold for every way of shaping


@pytest.mark.parametrize("scale", ["none", "std"])
@pytest.mark.parametrize(
    "shaping",
    [
        ShapingConfig(),
        ShapingConfig(score_weight=0.1, progress_weight=0.7, success_weight=0.2),
        ShapingConfig(alignment="off"),
        ShapingConfig(alignment="off", suffix="penalise"),
        ShapingConfig(alignment="paper"),
        ShapingConfig(alignment="paper", suffix="penalise"),
        ShapingConfig(alignment="paper", normalisation="unit_mass"),
        ShapingConfig(alignment="prefix_mean"),
        ShapingConfig(alignment="prefix_mean", suffix="penalise", normalisation="unit_mass"),
    ],
    ids=lambda s: f"{s.alignment}-{s.suffix}-{s.normalisation}-{s.score_weight}",
)
def test_what_the_product_shapes_is_sound(tmp_path, shaping, scale):
    frames = tables(24, seed=5)
    scored = frames["rewards"].join(
        frames["episodes"].select("episode_id", "ref_len"), on="episode_id", maintain_order="left"
    )
    advantage = AdvantageConfig(scale=scale)
    shaped = shape(scored, shaping, advantage)
    folder = write_small_dataset(
        tmp_path / "d", frames | {"rewards": shaped.rewards, "trajectories": shaped.trajectories}
    )
    config = CONFIG | {"shaping": shaping.model_dump(), "advantage": advantage.model_dump()}
    change_manifest(folder, config=config)
    assert failed(folder) == {}
    if shaping.normalisation == "none":
        other = ShapingConfig(alignment="paper" if shaping.alignment != "paper" else "prefix_mean")
        change_manifest(folder, config=config | {"shaping": other.model_dump()})
        assert "targets_follow_the_alignment" in failed(folder)
