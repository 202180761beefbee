"""Sampling from real (if tiny and random) models: seeds, log-probs, images, and the scripted policy."""

import json
import math
import shutil
from collections import Counter

import pytest
from demonstration import make_episode, make_requests

from solar_rl.config import PromptConfig, ScriptedSampler, TransformersSampler
from solar_rl.errors import CheckFailed, ConfigError, InputError
from solar_rl.policy import answer_text, batch_logprobs, encode, load_policy, logprobs
from solar_rl.sampling import make_sampler
from solar_rl.sampling.transformers import _Draw

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.train
SEES = PromptConfig(min_pixels=784, max_pixels=784 * 8)
READS = PromptConfig(format="json", observation="text")
EPISODE = make_episode()


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def sampler_for(folder, prompt, **config):
    settings = {"n": 4, "max_new_tokens": 12, "device": "cpu", "temperature": 0.7}
    return make_sampler(TransformersSampler(model=str(folder), **(settings | config)), prompt)


@pytest.fixture(scope="module")
def seeing(vision_policy):
    return sampler_for(vision_policy, SEES)


@pytest.fixture(scope="module")
def reading(text_policy):
    return sampler_for(text_policy, READS)


@pytest.fixture(params=["seeing", "reading"])
def sampler_and_requests(request):
    prompt = {"seeing": SEES, "reading": READS}[request.param]
    return request.getfixturevalue(request.param), make_requests(EPISODE, prompt, 4)[:3]


def test_answers_do_not_depend_on_order(sampler_and_requests):
    sampler, requests = sampler_and_requests
    straight = list(sampler.sample(requests))
    backward = list(sampler.sample(reversed(requests)))
    assert straight == backward[::-1]
    assert len({c.text for row in straight for c in row}) > 6


def test_one_call_for_n_equals_n_calls(sampler_and_requests):
    from dataclasses import replace

    sampler, (request, *_) = sampler_and_requests
    (together,) = sampler.sample([request])
    alone = [c for k in range(4) for (c,) in sampler.sample([replace(request, n=1, seed=request.seed + k)])]
    assert [c.token_ids for c in alone] == [c.token_ids for c in together]
    assert [c.seed for c in alone] == [c.seed for c in together]
    for one, other in zip(alone, together, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.parametrize("size", [1, 3, 5, 32])
def test_steps_generated_side_by_side_answer_as_each_alone(request, size):
    for name, prompt in (("vision_policy", SEES), ("text_policy", READS)):
        requests = make_requests(EPISODE, prompt, 3)
        alone = list(sampler_for(request.getfixturevalue(name), prompt, batch_size=3).sample(requests))
        sampler = sampler_for(request.getfixturevalue(name), prompt, batch_size=size)
        together = list(sampler.sample(requests))
        assert [[c.token_ids for c in row] for row in together] == [
            [c.token_ids for c in row] for row in alone
        ]
        for ours, theirs in zip(together, alone, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)
        assert sampler.summary()["candidates"] == 24


def test_requests_are_read_as_far_as_a_batch_reaches(reading):
    read = []

    def counted():
        for request in make_requests(EPISODE, READS, 4):
            read.append(request)
            yield request

    answers = sampler_for(reading._config.model, READS, batch_size=8).sample(counted())
    next(answers)
    assert len(read) == 2


def test_images_of_other_sizes_are_generated_side_by_side(vision_policy):
    import io

    from PIL import Image

    first, second = make_requests(EPISODE, SEES, 2)[:2]
    out = io.BytesIO()
    Image.open(io.BytesIO(second.images[0])).resize((56, 56)).save(out, "PNG")
    from dataclasses import replace

    requests = [first, replace(second, images=(out.getvalue(),))]
    together = list(sampler_for(vision_policy, SEES, batch_size=4).sample(requests))
    alone = list(sampler_for(vision_policy, SEES, batch_size=2).sample(requests))
    assert [[c.token_ids for c in row] for row in together] == [[c.token_ids for c in row] for row in alone]


def places(policy, folder, tokens):
    """Copy a policy that has places for so many tokens."""
    copy = folder / str(tokens) / policy.name
    shutil.copytree(policy, copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"max_position_embeddings": tokens}))
    return copy


def test_a_prompt_that_is_too_long_loses_its_oldest_actions(text_policy, reading, tmp_path):
    from solar_rl.prompts import without_oldest

    def length(request):
        return encode(reading._policy, request.messages)["input_ids"].shape[1]

    requests = make_requests(EPISODE, READS, 2)
    limit = length(without_oldest(requests[-1], 3))
    rows = list(sampler_for(text_policy, READS, max_prompt_tokens=limit).sample(requests))
    least = [
        next(d for d in range(r.shown + 1) if length(without_oldest(r, d) if d else r) <= limit)
        for r in requests
    ]
    assert [{c.history_dropped for c in row} for row in rows] == [{d} for d in least]
    assert least[-1] == 3
    context = places(text_policy, tmp_path, limit + 12)
    assert list(sampler_for(context, READS, max_new_tokens=12).sample(requests)) == rows, (
        "the model's own limit"
    )
    with pytest.raises(ConfigError, match="context holds 12 tokens"):
        sampler_for(places(text_policy, tmp_path, 12), READS, max_new_tokens=12)
    with pytest.raises(InputError, match="without any history, the limit is 10"):
        list(sampler_for(text_policy, READS, max_prompt_tokens=10).sample(requests))


def test_a_generator_whose_log_probs_are_not_the_models_stops_the_work(text_policy, monkeypatch):
    sampler = sampler_for(text_policy, READS)
    monkeypatch.setattr(_Draw, "logprobs", lambda self: [[-0.5] * 12 for _ in self._sources])
    with pytest.raises(CheckFailed, match=r"differ by .* on average; token") as caught:
        list(sampler.sample(make_requests(EPISODE, READS, 4)[:1]))
    assert caught.value.where == "episode e, step 0"
    assert "key-value cache" in caught.value.hint
    sampler = sampler_for(text_policy, READS, batch_size=8)
    with pytest.raises(CheckFailed) as caught:
        list(sampler.sample(make_requests(EPISODE, READS, 4)))
    assert "padding" in caught.value.hint


def test_closing_lets_go_of_the_model(text_policy):
    import gc
    import weakref

    sampler = sampler_for(text_policy, READS)
    model = weakref.ref(sampler._policy.model)
    sampler.close()
    gc.collect()
    assert model() is None


def test_log_probs_agree_with_the_logits_of_generate(sampler_and_requests):
    sampler, (request, *_) = sampler_and_requests
    policy = sampler._policy
    inputs = encode(policy, request.messages, request.images)
    draw = _Draw([request.seed], 0.7, policy.placeholder_ids)
    out = policy.model.generate(
        **inputs, logits_processor=[draw], max_new_tokens=12, output_logits=True, return_dict_in_generate=True
    )
    ((first, *_),) = sampler.sample([request])
    ids = out.sequences[0, inputs["input_ids"].shape[1] :].tolist()
    assert ids[: len(first.token_ids)] == list(first.token_ids)
    while_generating = [
        torch.log_softmax(step[0].float() / 0.7, dim=-1)[token].item()
        for step, token in zip(out.logits, ids, strict=True)
    ]
    differences = [abs(a - b) for a, b in zip(first.logprobs, while_generating, strict=False)]
    assert max(differences) < 1e-4


def test_answers_end_with_the_end_token_or_at_the_limit(text_policy):
    sampler = sampler_for(text_policy, READS, max_new_tokens=400, n=8)
    (row,) = sampler.sample(make_requests(EPISODE, READS, 8)[:1])
    (end,) = sampler._policy.eos_ids
    for completion in row:
        assert completion.token_ids[-1] == end or len(completion.token_ids) == 400
        assert end not in completion.token_ids[:-1]
        assert "<|im_end|>" not in completion.text
        assert completion.finish_reason == ("stop" if completion.token_ids[-1] == end else "length")
    assert any(c.token_ids[-1] == end for c in row)


def test_tokens_are_drawn_as_often_as_their_chance_says():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]])).repeat(4000, 1)
    picked = _Draw(range(4000), 1.0, [])(None, logits).argmax(dim=-1).tolist()
    shares = [Counter(picked)[i] / 4000 for i in range(4)]
    assert shares == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)


def test_image_tokens_are_never_drawn():
    logits = torch.tensor([[5.0, 0.0, 0.0]]).repeat(50, 1)
    assert 0 not in _Draw(range(50), 1.0, [0])(None, logits).argmax(dim=-1).tolist()


def test_another_image_gives_other_log_probs(seeing):
    first, second = make_requests(EPISODE, SEES, 1)[:2]
    policy = seeing._policy
    ids = (20, 30, 40)
    one = logprobs(policy, first.messages, first.images, ids, 1.0)
    other = logprobs(policy, first.messages, second.images, ids, 1.0)
    assert max(abs(a - b) for a, b in zip(one, other, strict=True)) > 1e-4


def test_a_batch_gives_what_single_calls_give(sampler_and_requests):
    sampler, (request, *_) = sampler_and_requests
    policy = sampler._policy
    answers = [(20, 30, 40, 50, 60), (21,), (), (22, 23)]
    together = batch_logprobs(policy, request.messages, request.images, answers, 0.7, batch_size=3)
    assert [len(row) for row in together] == [5, 1, 0, 2]
    for ids, row in zip(answers, together, strict=True):
        alone = logprobs(policy, request.messages, request.images, ids, 0.7)
        assert row == pytest.approx(alone, abs=1e-5)
    assert all(value < 0 for row in together for value in row)


def test_the_scripted_expert_can_speak_with_a_policy_s_log_probs(vision_policy):
    config = ScriptedSampler(policy=str(vision_policy), temperature=0.7, error_rate=0.5, n=4, batch_size=3)
    requests = make_requests(EPISODE, SEES, 4)[:3]
    with_policy = make_sampler(config, SEES)
    plain = make_sampler(config.model_copy(update={"policy": None}), SEES)
    policy = load_policy(vision_policy, device="cpu", min_pixels=784, max_pixels=784 * 8)
    for request, drawn, bare in zip(
        requests, with_policy.sample(requests), plain.sample(requests), strict=True
    ):
        assert [c.text for c in drawn] == [c.text for c in bare]
        for completion in drawn:
            assert answer_text(policy, completion.token_ids) == completion.text
            assert completion.token_ids[-1] == policy.eos_ids[0]
            expected = logprobs(policy, request.messages, request.images, completion.token_ids, 0.7)
            assert completion.logprobs == pytest.approx(expected, abs=1e-5)
            assert math.isfinite(sum(completion.logprobs))


def test_sampler_ids_do_not_hold_a_machine_s_path(vision_policy, seeing):
    assert seeing.sampler_id.startswith("transformers/tiny-vl/")
    assert str(vision_policy.parent) not in seeing.sampler_id


def test_the_pixel_limits_of_the_prompt_reach_the_processor(seeing):
    request = make_requests(EPISODE, SEES, 1)[0]
    grid = encode(seeing._policy, request.messages, request.images)["image_grid_thw"][0].tolist()
    assert (grid[2] * 14, grid[1] * 14) == request.frame


def test_images_for_a_policy_that_only_reads_are_an_error(reading):
    request = make_requests(EPISODE, PromptConfig(format="json"), 1)[0]
    with pytest.raises(InputError, match="reads text only"):
        list(reading.sample([request]))


def test_a_policy_without_a_chat_template_is_an_error(text_policy, tmp_path):
    import shutil

    folder = shutil.copytree(text_policy, tmp_path / "bare")
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(InputError, match="no chat template"):
        list(sampler_for(folder, READS).sample(make_requests(EPISODE, READS, 1)))


def test_a_missing_folder_is_a_config_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="no model can be loaded"):
        load_policy(tmp_path / "empty")
    with pytest.raises(ConfigError, match="no model can be loaded"):
        load_policy(tmp_path / "absent")


def test_a_saved_processor_is_read_by_transformers_own_name(vision_policy, tmp_path):
    policy = load_policy(vision_policy)
    policy.processor.save_pretrained(tmp_path)
    policy.model.save_pretrained(tmp_path)
    assert '"Qwen2_5_VLProcessor"' in (tmp_path / "processor_config.json").read_text()
    again = load_policy(tmp_path)
    request = make_requests(EPISODE, SEES, 1)[0]
    assert logprobs(again, request.messages, request.images, (20, 21), 1.0) == pytest.approx(
        logprobs(policy, request.messages, request.images, (20, 21), 1.0)
    )
