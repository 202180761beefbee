"""Named statistics say what a plain count over the rows says, in any order of the rows."""

import math

import polars as pl
import pytest
from lawful_dataset import N, preview_frame, tables, write_small_dataset
from polars.testing import assert_frame_equal

from solar_rl import query, stats
from solar_rl.errors import InputError


@pytest.fixture(scope="module")
def frames():
    return tables(40)


@pytest.fixture(scope="module")
def con(tmp_path_factory, frames):
    with query.connect(write_small_dataset(tmp_path_factory.mktemp("small"), frames)) as connection:
        yield connection


def row(table: pl.DataFrame, **where) -> dict:
    (found,) = table.filter(**where).to_dicts()
    return found


def test_every_name_answers_with_titled_tables(con):
    assert (
        *("first_failure", "validity", "rewards", "groups", "truncation"),
        *("sampling", "directions", "labels", "oddities", "leakage", "checks"),
    ) == stats.NAMES
    titles = []
    for name in stats.NAMES:
        answer = stats.compute(con, name)
        assert answer, name
        titles += answer
        for title, table in answer.items():
            assert table.width >= 2, title
            assert not any(kind == pl.Decimal for kind in table.dtypes), title
    assert len(set(titles)) == len(titles)


def test_an_unknown_name_says_which_there_are(con):
    with pytest.raises(InputError, match="first_failure"):
        stats.compute(con, "failures")


def test_first_failures_by_step_are_hazards(con, frames):
    table = stats.compute(con, "first_failure")["First failure by step"]
    paths = frames["trajectories"]
    for step in range(3):
        reached = paths.filter(pl.col("valid_prefix_len") >= step, pl.col("ref_len") > step).height
        failed = paths.filter(first_failure_step=step).height
        assert row(table, step=step) == {
            "step": step,
            "reached": reached,
            "failed": failed,
            "failure_rate": failed / reached,
        }
    assert table["failed"].sum() == (~paths["success"]).sum()


def test_first_failures_by_relative_position_app_type_and_reason_add_up(con, frames):
    answer = stats.compute(con, "first_failure")
    failed = int((~frames["trajectories"]["success"]).sum())
    for title in answer:
        if "by" in title and "length" not in title:
            assert answer[title]["failed"].sum() == failed, title
    by_app = answer["First failure by app"]
    wanted = frames["trajectories"].drop_nulls("failure_app").group_by("failure_app").len()
    assert dict(by_app.select("app", "failed").rows()) == dict(wanted.rows())
    lengths = answer["Trajectories by length"]
    assert lengths["length"].to_list() == ["short (1-5)", "long (6-10)"]
    assert lengths["trajectories"].sum() == frames["trajectories"].height


def test_validity_counts_what_could_be_judged(con, frames):
    answer = stats.compute(con, "validity")
    rewards = frames["rewards"]
    for kind, group in rewards.group_by("action_type"):
        found = row(answer["Validity by action type"], action_type=kind[0])
        assert found["candidates"] == group.height
        assert found["scored"] == group["raw_score"].count()
        assert found["valid"] == group["valid"].sum()
        assert found["validity"] == pytest.approx(group["valid"].mean(), abs=1e-12)
        assert found["mean_score"] == pytest.approx(group["raw_score"].mean(), abs=1e-9)
    assert answer["Validity by step"]["step_index"].to_list() == list(range(7))
    tenths = answer["Validity by relative position (tenths of the recorded steps)"]
    assert tenths["candidates"].sum() == rewards.height
    assert tenths["tenth"].max() <= 9
    assert answer["Why answers are not valid"]["candidates"].sum() == (~rewards["valid"]).sum()


def test_unscored_answers_are_counted_apart_and_enter_no_mean(con, frames):
    table = stats.compute(con, "rewards")["Rewards of valid, invalid and unscored answers"]
    unscored = row(table, answer="unscored")
    assert (unscored["candidates"], unscored["in_play"], unscored["mean_reward"]) == (N, 0, None)
    valid = frames["rewards"].filter(pl.col("valid"))
    found = row(table, answer="valid")
    assert found["mean_reward"] == pytest.approx(valid["reward"].mean(), abs=1e-9)
    assert found["std_advantage"] == pytest.approx(valid["advantage"].std(ddof=0), abs=1e-6)
    assert found["negative_advantages"] == (valid["advantage"] < 0).sum()
    assert row(table, answer="invalid")["largest_reward"] <= 0


def test_distributions_hold_every_value_once(con, frames):
    answer = stats.compute(con, "rewards")
    for title, values in (
        ("Distribution of rewards", frames["rewards"]["reward"]),
        ("Distribution of R_traj", frames["trajectories"]["trajectory_reward"]),
    ):
        table = answer[title]
        assert table["n"].sum() == values.count()
        assert table["share"].sum() == pytest.approx(1)
        lowest, highest = table["at_least"][0], table["below"][-1]
        assert lowest - 1e-9 <= values.min()
        assert values.max() <= highest
        (width,) = {round(b - a, 9) for a, b in table.select("at_least", "below").rows()}
        assert width in (0.1, 0.05)


def test_sums_against_targets_show_a_broken_reward(tmp_path, frames):
    broken = frames["trajectories"].with_columns(
        reward_sum=pl.col("reward_sum") + pl.when(pl.int_range(pl.len()) == 3).then(0.5).otherwise(0.0)
    )
    whole = stats_of(tmp_path / "whole", frames, "rewards")["Sum of rewards against target"]
    assert whole["beyond_1e9"].sum() == 0
    bad = stats_of(tmp_path / "bad", frames | {"trajectories": broken}, "rewards")[
        "Sum of rewards against target"
    ]
    assert bad["beyond_1e9"].sum() == 1
    assert bad["largest_difference"].max() == pytest.approx(0.5)


def stats_of(folder, frames, name):
    with query.connect(write_small_dataset(folder, frames)) as con:
        return stats.compute(con, name)


def test_groups_without_spread_are_counted_by_reason(con, frames):
    answer = stats.compute(con, "groups")
    spread = (
        frames["rewards"]
        .group_by("episode_id", "step_index")
        .agg(n=pl.col("reward").count(), spread=pl.col("reward").max() - pl.col("reward").min())
    )
    by = dict(answer["Groups that teach, and those without spread"].select("outcome", "groups").rows())
    assert by["nothing in play"] == spread.filter(n=0).height == 1
    assert by.get("no spread", 0) == spread.filter(pl.col("spread") <= 1e-12).height
    assert sum(by.values()) == spread.height
    valid = answer["Groups by number of valid candidates"]
    assert valid["valid"].to_list() == list(range(N + 1))


def test_truncation_loss_is_what_comes_after_the_first_failure(con, frames):
    answer = stats.compute(con, "truncation")
    paths = frames["trajectories"]
    kept = paths.select(pl.coalesce(pl.col("first_failure_step") + 1, "ref_len").sum()).item()
    (found,) = answer["Sampled actions after the first failure (thrown away by a truncating mode)"].to_dicts()
    assert found["sampled"] == paths["ref_len"].sum() == frames["rewards"].height
    assert found["kept"] == kept
    assert found["lost_share"] == 1 - kept / found["sampled"]
    by_step = answer["Truncation loss by step"]
    assert by_step["kept"].sum() == kept
    assert by_step["lost_share"][0] == 0


def test_sampling_tells_pass_at_n_parse_errors_and_diversity(con, frames):
    answer = stats.compute(con, "sampling")
    (found,) = answer["Pass@1 and pass@N"].to_dicts()
    rewards = frames["rewards"]
    steps = rewards.group_by("episode_id", "step_index").agg(
        valid=pl.col("valid").sum(),
        scored=pl.col("valid").count(),
        kinds=pl.col("pred_action_type").n_unique(),
    )
    scored = steps.filter(pl.col("scored") > 0)
    assert found["pass_at_1"] == pytest.approx(rewards["valid"].mean())
    assert found["pass_at_n"] == pytest.approx((scored["valid"] > 0).mean())
    assert found["action_types_a_step"] == pytest.approx(steps["kinds"].mean(), abs=1e-9)
    assert found["parse_error_rate"] == frames["candidates"]["parse_error"].count() / rewards.height
    errors = answer["Parse errors"]
    assert errors["candidates"].sum() == frames["candidates"]["parse_error"].count()
    (diversity,) = answer["Diversity of answers (the first 20,000)"].to_dicts()
    different = frames["candidates"].group_by("episode_id", "step_index").agg(pl.col("completion").n_unique())
    assert diversity["different_a_step"] == pytest.approx(different["completion"].mean(), abs=1e-9)
    assert diversity["candidates_a_step"] == N


def test_directions_find_the_reversed_convention(tmp_path):
    frames = tables(12)
    turned = (pl.col("pred_action_type") == "scroll") & (pl.col("candidate_index") == 1)
    frames["candidates"] = frames["candidates"].with_columns(
        pred_direction=pl.when(turned).then(pl.lit("up")).otherwise("pred_direction")
    )
    answer = stats_of(tmp_path, frames, "directions")
    (found,) = answer["Scrolls: right, reversed, across"].to_dicts()
    scrolls = frames["candidates"].filter(pred_action_type="scroll")
    assert found["reversed"] == pytest.approx((scrolls["pred_direction"] == "up").mean())
    assert found["same"] + found["reversed"] + found["across"] == pytest.approx(1)
    (path,) = answer["Scroll labels: direction against the finger's path"].to_dicts()
    assert path["path_disagrees"] == 0
    assert path["with_path"] == path["steps"]


def test_labels_count_boxes_off_screen_points_and_empty_texts(tmp_path):
    frames = tables(12)
    first_text = pl.col("action_type").eq("input_text").cum_sum().eq(1) & pl.col("action_type").eq(
        "input_text"
    )
    frames["steps"] = frames["steps"].with_columns(
        text=pl.when(first_text).then(pl.lit(" ")).otherwise("text"),
        x=pl.when(pl.col("action_type") == "click").then(1.5).otherwise("x"),
    )
    answer = stats_of(tmp_path, frames, "labels")
    table = answer["Labels by action type (a box of a quarter of the screen or more is a container)"]
    steps = frames["steps"]
    clicks = steps.filter(action_type="click")
    assert row(table, action_type="click")["off_screen"] == clicks.height
    assert row(table, action_type="input_text")["empty_text"] == 1
    assert table["with_target_box"].sum() == steps["target_box"].count()
    click = row(table, action_type="click")
    assert click["with_container"] == click["with_boxes"]
    assert click["containers_alone"] == 0
    assert click["mean_smallest_area"] == pytest.approx(0.01)
    assert answer["Labels that can't be judged"].rows() == [("label off-screen", "open_app", N)]


def test_leakage_finds_goals_and_screenshots_shared_between_splits(con, frames):
    answer = stats.compute(con, "leakage")
    goals = frames["episodes"].group_by("goal").agg(pl.col("split").n_unique())
    summary = answer["What occurs in more than one split"]
    assert row(summary, what="goal") == {
        "what": "goal",
        "different": goals.height,
        "in_several": (goals["split"] > 1).sum(),
        "example": goals.filter(pl.col("split") > 1)["goal"].min(),
    }
    shots = row(summary, what="screenshot")
    home = frames["steps"].filter(step_index=0)["image_sha256"][0]
    assert (shots["in_several"], shots["example"]) == (1, home)  # the home screen of every episode


def test_checks_hold_on_a_whole_dataset_and_name_the_broken_law(tmp_path, con, frames):
    laws = stats.compute(con, "checks")["Laws"]
    assert laws["passed"].all()
    assert laws["count"].sum() == 0
    bent = frames["rewards"].with_columns(
        reward=pl.when(pl.col("valid").not_() & (pl.col("episode_id") == "e001"))
        .then(0.25)
        .otherwise("reward")
    )
    found = stats_of(tmp_path, frames | {"rewards": bent}, "checks")["Laws"]
    assert set(found.filter(~pl.col("passed"))["name"]) == {
        "invalid_is_never_positive",
        "reward_is_base_plus_gap",
    }


def test_headline_sums_a_dataset_up(con, frames):
    figures = stats.headline(con)
    assert figures["episodes"] == 40
    assert figures["candidates"] == frames["rewards"].height
    assert figures["validity"] == pytest.approx(frames["rewards"]["valid"].mean())
    assert figures["success_rate"] == frames["trajectories"]["success"].mean()
    assert figures["mean_trajectory_reward"] == pytest.approx(
        frames["trajectories"]["trajectory_reward"].mean(), abs=1e-9
    )
    assert figures["largest_sum_error"] < 1e-12
    assert all(isinstance(value, (int, float)) for value in figures.values())


def test_a_dataset_of_nothing_has_statistics_too(tmp_path, frames):
    empty = {name: frame.clear() for name, frame in frames.items()}
    folder = write_small_dataset(tmp_path, empty)
    with query.connect(folder) as con:
        for name in stats.NAMES:
            stats.compute(con, name)
        assert stats.headline(con)["validity"] is None


@pytest.mark.parametrize("name", [*stats.NAMES, "headline"])
def test_rows_in_any_order_give_the_same_bits(frames, name):
    import duckdb

    def answer(seed, threads):
        con = duckdb.connect(config={"threads": threads})
        for table, frame in (frames | {"preview": preview_frame(frames)}).items():
            con.register(f"{table}_rows", frame.sample(fraction=1, shuffle=True, seed=seed))
            con.execute(f"CREATE TABLE {table} AS SELECT * FROM {table}_rows")
        con.execute(query.derived_views())
        return stats.headline(con) if name == "headline" else stats.compute(con, name)

    one, other = answer(1, 1), answer(2, 4)
    if name == "headline":
        assert one == other
        return
    for title, table in one.items():
        assert_frame_equal(table, other[title], check_exact=True, abs_tol=0)


def test_means_are_right_to_nine_digits():
    import duckdb

    from solar_rl.stats.question import mean, std

    values = [math.sin(i) * 3 for i in range(1000)]
    con = duckdb.connect()
    con.register("v", pl.DataFrame({"x": [*values, None]}))
    found_mean, found_std = con.sql(f"SELECT {mean('x')}, {std('x')} FROM v").fetchall()[0]
    assert found_mean == pytest.approx(sum(values) / 1000, abs=1e-9)
    assert found_std == pytest.approx(pl.Series(values).std(ddof=0), abs=1e-6)
    assert con.sql(f"SELECT {mean('x')} FROM v WHERE x IS NULL").fetchall() == [(None,)]
