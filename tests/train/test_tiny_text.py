"""The small text policy: its tokenizer gives every answer back, and a screen's numbers are single tokens."""

import pytest

from solar_rl.actions import Action
from solar_rl.formats import get_format
from solar_rl.formats.base import Frame
from solar_rl.policy import answer_ids, answer_text, load_policy, prompt_text
from solar_rl.train.tiny_text import Size, make_text_policy

pytestmark = pytest.mark.train

SIZE = Size(width=32, layers=1, heads=2, inner=32, vocabulary=400)
ACTIONS = (
    Action("click", x=0.5, y=0.07),
    Action("long_press", x=0.12, y=0.99),
    Action("scroll", direction="down"),
    Action("input_text", text='Überraschung "um" 07:30, 中文'),
    Action("open_app", app_name="Clock"),
    Action("press", button="back"),
    Action("wait"),
    Action("finished", status="complete"),
    Action("finished", status="complete", text="$20"),
)


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    folder = make_text_policy(
        tmp_path_factory.mktemp("policy"), ["Turn on Wi-Fi 500 120\n Set an alarm"] * 5, size=SIZE
    )
    return load_policy(folder, device="cpu")


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.describe())
def test_every_answer_comes_back_from_its_tokens(policy, action):
    text = get_format("json").render(action, Frame(360, 720))
    ids = answer_ids(policy, text)
    assert ids[-1] == policy.eos_ids[0]
    assert answer_text(policy, ids) == text


def test_boilerplate_and_places_are_single_tokens(policy):
    text = get_format("json").render(Action("click", x=0.87, y=0.12), Frame(360, 720))
    assert len(answer_ids(policy, text)) == 6  # click, x, y, its value, the brace, the end
    assert len(policy.tokenizer(" 870 120 07")["input_ids"]) == 3


def test_an_answer_that_thinks_aloud_takes_few_tokens_more(policy):
    text = '{"thought": "Set", "action": "click", "x": 870, "y": 120}'
    assert answer_text(policy, answer_ids(policy, text)) == text
    assert len(answer_ids(policy, text)) - len(policy.tokenizer("Set")["input_ids"]) == 7


def test_a_name_in_a_thought_has_the_tokens_that_it_has_in_the_goal(policy):
    name = policy.tokenizer(" Wi-Fi")["input_ids"]
    ids = answer_ids(policy, '{"thought": "tap Wi-Fi", "action": "click", "x": 500, "y": 120}')
    assert list(ids[1 : 1 + len(name)]) == name


def test_the_tokenizer_reads_the_same_after_loading(policy, tmp_path):
    again = make_text_policy(tmp_path, ["Turn on Wi-Fi 500 120\n Set an alarm"] * 5, size=SIZE)
    other = load_policy(again, device="cpu")
    text = "Turn on Wi-Fi.\n> wait\n Clock 500 480"
    assert policy.tokenizer(text)["input_ids"] == other.tokenizer(text)["input_ids"]
    assert all(
        (a == b).all() for a, b in zip(policy.model.parameters(), other.model.parameters(), strict=True)
    )


def test_a_prompt_ends_where_the_answer_begins(policy):
    chat = [{"role": "user", "content": [{"type": "text", "text": "Goal"}]}]
    assert prompt_text(policy, chat) == "Goal\n<|act|>"
