"""Plans, arms and the command line of the lab."""

import re
from itertools import combinations

import pytest

from builders.miniwob import MiniWobOptions
from solar_rl.cli import main
from solar_rl.errors import ConfigError
from solar_rl.lab import load_plan
from solar_rl.lab.arms import ALIGNMENTS, ARMS, BASELINES, LAB_ARMS
from solar_rl.lab.courses import training_keys
from solar_rl.lab.folder import Folder
from solar_rl.lab.training import as_words
from solar_rl.lab.worlds import WORLDS
from solar_rl.shipped import shipped_path
from solar_rl.train.keys import read_settings
from solar_rl.train.launch import check_rows, find_recipe


@pytest.mark.parametrize("name", ["quick", "lab"])
def test_shipped_plans_are_read(name):
    plan = load_plan(name)
    assert plan.arms == tuple(LAB_ARMS)
    assert len(plan.runs) == len(plan.arms) * len(plan.seeds)


SWEEPS = [path.stem for path in sorted(shipped_path("recipes", "lab").glob("full_*.yaml"))]


@pytest.mark.parametrize("name", SWEEPS)
def test_a_sweep_changes_one_factor_of_the_lab(name):
    """Beside what is asked: which arms, how long, and where the start policy comes from."""
    lab, sweep = load_plan("lab").model_dump(), load_plan(name).model_dump()
    free = {"name", "about", "arms", "minutes", "shares", "seeds"}
    factors = {key for key in lab if lab[key] != sweep[key]} - free
    other_world = {"world", "options", "demonstrations", "warm", "measure"}
    pictures = {"observation", "options", "warm", "prompt_tokens"}
    allowed = [
        pictures,
        set(),
        {"history"},
        {"rounds"},
        {"train"},
        {"kept"},
        {"adaptive", "sampled"},
        {"size"},
    ]
    assert factors in [*allowed, other_world]


@pytest.mark.parametrize("name", [name for name in SWEEPS if "rounds" in name])
def test_rounds_are_compared_with_one_build_of_as_many_updates(name):
    sweep, once = load_plan(name), load_plan("full_once")
    assert sweep.shares == once.name
    assert sweep.train.updates is None  # it takes over as many as the other has
    assert set(sweep.arms) <= set(once.arms)
    assert sweep.seeds == once.seeds


def test_a_confirmation_has_fresh_seeds_and_episodes_and_the_same_start():
    lab, confirm = load_plan("lab"), load_plan("confirm")
    assert confirm.shares == "lab"
    assert not set(lab.seeds) & set(confirm.seeds)
    assert confirm.sampled_seed >= lab.sampled_seed + lab.sampled
    assert confirm.measure.first_seed >= max(lab.measure.closed.values())
    assert set(BASELINES) < set(confirm.arms)
    assert confirm.train == lab.train
    assert confirm.options == lab.options


def test_the_lab_keeps_to_its_limits():
    plan = load_plan("lab")
    assert plan.train.least >= plan.train.checkpoints
    assert len(plan.seeds) >= 5
    assert plan.train.rows <= 32
    assert plan.minutes <= 90
    assert set(BASELINES) < set(plan.arms)


def test_an_unknown_arm_is_refused():
    with pytest.raises(ConfigError, match="no arm"):
        load_plan("quick", {"arms": "[sparse, magic]"})


def test_runs_go_seed_by_seed_so_that_a_cut_leaves_pairs():
    plan = load_plan("quick", {"arms": "[sft, sparse]", "seeds": "[3, 4]"})
    assert plan.runs == [("sft", 3), ("sparse", 3), ("sft", 4), ("sparse", 4)]


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_has_the_same_budget_and_fits_its_recipe(arm, tmp_path):
    plan = load_plan("lab")
    keys = training_keys(plan, Folder(tmp_path), arm, 3, 40, tmp_path)
    settings = read_settings(find_recipe(ARMS[arm].recipe), as_words(keys))
    check_rows(settings, arm, 1)
    assert settings["max_steps"] == "40"
    assert float(settings["learning_rate"]) == plan.train.learning_rate
    groups = int(settings["rows_per_update"]) // (1 if arm == "sft" else plan.n)
    assert groups == plan.train.rows // plan.n  # contexts an update


def test_arms_differ_in_their_recipe_or_their_version_of_the_dataset():
    assert len({(arm.recipe, arm.alignment) for arm in LAB_ARMS.values()}) == len(LAB_ARMS) == 11
    assert {arm.alignment for arm in LAB_ARMS.values()} == set(ALIGNMENTS)


def test_held_out_goals_are_of_what_training_has():
    options = (
        "{templates: [shop.cart, notes.pin, notes.tick], unseen_apps: [shop], unseen_templates: [notes.pin]}"
    )
    plan, world = load_plan("quick", {"options": options}), WORLDS["phone"]
    assert world.held_out(plan, None)["templates"] == ["notes.tick"]
    assert world.held_out(plan, "unseen_apps")["templates"] == ["notes.tick", "shop.cart"]
    assert world.held_out(plan, "unseen_templates")["templates"] == ["notes.tick", "notes.pin"]


def test_the_warm_start_may_ask_for_less_than_the_sampled_goals():
    plan = load_plan("quick")
    world = WORLDS["phone"]
    assert world.recorded(plan, 5, 1, plan.warm.only)["templates"] == list(plan.warm.only)
    assert world.recorded(plan, 5, 1)["templates"] == plan.options["templates"]


def test_pages_of_miniwob_have_seeds_of_their_own_for_training_sampling_and_measuring():
    plan, world = load_plan("full_miniwob"), WORLDS["miniwob"]
    made = [
        world.recorded(plan, 40, plan.seed),
        world.recorded(plan, 40, plan.seed + plan.sampled_seed),
        world.held_out(plan, None),
    ]
    seeds = [
        {
            (split, task, seed)
            for split, seeds in MiniWobOptions(**options).seeds().items()
            for seed in seeds
            for task in options["tasks"]
        }
        for options in made
    ]
    assert all(not one & other for one, other in combinations(seeds, 2))
    assert {split for split, *_ in seeds[0] | seeds[1]} == {"train"}
    assert {split for split, *_ in seeds[2]} == {"test"}
    jobs = world.jobs(plan)
    assert len(jobs) == 25 * 20
    assert {("test", *job) for job in jobs} >= seeds[2]
    assert world.limits(plan).keys() == {job.task for job in jobs}


@pytest.mark.parametrize(
    ("plan", "change", "message"),
    [
        ("quick", {"measure.closed": "{super: 1}"}, "'super' isn't played in world phone; there is: short"),
        ("quick", {"measure.closed": "{each: 1}"}, "'each' isn't played in world phone"),
        ("quick", {"measure.max_steps": "{short: 4}"}, "max_steps says nothing about long, super_long"),
        (
            "full_miniwob",
            {"measure.closed": "{short: 1}"},
            "'short' isn't played in world miniwob; there is: each",
        ),
    ],
)
def test_episodes_that_a_world_does_not_have_are_refused(plan, change, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_plan(plan, change)


def test_a_dry_run_says_what_would_run(capsys, tmp_path):
    with pytest.raises(SystemExit) as left:
        main(["lab", "quick", "--seeds", "[0]", "--dry-run", "--out", str(tmp_path / "x")])
    assert left.value.code == 0
    assert "11 arms x 1 seeds = 11 runs" in capsys.readouterr().out
    assert not (tmp_path / "x").exists()
