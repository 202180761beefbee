"""A dataset as training rows: prompts as sampled, whole groups, what is left out is counted."""

import polars as pl
import pytest
from small_dataset import PROMPT, SIZE, episode_number, make_dataset

from solar_rl.config import PromptConfig
from solar_rl.errors import ConfigError, InputError
from solar_rl.policy import load_policy
from solar_rl.prompts import build_request
from solar_rl.store.manifest import read_manifest, write_manifest
from solar_rl.train.data import Crediting, check_policy, load_replay
from solar_rl.train.images import HASH_KEY, Memory, remember_images
from solar_rl.train.tiny import make_tiny_policy

pytestmark = pytest.mark.train


def test_prompts_and_images_are_those_of_the_sampler(dataset):
    data = load_replay(dataset.folder, Crediting(credit="atomic"))
    for row in data.rows:
        episode = episode_number(int(row["episode_id"][1:]))
        step = episode.steps[row["step_index"]]
        request = build_request(episode, step, PromptConfig(**PROMPT), n=SIZE, seed=0)
        assert data.contexts.messages(row["context"]) == request.messages
        assert data.contexts.encoded(row["context"]) == request.images


def test_a_step_whose_scores_are_equal_is_left_out_and_counted(dataset):
    data = load_replay(dataset.folder, Crediting(credit="atomic"))
    assert data.counts == {"kept": 14, "no spread": 1}
    assert len(data) == 14
    assert ("e4", 2) not in set(zip(data.rows["episode_id"], data.rows["step_index"], strict=True))


def test_members_after_the_breakdown_are_not_in_play(dataset):
    data = load_replay(dataset.folder, Crediting(credit="solar"))
    stored = pl.read_parquet(dataset.folder / "data/rewards/*.parquet")
    for row in data.rows:
        key = {name: row[name] for name in ("episode_id", "step_index", "candidate_index")}
        reward = stored.row(
            by_predicate=pl.all_horizontal(pl.col(k) == v for k, v in key.items()), named=True
        )
        assert row["in_play"] == (reward["position"] != "after")
        assert row["reward"] == reward["reward"]
        assert row["advantage"] == (reward["advantage"] or 0.0)
    assert not all(data.rows["in_play"])


def without(folder, gone: pl.Expr):
    """Drop rows of candidates and rewards, and forget the files' sizes."""
    for table in ("candidates", "rewards"):
        (path,) = folder.glob(f"data/{table}/*.parquet")
        pl.read_parquet(path).filter(~gone).write_parquet(path)


def configured(folder, **sampler):
    """Change the sampler's block in a dataset's manifest."""
    manifest = read_manifest(folder)
    config = {**manifest.config, "sampler": {**manifest.config["sampler"], **sampler}}
    write_manifest(folder, manifest.model_copy(update={"config": config}))


def test_a_group_with_a_missing_candidate_is_refused(tmp_path, policy_folder):
    made = make_dataset(tmp_path, policy_folder)
    at = (pl.col("episode_id") == "e0") & (pl.col("step_index") == 1)
    without(made.folder, at & (pl.col("candidate_index") == 3))
    with pytest.raises(InputError, match=r"step 1: 3 candidates: 1 of 15 steps don't have 4 different"):
        load_replay(made.folder, Crediting(credit="step_local"))


def test_adaptive_groups_of_one_are_filled_up_and_counted(tmp_path, policy_folder):
    made = make_dataset(tmp_path, policy_folder)
    at = (pl.col("episode_id") == "e0") & (pl.col("step_index") == 0)
    without(made.folder, at & (pl.col("candidate_index") > 0))
    configured(made.folder, adaptive=True)
    data = load_replay(made.folder, Crediting(credit="step_local"))
    assert data.counts == {"kept": 13, "no spread": 1, "one candidate": 1}
    anchored = load_replay(made.folder, Crediting(credit="step_local", anchor="auto"))
    assert anchored.counts == {"kept": 13, "anchor alone": 2}
    rows = next(
        g for g in map(anchored.group, range(15)) if (g[0]["episode_id"], g[0]["step_index"]) == ("e0", 0)
    )
    assert [row["in_play"] for row in rows] == [False] * SIZE
    assert [row["parsed"] for row in rows][1:] == [None] * 3
    assert [row["anchor"] is not None for row in rows] == [True, False, False, False]
    assert all(len(row["token_ids"]) == len(row["sampling_logprobs"]) == 1 for row in rows)


@pytest.mark.parametrize("credit", ["solar", "sparse", "sparse_rtraj", "ui_s1"])
def test_credits_of_trajectories_are_refused_after_adaptive_sampling(tmp_path, policy_folder, credit):
    made = make_dataset(tmp_path, policy_folder)
    configured(made.folder, adaptive=True)
    with pytest.raises(ConfigError, match=f"credit: {credit} needs whole trajectories.*step_local or atomic"):
        load_replay(made.folder, Crediting(credit=credit))


def test_rare_actions_are_up_sampled(dataset):
    plain = load_replay(dataset.folder, Crediting(credit="atomic"))
    level = load_replay(dataset.folder, Crediting(credit="atomic", upsample_rare=1.0))
    assert set(plain.rows["repeat"]) == {1}
    steps = pl.read_parquet(dataset.folder / "data/steps/*.parquet")
    rows = level.rows.to_polars().join(
        steps.select("episode_id", "step_index", "action_type"), on=["episode_id", "step_index"]
    )
    per_type = rows.group_by("action_type").agg(shown=pl.col("repeat").sum() / SIZE, steps=pl.len() / SIZE)
    assert per_type["steps"].n_unique() > 1
    assert per_type["shown"].max() - per_type["shown"].min() <= per_type["steps"].max() / 2


@pytest.mark.parametrize("credit", ["solar", "atomic", "step_local", "sparse", "sparse_rtraj", "ui_s1"])
def test_every_credit_gives_whole_groups(dataset, credit):
    data = load_replay(dataset.folder, Crediting(credit=credit))
    assert len(data.rows) == len(data) * SIZE
    for low, high in data.extremes():
        assert low < 0 or high > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "test"}, "split 'test' has no steps"),
        ({"group_size": 8}, "num_generations is 8, but the dataset holds 4 candidates a step"),
        ({"temperature": 0.7}, "temperature is 0.7, but candidates were sampled at 1.0"),
    ],
)
def test_a_recipe_that_does_not_fit_the_dataset_is_refused(dataset, options, message):
    with pytest.raises(InputError, match=message):
        load_replay(dataset.folder, **options)


def test_an_unknown_credit_is_refused(dataset):
    with pytest.raises(ConfigError, match="expected one of solar, atomic"):
        load_replay(dataset.folder, Crediting(credit="solr"))


def test_a_folder_without_a_dataset_is_refused(tmp_path):
    with pytest.raises(InputError):
        load_replay(tmp_path)


def test_candidates_without_log_probs_say_how_to_build(tmp_path):
    made = make_dataset(tmp_path, None)
    with pytest.raises(InputError, match=r"no token ids with a log-prob each.*sampler\.policy"):
        load_replay(made.folder)


def test_token_ids_of_another_policy_are_refused(tmp_path, dataset, policy_folder):
    data = load_replay(dataset.folder)
    check_policy(data, load_policy(policy_folder, device="cpu"))
    other = make_tiny_policy(tmp_path, corpus=["another vocabulary altogether"] * 4)
    with pytest.raises(InputError, match=f"not those of policy.*--sampler.policy {other}"):
        check_policy(data, load_policy(other, device="cpu"))


def test_an_image_processor_remembers_and_gives_the_same_patches(dataset, policy_folder):
    import torch

    contexts = load_replay(dataset.folder).contexts
    images = [contexts.inputs(k)["images"][0] for k in (0, 1, 0, 2)]
    plain = load_policy(policy_folder, device="cpu").processor.image_processor
    quick = load_policy(policy_folder, device="cpu").processor.image_processor
    expected = plain(images=images, return_tensors="pt")
    assert remember_images(quick, 2**24)
    made: list[str] = []
    patches = quick._preprocess
    quick._preprocess = lambda *args, **kwargs: made.append("x") or patches(*args, **kwargs)
    for _ in range(2):
        found = quick(images=[[image] for image in images], return_tensors="pt")
        assert torch.equal(found["pixel_values"], expected["pixel_values"])
        assert torch.equal(found["image_grid_thw"], expected["image_grid_thw"])
    assert len(made) == 3
    del quick._preprocess
    assert quick.to_dict() == plain.to_dict()
    assert images[0].info == {HASH_KEY: images[2].info[HASH_KEY]}


def test_a_memory_keeps_to_its_budget_and_drops_the_unused():
    memory = Memory(10)
    for name, size in (("a", 4), ("b", 4)):
        memory.put(name, name, size)
    memory.turn()
    assert memory.get("a") == "a"
    memory.put("c", "c", 4)
    assert [memory.get(name) for name in "abc"] == ["a", None, "c"]
    assert memory.held <= 10
    memory.put("huge", "huge", 99)
    assert memory.get("huge") == "huge"


def test_a_batch_never_makes_a_value_twice_however_small_the_budget():
    memory = Memory(1)
    for _ in range(3):
        for name in "abc":
            if memory.get(name) is None:
                memory.put(name, name, 5)
    assert memory.made == 3
    memory.turn()
    assert memory.held <= 1
