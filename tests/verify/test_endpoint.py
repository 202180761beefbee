"""The endpoint verifier against a stub server: what it sends, what it makes of answers, when it gives up."""

import base64
import json
import threading

import polars as pl
import pytest
from lawful_dataset import write_small_dataset
from stub_endpoint import said, stub_endpoint

from solar_rl.errors import InputError
from solar_rl.evaluate.files import EvaluationData
from solar_rl.verify import verify
from solar_rl.verify.endpoint import EndpointVerifier

KEY = "sk-very-secret"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Steps and candidates of the first two episodes."""
    labels = EvaluationData(str(write_small_dataset(tmp_path_factory.mktemp("small"))), "train")
    candidates = labels.dataset.table("candidates", "train").collect(engine="in-memory")
    candidates = candidates.filter(pl.col("episode_id").is_in(["e000", "e001"]))
    return labels.described_steps(candidates, screenshots=True), candidates


def ask(data, answer, **options):
    waits = []
    with stub_endpoint(answer) as stub:
        verifier = EndpointVerifier(stub.url, "judge-1", pause=waits.append, **options)
        scores = verify(verifier, *data)
    return scores, stub, waits


def parsed(data):
    return data[1]["parse_error"].is_null()


def test_each_distinct_action_is_asked_once_and_scored_by_threshold(data):
    def answer(body, _):
        return said(
            '{"score": 0.6}'
            if "Proposed: click" in body["messages"][1]["content"][0]["text"]
            else '{"score": 0.2}'
        )

    scores, stub, _ = ask(data, answer)
    answers = data[1].filter(parsed(data))
    assert len(stub.requests) == answers.n_unique(["episode_id", "step_index"]), "candidates repeat the label"
    assert set(stub.paths) == {"/v1/chat/completions"}
    clicks = parsed(data) & (data[1]["pred_action_type"] == "click")
    assert set(scores.filter(clicks)["raw_score"]) == {0.6}
    assert scores.filter(clicks)["valid"].all()
    others = scores.filter(parsed(data) & (data[1]["pred_action_type"] != "click"))
    assert set(others["raw_score"]) == {0.2}
    assert set(others["failure_reason"]) == {"verifier_refused"}
    assert set(others["rule"]) == {"verifier judge-1"}


def test_an_unparsable_candidate_is_wrong_without_being_asked(data):
    scores, _, _ = ask(data, lambda *_: said('{"score": 1}'))
    unparsed = scores.filter(~parsed(data))
    assert unparsed.height > 0
    assert unparsed.select("raw_score", "valid", "failure_reason").unique().rows() == [
        (0.0, False, "parse_error")
    ]


def test_the_request_shows_goal_actions_and_screenshot(data):
    _, stub, _ = ask(data, lambda *_: said('{"score": 1}'))
    body = next(b for b in stub.requests if "Expert: click" in b["messages"][1]["content"][0]["text"])
    assert (body["model"], body["temperature"]) == ("judge-1", 0)
    assert body["messages"][0]["role"] == "system"
    text, image = body["messages"][1]["content"]
    assert "Goal: buy milk" in text["text"]
    assert "Proposed: click at 50.0 %, 25.0 %" in text["text"]
    head, _, encoded = image["image_url"]["url"].partition("base64,")
    assert head == "data:image/png;"
    assert base64.b64decode(encoded).startswith(b"\x89PNG")
    _, stub, _ = ask(data, lambda *_: said('{"score": 1}'), images=False)
    assert {len(body["messages"][1]["content"]) for body in stub.requests} == {1}


@pytest.mark.parametrize(
    "reply",
    [
        said("It is right."),
        said('{"score": "high"}'),
        said('{"score": 1.5}'),
        said('{"score": true}'),
        said('{"verdict": 1}'),
        (200, {"choices": []}),
        (200, {"choices": [{"message": {"content": None}}]}),
        (200, "<html>"),
        (200, []),
    ],
    ids=str,
)
def test_an_unreadable_verdict_is_unscored_and_never_0(data, reply):
    scores, _, _ = ask(data, lambda *_: reply)
    assert set(scores.filter(parsed(data))["unscored_reason"]) == {"verifier_unreadable"}
    assert scores.filter(parsed(data))["raw_score"].null_count() == parsed(data).sum()


def test_text_around_the_verdict_is_passed_over(data):
    scores, _, _ = ask(data, lambda *_: said('Let me see.\n```json\n{"score": 0.75}\n```'))
    assert set(scores.filter(parsed(data))["raw_score"]) == {0.75}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_endpoint_is_asked_again_with_longer_waits(data, status):
    def answer(_, before):
        return said('{"score": 1}') if before == 2 else (status, "busy")

    scores, stub, waits = ask(data, answer, concurrency=1)
    assert scores["raw_score"].null_count() == 0
    assert len(stub.requests) == 3 * len({json.dumps(body) for body in stub.requests})
    assert waits[:2] == [1.0, 2.0]


def test_an_endpoint_that_stays_busy_leaves_candidates_unscored(data):
    scores, stub, _ = ask(data, lambda *_: (503, "busy"), retries=1)
    assert set(scores.filter(parsed(data))["unscored_reason"]) == {"verifier_no_answer"}
    assert len(stub.requests) == 2 * len({json.dumps(body) for body in stub.requests})


def test_a_slow_endpoint_times_out(data):
    release = threading.Event()

    def answer(*_):
        release.wait(5)
        return said('{"score": 1}')

    step, candidates = data[0].head(1), data[1].filter(parsed(data)).head(1)
    with stub_endpoint(answer) as stub:
        verifier = EndpointVerifier(stub.url, "m", retries=0, timeout=0.1, pause=lambda _: None)
        scores = verify(verifier, step, candidates)
        release.set()
    assert scores["unscored_reason"].to_list() == ["verifier_no_answer"]


def test_no_more_requests_are_open_than_allowed(data):
    meet = threading.Barrier(2, timeout=5)

    def answer(*_):
        try:
            meet.wait()
        except threading.BrokenBarrierError:
            meet.reset()
        return said('{"score": 1}')

    answers = data[1].filter(parsed(data)).unique(["episode_id", "step_index"], maintain_order=True)
    even = answers.head(answers.height // 2 * 2)
    _, stub, _ = ask((data[0], even), answer, concurrency=2)
    assert stub.most_open == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_refusal_is_the_users_to_mend_and_never_tells_the_key(data, status, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", KEY)
    with stub_endpoint(lambda *_: (status, f"bad key {KEY}")) as stub:
        verifier = EndpointVerifier(stub.url, "m", key_variable="JUDGE_KEY")
        with pytest.raises(InputError, match=f"refuses with status {status}") as caught:
            verifier(*data)
    assert {headers["Authorization"] for headers in stub.headers} == {f"Bearer {KEY}"}
    assert "JUDGE_KEY" in str(caught.value)
    assert KEY not in str(caught.value) + repr(verifier)


def test_without_a_key_none_is_sent(data, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    _, stub, _ = ask(data, lambda *_: said('{"score": 1}'))
    assert not any("Authorization" in headers for headers in stub.headers)


def test_an_endpoint_that_isnt_there_is_named(data):
    with stub_endpoint(lambda *_: said("")) as stub:
        gone = stub.url
    with pytest.raises(InputError, match="can't be reached"):
        EndpointVerifier(gone, "m", retries=1, pause=lambda _: None)(*data)
