"""vLLM in bfloat16, on one GPU and on two, and one replayed training step on what it said."""

from __future__ import annotations

import statistics

import pytest
from demonstration import make_episode, make_requests

from solar_rl.config import PromptConfig, VllmSampler

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(1800)]
SEES = PromptConfig(format="json", min_pixels=784, max_pixels=784 * 8)
SETTINGS = {"max_new_tokens": 32, "max_model_len": 4096, "gpu_memory": 0.3, "enforce_eager": True}


@pytest.fixture(scope="module")
def sampled(policy, gpus):
    """Requests with n = 8 and what one engine in bfloat16 answers."""
    found, requests = answers(policy, data_parallel=1), asked()
    return requests, found


def asked():
    return make_requests(make_episode(), SEES, 8)


def answers(policy, **more):
    pytest.importorskip("vllm.sampling_params")
    from solar_rl.sampling.vllm import Vllm

    sampler = Vllm(VllmSampler(model=str(policy), **(SETTINGS | more)), SEES)
    try:
        return list(sampler.sample(asked()))
    finally:
        sampler.close()


def test_bfloat16_answers_have_tokens_and_log_probs(sampled):
    requests, rows = sampled
    for request, row in zip(requests, rows, strict=True):
        assert [c.seed for c in row] == [request.seed + k for k in range(8)]
        known = [c for c in row if c.token_ids]
        assert len(known) > 4
        assert all(len(c.logprobs) == len(c.token_ids) and max(c.logprobs) <= 0 for c in known)


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-2), ("bfloat16", 0.1)])
def test_log_probs_agree_with_transformers(policy, gpus, dtype, limit):
    from solar_rl.policy import batch_logprobs, load_policy

    model = load_policy(
        policy, dtype=dtype, device="cuda", min_pixels=SEES.min_pixels, max_pixels=SEES.max_pixels
    )
    differences = []
    for request, row in zip(asked(), answers(policy, dtype=dtype), strict=True):
        known = [c for c in row if c.token_ids]
        ours = batch_logprobs(model, request.messages, request.images, [c.token_ids for c in known], 1.0)
        pairs = zip(known, ours, strict=True)
        differences += [abs(a - b) for c, again in pairs for a, b in zip(c.logprobs, again, strict=True)]
    print(f"{dtype}: mean {statistics.mean(differences):.2e}, largest {max(differences):.2e}")
    assert statistics.mean(differences) < limit


def test_two_copies_share_the_work(policy, gpus, sampled):
    if gpus < 2:
        pytest.skip("one GPU")
    requests, one = sampled
    two = answers(policy, data_parallel=2)
    assert [[c.seed for c in row] for row in two] == [[c.seed for c in row] for row in one]
    assert all(len(row) == 8 for row in two)
    assert len(two) == len(requests)


def test_a_replayed_training_step_in_bfloat16(policy, gpus, tmp_path):
    import json
    import subprocess
    import sys

    import solar_rl

    pytest.importorskip("vllm.sampling_params")
    dataset, run = tmp_path / "dataset", tmp_path / "run"
    sampler = {"type": "vllm", "model": str(policy), "n": 8, "max_new_tokens": 32, "max_model_len": 4096}
    sampler |= {"gpu_memory": 0.3, "enforce_eager": True}
    config = {
        "name": "phone",
        "source": {"builder": "phone", "options": {"episodes": 4}},
        "prompt": {"format": "json", "max_pixels": 50176},
        "sampler": sampler,
    }
    (tmp_path / "dataset.yaml").write_text(json.dumps(config))
    here = [sys.executable, "-m", "solar_rl.cli"]
    subprocess.run([*here, "build", tmp_path / "dataset.yaml", "--out", dataset], check=True)
    assert solar_rl.open_dataset(dataset).manifest.counts["candidates"] > 0
    words = ["--dataset", dataset, "--model_name_or_path", policy, "--output_dir", run]
    words += ["--max_steps", "1", "--use_cpu", "false", "--bf16", "true"]
    subprocess.run([*map(str, here), "train", "phone_cpu/stage1_atomic", *map(str, words)], check=True)
    assert list(run.rglob("*.safetensors"))
