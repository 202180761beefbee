"""What is said of calls that are made again, and what a run with servers cost."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import stamina
from chat_server import ChatServer, serving, words
from demonstration import make_episode, make_requests

from solar_rl.config import OpenAISampler, PromptConfig
from solar_rl.sampling import make_sampler
from solar_rl.sampling.again import SAY_EVERY, Again, Passing

READS = PromptConfig(format="json", observation="text")


def busy_once(body: dict[str, object], before: int) -> tuple[int, dict[str, str], str] | None:
    return (429, {}, "slow down") if before == 0 else None


def test_one_line_tells_why_many_calls_are_made_again(caplog: pytest.LogCaptureFixture) -> None:
    server = ChatServer(fault=busy_once)
    with stamina.set_testing(True, attempts=7), serving(server):
        sampler = make_sampler(OpenAISampler(model="m", endpoints=(server.url,), in_flight=8), READS)
        found = list(sampler.sample(make_requests(make_episode(), READS, 2)))
        sampler.close()
    assert [len(answers) for answers in found] == [2] * 8
    assert sampler.summary()["retries"] == 8
    assert not [record for record in caplog.records if record.name == "stamina"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == f"{server.url} answers 429: slow down; trying again in 0.0 s"


def test_lines_of_a_server_keep_a_distance_and_count_what_was_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    again = Again(clock=lambda: now[0])

    def fail(url: str, *, after: float | None = None, last: bool = False) -> None:
        with pytest.raises(Passing), again.told(2.0, last=last):
            raise Passing(url, ": 500", after)

    for _ in range(4):
        fail("http://a")
    fail("http://b", after=7.0)
    now[0] = SAY_EVERY
    fail("http://a", last=True)
    fail("http://a")
    assert [record.getMessage() for record in caplog.records] == [
        "http://a: 500; trying again in 2.0 s",
        "http://b: 500; trying again in 7.0 s",
        "http://a: 500; trying again in 2.0 s (3 more calls since the last such line)",
    ]


def test_retries_of_others_are_told_as_they_want(caplog: pytest.LogCaptureFixture) -> None:
    """stamina's hooks are the whole process's: an application that samples has retries of its own."""
    caplog.set_level(logging.WARNING)
    Again()
    calls = []

    @stamina.retry(on=OSError, attempts=2)
    def flaky() -> None:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("busy")

    with stamina.set_testing(True, attempts=2):
        flaky()
    assert [record.getMessage() for record in caplog.records] == ["stamina.retry_scheduled"]


@pytest.mark.parametrize(("verb", "workers"), [("sample", 1), ("build", 2)])
def test_a_run_tells_calls_retries_tokens_and_cost_and_no_file_of_it_does(
    verb: str, workers: int, tmp_path: Path
) -> None:
    server = ChatServer(
        fault=lambda body, before: busy_once(body, before) if body["seed"] % 128 == 0 else None
    )
    with serving(server):
        run = _run(verb, server, tmp_path / "cold", "--executor.workers", str(workers))
        told = json.loads(run.stdout)
        known = _run(verb, server, tmp_path / "known")
    prompt = (
        sum(words(body) for body in server.bodies if body["seed"] % 128)
        + sum(words(body) for body in server.bodies if not body["seed"] % 128) // 2
    )
    calls = len({json.dumps(body) for body in server.bodies})
    answers = 3 * sum({json.dumps(body): body["n"] for body in server.bodies}.values())
    assert told["usage"] == {
        "calls": calls,
        "retries": len(server.bodies) - calls,
        "prompt_tokens": prompt,
        "completion_tokens": answers,
        "cost": pytest.approx((prompt * 5 + answers * 10) / 1e6),
    }
    assert told["usage"]["retries"] > 0
    assert json.loads(known.stdout)["usage"] == {}, "the cache knew everything"
    for path in (tmp_path / "cold").rglob("*.json"):
        assert "retries" not in path.read_text(encoding="utf-8").replace('"retries": 6', "")


def test_what_a_run_cost_is_a_line_that_people_read(tmp_path: Path) -> None:
    server = ChatServer()
    with serving(server):
        run = _run("sample", server, tmp_path / "p", as_json=False)
    prompt = sum(words(body) for body in server.bodies)
    assert f"{len(server.bodies):,} calls, {prompt:,} prompt tokens, " in run.stderr
    assert ", cost 0." in run.stderr


def _run(
    verb: str, server: ChatServer, out: Path, *more: str, as_json: bool = True
) -> subprocess.CompletedProcess[str]:
    words = ["phone", "--sampler.type", "openai", "--sampler.model", "m", "--sampler.endpoints", server.url]
    words += ["--sampler.prompt_price", "5", "--sampler.completion_price", "10", "--sampler.n", "2"]
    words += [
        "--source.options.episodes",
        "2",
        "--source.options.buckets",
        "{short: 1.0}",
        "--shard_episodes",
        "1",
    ]
    words += ["--out", str(out), *more, *(["--json"] if as_json else [])]
    run = subprocess.run(
        [sys.executable, "-m", "solar_rl.cli", verb, *words], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run
