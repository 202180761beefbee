"""What vLLM answers is what training will compute: seeds, tokens, log-probs and images, against transformers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solar_rl.config import DatasetConfig, PromptConfig, VllmSampler
from solar_rl.errors import InputError
from solar_rl.policy import batch_logprobs, encode, load_policy
from solar_rl.prompts import build_request, without_oldest
from solar_rl.sampling.base import candidate_seed
from solar_rl.sampling.drive import draw

pytest.importorskip("vllm")
pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

SEES = PromptConfig(format="json", max_pixels=50176)
READS = PromptConfig(format="json", observation="text")
SETTINGS = {"dtype": "float32", "enforce_eager": True, "max_model_len": 2048, "max_new_tokens": 24}


def engine(folder, prompt, **more):
    from solar_rl.sampling.vllm import Vllm

    return Vllm(VllmSampler(model=str(folder), **(SETTINGS | more)), prompt)


def requests_for(episodes, prompt, n=8):
    return [
        build_request(e, s, prompt, n=n, seed=candidate_seed(0, e.episode_id, s.step_index))
        for e in episodes
        for s in e.steps
    ]


@pytest.fixture(scope="module", params=["sees", "reads"])
def case(request, episodes):
    """A running engine, requests with n = 8, its answers to them, and the same weights in transformers."""
    folder = request.getfixturevalue({"sees": "seeing", "reads": "reading"}[request.param])
    prompt = {"sees": SEES, "reads": READS}[request.param]
    # the tree as text is long where the tokenizer's words are short
    sampler = engine(folder, prompt, max_model_len=8192 if prompt is READS else 2048)
    asked = requests_for(episodes, prompt)
    policy = load_policy(folder, device="cpu", min_pixels=prompt.min_pixels, max_pixels=prompt.max_pixels)
    yield prompt, sampler, asked, list(sampler.sample(asked)), policy
    sampler.close()


def test_each_step_has_n_different_answers_with_tokens_and_log_probs(case):
    _, sampler, asked, answers, policy = case
    assert len(answers) == len(asked)
    for request, row in zip(asked, answers, strict=True):
        assert [c.seed for c in row] == [request.seed + k for k in range(8)]
        known = [c for c in row if c.token_ids]
        assert len({c.token_ids for c in known}) == len(known) > 4
        for c in known:
            assert len(c.logprobs) == len(c.token_ids) <= 24
            assert all(value <= 0 for value in c.logprobs)
            ended = c.token_ids[-1] in policy.eos_ids
            assert c.finish_reason == ("stop" if ended else "length")
    assert sampler.summary()["candidates"] >= 8 * len(asked)


def test_the_engine_takes_as_many_answers_at_once_as_llm_does(case):
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext

    _, sampler, *_ = case
    _, most = EngineArgs(model=sampler._config.model).get_batch_defaults(1)
    assert sampler._engine.vllm_config.scheduler_config.max_num_seqs == most[UsageContext.LLM_CLASS] > 128


def test_seeds_repeat_in_whatever_order(case):
    _, sampler, asked, answers, _ = case
    again = list(sampler.sample(asked[::-1]))[::-1]
    for row, other in zip(again, answers, strict=True):
        for one, two in zip(row, other, strict=True):
            assert replace(one, logprobs=None) == replace(two, logprobs=None)
            assert one.logprobs == pytest.approx(two.logprobs, abs=1e-5), (
                "another batch rounds in another way"
            )


def test_one_call_for_eight_equals_eight_calls(case):
    _, sampler, asked, answers, _ = case
    alone = [replace(r, n=1, seed=r.seed + k) for r in asked for k in range(8)]
    found = [c for (c,) in sampler.sample(alone)]
    together = [c for row in answers for c in row]
    assert [c.token_ids for c in found] == [c.token_ids for c in together]
    assert [c.text for c in found] == [c.text for c in together]


def difference(policy, request, images, row):
    known = [c for c in row if c.token_ids]
    found = batch_logprobs(policy, request.messages, images, [c.token_ids for c in known], 1.0)
    return max(
        abs(a - b)
        for c, ours in zip(known, found, strict=True)
        for a, b in zip(c.logprobs, ours, strict=True)
    )


def test_log_probs_are_those_of_transformers_and_tell_a_wrong_image(case):
    prompt, _, asked, answers, policy = case
    right = [difference(policy, r, r.images, row) for r, row in zip(asked, answers, strict=True)]
    print(f"largest |logprob vLLM - transformers|: {max(right):.2e}")
    assert max(right) < 1e-4
    if prompt is SEES:
        other = asked[1:] + asked[:1]
        wrong = [
            difference(policy, r, o.images, row)
            for r, o, row in zip(asked, other, answers, strict=True)
            if r.images != o.images
        ]
        print(f"with another step's screenshot: {min(wrong):.2e} to {max(wrong):.2e}")
        assert min(wrong) > 1e-3


def test_a_prompt_that_is_too_long_loses_its_oldest_actions(case, monkeypatch):
    _, sampler, asked, _, policy = case
    last = max(asked, key=lambda r: r.shown)

    def length(request):
        return encode(policy, request.messages, request.images)["input_ids"].shape[1]

    assert last.shown >= 2
    monkeypatch.setattr(sampler, "_longest", length(without_oldest(last, 2)))
    (row,) = sampler.sample([last])
    monkeypatch.setattr(sampler, "_longest", 20)
    with pytest.raises(InputError, match="without any history, the limit is 20"):
        list(sampler.sample([last]))
    assert {c.history_dropped for c in row} == {2}


def test_a_prompt_that_the_engine_reads_in_another_way_stops_it(case, monkeypatch):
    import solar_rl.sampling.vllm as module

    _, sampler, asked, _, _ = case
    monkeypatch.setattr(module, "prompt_text", lambda reader, messages: "another prompt")
    sampler._checked.clear()
    request = (
        next(r for r in asked if not r.images) if not sampler._reader.sees else replace(asked[0], images=())
    )
    with pytest.raises(InputError, match="vLLM reads the prompt as"):
        list(sampler.sample([request]))


@pytest.mark.parametrize(
    "change", [{"prompt": {"history": "candidate"}}, {"sampler": {"adaptive": True}}], ids=str
)
def test_the_other_ways_to_ask_go_through_it(case, episodes, change):
    prompt, sampler, _, answers, _ = case
    config = DatasetConfig(
        name="d",
        source={"builder": "phone"},
        prompt=prompt.model_dump() | change.get("prompt", {}),
        sampler={"type": "vllm", "model": "m", "n": 8} | change.get("sampler", {}),
    )
    drawn = list(draw(config, sampler, episodes))
    assert [e.episode_id for e, _ in drawn] == [e.episode_id for e in episodes]
    first = [c for _, rows in drawn for c in rows if c.step_index == 0]
    starts = [0, len(episodes[0].steps)]
    assert [c.completion for c in first] == [c.text for i in starts for c in answers[i]], (
        "random answers are wrong"
    )
