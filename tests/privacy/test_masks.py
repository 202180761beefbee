"""Stand-ins: the same everywhere, recognised as such, and no score moves by them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solar_rl.actions import Action
from solar_rl.config import PrivacyConfig
from solar_rl.errors import ConfigError
from solar_rl.privacy import (
    MASK_KEY,
    Found,
    Masker,
    find,
    fingerprint,
    key_id_of_environment,
    make_masker,
    masked,
)
from solar_rl.sampling.base import Completion
from solar_rl.schema import Alternative, Episode, Reject, Step
from solar_rl.text import token_f1

MASKER = Masker(b"7")
PRIVATE = {
    "email": ["ann.lee@shop.co.uk", "a+b_c@x-y.org", "user8@example.com", "A@B.io"],
    "phone": [
        "(212) 555-0123",
        "212-555-0123",
        "1-800-555-0123",
        "+49 170 1234567",
        "+442071234567",
        "9877655532",
        "98765 43210",
    ],
    "secret": [
        "sk-" + "a1" * 12,
        "hf_" + "x" * 34,
        "ghp_" + "9" * 36,
        "AKIA" + "Q" * 16,
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJSMeKKF2QT4",
        "-----BEGIN RSA PRIVATE KEY-----",
    ],
}
ALL = [(kind, text) for kind, texts in PRIVATE.items() for text in texts]


@pytest.mark.parametrize(("kind", "text"), ALL)
@pytest.mark.parametrize(
    "around", ["{}", "to {}, please", '{{"text": "{}"}}', '{{"text": "\\n{}\\n"}}', "<{}>"]
)
def test_what_is_private_is_found_wherever_it_stands(kind, text, around):
    assert Found(kind, text) in find(around.format(text))
    hidden = MASKER.text(around.format(text))
    assert text not in hidden
    assert find(hidden) == []
    before, after = around.format("\0").split("\0")
    assert hidden.startswith(before)
    assert hidden.endswith(after)


@pytest.mark.parametrize(
    "text",
    [
        "buy milk @ 5",
        "@ann said so",
        '{"coordinate": [540, 1200], "time": 1.5}',
        "at 10:30 on 2023-11-05",
        "0.55512345678 and 1080x2400",
        "order 12345678",
        "1700000000000",
        "e5b0c1a2-1234567890ab",
        "sk-short",
        "v1.2.3-rc.4",
    ],
)
def test_what_is_not_private_stays(text):
    assert find(text) == []
    assert MASKER.text(text) == text


def test_two_numbers_in_a_row_are_two():
    assert [found.text for found in find("9877655532,9877654532")] == ["9877655532", "9877654532"]


def test_a_stand_in_is_the_same_everywhere_and_another_under_another_key():
    alone = MASKER.text("ann@shop.com")
    assert MASKER.text("mail Ann@shop.com now") != f"mail {alone} now".replace(alone, "ann@shop.com")
    assert alone in MASKER.text("write to ANN@Shop.com")  # addresses are compared without case
    assert Masker(b"8").text("ann@shop.com") != alone
    assert re.fullmatch(r"[a-z]{8}@[a-z]{8}\.invalid", alone)
    assert MASKER.text("(212) 555-0123")[0] == "("
    assert MASKER.text("+49 170 1234567")[:7] == "+00 0" + MASKER.text("+49 170 1234567")[5:7]


words = st.text("abcdefgh0123", min_size=1, max_size=4)
addresses = st.builds(lambda a, b, c: f"{a}.{b}@{c}.com", words, words, words)
numbers = st.from_regex(r"[2-9][0-9]{2}-[0-9]{3}-[0-9]{4}", fullmatch=True)


@given(addresses, addresses)
def test_token_f1_between_two_addresses_stays(first, second):
    assert token_f1(MASKER.text(first), MASKER.text(second)).score == token_f1(first, second).score


@given(numbers)
def test_token_f1_of_a_number_in_two_formats_stays_one(number):
    area, rest = number[:3], number[4:]
    assert token_f1(MASKER.text(f"({area}) {rest}"), MASKER.text(number)).score == 1


@given(st.lists(st.one_of(addresses, numbers, st.text(max_size=12)), max_size=5).map(" ".join))
def test_masking_twice_is_masking_once_and_leaves_nothing(text):
    once = MASKER.text(text)
    assert MASKER.text(once) == once
    assert find(once) == []


def episode() -> Episode:
    other = Alternative(Action("input_text", text="bob@shop.com"))
    step = Step(
        0,
        Action("input_text", text="ann@shop.com"),
        1080,
        2400,
        instruction="type ann@shop.com",
        screen_text="To: ann@shop.com",
        thought="I need ann@shop.com",
        alternatives=(other,),
    )
    last = Step(1, Action("click", x=0.5, y=0.5), 1080, 2400)
    return Episode("e", "s", "android", "mail ann@shop.com", (step, last))


def test_every_text_of_an_episode_is_masked_alike():
    stand_in = MASKER.text("ann@shop.com")
    (found,) = masked([episode()], MASKER)
    first = found.steps[0]
    texts = (found.goal, first.instruction, first.screen_text, first.thought, first.action.text)
    assert all(stand_in in text for text in texts)
    assert first.alternatives[0].action.text == MASKER.text("bob@shop.com")
    assert found.steps[1] == episode().steps[1]
    assert list(masked([episode()], None)) == [episode()]


def test_a_reject_does_not_quote_what_is_masked():
    (reject,) = masked([Reject("f", "record 1", "empty_text", "got 'ann@shop.com'")], MASKER)
    assert "ann@shop.com" not in reject.message
    assert (reject.file, reject.record, reject.reason) == ("f", "record 1", "empty_text")


def test_an_answer_that_changes_loses_its_tokens():
    changed = MASKER.completion(Completion("type ann@shop.com", 1, (1, 2), (-0.5, -0.5)))
    assert (changed.token_ids, changed.logprobs, changed.seed) == (None, None, 1)
    assert changed.text == f"type {MASKER.text('ann@shop.com')}"
    same = Completion(changed.text, 1, (1, 2), (-0.5, -0.5))
    assert MASKER.completion(same) is same


def test_the_key_is_the_seed_or_the_one_of_the_environment(monkeypatch):
    monkeypatch.delenv(MASK_KEY, raising=False)
    assert make_masker(PrivacyConfig(), 7) is None
    assert make_masker(PrivacyConfig(mask=True), 7) == MASKER
    assert key_id_of_environment() is None
    config = PrivacyConfig(mask=True, key_id=fingerprint("a secret of some length"))
    with pytest.raises(ConfigError, match="is not set"):
        make_masker(config, 7)
    monkeypatch.setenv(MASK_KEY, "another secret of some length")
    with pytest.raises(ConfigError, match="another key"):
        make_masker(config, 7)
    monkeypatch.setenv(MASK_KEY, "a secret of some length")
    assert key_id_of_environment() == config.key_id
    assert make_masker(config, 7) == Masker(b"a secret of some length")
    monkeypatch.setenv(MASK_KEY, "short")
    with pytest.raises(ConfigError, match="5 characters"):
        key_id_of_environment()
