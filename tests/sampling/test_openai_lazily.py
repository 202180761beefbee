"""The sampler that calls servers reads requests as it goes: a little ahead, with flat memory."""

import tracemalloc

import pytest
from chat_server import ChatServer, serving
from demonstration import make_episode, make_requests

from solar_rl.config import OpenAISampler, PromptConfig
from solar_rl.sampling import make_sampler
from solar_rl.sampling.concurrent import AHEAD

READS = PromptConfig(format="json", observation="text")


def lazily(count, noted):
    (request, *_) = make_requests(make_episode(), READS, 1)
    for number in range(count):
        noted.append(number)
        yield request


def read_all(count, in_flight=32):
    server = ChatServer(keep_bodies=False)
    with serving(server):
        sampler = make_sampler(OpenAISampler(model="m", endpoints=(server.url,), in_flight=in_flight), READS)
        read, most, got = [], 0, 0
        for _ in sampler.sample(lazily(count, read)):
            got += 1
            most = max(most, len(read) - got)
        sampler.close()
    return got, most, sum(server.counts.values())


def test_requests_are_read_only_a_little_ahead():
    got, most, calls = read_all(300)
    assert got == calls == 300
    assert most <= AHEAD * 32


@pytest.mark.slow
def test_ten_thousand_lazy_requests_leave_memory_flat():
    read_all(500)  # caches, pools and threads that come once
    tracemalloc.start()
    got, most, calls = read_all(10_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert got == calls == 10_000
    assert most <= AHEAD * 32
    assert peak < 30e6
