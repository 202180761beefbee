"""A verifier named in the config judges in the place of the rules, in a build and when scoring again."""

from pathlib import Path

import polars as pl
import pytest
from test_pipeline import config, hashes

from solar_rl import open_dataset, pipeline
from solar_rl.errors import ConfigError
from solar_rl.pipeline import derive

NAME = f"{__name__}:trusting"


def trusting(steps: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Accept everything but the first step, and want goal and screenshot for it."""
    assert steps["goal"].null_count() == 0
    assert all(shot.startswith(b"\x89PNG") for shot in steps["screenshot"])
    score = pl.when(pl.col("step_index") > 0).then(0.9).otherwise(0.1)
    found = {"raw_score": score, "valid": score > 0.5, "unscored_reason": pl.lit(None, pl.String)}
    return candidates.with_columns(**found).select(*found, rule=pl.lit("trusting"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("verified") / "toy-2.0.0"
    pipeline.build(config(version="2.0.0", validity={"verifier": NAME}), out)
    return out


def test_its_scores_are_what_is_stored_and_shaped(built: Path) -> None:
    data = open_dataset(built)
    rewards = data.rewards.collect(engine="in-memory")
    assert set(rewards["rule"]) == {"trusting"}
    assert set(rewards.filter(pl.col("step_index") > 0)["raw_score"]) == {0.9}
    assert set(data.trajectories.collect()["first_failure_step"]) == {0}
    assert data.manifest.config["validity"]["verifier"] == NAME


def test_scoring_again_with_it_equals_building_with_it(built: Path, tmp_path: Path) -> None:
    pipeline.build(config(), tmp_path / "rules")
    plan = derive.plan(tmp_path / "rules", {"validity.verifier": NAME}, tmp_path / "again", "2.0.0", "score")
    derive.run(plan)
    assert hashes(tmp_path / "again") == hashes(built)


def test_a_verifier_that_isnt_there_is_told_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be imported"):
        pipeline.build(config(validity={"verifier": "no.such:judge"}), tmp_path / "none")
    assert not (tmp_path / "none").exists()


calls: list[int] = []


def dying(steps: pl.DataFrame, candidates: pl.DataFrame) -> pl.DataFrame:
    """Judge as ``trusting``, but fail at the third call."""
    calls.append(candidates["episode_id"].n_unique())
    if len(calls) == 3:
        raise RuntimeError("the machine went away")
    return trusting(steps, candidates)


def test_what_it_said_before_a_build_stopped_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solar_rl.pipeline.scoring.VERIFIED_AT_ONCE", 1)
    given = config(version="2.0.0", validity={"verifier": f"{__name__}:dying"})
    calls.clear()
    with pytest.raises(RuntimeError, match="went away"):
        pipeline.build(given, tmp_path / "ds")
    pipeline.build(given, tmp_path / "ds")
    episodes = open_dataset(tmp_path / "ds").episodes.collect().height
    assert calls == [1] * (episodes + 1)  # the one that failed was asked twice, no other
    straight = tmp_path / "straight"
    pipeline.build(given, straight)
    assert hashes(straight) == hashes(tmp_path / "ds")
