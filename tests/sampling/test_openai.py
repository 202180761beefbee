"""The sampler that calls servers: order, bounds, every way a server fails, and a key that nobody gets to see."""

import json
import logging
import threading
from contextlib import ExitStack

import pytest
import stamina
from chat_server import ChatServer, answer, serving, words
from demonstration import make_episode, make_requests

from solar_rl.config import DatasetConfig, OpenAISampler, PromptConfig, validate_config
from solar_rl.errors import ConfigError, InputError
from solar_rl.sampling import make_sampler
from solar_rl.sampling.concurrent import AHEAD

READS = PromptConfig(format="json", observation="text")
SEES = PromptConfig(format="json", min_pixels=784, max_pixels=784 * 8)
KEY = "sk-very-secret-1234567890"
RESPONSE = '{"choices": [{"message": {"content": "hi"}}]}'


@pytest.fixture(autouse=True)
def no_waiting():
    with stamina.set_testing(True, attempts=7):
        yield


def requests(n=4, prompt=READS):
    return make_requests(make_episode(), prompt, n)


def expected(asked, server):
    """What the server says to each body with n candidates, as it was first asked."""
    return [[answer(body, body["seed"] + k) for k in range(body["n"])] for body in asked]


def ask(*servers, asked=None, prompt=READS, **settings):
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(serving(server))
        config = OpenAISampler(
            model="m", **({"endpoints": tuple(s.url for s in servers), "in_flight": 4} | settings)
        )
        sampler = make_sampler(config, prompt)
        stack.callback(sampler.close)
        return list(sampler.sample(asked or requests(prompt=prompt))), sampler


@pytest.fixture(scope="module")
def straight():
    with stamina.set_testing(True, attempts=7):
        return ask(ChatServer())[0]


def test_every_step_gets_its_answers_in_order(straight):
    server = ChatServer()
    found, sampler = ask(server)
    assert found == straight
    by_prompt = {json.dumps(body["messages"]): body for body in server.bodies}
    assert len(by_prompt) == len(server.bodies) == len(found) == 8
    for request, row in zip(requests(), found, strict=True):
        (body,) = [b for b in by_prompt.values() if b["seed"] == request.seed]
        assert body | {"messages": 0} == {
            "model": "m",
            "messages": 0,
            "n": 4,
            "temperature": 1.0,
            "top_p": 1.0,
            "max_tokens": 128,
            "seed": request.seed,
            "logprobs": True,
            "return_token_ids": True,
        }
        assert request.messages[1]["content"][0]["text"] == body["messages"][1]["content"]
        assert [c.text for c in row] == [answer(body, request.seed + k) for k in range(4)]
        assert [c.seed for c in row] == [request.seed + k for k in range(4)]
        assert all(c.token_ids == tuple(c.text.encode()) and len(c.logprobs) == len(c.token_ids) for c in row)
        assert {c.finish_reason for c in row} == {"stop"}
    assert sampler.summary() == {
        "requests": 8,
        "candidates": 32,
        "calls": 8,
        "prompt_tokens": sum(words(body) for body in server.bodies),
        "completion_tokens": 8 * 4 * 3,
    }


def test_screenshots_travel_as_the_pixels_that_the_policy_sees():
    import base64
    import io

    from PIL import Image

    from solar_rl.prompts import frame_of

    server = ChatServer()
    ask(server, prompt=SEES)
    for body in server.bodies:
        assert isinstance(body["messages"][0]["content"], str)
        (url,) = [p["image_url"]["url"] for p in body["messages"][1]["content"] if p["type"] == "image_url"]
        head, data = url.split(",")
        assert head == "data:image/png;base64"
        frame = frame_of(make_episode().steps[0], SEES)
        assert Image.open(io.BytesIO(base64.b64decode(data))).size == (frame.width, frame.height)


def test_a_slow_answer_holds_up_neither_the_others_nor_the_order(straight):
    late, first = threading.Event(), requests()[0].seed
    answered = []

    def seen(body):
        if body["seed"] == first:
            assert late.wait(30)
        else:
            answered.append(body["seed"])
            if len(answered) == AHEAD * 4 - 1:  # as many as are read before the first answer is due
                late.set()

    assert ask(ChatServer(seen=seen))[0] == straight


def test_as_many_calls_are_open_as_the_config_says_and_no_more():
    together = threading.Barrier(4)
    server = ChatServer(seen=lambda body: together.wait(30))  # opens when four are there at once
    found, _ = ask(server)
    assert len(found) == 8
    assert server.most_open == 4


FAULTS = {
    "busy": (429, {"Retry-After": "0"}, ""),
    "busy, asks for a date": (429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, ""),
    "down": (503, {}, "starting"),
    "broken": (500, {}, "<html>"),
    "cut": "cut",
    "cut in the middle": "half",
    "garbage": (200, {}, "<html>hello</html>"),
    "no choice": (200, {}, '{"choices": []}'),
    "choices of another shape": (200, {}, '{"choices": ["hello", 3]}'),
    "another object": (200, {}, '{"error": "overloaded"}'),
    "not compressed as it says": (200, {"Content-Encoding": "gzip"}, RESPONSE),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_what_fails_in_passing_is_asked_again_and_changes_nothing(straight, fault):
    server = ChatServer(fault=lambda body, before: fault if before < 2 else None)
    found, sampler = ask(server)
    assert found == straight
    assert sampler.usage.retries == 16
    assert set(server.counts.values()) == {3}


def test_a_call_that_takes_too_long_is_made_again(straight):
    given_up = threading.Event()

    def fault(body, before):
        if before == 0:
            given_up.wait(30)
        elif before == 1:
            given_up.set()

    server = ChatServer(fault=fault)
    found, _ = ask(server, asked=requests()[:1], timeout=0.5)
    assert found == straight[:1]


def test_a_server_that_stays_down_is_told_with_the_step_and_what_to_do():
    server = ChatServer(fault=lambda body, before: (503, {}, "no worker"))
    with pytest.raises(
        InputError, match=r"7 calls in a row failed, the last: .* answers 503: no worker"
    ) as caught:
        ask(server, in_flight=1)
    assert caught.value.where == "episode e, step 0"
    assert "goes on" in caught.value.hint
    assert max(server.counts.values()) == 7


@pytest.mark.parametrize(
    "server", [ChatServer(takes_n=False), ChatServer(most=3)], ids=["one a call", "three"]
)
def test_a_server_that_gives_fewer_is_asked_for_the_rest(straight, server):
    found, _ = ask(server)
    assert found == straight


def test_one_candidate_a_call_where_the_config_says_so(straight):
    server = ChatServer()
    assert ask(server, ask_n=False)[0] == straight
    assert {body["n"] for body in server.bodies} == {1}
    assert len(server.bodies) == 32


def test_what_a_server_does_not_give_is_null():
    plain, _ = ask(ChatServer(logprobs=False, token_ids=False))
    assert {(c.token_ids, c.logprobs) for row in plain for c in row} == {(None, None)}
    only_ids, _ = ask(ChatServer(logprobs=False))
    assert all(c.token_ids and c.logprobs is None for row in only_ids for c in row)
    only_logprobs, _ = ask(ChatServer(token_ids=False))
    assert all(c.logprobs and c.token_ids is None for row in only_logprobs for c in row)


@pytest.mark.parametrize("broken", ["[1, 2, 3]", "null", "[]"])
def test_log_probs_of_other_tokens_than_the_answers_are_null(broken):
    text = (
        f'{{"choices": [{{"message": {{"content": null}}, "token_ids": {broken}, "finish_reason": "tool_calls",'
        ' "logprobs": {"content": [{"logprob": NaN}, {"logprob": -1}]}}]}'
    )
    found, _ = ask(ChatServer(fault=lambda body, before: (200, {}, text)), asked=requests(n=1)[:1])
    ((only,),) = found
    assert (only.text, only.logprobs, only.finish_reason) == ("", None, None)


REFUSALS = {
    "401": (401, "no", "put the key into NO_SUCH_KEY"),
    "404": (404, "The model `m` does not exist.", "sampler.model"),
    "400 n": (400, "Only one completion choice is allowed", "set sampler.ask_n to false"),
    "400 ids": (
        400,
        "Unrecognized request argument supplied: return_token_ids",
        "set sampler.token_ids to false",
    ),
    "400 seed": (422, "seed: Extra inputs are not permitted", "set sampler.seeded to false"),
}


@pytest.mark.parametrize(("status", "text", "hint"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_says_what_the_server_said_and_which_setting_helps(status, text, hint):
    body = json.dumps({"error": {"message": text}})
    server = ChatServer(fault=lambda *_: (status, {}, body))
    with pytest.raises(InputError) as caught:
        ask(server, key_env="NO_SUCH_KEY", in_flight=1)
    assert text in str(caught.value)
    assert hint in caught.value.hint
    assert len(server.bodies) <= AHEAD, "nothing is asked again"


def test_the_key_is_sent_and_seen_nowhere_else(monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MY_KEY", KEY)
    server = ChatServer(key=KEY, fault=lambda body, before: (503, {}, f"no {KEY}") if before == 0 else None)
    found, sampler = ask(server, key_env="MY_KEY")
    assert len(found) == 8
    assert server.keys == {f"Bearer {KEY}"}
    with pytest.raises(InputError) as caught:
        ask(ChatServer(key="another"), key_env="MY_KEY")
    assert "wrong key: Bearer [key]" in str(caught.value)
    config = OpenAISampler(model="m", key_env="MY_KEY").model_dump_json()
    told = [
        str(caught.value),
        repr(caught.value),
        caplog.text,
        sampler.sampler_id,
        config,
        str(sampler.summary()),
    ]
    assert not [text for text in told if KEY in text]


@pytest.mark.parametrize(
    "address", ["http://me:pass@host/v1", "https://host/v1?api_key=abc", "localhost:8000", ""]
)
def test_an_address_holds_no_key_and_is_one(address):
    given = {
        "name": "d",
        "source": {"builder": "phone"},
        "sampler": {"type": "openai", "model": "m", "endpoints": address},
    }
    with pytest.raises(ConfigError, match=r"sampler.*endpoints") as caught:
        validate_config(DatasetConfig, given, where="d.yaml")
    assert "pass@" not in str(caught.value)


def test_answers_held_to_a_form_have_no_log_probs_that_training_could_take_for_the_model_s():
    form = {"response_format": {"type": "json_object"}}
    with pytest.raises(ValueError, match=r"extra_body\.response_format .* set logprobs to false"):
        OpenAISampler(model="m", extra_body=form)
    server = ChatServer()
    found, _ = ask(server, extra_body=form, logprobs=False)
    assert all(body["response_format"] == {"type": "json_object"} for body in server.bodies)
    assert not [body for body in server.bodies if "logprobs" in body]
    assert all(c.logprobs is None for row in found for c in row)


def test_two_servers_share_the_calls(straight):
    both = threading.Barrier(2)
    seen = lambda body: both.wait(30)  # noqa: E731
    one, other = ChatServer(seen=seen), ChatServer(seen=seen)
    found, _ = ask(one, other, in_flight=2)
    assert found == straight
    assert len(one.bodies) == len(other.bodies) == 4


def test_a_server_that_dies_leaves_its_calls_to_the_other(straight):
    dying = ChatServer(fault=lambda body, before: None if len(dying.bodies) <= 2 else "cut")
    well = ChatServer()
    found, sampler = ask(dying, well, in_flight=2, retries=1)
    assert found == straight
    assert len(dying.bodies) + len(well.bodies) == 8 + sampler.usage.retries
    assert sampler.usage.retries <= 3, "it rests once it has failed"


def test_a_server_that_was_never_there_costs_little(straight):
    well = ChatServer()
    with serving(well):
        config = OpenAISampler(
            model="m", endpoints=("http://127.0.0.1:9/v1", well.url), in_flight=2, retries=2
        )
        sampler = make_sampler(config, READS)
        assert list(sampler.sample(requests())) == straight
        sampler.close()


def test_a_prompt_that_does_not_fit_loses_as_little_of_its_oldest_history_as_it_must():
    last = requests()[-1]
    lengths = [words({"messages": as_sent(last, dropped)}) for dropped in range(last.shown + 1)]
    assert last.shown == 7
    server = ChatServer(context=lengths[3])
    found, sampler = ask(server)
    least = [
        next(d for d in range(r.shown + 1) if words({"messages": as_sent(r, d)}) <= lengths[3])
        for r in requests()
    ]
    assert [row[0].history_dropped for row in found] == least
    assert least[-3:] == [1, 2, 3] or least[-1] == 3
    final = max((b for b in server.bodies if b["seed"] == last.seed), key=lambda b: -words(b))
    assert [line[:3] for line in final["messages"][1]["content"].splitlines()[2:-2]] == [
        "4. ",
        "5. ",
        "6. ",
        "7. ",
    ]
    assert sampler.usage.shortened == sum(dropped > 0 for dropped in least) > 1


def as_sent(request, dropped):
    from solar_rl.prompts import without_oldest

    messages = without_oldest(request, dropped).messages if dropped else request.messages
    return [{"role": m["role"], "content": "\n".join(p["text"] for p in m["content"])} for m in messages]


def test_a_prompt_that_is_too_long_without_any_history_is_an_error():
    with pytest.raises(InputError, match="too long for the server even without any history") as caught:
        ask(ChatServer(context=10), in_flight=1)
    assert "maximum context length is 10 tokens" in str(caught.value)
    assert caught.value.where == "episode e, step 0"


def test_tokens_have_a_price():
    server = ChatServer()
    _, sampler = ask(server, prompt_price=2.0, completion_price=10.0)
    prompt = sum(words(body) for body in server.bodies)
    assert sampler.summary()["cost"] == pytest.approx((prompt * 2 + 96 * 10) / 1e6)


def test_short_seeds_keep_the_bits_that_count_candidates():
    server = ChatServer()
    ask(server, seed_bits=31, ask_n=False)
    sent = {body["seed"] for body in server.bodies}
    assert sent == {(r.seed + k) & 0x7FFFFFFF for r in requests() for k in range(4)}


def test_speed_and_prices_do_not_change_the_sampler_id():
    other = {"in_flight": 3, "timeout": 9, "prompt_price": 3.0, "endpoints": "http://127.0.0.1:1/v1"}
    ids = []
    for more in ({}, other, {"temperature": 0.5}):
        sampler = make_sampler(OpenAISampler(model="m", **more), READS)
        ids.append(sampler.sampler_id)
        sampler.close()
    assert ids[0] == ids[1] != ids[2]
