"""Each law that depends on the config finds what it is named for; adaptive sampling's rows are lawful."""

import polars as pl
import pytest
from lawful_dataset import CONFIG, N, tables, write_small_dataset

from solar_rl.actions import Action
from solar_rl.columns import candidates_frame, episodes_frame, label_columns, polars_schema, steps_frame
from solar_rl.config import AdvantageConfig, ShapingConfig, ValidityConfig
from solar_rl.query import connect
from solar_rl.schema import SCORE_COLUMNS, Candidate, Episode, Step
from solar_rl.shaping import shape
from solar_rl.stats.config_laws import config_laws
from solar_rl.stats.table_laws import RECORD_LAWS, REWARD_TABLE_LAWS
from solar_rl.validate.laws import laws_in
from solar_rl.validity import score

SHAPINGS = [
    ShapingConfig(),
    ShapingConfig(alignment="paper"),
    ShapingConfig(alignment="prefix_mean", suffix="penalise"),
    ShapingConfig(alignment="off"),
]


def judged(missing=(), validity=None, shaping=None, same=False) -> dict[str, pl.DataFrame]:
    """Judge and shape real actions by the product's rules; ``missing`` (step, candidate) are left out.

    With ``same`` every candidate of an episode says the same.
    """
    episodes = 6
    labels = (
        Action("scroll", direction="down", x=0.5, y=0.8, x2=0.5, y2=0.2),
        Action("input_text", text="milk and eggs"),
        Action("open_app", app_name="Notes"),
        Action("click", x=0.5, y=0.25),
        Action("press", button="back"),
        Action("finished", status="complete"),
    )
    answers = (
        labels,
        (Action("scroll", direction="up"), *labels[1:]),
        (labels[0], Action("input_text", text="milk"), None, Action("click", x=0.53, y=0.27), *labels[4:]),
    )
    records = [
        Episode(f"e{i}", "s", "android", "goal", tuple(Step(t, a, 1080, 2400) for t, a in enumerate(labels)))
        for i in range(episodes)
    ]
    candidates = [
        Candidate(
            episode_id=record.episode_id,
            step_index=t,
            candidate_index=k,
            completion="x",
            sampler_id="s",
            seed=k,
            action=(action := answers[(i + k * (not same)) % N][t]),
            parse_error="no JSON" if action is None else None,
        )
        for i, record in enumerate(records)
        for t in range(len(labels))
        for k in range(N)
        if (t, k) not in missing
    ]
    frames = {
        "episodes": episodes_frame(records),
        "steps": steps_frame(records),
        "images": pl.DataFrame(schema=polars_schema("images") | {"split": pl.String}),
        "candidates": candidates_frame(candidates),
        "preview": pl.DataFrame(schema=polars_schema("preview")),
    }
    labelled = label_columns(frames["candidates"], frames["steps"], frames["episodes"])
    keys = [
        "episode_id",
        "step_index",
        "candidate_index",
        "app",
        "action_type",
        "pred_action_type",
        "ref_len",
    ]
    scored = labelled.select(keys).hstack(score(labelled, validity or ValidityConfig()))
    shaped = shape(scored, shaping or ShapingConfig(), AdvantageConfig())
    return frames | {"rewards": shaped.rewards, "trajectories": shaped.trajectories}


def config(**blocks):
    resolved = {
        "validity": ValidityConfig().model_dump(mode="json"),
        "sampler": {"type": "scripted", "n": N, "adaptive": False},
    }
    return CONFIG | resolved | blocks


def broken(folder, **blocks) -> set[str]:
    with connect(folder) as con:
        return {check.name for check in laws_in(con, config(**blocks)) if not check.passed}


@pytest.fixture(scope="module")
def frames():
    return judged()


@pytest.mark.parametrize("shaping", SHAPINGS, ids=lambda s: f"{s.alignment}-{s.suffix}")
def test_what_the_product_judges_and_shapes_is_lawful(tmp_path, shaping):
    folder = write_small_dataset(tmp_path / "d", judged(shaping=shaping))
    assert broken(folder, shaping=shaping.model_dump()) == set()


def test_other_thresholds_and_widths_are_lawful_under_their_own_config_alone(tmp_path):
    validity = ValidityConfig(preset="lenient", text_threshold=0.6)
    folder = write_small_dataset(tmp_path / "d", judged(validity=validity))
    assert broken(folder, validity=validity.model_dump(mode="json")) == set()
    assert broken(folder) == {"points_follow_the_kernel", "valid_means_from_the_threshold_on"}


# Adaptive sampling: one pilot where it was valid, more where it was not


def adaptive(tmp_path):
    pilots = {(t, k) for t in (1, 3, 4, 5) for k in range(1, N)}
    return write_small_dataset(tmp_path / "a", judged(missing=pilots))


def test_groups_of_unequal_size_are_lawful_where_sampling_is_adaptive(tmp_path):
    folder = adaptive(tmp_path)
    assert broken(folder, sampler={"n": N, "adaptive": True}) == set()
    assert broken(folder) == {"steps_have_n_candidates"}


def test_rows_outside_trajectories_have_no_reward(tmp_path):
    folder = adaptive(tmp_path)
    rewards = pl.read_parquet(sorted((folder / "data/rewards").glob("*.parquet")))
    outside = rewards.filter(pl.col("candidate_index") > 0)
    assert outside.height
    assert outside["raw_score"].null_count() == 0
    assert outside["position"].null_count() == outside["reward"].null_count() == outside.height


def test_a_gap_in_the_indices_and_a_candidate_too_many(tmp_path):
    gap = write_small_dataset(tmp_path / "gap", judged(missing={(2, 1)}))
    assert "candidates_count_from_zero" in broken(gap, sampler={"n": N, "adaptive": True})
    many = write_small_dataset(tmp_path / "many", judged())
    assert "steps_have_n_candidates" in broken(many, sampler={"n": N - 1, "adaptive": True})


# Each law finds its damage


HIT = (pl.col("episode_id") == "e0") & (pl.col("step_index") == 3)


def at(name: str, value) -> dict[str, pl.Expr]:
    return {name: pl.when(HIT).then(value).otherwise(name)}


@pytest.mark.parametrize(
    ("table", "change", "law"),
    [
        ("rewards", at("gap_share", pl.col("gap_share") + 0.1), "gaps_are_shared_equally"),
        ("rewards", at("reward", pl.col("reward") + 0.1), "mean_prefix_reward_is_the_return"),
        ("rewards", at("position", pl.lit("after")), "what_comes_after_follows_the_suffix"),
        ("rewards", at("position", None), "whole_trajectories_have_a_place_at_every_step"),
        ("rewards", at("raw_score", pl.col("raw_score") * 0.9), "points_follow_the_kernel"),
        ("rewards", at("distance", pl.col("distance") + 0.1), "distances_are_those_of_the_points"),
        ("rewards", at("valid", ~pl.col("valid")), "valid_means_from_the_threshold_on"),
        (
            "rewards",
            {"raw_score": pl.when(pl.col("rule") == "parse").then(0.2).otherwise("raw_score")},
            "no_whole_answer_scores_nothing",
        ),
        (
            "rewards",
            {"valid": pl.when(pl.col("rule") == "scroll").then(True).otherwise("valid")},
            "scrolls_are_valid_by_direction",
        ),
        (
            "rewards",
            {"box_x1": 0.0, "box_y1": 0.0, "box_x2": 0.9, "box_y2": 0.9},
            "boxes_used_are_no_containers",
        ),
        ("trajectories", {"alignment": pl.lit("no_prefix")}, "alignment_says_what_carries_the_gap"),
        (
            "trajectories",
            {"trajectory_reward": 0.3 + 0.5 * pl.col("success").not_()},
            "success_pays_more_than_failure",
        ),
        ("candidates", {"finish_reason": pl.lit("tired")}, "answers_ended_or_were_cut"),
        ("candidates", {"history_dropped": pl.lit(9, pl.Int32)}, "answers_ended_or_were_cut"),
    ],
)
def test_each_law_finds_its_damage(tmp_path, frames, table, change, law):
    change = {name: pl.lit(v) if isinstance(v, float) else v for name, v in change.items()}
    changed = frames | {table: frames[table].with_columns(**change)}
    assert law in broken(write_small_dataset(tmp_path / "d", changed))


def test_equal_trajectories_get_equal_advantages(tmp_path):
    frames = judged(same=True)
    assert broken(write_small_dataset(tmp_path / "good", frames)) == set()
    other = pl.when(HIT & (pl.col("candidate_index") == 0)).then(0.5).otherwise("advantage")
    changed = frames["rewards"].with_columns(advantage=other)
    folder = write_small_dataset(tmp_path / "bad", frames | {"rewards": changed})
    assert "equal_trajectories_have_equal_advantages" in broken(folder)


def test_a_trajectory_of_an_unfinished_index_breaks_the_law(tmp_path):
    whole, gappy = judged(), judged(missing={(2, 2)})
    extra = whole["rewards"].filter((pl.col("candidate_index") == 2) & (pl.col("step_index") != 2))
    kept = gappy["rewards"].filter(pl.col("candidate_index") != 2)
    rewards = pl.concat([kept, extra]).sort("episode_id", "step_index", "candidate_index")
    folder = write_small_dataset(tmp_path / "d", gappy | {"rewards": rewards})
    assert "rows_outside_trajectories_are_null" in broken(folder, sampler={"n": N, "adaptive": True})


def test_laws_of_a_config_that_says_nothing_are_none():
    assert config_laws({}) == {}
    assert "points_follow_the_kernel" not in config_laws(
        config(validity={**config()["validity"], "verifier": "a:b"})
    )
    assert not {*RECORD_LAWS, *REWARD_TABLE_LAWS} & set(config_laws(config()))


def test_the_handmade_dataset_is_lawful_too(tmp_path):
    """Its scores are drawn, so that no rule stands behind them: the laws of shaping alone apply."""
    folder = write_small_dataset(tmp_path / "d", tables())
    with connect(folder) as con:
        assert [check.name for check in laws_in(con, CONFIG) if not check.passed] == []
    assert len(SCORE_COLUMNS) == 11
