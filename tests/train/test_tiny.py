"""The tiny policy: the same bytes for a seed, readable by everything that reads a policy."""

import hashlib

import pytest

from solar_rl.formats import FORMATS
from solar_rl.policy import answer_ids, answer_text, encode, load_policy
from solar_rl.train.tiny import default_corpus, make_tiny_policy

pytestmark = pytest.mark.train


def hashes(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_seed_gives_the_same_bytes_and_another_seed_other_weights(tmp_path):
    seeds = {"first": 1, "again": 1, "other": 2}
    first, again, other = (make_tiny_policy(tmp_path / name, seed=seed) for name, seed in seeds.items())
    assert hashes(first) == hashes(again)
    changed = {name for name, digest in hashes(first).items() if digest != hashes(other)[name]}
    assert changed == {"model.safetensors"}


def test_making_one_leaves_the_callers_random_numbers_alone(tmp_path):
    import torch

    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    make_tiny_policy(tmp_path / "p", seed=5)
    assert torch.equal(torch.rand(3), expected)


def test_it_loads_as_a_policy_that_sees(policy_folder, dataset):
    from solar_rl.train.data import load_replay

    contexts = load_replay(dataset.folder).contexts
    policy = load_policy(policy_folder, device="cpu", min_pixels=3136, max_pixels=25088)
    inputs = encode(policy, contexts.messages(0), contexts.encoded(0))
    assert inputs["image_grid_thw"].tolist() == [[1, 12, 8]]
    assert (inputs["input_ids"] == policy.model.config.image_token_id).sum() == 24


def test_answers_survive_the_tokenizer(policy_folder):
    policy = load_policy(policy_folder, device="cpu")
    for text in ('{"action": "click", "x": 512, "y": 87}', "<tool_call>\n{}\n</tool_call>", "ünï → 你好"):
        ids = answer_ids(policy, text)
        assert ids[-1] == policy.tokenizer.eos_token_id
        assert answer_text(policy, ids) == text


def test_the_corpus_holds_the_prompts_and_answers_of_the_default_formats():
    corpus = "\n".join(default_corpus())
    assert "<tool_call>" in corpus
    assert '{"action": "click"' in corpus
    assert set(FORMATS) >= {"json", "qwen25vl_mobile_use"}


def test_a_corpus_of_ones_own_is_taken(tmp_path):
    folder = make_tiny_policy(tmp_path, corpus=["hello hello world"] * 10)
    assert load_policy(folder, device="cpu").tokenizer.tokenize("hello") == ["hello"]
