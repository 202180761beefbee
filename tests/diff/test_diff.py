"""What changed between two datasets is found, counted and told; nothing else is."""

import json
import re
import shutil

import polars as pl
import pytest
from lawful_dataset import CONFIG, tables, write_small_dataset

from solar_rl.cli import main
from solar_rl.config import AdvantageConfig, ShapingConfig
from solar_rl.diff import TITLES, compare
from solar_rl.report import write_diff
from solar_rl.shaping import shape
from solar_rl.store.manifest import read_manifest, write_manifest


def change_manifest(folder, **update):
    write_manifest(folder, read_manifest(folder).model_copy(update=update))


def write(folder, frames):
    """Write a dataset whose manifest tells of one code, whoever edits solar_rl meanwhile."""
    write_small_dataset(folder, frames)
    change_manifest(folder, code={"solar-rl": "1"}, build_id="a" * 16)
    return folder


@pytest.fixture(scope="module")
def frames():
    return tables()


@pytest.fixture(scope="module")
def first(tmp_path_factory, frames):
    return write(tmp_path_factory.mktemp("first"), frames)


@pytest.fixture(scope="module")
def second(tmp_path_factory, frames):
    """Write the same demonstrations with other answers to one step, another shaping and one episode fewer."""
    gone, hit = "e017", (pl.col("episode_id") == "e003") & (pl.col("step_index") == 0)
    kept = {
        name: f.filter(pl.col("episode_id") != gone)
        for name, f in frames.items()
        if "episode_id" in f.columns
    }
    shown = kept["steps"]["image_sha256"].unique()
    kept["images"] = frames["images"].filter(pl.col("sha256").is_in(shown.implode()))
    kept["candidates"] = kept["candidates"].with_columns(
        completion=pl.when(hit).then(pl.lit("another answer")).otherwise("completion")
    )
    scored = kept["rewards"].join(
        kept["episodes"].select("episode_id", "ref_len"), on="episode_id", maintain_order="left"
    )
    shaping = ShapingConfig(alignment="prefix_mean")
    shaped = shape(scored, shaping, AdvantageConfig())
    folder = write(
        tmp_path_factory.mktemp("second"),
        kept | {"rewards": shaped.rewards, "trajectories": shaped.trajectories},
    )
    config = CONFIG | {"version": "1.1.0", "shaping": shaping.model_dump(mode="json")}
    change_manifest(folder, config=config, version="1.1.0", build_id="b" * 16, rejects={"bad_crc": 2})
    return folder


@pytest.fixture(scope="module")
def found(first, second):
    return compare(first, second)


def rows(found, section, key):
    return {row[key]: row for row in found.sections[section]}


def test_a_dataset_is_the_same_as_its_copy(first, tmp_path):
    copy = shutil.copytree(first, tmp_path / "copy")
    found = compare(first, copy)
    assert found.same
    assert found.changed == []
    assert found.episodes.height == 0
    assert rows(found, "episodes", "what")["the same"]["episodes"] == 18


def test_another_order_of_files_is_no_change_of_episodes(first, tmp_path, frames):
    """Content is compared, not bytes: an image's row more or less changes files and no episode."""
    copy = write(tmp_path / "copy", frames | {"preview": pl.DataFrame(schema=_preview())})
    found = compare(first, copy)
    assert found.changed == ["counts"]
    assert found.episodes.height == 0


def _preview():
    from solar_rl.columns import polars_schema

    return polars_schema("preview")


def test_config_fields_are_dotted_and_only_those_that_differ(found):
    fields = {row["field"]: (row["a"], row["b"]) for row in found.sections["config"]}
    assert fields == {"version": ("1.0.0", "1.1.0"), "shaping.alignment": ("segments", "prefix_mean")}


def test_a_field_that_one_side_lacks(first, tmp_path):
    copy = shutil.copytree(first, tmp_path / "copy")
    change_manifest(copy, config=CONFIG | {"validity": {"preset": "strict", "verifier": "a:b"}})
    (row,) = compare(first, copy).sections["config"]
    assert (row["field"], row["a"], row["b"]) == ("validity.verifier", None, "a:b")


def test_counts_rejects_and_headline(found):
    counts = {(row["table"], row["split"]): row for row in found.sections["counts"]}
    assert (counts["episodes", "all"]["a"], counts["episodes", "all"]["b"]) == (18, 17)
    assert counts["episodes", "test"]["change"] == -1
    assert found.sections["rejects"] == [{"reason": "bad_crc", "a": 0, "b": 2, "change": 2}]
    assert rows(found, "headline", "figure")["episodes"]["change"] == -1


def test_distributions_sum_to_one_on_both_sides(found):
    for section in ("first_failure", "rewards", "returns"):
        for side in "ab":
            assert sum(row[side] for row in found.sections[section]) == pytest.approx(1)
    bins = [row["at_least"] for row in found.sections["rewards"]]
    assert bins == [round(bins[0] + 0.1 * k, 9) for k in range(len(bins))]
    steps = [row["step"] for row in found.sections["first_failure"]]
    assert steps == [*range(len(steps) - 1), None]


def test_validity_by_action_type_agrees_with_the_rows(found, frames):
    by_type = rows(found, "validity", "action_type")
    clicks = frames["rewards"].filter(action_type="click")["valid"].drop_nulls()
    assert by_type["click"]["a"] == pytest.approx(clicks.mean())
    assert by_type["click"]["scored_a"] == clicks.len()


def test_episodes_are_told_by_what_of_them_changed(found):
    by_id = {row["episode_id"]: row for row in found.episodes.iter_rows(named=True)}
    assert by_id["e017"]["status"] == "removed"
    assert by_id["e017"]["parts"] is None
    assert "answers" in by_id["e003"]["parts"]
    assert [row["episode_id"] for row in by_id.values() if "answers" in (row["parts"] or ())] == ["e003"]
    counts = rows(found, "episodes", "what")
    assert counts["removed"]["episodes"] == 1
    assert counts["answers changed"]["episodes"] == 1
    assert counts["goal changed"]["episodes"] == counts["steps changed"]["episodes"] == 0
    assert counts["scores changed"]["episodes"] == 0
    assert counts["rewards changed"]["episodes"] > 10
    assert counts["targets changed"]["episodes"] > 10  # segments -> prefix_mean: R_traj stays
    parts = [counts[name]["episodes"] for name in ("the same", "changed", "added", "removed")]
    assert sum(parts) == 18


def test_returns_changed_are_those_whose_r_traj_changed(found, frames, second):
    key = ["episode_id", "candidate_index"]
    new = pl.read_parquet(second / "data" / "trajectories" / "*.parquet")
    both = frames["trajectories"].join(new, on=key, suffix="_b")
    other = both.filter(pl.col("trajectory_reward").ne_missing(pl.col("trajectory_reward_b")))
    counts = rows(found, "episodes", "what")
    assert counts["returns changed"]["episodes"] == other["episode_id"].n_unique() < 5


def test_the_paired_section_compares_the_episodes_that_both_have(found, frames):
    paired = rows(found, "paired", "figure")
    assert paired["validity"]["episodes"] == 17
    assert (paired["validity"]["change"], paired["validity"]["within"]) == (0, 0)
    shared = frames["rewards"].filter(pl.col("episode_id") != "e017")
    means = shared.group_by("episode_id").agg(pl.col("reward").mean())["reward"]
    assert paired["mean_reward"]["a"] == pytest.approx(means.mean())
    assert paired["mean_reward"]["within"] > 0


def test_a_mean_does_not_hang_on_the_order_of_rows(found, first, second, tmp_path, frames):
    """Sums of floats do: to the last digit the same, however rows lie or a join hands them over."""
    for number in range(5):
        turned = {name: frame.sample(fraction=1, shuffle=True, seed=number) for name, frame in frames.items()}
        folder = write(tmp_path / str(number), turned)
        assert compare(folder, second).sections["paired"] == found.sections["paired"]


@pytest.mark.parametrize(
    ("table", "column", "value", "part"),
    [
        ("episodes", "goal", pl.lit("another goal"), "goal"),
        ("episodes", "split", pl.lit("train"), "split"),
        ("steps", "instruction", pl.lit("another instruction"), "steps"),
        ("candidates", "seed", pl.col("seed") + 64, "answers"),
        ("candidates", "sampling_logprobs", pl.lit([-0.5, -0.5, -0.5], pl.List(pl.Float32)), "answers"),
        ("rewards", "raw_score", pl.col("raw_score") * 0.5, "scores"),
        ("rewards", "advantage", pl.col("advantage") + 1, "rewards"),
        ("trajectories", "trajectory_reward", pl.col("trajectory_reward") + 1, "returns"),
        ("trajectories", "target_reward", pl.col("target_reward") + 1, "targets"),
        ("trajectories", "alignment", pl.lit("off"), "targets"),
        ("trajectories", "failure_reason", pl.lit("too_far"), "failures"),
    ],
)
def test_every_part_of_an_episode_is_looked_at(tmp_path, frames, first, table, column, value, part):
    hit = pl.col("episode_id") == "e005"
    changed = frames[table].with_columns(pl.when(hit).then(value).otherwise(column).alias(column))
    folder = write(tmp_path / "changed", frames | {table: changed})
    (row,) = compare(first, folder).episodes.iter_rows(named=True)
    assert (row["episode_id"], row["status"], row["parts"]) == ("e005", "changed", [part])


def test_added_episodes_are_those_of_the_other_way_round(first, second):
    found = compare(second, first)
    assert rows(found, "episodes", "what")["added"]["episodes"] == 1
    assert found.episodes.filter(status="added")["goal_b"].null_count() == 0


# The verb


def run(capsys, *argv):
    code = 0
    try:
        main([str(word) for word in argv])
    except SystemExit as error:
        code = error.code
    return code, *capsys.readouterr()


def test_the_verb_prints_what_differs_and_names_what_does_not(capsys, first, second):
    code, out, _ = run(capsys, "diff", first, second)
    assert code == 0
    assert "shaping.alignment" in out
    assert "e017" in out
    assert TITLES["headline"] in out
    assert "the same: code, libraries and schema, columns" in out
    assert TITLES["versions"] not in out


def test_the_verb_on_the_same_says_so(capsys, first):
    assert run(capsys, "diff", first, first, "--exit-code")[:2][0] == 0
    assert "no difference" in run(capsys, "diff", first, first)[1]


def test_exit_code_is_one_when_they_differ_and_it_is_asked(capsys, first, second):
    code, _, err = run(capsys, "diff", first, second, "--exit-code")
    assert code == 1
    assert "config" in err


def test_json_holds_everything(capsys, first, second):
    code, out, _ = run(capsys, "diff", first, second, "--json")
    data = json.loads(out)
    assert code == 0
    assert set(TITLES) <= set(data)
    assert data["a"] == {"name": "small", "version": "1.0.0", "build_id": "a" * 16}
    assert data["same"] is False
    assert {row["episode_id"] for row in data["changed_episodes"]} >= {"e003", "e017"}


def test_wrong_folders_and_pages_are_the_users(capsys, first, tmp_path):
    assert run(capsys, "diff", first, tmp_path / "none")[0] == 2
    assert run(capsys, "diff", first, first, "--html", first / "diff.html")[0] == 2
    assert run(capsys, "diff", first, first, "--html", tmp_path / "no" / "diff.html")[0] == 2


# The page


def test_the_page_is_self_contained_and_the_same_every_time(found, tmp_path):
    page = write_diff(found, tmp_path / "a.html").read_text()
    assert page == write_diff(found, tmp_path / "b.html").read_text()
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    assert "@import" not in page
    assert "url(" not in page
    assert "shaping.alignment" in page
    assert "e017" in page
    assert "Validity by action type" in page


def test_the_page_escapes_what_datasets_say(first, tmp_path, frames):
    goal = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("<script>alert(1)</script>")).otherwise("goal")
    folder = write(tmp_path / "x", frames | {"episodes": frames["episodes"].with_columns(goal=goal)})
    page = write_diff(compare(first, folder), tmp_path / "a.html").read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


def test_the_page_of_two_equal_datasets_and_of_unscored_ones(first, tmp_path, frames):
    page = write_diff(compare(first, first), tmp_path / "a.html").read_text()
    assert "The two are the same" in page
    blank = frames["rewards"].with_columns(
        pl.lit(None).cast(frames["rewards"].schema[name]).alias(name)
        for name in ("raw_score", "valid", "reward", "base_reward", "gap_share", "advantage")
    )
    scored = blank.join(
        frames["episodes"].select("episode_id", "ref_len"), on="episode_id", maintain_order="left"
    )
    shaped = shape(
        scored.with_columns(unscored_reason=pl.lit("label_off_screen"), failure_reason=None),
        ShapingConfig(),
        AdvantageConfig(),
    )
    folder = write(tmp_path / "u", frames | {"rewards": shaped.rewards, "trajectories": shaped.trajectories})
    assert "–" in write_diff(compare(first, folder), tmp_path / "b.html").read_text()
