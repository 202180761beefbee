"""A run's health: each rule fires on what it is about and on nothing else; a collapse stops the run."""

import json
import re
from pathlib import Path

import pytest
from small_dataset import build_trainer
from trl import GRPOConfig

from solar_rl.errors import ConfigError
from solar_rl.train.figures import NAMES
from solar_rl.train.health import (
    COLLAPSE,
    FRESH_RULES,
    RULES,
    HealthCallback,
    diagnose,
    with_limits,
)

pytestmark = pytest.mark.train

METRICS = Path(__file__).parents[2] / "docs" / "metrics.md"
HEALTHY = {
    "loss": 0.1,
    "grad_norm": 1.0,
    "entropy": 0.4,
    "kl": 0.01,
    "clip_ratio/region_mean": 0.02,
    "policy/logprob_valid": -0.5,
    "policy/sample_share": 0.9,
    "data/unparsable": 0.05,
    "data/groups_without_spread": 0.3,
    "data/prefix_length": 3.0,
    "data/valid": 0.6,
}
SICK = {
    "entropy_collapse": {"entropy": 0.001},
    "entropy_explosion": {"entropy": 2.5},
    "far_from_reference": {"kl": 40.0},
    "valid_answers_fade": {"policy/logprob_valid": -6.0},
    "clipped": {"clip_ratio/region_mean": 0.9},
    "stale_answers": {"policy/sample_share": 0.01},
    "large_gradient": {"grad_norm": 5000.0},
    "unparsable_answers": {"data/unparsable": 0.5},
    "groups_without_spread": {"data/groups_without_spread": 0.8},
    "early_breakdown": {"data/prefix_length": 0.2},
    "validity_falls": {"data/valid": 0.1},
    "format_lost": {"data/unparsable": 0.9},
}


def test_every_rule_has_a_case():
    assert set(SICK) == {rule.name for rule in RULES + FRESH_RULES}


@pytest.mark.parametrize("name", SICK)
def test_a_rule_fires_after_its_patience_and_never_on_a_healthy_run(name):
    rules = RULES + FRESH_RULES
    history = [HEALTHY] * 8
    assert diagnose(history, rules, 3) == []
    assert name not in {
        finding.rule for finding in diagnose([*history, *[HEALTHY | SICK[name]] * 2], rules, 3)
    }
    found = {f.rule: f for f in diagnose([*history, *[HEALTHY | SICK[name]] * 3], rules, 3)}
    assert name in found
    assert found[name].cause in str(found[name])
    assert found[name].remedy in str(found[name])
    assert diagnose([*history, *[HEALTHY | SICK[name]] * 3, HEALTHY], rules, 3) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_what_is_not_a_number_is_wrong_at_once(value):
    (finding,) = diagnose([HEALTHY, HEALTHY | {"grad_norm": value}], RULES, 5)
    assert (finding.rule, finding.stops, finding.value) == ("not_finite", True, None)


def test_a_figure_that_is_not_logged_breaks_nothing():
    assert diagnose([{"loss": 0.1}] * 9, RULES, 2) == []


def test_limits_are_set_by_name():
    rules = with_limits(RULES, "clipped=0.01,far_from_reference=5")
    assert [f.rule for f in diagnose([HEALTHY] * 3, rules, 3)] == ["clipped"]
    for wrong in ("clippd=0.1", "clipped", "clipped=much"):
        with pytest.raises(ConfigError, match="expected NAME=NUMBER"):
            with_limits(RULES, wrong)


def trained(dataset, policy_folder, out, callback, **options):
    trainer, *_ = build_trainer(dataset, policy_folder, out, credit="step_local", **options)
    trainer.add_callback(callback)
    trainer.train()
    return trainer


def test_a_collapse_stops_the_run_and_keeps_the_last_good_checkpoint(dataset, policy_folder, tmp_path):
    """Entropy is made to look collapsed from step 5 on; of the checkpoints only two may stay."""

    class Collapsing(HealthCallback):
        def on_log(self, args, state, control, **kwargs):
            if state.global_step >= 5:
                state.log_history[-1]["entropy"] = 1e-4
            super().on_log(args, state, control, **kwargs)

    health = Collapsing(RULES, patience=3)
    options = {"save_strategy": "steps", "save_steps": 1, "save_total_limit": 2, "max_steps": 12}
    trainer = trained(dataset, policy_folder, tmp_path, health, **options)
    assert trainer.state.global_step == 7
    assert health.collapsed.rule == "entropy_collapse"
    marker = json.loads((tmp_path / COLLAPSE).read_text())
    assert marker["step"] == 7
    assert marker["cause"] and marker["remedy"]
    assert marker["last_good_checkpoint"] == str(tmp_path / "checkpoint-4")
    kept = sorted(path.name for path in tmp_path.glob("checkpoint-*"))
    assert "checkpoint-4" in kept
    assert len(kept) == 2


def test_a_run_that_is_only_warned_goes_on(dataset, policy_folder, tmp_path, capsys):
    rules = with_limits(RULES, "unparsable_answers=0.01")
    health = HealthCallback(rules, on_collapse="warn", patience=2)
    trainer = trained(dataset, policy_folder, tmp_path, health, max_steps=4)
    assert trainer.state.global_step == 4
    warnings = [line for line in capsys.readouterr().err.splitlines() if line.startswith("warning at step 2")]
    assert len([line for line in warnings if "unparsable_answers" in line]) == 1, "told once, not every step"


# --- the document -------------------------------------------------------------------------------------


def logged_names(dataset, policy_folder, tmp_path) -> set[str]:
    options = {"off_policy": "decoupled", "expert_anchor": 0.1, "beta": 0.01, "max_steps": 2}
    trainer, *_ = build_trainer(dataset, policy_folder, tmp_path, credit="solar", **options)
    trainer.train()
    return {name for entry in trainer.state.log_history if "loss" in entry for name in entry}


def test_every_logged_name_is_documented_and_every_documented_one_is_logged(dataset, policy_folder, tmp_path):
    documented = set(re.findall(r"^\| `([^`]+)` \|", METRICS.read_text(), re.MULTILINE))
    logged = logged_names(dataset, policy_folder, tmp_path)
    general = {re.sub(r"^(data/(?:reward|valid))/\w+/\w+$", r"\1/KIND/NAME", name) for name in logged}
    ours = {name for name in general if name.startswith(("data/", "policy/"))}
    assert ours == set(NAMES)
    assert set(NAMES) <= documented
    assert general <= documented, "TRL's own are documented too"
    rules = {rule.name for rule in RULES + FRESH_RULES} | {"not_finite"}
    assert documented <= general | rules | {"data/reward/KIND/NAME"}
    assert rules <= documented


def test_documented_rules_say_what_the_code_says():
    text = METRICS.read_text()
    for rule in RULES + FRESH_RULES:
        (line,) = re.findall(rf"^\| `{rule.name}` \|.*$", text, re.MULTILINE)
        assert f"`{rule.figure}`" in line
        assert f"{rule.limit:g}" in line
        assert rule.cause in line and rule.remedy in line, rule.name
        assert (line.split("|")[4].strip() == "stop") == rule.stops


def test_entropy_coef_that_a_remedy_names_is_a_key_of_trl():
    assert hasattr(GRPOConfig(output_dir="x", use_cpu=True, bf16=False), "entropy_coef")
