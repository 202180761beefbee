"""Prompts are learned beside answers: a loss of their own, and that of the answers stays TRL's."""

import pytest
import torch
from trl.trainer.utils import add_fused_lm_head

from solar_rl.policy import load_policy
from solar_rl.train import prompt_loss
from solar_rl.train.prompt_loss import ScoresPrompts
from solar_rl.train.tiny_text import Size, make_text_policy

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    size = Size(width=32, layers=1, heads=2, inner=32, vocabulary=300)
    folder = make_text_policy(tmp_path_factory.mktemp("policy"), ["Turn on Wi-Fi"] * 5, size=size)
    made = load_policy(folder, device="cpu").model
    add_fused_lm_head(made)
    return made


@pytest.fixture
def batch():
    ids = torch.arange(3, 27).view(2, 12)
    present = torch.ones_like(ids)
    present[1, :4] = 0  # padded on the left
    labels = ids.masked_fill(present == 0, -100)
    labels[:, :8] = -100
    return {"input_ids": ids, "attention_mask": present, "labels": labels}


def test_each_part_has_the_mean_of_its_own_tokens(model, batch, monkeypatch):
    monkeypatch.setattr(prompt_loss, "SHARE", 1.0)
    scored = ScoresPrompts(model)
    outputs = scored(**batch, fused_lm_head=True)
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1]
    nll = -torch.log_softmax(logits, -1).gather(-1, batch["input_ids"][:, 1:, None]).squeeze(-1)
    answers = batch["labels"][:, 1:] != -100
    prompts = (batch["attention_mask"][:, 1:] == 1) & ~answers
    torch.testing.assert_close(scored.loss, nll[prompts].mean(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(-outputs.log_probs[answers], nll[answers], atol=1e-5, rtol=1e-5)


def test_the_loss_of_drawn_tokens_is_that_of_all_on_average(model, batch, monkeypatch):
    def loss(share: float) -> float:
        monkeypatch.setattr(prompt_loss, "SHARE", share)
        scored = ScoresPrompts(model)
        scored(**batch, fused_lm_head=True)
        return scored.loss.item()

    torch.manual_seed(0)
    drawn = torch.tensor([loss(0.5) for _ in range(200)])
    assert len(drawn.unique()) > 100
    error = drawn.std().item() / len(drawn) ** 0.5
    assert error < 0.05  # so that what follows can tell
    assert drawn.mean().item() == pytest.approx(loss(1.0), abs=3 * error)


def test_trl_sees_what_it_sees_without(model, batch):
    ours, trls = ScoresPrompts(model)(**batch, fused_lm_head=True), model(**batch, fused_lm_head=True)
    for name in ("log_probs", "entropy", "is_top1", "label_mask"):
        torch.testing.assert_close(getattr(ours, name), getattr(trls, name), atol=1e-5, rtol=1e-5)


def test_gradients_of_the_prompts_reach_the_model(model, batch):
    scored = ScoresPrompts(model)
    scored(**batch, fused_lm_head=True)
    model.zero_grad()
    scored.loss.backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.model.layers.parameters())
