"""Under ``off_policy: behaviour`` the answers must have been scored by the policy that training starts from."""

from types import SimpleNamespace

import pytest
from small_dataset import build_trainer

from solar_rl.train.health import RULES, SCORED_ELSEWHERE, HealthCallback
from solar_rl.train.tiny import make_tiny_policy

pytestmark = pytest.mark.train


def told_by(dataset, policy, out, *, watched=True, **options):
    trainer, *_ = build_trainer(dataset, policy, out, max_steps=2, **options)
    health = HealthCallback(RULES, "warn", mismatch=trainer.mismatch if watched else None)
    trainer.add_callback(health)
    trainer.train()
    return [(each["step"], each["value"]) for each in health.found if each["rule"] == "scored_elsewhere"]


def test_another_policy_than_the_one_that_scored_is_told_once_with_its_distance(
    dataset, policy_folder, tmp_path, capsys
):
    other = make_tiny_policy(tmp_path / "other", seed=4)
    [(step, apart)] = told_by(dataset, other, tmp_path / "a", off_policy="behaviour", logging_steps=2)
    assert step == 1 and apart > SCORED_ELSEWHERE
    said = capsys.readouterr().err
    assert said.count("warning at step 1: scored_elsewhere") == 1
    assert "start from the policy that sampled" in said
    assert told_by(dataset, policy_folder, tmp_path / "b", off_policy="behaviour") == []


@pytest.mark.parametrize(
    ("step", "value", "told"), [(1, 0.2, 1), (1, 0.09, 0), (1, None, 0), (2, 0.2, 0), (7, 0.2, 0)]
)
def test_only_a_first_update_is_looked_at(step, value, told):
    """A run that goes on from a checkpoint has moved away from the sampler, as it should."""
    health = HealthCallback(RULES, mismatch=lambda: value)
    state = SimpleNamespace(global_step=step, is_world_process_zero=True)
    health.on_step_end(None, state, None)
    assert len(health.found) == told
    HealthCallback(RULES).on_step_end(None, state, None)
