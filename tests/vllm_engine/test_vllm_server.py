"""The client against vLLM's own server: the same answers, tokens and log-probs as the engine in this process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import contextmanager

import pytest
from test_vllm_engine import SEES, SETTINGS, engine, requests_for

from solar_rl.config import OpenAISampler
from solar_rl.errors import CheckFailed, InputError
from solar_rl.sampling import make_sampler

pytest.importorskip("vllm")
pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1200)]


@contextmanager
def vllm_server(folder, prompt):
    """Run it as docs/sampling.md says, on a free port, until the block ends."""
    import httpx2

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pixels = {"min_pixels": prompt.min_pixels, "max_pixels": prompt.max_pixels}
    command = [
        sys.executable,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--host",
        "127.0.0.1",
        "--port",
        port,
    ]
    command += ["--model", folder, "--served-model-name", "tiny", "--dtype", "float32", "--enforce-eager"]
    command += [
        "--max-model-len",
        2048,
        "--logprobs-mode",
        "processed_logprobs",
        "--generation-config",
        "vllm",
    ]
    command += ["--no-enable-chunked-prefill", "--max-num-batched-tokens", 2048]
    command += ["--limit-mm-per-prompt", json.dumps({"image": 1, "video": 0})]
    command += ["--mm-processor-kwargs", json.dumps(pixels)]
    server = subprocess.Popen([str(part) for part in command], env=os.environ, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                if httpx2.get(f"{url}/health", timeout=5).status_code == 200:
                    break
            except httpx2.TransportError:
                pass
            try:
                pytest.fail(f"the server ended with {server.wait(timeout=1)}")
            except subprocess.TimeoutExpired:
                continue
        yield f"{url}/v1"
    finally:
        server.terminate()
        server.wait(timeout=60)


def test_a_model_that_can_not_be_run_as_asked_is_one_line(seeing):
    with pytest.raises(InputError, match="vLLM can't run this model") as caught:
        engine(seeing, SEES, max_model_len=10**7)
    assert caught.value.where == str(seeing)


def test_the_servers_answers_are_the_engines(seeing, episodes):
    import psutil

    asked = requests_for(episodes, SEES)
    inside = engine(seeing, SEES)
    expected = list(inside.sample(asked))
    for process in psutil.Process().children(recursive=True):
        if "VLLM" in " ".join(process.cmdline()):  # the title that they give themselves
            process.kill()
    with pytest.raises(CheckFailed, match="vLLM's engine has ended") as caught:
        list(inside.sample(asked[:1]))
    inside.close()
    assert "run the same command again" in str(caught.value)
    with vllm_server(seeing, SEES) as url:
        settings = {"model": "tiny", "endpoints": (url,), "max_new_tokens": SETTINGS["max_new_tokens"]}
        client = make_sampler(OpenAISampler(**settings), SEES)
        found = list(client.sample(asked))
        one_by_one = make_sampler(OpenAISampler(**settings, ask_n=False), SEES)
        again = list(one_by_one.sample(asked[:2]))
        too_long = make_sampler(OpenAISampler(**settings | {"max_new_tokens": 2047}), SEES)
        with pytest.raises(InputError, match="too long for the server even without any history"):
            list(too_long.sample(asked[-1:]))
        for each in (client, one_by_one, too_long):
            each.close()
    worst = 0.0
    for row, other in zip(found, expected, strict=True):
        assert [c.seed for c in row] == [c.seed for c in other]
        for ours, theirs in zip(row, other, strict=True):
            assert ours.text == theirs.text
            assert ours.finish_reason == theirs.finish_reason
            if theirs.token_ids is not None:  # the client can't tell which ids stand for images
                assert ours.token_ids == theirs.token_ids
                worst = max(worst, *(abs(a - b) for a, b in zip(ours.logprobs, theirs.logprobs, strict=True)))
    print(f"largest |logprob server - engine|: {worst:.2e}")
    assert worst < 1e-4
    assert [[c.token_ids for c in row] for row in again] == [[c.token_ids for c in row] for row in found[:2]]
