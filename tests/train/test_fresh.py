"""Candidates that are sampled while training: shaped to the bit as a dataset's, on-policy, in every history."""

import gc
from dataclasses import replace

import pytest
import torch
from fresh_dataset import SIZE, Known, build_phone, fresh_trainer

from solar_rl.errors import ConfigError, InputError
from solar_rl.formats import get_format
from solar_rl.policy import answer_ids, batch_logprobs, encode
from solar_rl.train.anchor import Anchor
from solar_rl.train.contexts import Contexts
from solar_rl.train.data import Crediting, load_replay
from solar_rl.train.fresh_data import load_fresh

pytestmark = pytest.mark.train
MEMBER = ("episode_id", "step_index", "candidate_index")


@pytest.fixture(scope="module")
def phone(tmp_path_factory, policy_folder):
    return build_phone(tmp_path_factory.mktemp("fresh") / "phone", policy_folder)


def keys(rows):
    return [tuple(row[name] for name in MEMBER) for row in rows]


def batches(trainer):
    """Return the rows of every generation batch of an epoch."""
    trainer.model.train()
    order = list(trainer._get_train_sampler())
    local = trainer.data.slots * SIZE
    starts = range(0, len(order), local * trainer.args.steps_per_generation)
    return [[trainer.train_dataset[k] for k in order[start : start + local]] for start in starts]


# --- the same candidates, the same rewards ------------------------------------------------------------


@pytest.mark.parametrize(
    ("credit", "weight"),
    [
        ("solar", "none"),
        ("solar", "log_success"),
        ("atomic", "none"),
        ("step_local", "log_success"),
        ("step_local", "std"),
        ("sparse", "none"),
        ("sparse_rtraj", "std"),
        ("ui_s1", "none"),
    ],
)
def test_the_same_candidates_get_the_same_rewards_as_in_the_dataset_to_the_bit(
    phone, policy_folder, tmp_path, credit, weight
):
    crediting = Crediting(credit, weight, anchor="none")
    replay = load_replay(phone, crediting)
    stored = dict(zip(keys(replay.rows), replay.rows, strict=True))
    trainer = fresh_trainer(phone, policy_folder, tmp_path, crediting)
    trainer.sampler = Known(phone)
    seen = set()
    for batch in batches(trainer):
        rows = trainer.fresh_rows(
            list(dict.fromkeys(row["episode_id"] for row in batch if row["episode_id"]))
        )
        assert sorted(keys(rows)) == sorted(key for key in keys(batch) if key[0])
        for key, row in zip(keys(rows), rows, strict=True):
            seen.add(key)
            if key not in stored:  # a group that teaches nothing, which replay leaves out
                assert not row["in_play"]
                continue
            twin = stored[key]
            for name in ("reward", "advantage", "weight", "in_play", "valid", "position", "anchor", "answer"):
                assert row[name] == twin[name], (key, name)
            if row["in_play"]:
                assert row["token_ids"] == twin["token_ids"]
    assert set(stored) <= seen, "an epoch holds every episode"


def test_the_loss_is_replays_loss_on_the_same_candidates(phone, policy_folder, tmp_path):
    """The batch that the model sees: prompts, tokens, advantages, masks, denominator."""
    trainer = fresh_trainer(phone, policy_folder, tmp_path, Crediting("solar", "log_success"))
    trainer.sampler = Known(phone)
    inputs = batches(trainer)[0]
    batch = trainer._generate_and_score_completions(inputs)
    rows = [row for row in trainer._replayed if row["in_play"]]
    assert batch["num_items_in_batch"] == sum(len(row["token_ids"]) for row in rows) > 0
    policy = trainer.policy
    for i, row in enumerate(trainer._replayed):
        if not row["in_play"]:
            assert batch["tool_mask"][i].sum() == 0
            continue
        prompt = batch["prompt_ids"][i][batch["prompt_mask"][i].bool()].tolist()
        messages, images = (
            part(row["context"]) for part in (trainer.contexts.messages, trainer.contexts.encoded)
        )
        assert prompt == encode(policy, messages, images)["input_ids"][0].tolist()
        width = len(row["token_ids"])
        expected = batch_logprobs(policy, messages, images, [row["token_ids"]], 1.0)[0]
        assert torch.allclose(batch["old_per_token_logps"][i, :width], torch.tensor(expected), atol=1e-4)


# --- on-policy ----------------------------------------------------------------------------------------


def test_training_samples_from_the_policy_as_it_is_and_every_first_ratio_is_one(
    phone, policy_folder, tmp_path
):
    crediting = Crediting("step_local", anchor="none")
    trainer = fresh_trainer(phone, policy_folder, tmp_path, crediting, anchor=None, max_steps=2)
    seen = []
    rows_of = trainer.fresh_rows

    def spy(episodes):
        seen.append((trainer.state.global_step, rows_of(episodes)))
        return seen[-1][1]

    trainer.fresh_rows = spy
    trainer.train()
    assert [step for step, _ in seen] == [0, 1], "each update samples anew"
    answers = [row["answer"] for _, rows in seen for row in rows]
    assert len(set(answers)) > len(answers) // 2, "a random policy at temperature 1 hardly repeats itself"
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert all(entry["data/groups_without_spread"] <= 1.0 for entry in logs)
    for entry in logs:
        assert entry.get("policy/ratio_max", 1.0) == pytest.approx(1.0, abs=1e-4)


def test_log_probs_are_those_of_the_sampled_tokens_and_no_answer_holds_an_image_token(
    phone, policy_folder, tmp_path
):
    trainer = fresh_trainer(phone, policy_folder, tmp_path, Crediting("atomic"))
    trainer.model.train()
    episode = trainer.train_dataset[0]["episode_id"]
    drawn = trainer.fresh_rows([episode])
    forbidden = set(trainer.policy.placeholder_ids)
    answers = trainer.policy.tokenizer
    texts = [answers(row["answer"], add_special_tokens=False)["input_ids"] for row in drawn]
    assert forbidden and not any(forbidden & set(ids) for ids in texts)
    trainer.sampler = Garbled(trainer.sampler)
    batch = trainer._generate_and_score_completions([{"episode_id": episode}] * len(drawn))
    live = batch["tool_mask"].any(1)
    assert live.any(), "half of the answers are the expert's, so groups have something to compare"
    for i in live.nonzero().flatten().tolist():
        row, mask = trainer._replayed[i], batch["tool_mask"][i].bool()
        messages, images = (
            part(row["context"]) for part in (trainer.contexts.messages, trainer.contexts.encoded)
        )
        expected = batch_logprobs(trainer.policy, messages, images, [row["token_ids"]], 1.0)[0]
        for name in ("old_per_token_logps", "sampling_per_token_logps"):
            assert torch.allclose(batch[name][i][mask], torch.tensor(expected), atol=1e-4)


class Garbled:
    """Lets the policy answer, and replaces every other answer by the expert's, its log-probs unknown or -1."""

    def __init__(self, sampler, *, known: bool = False) -> None:
        self._sampler, self.sampler_id, self._known = sampler, sampler.sampler_id, known
        self.wait_for_others = sampler.wait_for_others

    def sample(self, requests):
        asked = list(requests)
        for request, completions in zip(asked, self._sampler.sample(asked), strict=True):
            text = get_format(request.config.format).render(request.step.action, request.frame)
            ids = answer_ids(self._sampler._trainer.policy, text)
            logprobs = (-1.0,) * len(ids) if self._known else None
            yield [
                replace(each, text=text, token_ids=ids, logprobs=logprobs) if k % 2 else each
                for k, each in enumerate(completions)
            ]


# --- histories ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("history", ["expert", "candidate", "none"])
def test_every_history_holds_and_prompts_are_rebuilt_as_they_were_put(policy_folder, tmp_path, history):
    """Known answers in the place of generation, so that what is asked can be looked at."""
    folder = build_phone(tmp_path / "phone", policy_folder, prompt={"history": history})
    trainer = fresh_trainer(folder, policy_folder, tmp_path / "out", Crediting("step_local"))
    trainer.model.train()
    known = Known(folder)
    trainer.sampler = known
    inputs = batches(trainer)[0]
    batch = trainer._generate_and_score_completions(inputs)
    put = {}
    for request in (each for call in known.calls for each in call):
        for k in range(request.n):
            key = (request.episode.episode_id, request.step.step_index, request.first + k)
            put[key] = encode(trainer.policy, request.messages, request.images)["input_ids"][0].tolist()
    for i, row in enumerate(trainer._replayed):
        if row["in_play"]:
            prompt = batch["prompt_ids"][i][batch["prompt_mask"][i].bool()].tolist()
            assert prompt == put[tuple(row[name] for name in MEMBER)]
    longest = max(row["ref_len"] for row in inputs if row["episode_id"])
    assert len(known.calls) == (longest if history == "candidate" else 1), "one call a step, or one in all"
    replay = load_replay(folder, Crediting("step_local"))
    stored = dict(zip(keys(replay.rows), replay.rows["advantage"][:], strict=True))
    for row in trainer._replayed:
        if row["in_play"]:
            assert row["advantage"] == stored[tuple(row[name] for name in MEMBER)]


# --- what a batch holds -------------------------------------------------------------------------------


def test_nothing_is_kept_beyond_the_batch(phone, policy_folder, tmp_path):
    trainer = fresh_trainer(phone, policy_folder, tmp_path, Crediting("step_local"))
    trainer.sampler = Known(phone)
    for inputs in batches(trainer)[:3]:
        trainer._generate_and_score_completions(inputs)
    gc.collect()
    alive = [each for each in gc.get_objects() if isinstance(each, Contexts)]
    assert len(alive) == 1
    assert len(alive[0]) <= trainer.data.slots


def test_a_batch_in_which_nothing_compares_moves_nothing(phone, policy_folder, tmp_path):
    trainer = fresh_trainer(phone, policy_folder, tmp_path, Crediting("step_local"))
    before = [weight.clone() for weight in trainer.model.parameters()]
    trainer.train()  # a random policy's answers are all wrong
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert logs[0]["data/groups_without_spread"] == 1.0
    assert logs[0]["loss"] == 0.0
    assert logs[0]["grad_norm"] == 0.0
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


def test_longer_episodes_than_a_batch_are_counted_and_a_batch_that_fits_none_is_refused(phone):
    def load(local_rows, crediting=Crediting(), **options):  # noqa: B008
        return load_fresh(phone, crediting, size=SIZE, temperature=1.0, local_rows=local_rows, **options)

    short, every = load(3 * SIZE), load(20 * SIZE)
    assert max(short.lengths) == 3
    left_out = next(count for name, count in short.counts.items() if name.startswith("longer than 3 steps"))
    assert short.counts["episodes"] + left_out == every.counts["episodes"] == len(every.lengths)
    with pytest.raises(
        InputError, match=r"no episode fits a batch of 1 steps[\s\S]*raise steps_per_generation"
    ):
        load(SIZE)
    with pytest.raises(InputError, match="is 6, no multiple of num_generations, 4"):
        load(6)
    with pytest.raises(InputError, match="split 'test' has no episodes"):
        load(80, split="test")
    with pytest.raises(ConfigError, match="upsample_rare chooses among stored groups"):
        load(80, Crediting(upsample_rare=0.5))


# --- engines, and going on ----------------------------------------------------------------------------


class Engine:
    """Stands for TRL's vLLM: notes its calls, and answers every prompt with the same tokens and log-probs."""

    def __init__(self, ids: list[int]) -> None:
        self.ids, self.calls, self.synced = ids, [], 0

    def sync_weights(self) -> None:
        self.synced += 1

    def generate(self, prompts, images, num_generations, profiler):
        self.calls.append((len(prompts), num_generations, images is not None and len(images)))
        logprobs = [[[-0.5 - 0.1 * k] for k in range(len(self.ids))] for _ in prompts]
        return prompts, [list(self.ids) for _ in prompts], logprobs, None


@pytest.mark.parametrize("off_policy", ["behaviour", "decoupled"])
def test_an_engine_is_asked_once_with_its_log_probs_taken(phone, policy_folder, tmp_path, off_policy):
    """The way through vLLM, without vLLM: what TRL's engine is asked, and what becomes of its log-probs."""
    trainer = fresh_trainer(phone, policy_folder, tmp_path, Crediting("step_local"), off_policy=off_policy)
    trainer.model.train()
    text = '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "wait", "time": 2}}\n</tool_call>'
    ids = list(answer_ids(trainer.policy, text))
    engine = Engine(ids)
    trainer.use_vllm, trainer.vllm_generation, trainer._last_loaded_step = True, engine, -1
    assert not trainer.args.vllm_importance_sampling_correction, "corrected once, by off_policy"
    inputs = batches(trainer)[0]
    trainer.sampler = Garbled(trainer.sampler, known=True)
    batch = trainer._generate_and_score_completions(inputs)
    count = sum(1 for row in inputs if row["episode_id"])
    assert engine.calls == [(count, SIZE, count)], "one call for the whole batch, each prompt N times"
    assert engine.synced == 1, "with the weights as they are now"
    told = torch.tensor([-0.5 - 0.1 * k for k in range(len(ids))])
    seen = 0
    for i, row in enumerate(trainer._replayed):
        if row["in_play"] and row["token_ids"] == ids:
            seen += 1
            assert torch.allclose(batch["sampling_per_token_logps"][i][: len(ids)], told)
            is_told = torch.allclose(batch["old_per_token_logps"][i][: len(ids)], told)
            assert is_told == (off_policy == "behaviour")
    assert seen
    assert batch["advantages"].dim() == (1 if off_policy == "behaviour" else 2)


def test_a_setting_that_fresh_needs_is_not_overwritten_in_silence(policy_folder):
    from trl import GRPOConfig

    from solar_rl.policy import load_reader
    from solar_rl.train.fresh import let_generate

    reader = load_reader(str(policy_folder))
    config = GRPOConfig(generation_kwargs={"suppress_tokens": [1]}, use_cpu=True, bf16=False)
    with pytest.raises(ConfigError, match="generation_kwargs can't hold suppress_tokens"):
        let_generate(config, reader)
    config = GRPOConfig(generation_kwargs={"min_p": 0.0}, use_cpu=True, bf16=False, use_vllm=True)
    let_generate(config, reader)
    assert set(config.generation_kwargs) == {"min_p", "bad_words"}
    assert "<|image_pad|>" in config.generation_kwargs["bad_words"]


def test_a_resumed_run_samples_and_learns_as_a_straight_one(phone, policy_folder, tmp_path):
    def run(**words):
        trainer = fresh_trainer(
            phone, policy_folder, tmp_path, Crediting("step_local", anchor="none"),
            anchor=Anchor(0.3, lambda text: answer_ids(trainer.policy, text)),
            max_steps=3, save_strategy="steps", save_steps=2, max_completion_length=4,
        )  # fmt: skip
        trainer.train(**words)
        answers = [row["answer"] for row in trainer._replayed]
        return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry], answers

    straight = run()
    resumed = run(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert len(straight[0]) == 3
    assert resumed == straight, "the same losses, and the same answers of the last batch"
