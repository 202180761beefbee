"""A reply is read whatever a server puts into it, or known to be none."""

import math

import pytest

from solar_rl.sampling.reply import read_reply

GOOD = b'{"choices": [{"message": {"content": "hi"}%s}], "usage": {"prompt_tokens": 3, "more": {}}}'


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b"<html>", b"{}", b'{"choices": 3}', b'{"choices": []}', b'{"choices": [{}]}', b"\xff",
     b'{"choices": [{"message": {"content": 5}}]}', b'{"choices": [NaN]}', b"[" * 100_000],
)  # fmt: skip
def test_what_is_no_chat_completion_is_none(data: bytes) -> None:
    assert read_reply(data) is None


def test_fields_that_may_be_missing_or_null() -> None:
    for more in (b"", b', "logprobs": null, "token_ids": null, "finish_reason": null, "extra": [1]'):
        reply = read_reply(GOOD % more)
        assert reply is not None
        (choice,) = reply.in_order()
        answer = choice.completion(7, 0)
        assert (answer.text, answer.seed, answer.token_ids, answer.logprobs) == ("hi", 7, None, None)


@pytest.mark.parametrize("logprob", ["NaN", "Infinity", "-Infinity", "0.5"])
def test_a_log_prob_that_is_none_is_left_out(logprob: str) -> None:
    more = f', "logprobs": {{"content": [{{"logprob": {logprob}}}, {{"logprob": -1}}]}}'
    reply = read_reply(GOOD % more.encode())
    assert reply is not None
    kept = reply.choices[0].completion(0, 0).logprobs
    assert kept is None or all(math.isfinite(value) or value == -math.inf for value in kept)
    assert (kept is None) == (logprob != "-Infinity")


def test_choices_come_by_index() -> None:
    data = (
        b'{"choices": [{"index": 1, "message": {"content": "b"}}, {"index": 0, "message": {"content": "a"}}]}'
    )
    reply = read_reply(data)
    assert reply is not None
    assert [choice.message.content for choice in reply.in_order()] == ["a", "b"]
