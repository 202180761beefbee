"""What the trainer puts in the place of sampling: stored tokens, the dataset's advantages, masks, ratios."""

import inspect

import pytest
import torch
from small_dataset import SIZE, build_trainer, losses, make_dataset
from transformers import TrainerCallback
from trl import GRPOTrainer
from trl.trainer import utils as trl_utils

from solar_rl.errors import InputError
from solar_rl.policy import batch_logprobs, encode
from solar_rl.train import trainer as replay
from solar_rl.train.callbacks import margin, pick_groups
from solar_rl.train.sampler import check_groups

pytestmark = pytest.mark.train


def batch_of(trainer, groups=range(4)):
    """Return rows and what the trainer makes of them."""
    trainer.model.train()
    rows = [trainer.train_dataset[g * SIZE + k] for g in groups for k in range(SIZE)]
    return rows, trainer._generate_and_score_completions(rows)


def gradients(trainer, batch):
    """Return the loss of a batch and its gradients, all in one piece."""
    trainer.current_gradient_accumulation_steps = trainer.args.steps_per_generation
    trainer.model.zero_grad()
    loss = trainer.compute_loss(trainer.model, batch)
    loss.backward()
    grads = [p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None]
    return loss.item(), torch.cat(grads)


# --- what is private in TRL ---------------------------------------------------------------------------


def test_trl_still_has_every_private_name_that_is_relied_on(dataset, policy_folder, tmp_path):
    trainer, *_ = build_trainer(dataset, policy_folder, tmp_path)
    for name in replay.PRIVATE_NAMES["GRPOTrainer"]:
        assert callable(getattr(GRPOTrainer, name)), name
    for name in replay.PRIVATE_NAMES["self"]:
        assert hasattr(trainer, name), name
    _, batch = batch_of(trainer)
    assert set(replay.PRIVATE_NAMES["output"]) <= set(batch)
    takes = inspect.signature(GRPOTrainer._get_per_token_logps_and_entropies).parameters
    assert set(replay.FORWARD_INPUTS) <= set(takes), "a forward input was renamed"
    unknown = set(takes) - set(replay.FORWARD_INPUTS) - {
        "self", "model", "input_ids", "attention_mask", "logits_to_keep", "batch_size",
        "compute_entropy", "compute_aux_loss",
    }  # fmt: skip
    assert not unknown, "TRL's forward pass takes an input that FORWARD_INPUTS does not name"


def test_trl_reads_what_is_put_into_the_batch():
    source = inspect.getsource(GRPOTrainer._compute_loss)
    for key in ("tool_mask", "old_per_token_logps", "advantages", "num_items_in_batch"):
        assert f'"{key}"' in source, f"TRL's loss no longer reads {key}"
    assert "advantages.dim() == 1" in source, "TRL's loss no longer takes (B, T) advantages"
    calls = inspect.getsource(GRPOTrainer._generate)
    assert "self._generate_single_turn(" in calls
    assert "_get_train_sampler" in inspect.getsource(GRPOTrainer.get_train_dataloader)


def test_the_head_scores_answers_alone_and_changes_neither_loss_nor_gradient(
    dataset, policy_folder, tmp_path, monkeypatch
):
    trainer, *_ = build_trainer(dataset, policy_folder, tmp_path)
    _, batch = batch_of(trainer)
    seen, score = [], trl_utils._ChunkedLogProbFunction.apply

    def counted(hidden, *rest):
        seen.append(len(hidden))
        return score(hidden, *rest)

    monkeypatch.setattr(trl_utils._ChunkedLogProbFunction, "apply", counted)
    loss, grads = gradients(trainer, batch)
    monkeypatch.setattr(trl_utils, "_use_triton", lambda device: False)  # as TRL has it on a CPU
    same_loss, same_grads = gradients(trainer, batch)
    answers, everything = seen
    assert answers == int(batch["tool_mask"].sum()) < everything
    assert loss == pytest.approx(same_loss, abs=1e-6)
    torch.testing.assert_close(grads, same_grads, atol=1e-6, rtol=1e-4)


# --- the stored candidates ----------------------------------------------------------------------------


def test_stored_tokens_are_replayed_after_the_sampled_prompt(dataset, policy_folder, tmp_path):
    trainer, data, policy = build_trainer(dataset, policy_folder, tmp_path, credit="atomic")
    rows, batch = batch_of(trainer)
    for i, row in enumerate(rows):
        prompt = batch["prompt_ids"][i][batch["prompt_mask"][i].bool()]
        expected = encode(
            policy, data.contexts.messages(row["context"]), data.contexts.encoded(row["context"])
        )
        assert prompt.tolist() == expected["input_ids"][0].tolist()
        answer = batch["completion_ids"][i][batch["completion_mask"][i].bool()]
        assert answer.tolist() == row["token_ids"]


def test_the_first_ratio_is_one_because_log_probs_are_the_policys_own(dataset, policy_folder, tmp_path):
    trainer, *_ = build_trainer(dataset, policy_folder, tmp_path, credit="atomic")
    _, batch = batch_of(trainer)
    kept = batch["tool_mask"].bool()
    now = trainer._current_logps({k: v for k, v in batch.items() if k != "old_per_token_logps"})
    assert (now - batch["old_per_token_logps"])[kept].abs().max() < 1e-5


def test_groups_that_are_not_whole_are_refused(dataset, policy_folder, tmp_path):
    _, data, _ = build_trainer(dataset, policy_folder, tmp_path)
    with pytest.raises(InputError, match="no whole groups of 4"):
        check_groups(data.rows.select(range(6)), SIZE)
    mixed = data.rows.select([0, 1, 2, 4])
    with pytest.raises(InputError, match="aren't 4 different candidates of one step"):
        check_groups(mixed, SIZE)
    with pytest.raises(InputError, match="aren't 4 different candidates"):
        check_groups(data.rows.select([0, 1, 2, 2]), SIZE)


# --- advantages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("credit", ["atomic", "step_local", "solar"])
def test_advantages_are_those_trl_computes_from_the_same_rewards(dataset, policy_folder, tmp_path, credit):
    trainer, data, _ = build_trainer(dataset, policy_folder, tmp_path, credit=credit, scale_rewards="none")
    rows, batch = batch_of(trainer)
    trainer._replayed = rows
    with_prompts = [{**row, **data.contexts.inputs(row["context"])} for row in rows]
    trls = GRPOTrainer._generate_and_score_completions(trainer, with_prompts)["advantages"]
    assert torch.allclose(batch["advantages"], trls, atol=1e-6)


def test_the_std_weight_is_trls_scaling_up_to_one_factor_a_batch(dataset, policy_folder, tmp_path):
    trainer, data, _ = build_trainer(
        dataset, policy_folder, tmp_path, credit="step_local", advantage_weight="std", scale_rewards="group"
    )
    rows, batch = batch_of(trainer)
    trainer._replayed = rows
    with_prompts = [{**row, **data.contexts.inputs(row["context"])} for row in rows]
    trls = GRPOTrainer._generate_and_score_completions(trainer, with_prompts)["advantages"]
    factors = (batch["advantages"] / trls)[trls.abs() > 1e-6]
    assert factors.std() / factors.mean() < 1e-3


@pytest.mark.parametrize("groups", [range(4), range(1), range(2, 3)])
def test_weights_are_divided_by_their_mean_over_the_dataset(dataset, policy_folder, tmp_path, groups):
    plain, *_ = build_trainer(dataset, policy_folder, tmp_path, credit="step_local")
    weighted, data, _ = build_trainer(
        dataset, policy_folder, tmp_path, credit="step_local", advantage_weight="log_success"
    )
    _, without = batch_of(plain, groups)
    heavy_rows, with_weight = batch_of(weighted, groups)
    every = torch.tensor(data.rows["weight"][:])
    assert every.unique().numel() > 1
    expected = torch.tensor([row["weight"] for row in heavy_rows]) / every[every > 0].mean()
    taught = without["advantages"].abs() > 1e-6
    assert taught.any()
    ratio = with_weight["advantages"][taught] / without["advantages"][taught]
    assert torch.allclose(ratio, expected[taught], atol=1e-5)


# --- members that are not in play ---------------------------------------------------------------------


def test_members_out_of_play_give_no_gradient_and_no_denominator(dataset, policy_folder, tmp_path):
    trainer, *_ = build_trainer(dataset, policy_folder, tmp_path, credit="solar")
    rows, batch = batch_of(trainer)
    out = torch.tensor([not row["in_play"] for row in rows])
    assert out.any()
    in_play_tokens = sum(len(row["token_ids"]) for row in rows if row["in_play"])
    assert batch["num_items_in_batch"].item() == in_play_tokens
    loss, grads = gradients(trainer, batch)
    other = dict(batch)
    other["completion_ids"] = batch["completion_ids"].clone()
    other["completion_ids"][out] = 77
    other["old_per_token_logps"] = batch["old_per_token_logps"].clone()
    other["old_per_token_logps"][out] = -3.0
    other["advantages"] = batch["advantages"].clone()
    other["advantages"][out] = 100.0
    same_loss, same_grads = gradients(trainer, other)
    assert loss == same_loss
    assert torch.equal(grads, same_grads)
    assert grads.abs().max() > 0


# --- off-policy correction ----------------------------------------------------------------------------


def test_behaviour_takes_the_stored_log_probs_as_the_old_policy(dataset, policy_folder, tmp_path):
    trainer, *_ = build_trainer(dataset, policy_folder, tmp_path, credit="atomic", off_policy="behaviour")
    rows, batch = batch_of(trainer)
    for i, row in enumerate(rows):
        old = batch["old_per_token_logps"][i][: len(row["token_ids"])]
        assert torch.allclose(old, torch.tensor(row["sampling_logprobs"]))
    assert batch["advantages"].dim() == 1


@pytest.mark.parametrize("level", ["token", "prefix"])
def test_decoupled_weighs_tokens_by_the_truncated_ratio_to_the_current_policy(
    dataset, policy_folder, tmp_path, level
):
    options = {"off_policy": "decoupled", "tis_clip": 1.1, "tis_level": level}
    trainer, data, policy = build_trainer(dataset, policy_folder, tmp_path, credit="atomic", **options)
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in trainer.model.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    rows, batch = batch_of(trainer)
    clipped = 0
    for i, row in enumerate(rows):
        context = row["context"]
        messages, images = data.contexts.messages(context), data.contexts.encoded(context)
        now = torch.tensor(batch_logprobs(policy, messages, images, [row["token_ids"]], 1.0)[0])
        ratio = (now - torch.tensor(row["sampling_logprobs"])).exp()
        ratio = ratio.cumprod(0) if level == "prefix" else ratio
        clipped += int((ratio > 1.1).sum())
        expected = row["advantage"] * ratio.clamp(max=1.1)
        width = len(row["token_ids"])
        assert torch.allclose(batch["advantages"][i][:width], expected, atol=1e-4)
        assert torch.allclose(batch["old_per_token_logps"][i][:width], now, atol=1e-4)
    assert clipped > 0


def test_a_reference_model_is_read_from_the_policys_folder(dataset, policy_folder, tmp_path):
    trainer, *_ = build_trainer(dataset, policy_folder, tmp_path, beta=0.1, max_steps=2)
    trainer.train()
    kls = [entry["kl"] for entry in trainer.state.log_history if "kl" in entry]
    assert kls[0] == pytest.approx(0.0, abs=1e-6)
    assert kls[1] > 0


# --- what goes through the model, and how often ----------------------------------------------------


def test_a_screenshot_is_preprocessed_once_an_epoch_at_most(dataset, policy_folder, tmp_path):
    """Even where the memory is too small for a single one: each of 14 steps has a screen of its own."""
    trainer, data, _ = build_trainer(
        dataset, policy_folder, tmp_path, credit="step_local", num_train_epochs=2, max_steps=-1,
        gradient_accumulation_steps=2, off_policy="decoupled",
    )  # fmt: skip
    trainer.images.budget = 1
    steps = 14
    assert len(data) == steps
    made: list[float] = []
    trainer.add_callback(Each(lambda: made.append(trainer.images.made)))
    trainer.train()
    updates = len(trainer.get_train_dataloader()) // 2
    assert made == [4 * (k + 1) for k in range(2 * updates)], "4 groups an update, each made anew"
    plenty, *_ = build_trainer(dataset, policy_folder, tmp_path, credit="step_local", max_steps=12)
    plenty.train()
    assert plenty.images.made == steps


class Each(TrainerCallback):
    def __init__(self, act):
        self.act = act

    def on_step_end(self, *_, **__):
        self.act()


def test_rows_out_of_play_skip_the_model_and_change_no_figure(dataset, policy_folder, tmp_path, monkeypatch):
    trainer, *_ = build_trainer(dataset, policy_folder, tmp_path, credit="solar", beta=0.01)
    model = trainer.accelerator.unwrap_model(trainer.model)
    seen: list[int] = []
    model.register_forward_pre_hook(
        lambda m, args, kwargs: seen.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    rows, batch = batch_of(trainer)
    loss, grads = gradients(trainer, batch)
    in_play = sum(row["in_play"] for row in rows)
    assert seen == [in_play] and in_play < len(rows)
    monkeypatch.setattr(replay, "can_choose", lambda images: False)
    whole, same = gradients(trainer, batch)
    assert seen == [in_play, len(rows)]
    assert loss == pytest.approx(whole, abs=1e-6)
    assert torch.allclose(grads, same, atol=1e-6)


def test_a_micro_batch_without_anything_in_play_still_goes_through_the_model(
    dataset, policy_folder, tmp_path
):
    trainer, *_ = build_trainer(dataset, policy_folder, tmp_path, credit="solar")
    _, batch = batch_of(trainer)
    batch["tool_mask"] = torch.zeros_like(batch["tool_mask"])
    loss, grads = gradients(trainer, batch)
    assert loss == 0.0
    assert torch.equal(grads, torch.zeros_like(grads))


# --- learning -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("off_policy", ["behaviour", "decoupled"])
def test_the_margin_grows_in_both_stages(dataset, policy_folder, tmp_path, off_policy, seed):
    """20 steps on single steps, then 20 from that checkpoint on the shaped rewards.

    ``decoupled`` goes on with the candidates of the start policy. Under ``behaviour`` most of their tokens
    are clipped by then, so stage 2 gets a new round: the same answers with stage 1's log-probs.
    """
    start, made = policy_folder, dataset
    for credit in ("atomic", "solar"):
        if credit == "solar" and off_policy == "behaviour":
            made = make_dataset(tmp_path / "round", start)
        trainer, data, policy = build_trainer(
            made, start, tmp_path / credit, credit=credit, off_policy=off_policy, seed=seed
        )
        groups = pick_groups(data, 8)
        before = margin(data, policy, groups)
        trainer.train()
        trainer.model.eval()
        after = margin(data, policy, groups)
        assert trainer.state.global_step == 20
        assert after > before + 0.2, (credit, before, after)
        trainer.save_model(str(tmp_path / credit))
        start = tmp_path / credit


def test_a_resumed_run_goes_on_as_a_straight_one(dataset, policy_folder, tmp_path):
    options = {"max_steps": 8, "save_strategy": "steps", "save_steps": 6}
    straight, *_ = build_trainer(dataset, policy_folder, tmp_path, **options)
    straight.train()
    assert 6 / straight.state.max_steps * straight.state.epoch > 1, "the checkpoint must lie in epoch 2"
    resumed, *_ = build_trainer(dataset, policy_folder, tmp_path, **options)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-6"))
    assert len(losses(straight)) == 8
    assert losses(resumed) == losses(straight)
    for one, two in zip(straight.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, two)
