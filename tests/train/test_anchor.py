"""The expert anchor: the recorded action as an SFT term, its gradient added to GRPO's and nothing else changed."""

import pytest
import torch
from small_dataset import SIZE, build_trainer, losses, make_dataset
from test_replay_trainer import batch_of, gradients
from trl.trainer.utils import shuffle_sequence_dict, split_pixel_values_by_grid, split_tensor_dict

from solar_rl.actions import Action
from solar_rl.columns import action_of
from solar_rl.formats import FORMATS, get_format, parse_completion
from solar_rl.formats.base import Frame
from solar_rl.policy import answer_ids, encode
from solar_rl.train.anchor import thinks_aloud, with_thought
from solar_rl.train.data import Crediting, load_replay

pytestmark = pytest.mark.train


def sft_gradient(trainer, data, policy, rows):
    """Return SFT's loss and gradient on the recorded actions, by transformers' own cross-entropy."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    model.zero_grad()
    anchored = [row for row in rows if row["anchor"] is not None]
    tokens = sum(len(answer_ids(policy, row["anchor"])) for row in anchored)
    total = 0.0
    for row in anchored:
        answer = torch.tensor([answer_ids(policy, row["anchor"])])
        prompt = encode(policy, data.contexts.messages(row["context"]), data.contexts.encoded(row["context"]))
        length = prompt["input_ids"].shape[1]
        for name in ("input_ids", "attention_mask", "mm_token_type_ids"):
            tail = {"input_ids": answer, "attention_mask": torch.ones_like(answer)}.get(
                name, torch.zeros_like(answer)
            )
            prompt[name] = torch.cat([prompt[name], tail.to(prompt[name].dtype)], dim=1)
        logits = model(**prompt).logits[0, length - 1 : -1]
        loss = torch.nn.functional.cross_entropy(logits, answer[0], reduction="sum") / tokens
        loss.backward()
        total += loss.item()
    return total, torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def same_groups(one, other, groups):
    """Return the numbers that some of one trainer's groups have in another's."""
    keys = [
        zip(t.train_dataset["episode_id"], t.train_dataset["step_index"], strict=True) for t in (one, other)
    ]
    first, second = (list(each)[::SIZE] for each in keys)
    return [second.index(first[group]) for group in groups]


@pytest.mark.parametrize("credit", ["solar", "step_local"])
def test_the_gradient_is_grpos_plus_lambda_times_sfts(dataset, policy_folder, tmp_path, credit):
    plain, *_ = build_trainer(dataset, policy_folder, tmp_path, credit=credit)
    anchored, data, policy = build_trainer(dataset, policy_folder, tmp_path, credit=credit, expert_anchor=0.3)
    assert len(plain.train_dataset) < len(anchored.train_dataset), "some steps have their anchor alone"
    _, without = batch_of(plain)
    rows, batch = batch_of(anchored, same_groups(plain, anchored, range(4)))
    loss, together = gradients(anchored, batch)
    grpo_loss, grpo = gradients(plain, without)
    sft_loss, sft = sft_gradient(anchored, data, policy, rows)
    assert loss == pytest.approx(grpo_loss + 0.3 * sft_loss, abs=1e-5)
    assert torch.allclose(together, grpo + 0.3 * sft, atol=2e-6)
    assert sft.abs().max() > 1e-3


def test_micro_batches_add_up_to_the_whole(dataset, policy_folder, tmp_path):
    options = {"credit": "solar", "expert_anchor": 0.3, "per_device_train_batch_size": 4}
    trainer, *_ = build_trainer(dataset, policy_folder, tmp_path, gradient_accumulation_steps=4, **options)
    _, batch = batch_of(trainer)
    trainer.current_gradient_accumulation_steps = 4
    torch.manual_seed(1)
    pieces = split_tensor_dict(shuffle_sequence_dict(split_pixel_values_by_grid(batch)), 4)
    carried = [int(piece["anchor_mask"].any(1).sum()) for piece in pieces]
    assert sum(carried) == 4
    assert len(set(carried)) > 1, "an uneven split, so that a mean of means would be wrong"
    trainer.model.zero_grad()
    total = 0.0
    for piece in pieces:
        joined = {**piece, **{name: torch.cat(piece[name]) for name in ("pixel_values", "image_grid_thw")}}
        loss = trainer.compute_loss(trainer.model, joined)
        loss.backward()
        total += loss.item()
    summed = torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])
    trainer.current_gradient_accumulation_steps = trainer.args.steps_per_generation = 1
    trainer.model.zero_grad()
    whole = trainer.compute_loss(trainer.model, batch)
    whole.backward()
    grads = torch.cat([p.grad.flatten() for p in trainer.model.parameters() if p.grad is not None])
    assert total == pytest.approx(whole.item(), abs=1e-5)
    assert torch.allclose(summed, grads, atol=2e-6)


def test_weights_and_kl_are_left_as_they_are(dataset, policy_folder, tmp_path):
    options = {"credit": "step_local", "advantage_weight": "log_success"}
    plain, *_ = build_trainer(dataset, policy_folder, tmp_path, **options)
    anchored, *_ = build_trainer(dataset, policy_folder, tmp_path, expert_anchor=0.5, **options)
    (_, without), (_, with_anchor) = batch_of(plain), batch_of(anchored)
    for name in ("advantages", "num_items_in_batch", "completion_ids", "tool_mask"):
        assert torch.equal(without[name], with_anchor[name]), name


def test_the_recorded_action_becomes_likelier(dataset, policy_folder, tmp_path):
    trainer, data, _ = build_trainer(
        dataset, policy_folder, tmp_path, credit="step_local", expert_anchor=1.0, max_steps=12
    )
    assert data.anchors == {"written": 15}
    assert data.counts == {"kept": 14, "anchor alone": 1}
    trainer.train()
    log = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert log[-1]["policy/anchor_nll"] < log[0]["policy/anchor_nll"] - 0.5
    assert len(losses(trainer)) == 12


def test_every_group_carries_its_recorded_action_once(dataset):
    data = load_replay(dataset.folder, Crediting(credit="solar", anchor="auto"))
    assert len(data) == 15
    for number in range(len(data)):
        rows = data.group(number)
        (carrier,) = [row for row in rows if row["anchor"] is not None]
        assert carrier["in_play"] or not any(row["in_play"] for row in rows)
        step = data.contexts.step(carrier["context"])
        frame = data.contexts.frame(carrier["context"])
        assert parse_completion("json", carrier["anchor"], frame)[0] == action_of(step)


# --- thoughts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_a_thought_reads_back(name):
    form, frame = get_format(name), Frame(1008, 2016)
    action = Action("click", x=0.5, y=0.25)
    text = with_thought(name, "The button is there.", form.render(action, frame))
    parsed = form.parse(text, frame)
    assert parsed.action_type == "click"
    assert parsed.x == pytest.approx(0.5, abs=1e-3)
    assert form.aside(text, parsed).thought == "The button is there."
    assert thinks_aloud(name, [text, text, "nonsense"])
    assert not thinks_aloud(name, [form.render(action, frame)] * 3)


def think(folder, thoughts, answers):
    """Give steps thoughts, and every answer one."""
    import json

    import polars as pl

    (steps,) = folder.glob("data/steps/*.parquet")
    table = pl.read_parquet(steps)
    table.with_columns(pl.Series("thought", thoughts, pl.String)).write_parquet(steps)
    (path,) = folder.glob("data/candidates/*.parquet")
    table = pl.read_parquet(path)
    texts = [
        json.dumps({"thought": "Hm.", **json.loads(text)}) if error is None and answers else text
        for text, error in table.select("completion", "parse_error").iter_rows()
    ]
    table.with_columns(pl.Series("completion", texts)).write_parquet(path)


@pytest.mark.parametrize(
    ("how", "aloud", "anchors"),
    [
        ("auto", True, {"written": 10, "no recorded thought": 5}),
        ("auto", False, {"written": 15}),
        ("recorded", False, {"written": 10, "no recorded thought": 5}),
        ("none", True, {"written": 15}),
    ],
)
def test_steps_without_a_thought_are_left_out_where_the_policy_thinks_aloud(
    tmp_path, policy_folder, how, aloud, anchors
):
    made = make_dataset(tmp_path, policy_folder)
    think(made.folder, ["I see it.", "Now that.", None] * 5, aloud)
    data = load_replay(made.folder, Crediting(credit="step_local", anchor=how))
    assert data.anchors == anchors
    written = [text for text in data.rows["anchor"] if text]
    thoughts = [get_format("json").aside(text, Action("wait")).thought for text in written]
    assert set(thoughts) == ({None} if anchors == {"written": 15} else {"I see it.", "Now that."})
    assert len(written) <= len(data) and len(data.rows) == len(data) * SIZE
