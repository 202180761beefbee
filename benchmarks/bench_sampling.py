"""Time the samplers beside bare loops on the same requests, and print the ratios.

* The client of servers at 64 calls in flight beside an asyncio loop of the same HTTP library, against a server in a
  process of its own that answers after a fixed time. Any environment.
* vLLM's engine through the sampler beside ``LLM.generate`` with all requests at once, with one step's request (n = 8) at a time, and
  with one candidate's (n = 1) at a time. Where vllm is
  installed: ``.venv-vllm/bin/python benchmarks/bench_sampling.py --policy FOLDER``, with a folder that
  ``.venv/bin/python -m solar_rl.train.tiny FOLDER`` made.

Rounds alternate, since machines are rarely idle; the ratio of medians is printed with the load.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from solar_rl.builder import load_builder
from solar_rl.config import OpenAISampler, PromptConfig, SourceConfig, VllmSampler
from solar_rl.prompts import Request, build_request
from solar_rl.sampling import make_sampler
from solar_rl.sampling.base import candidate_seed

IN_FLIGHT = 64
SERVER = """
import asyncio, json, sys
wait = float(sys.argv[1])
tokens = [{"token": "x", "logprob": -0.5, "bytes": [120], "top_logprobs": []}] * 30
choices = [{"index": k, "message": {"role": "assistant", "content": '{"action": "wait"}'}, "finish_reason": "stop",
            "logprobs": {"content": tokens}, "token_ids": [7] * 30} for k in range(8)]
body = json.dumps({"choices": choices, "usage": {"prompt_tokens": 900, "completion_tokens": 240}}).encode()
reply = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            size = next(int(l.split(b":")[1]) for l in head.split(b"\\r\\n") if l.lower().startswith(b"content-length"))
            await reader.readexactly(size)
            if wait:
                await asyncio.sleep(wait)
            writer.write(reply)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def phone_requests(count: int, prompt: PromptConfig) -> list[Request]:
    """Put the first steps of the built-in phone's episodes."""
    builder = load_builder(SourceConfig(builder="phone", options={"episodes": max(2, count // 4)}))
    steps = (
        (episode, step)
        for shard in builder.shards()
        for episode in builder.read(shard)
        for step in episode.steps
    )
    found = []
    for episode, step in steps:
        seed = candidate_seed(0, episode.episode_id, step.step_index)
        found.append(build_request(episode, step, prompt, n=8, seed=seed))
        if len(found) == count:
            break
    return found


def compare(name: str, rounds: int, ways: dict[str, Callable[[], Any]]) -> None:
    """Run the ways in turn and print each one's median beside the first's."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    work: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            began, worked = time.perf_counter(), time.process_time()
            run()
            times[way].append(time.perf_counter() - began)
            work[way].append(time.process_time() - worked)
    print(f"{name} ({rounds} rounds in turn, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    first, first_work = (statistics.median(next(iter(each.values()))) for each in (times, work))
    for way, found in times.items():
        middle = statistics.median(found)
        spread = f"{min(found):.2f} to {max(found):.2f}"
        cpu = statistics.median(work[way])
        print(
            f"  {way:<34} {middle:7.2f} s ({spread}), {middle / first:.2f} of the first; "
            f"own CPU time {cpu:.2f} s, {cpu / first_work:.2f}"
        )


@contextmanager
def stub_server(wait: float) -> Iterator[str]:
    """Serve the same answer to every call after ``wait`` seconds, in a process of its own."""
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(wait)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    finally:
        server.terminate()
        server.wait()


def client(rounds: int, calls: int) -> None:
    """Compare the client of servers with a bare loop."""
    import httpx2

    prompt = PromptConfig(format="json", observation="text")
    requests = phone_requests(calls, prompt)
    for wait in (0.0, 0.2, 1.0):
        with stub_server(wait) as url:
            config = OpenAISampler(model="m", endpoints=(url,), in_flight=IN_FLIGHT, max_new_tokens=128)
            sampler = make_sampler(config, prompt)

            def ours(sampler: Any = sampler) -> None:
                assert sum(len(row) for row in sampler.sample(requests)) == 8 * calls

            async def loop(url: str = url) -> None:
                room = asyncio.Semaphore(IN_FLIGHT)
                limits = httpx2.Limits(max_connections=IN_FLIGHT, max_keepalive_connections=IN_FLIGHT)

                async def one(http: httpx2.AsyncClient, request: Request) -> int:
                    async with room:
                        messages = [
                            {"role": m["role"], "content": "\n".join(p["text"] for p in m["content"])}
                            for m in request.messages
                        ]
                        body = {
                            "model": "m",
                            "messages": messages,
                            "n": 8,
                            "seed": request.seed,
                            "logprobs": True,
                        }
                        response = await http.post(f"{url}/chat/completions", json=body)
                        return len(response.json()["choices"])

                async with httpx2.AsyncClient(timeout=600, limits=limits) as http:
                    assert sum(await asyncio.gather(*(one(http, r) for r in requests))) == 8 * calls

            ways = {"bare asyncio loop": lambda loop=loop: asyncio.run(loop()), "sampler openai": ours}
            compare(f"{calls} calls, the server answers after {wait:g} s", rounds, ways)
            sampler.close()  # type: ignore[attr-defined]


def engine(policy: str, rounds: int, steps: int) -> None:
    """Compare vLLM through the sampler with ``LLM.generate``, and with one request at a time."""
    os.environ.update(HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="ERROR")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    from vllm import LLM, SamplingParams

    from solar_rl.policy import load_reader, open_images, prompt_text
    from solar_rl.sampling.vllm import Vllm

    prompt = PromptConfig(format="json", max_pixels=50176)
    requests = phone_requests(steps, prompt)
    settings = {"dtype": "float32", "enforce_eager": True, "max_model_len": 2048}
    sampler = Vllm(VllmSampler(model=policy, max_new_tokens=48, **settings), prompt)
    bare = LLM(
        policy,
        **settings,
        enable_chunked_prefill=False,
        max_num_batched_tokens=2048,
        logprobs_mode="processed_logprobs",
        generation_config="vllm",
        limit_mm_per_prompt={"image": 1, "video": 0},
        mm_processor_kwargs={"min_pixels": prompt.min_pixels, "max_pixels": prompt.max_pixels},
        seed=0,
    )
    reader = load_reader(policy, min_pixels=prompt.min_pixels, max_pixels=prompt.max_pixels)
    prompts = [
        {
            "prompt": prompt_text(reader, r.messages),
            "multi_modal_data": {"image": open_images(reader, r.images)},
        }
        for r in requests
    ]
    params = [
        SamplingParams(n=8, temperature=1.0, top_p=1.0, seed=r.seed, max_tokens=48, logprobs=0)
        for r in requests
    ]

    def forget() -> None:
        """Forget prefixes, so that each way reads every prompt."""
        bare.reset_prefix_cache()
        sampler._loop.run(sampler._engine.reset_prefix_cache())

    def ours() -> None:
        forget()
        assert len(list(sampler.sample(requests))) == steps

    def generate() -> None:
        forget()
        assert len(bare.generate(prompts, params, use_tqdm=False)) == steps

    def one_by_one() -> None:
        forget()
        for each, how in zip(prompts, params, strict=True):
            bare.generate([each], [how], use_tqdm=False)

    def candidate_by_candidate() -> None:
        forget()
        for each, how in zip(prompts, params, strict=True):
            for seed in range(how.seed, how.seed + how.n):
                alone = SamplingParams(temperature=1.0, top_p=1.0, seed=seed, max_tokens=48, logprobs=0)
                bare.generate([each], [alone], use_tqdm=False)

    ours(), generate()  # what comes once
    ways = {
        "LLM.generate, all at once": generate,
        "sampler vllm": ours,
        "LLM.generate, a step a time": one_by_one,
        "LLM.generate, a candidate a time": candidate_by_candidate,
    }
    compare(f"vLLM, {steps} steps with screenshots, n = 8, 48 tokens", rounds, ways)
    sampler.close()


def main() -> None:
    """Read the arguments and time what can be timed here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", help="tiny policy; vLLM is timed where it is given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=600)
    parser.add_argument("--steps", type=int, default=32)
    given = parser.parse_args()
    if given.policy is None:
        client(given.rounds, given.calls)
    elif importlib.util.find_spec("vllm") is None:
        parser.error("vLLM isn't installed here: .venv-vllm/bin/python has it (make test-vllm)")
    else:
        engine(given.policy, given.rounds, given.steps)


if __name__ == "__main__":
    main()
