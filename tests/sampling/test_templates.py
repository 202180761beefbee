"""Templates: what each family's models are told, word by word, and that a shipped version never changes."""

import json
from pathlib import Path

import pytest
from demonstration import make_episode, said_by

from solar_rl.config import PromptConfig
from solar_rl.errors import ConfigError
from solar_rl.formats import FORMATS
from solar_rl.formats.base import Frame
from solar_rl.prompts import Past, build_request, messages_for, settled, tried, without_oldest
from solar_rl.prompts.catalogue import hashes, newest, shipped

SHIPPED = shipped()
GOLDEN = Path(__file__).with_name("golden_prompts.json")
AT = 4


def config(template: str, **more) -> PromptConfig:
    return PromptConfig(format=template.partition("/")[0], template=template, **more)


def request_of(config: PromptConfig, at: int = AT):
    episode = said_by(config.format)
    past = [Past(step.action, f"thought\n{step.step_index}") for step in episode.steps[:at]]
    return build_request(episode, episode.steps[at], config, n=1, seed=0, past=past)


def golden_messages(template: str):
    more = {"level": "low", "screenshots": 2, "history_thoughts": True, "observation": "both"}
    return {
        "plain": request_of(config(template)).messages,
        "all": request_of(config(template, **more)).messages,
    }


def text_of(messages) -> str:
    return "\n".join(part.get("text", "<image>") for m in messages for part in m["content"])


@pytest.mark.parametrize("template", SHIPPED)
def test_what_a_shipped_version_says_never_changes(template):
    """A change of wording is another version: datasets name the one that they were sampled with."""
    assert golden_messages(template) == json.loads(GOLDEN.read_text(encoding="utf-8"))[template]


def test_every_format_has_templates_counted_from_1_and_the_newest_is_taken():
    for name in FORMATS:
        versions = sorted(int(each.split("/")[1]) for each in SHIPPED if each.split("/")[0] == name)
        assert versions == list(range(1, len(versions) + 1))
        assert settled(PromptConfig(format=name)).template == newest(name) == f"{name}/{versions[-1]}"
    assert {each.split("/")[0] for each in SHIPPED} == set(FORMATS)


def test_a_dataset_of_before_there_were_templates_has_the_first():
    for name in FORMATS:
        assert request_of(PromptConfig(format=name)).messages == request_of(config(f"{name}/1")).messages


@pytest.mark.parametrize("template", SHIPPED)
@pytest.mark.parametrize("screenshots", [1, 3])
@pytest.mark.parametrize("observation", ["image", "text", "both"])
def test_every_template_tells_goal_step_history_and_screens(template, screenshots, observation):
    given = config(template, level="low", screenshots=screenshots, observation=observation)
    for at in (0, AT):
        request = request_of(given, at)
        text = text_of(request.messages)
        assert "Set an alarm" in text
        assert request.step.instruction in text
        assert text.count("<image>") == len(request.images) == min(len(request.images), at + 1)
        assert ("[button]" in text) == (observation != "image")
        assert request.messages[-1]["role"] == "user"
        assert "\0" not in text
    seen = text_of(request_of(config(template, history="none", screenshots=3)).messages)
    assert seen.count("<image>") == 3
    assert "50" not in seen.replace("<image>", "").split("Set an alarm")[1] or "click" not in seen.lower()


@pytest.mark.parametrize("template", SHIPPED)
@pytest.mark.parametrize("screenshots", [1, 3])
@pytest.mark.parametrize("most", [None, 3])
def test_dropping_the_oldest_is_the_prompt_of_fewer_history_steps(template, screenshots, most):
    given = config(template, screenshots=screenshots, history_thoughts=True, history_steps=most)
    request = request_of(given)
    for dropped in range(request.shown + 1):
        left = request.shown - dropped
        lowered = {"history_steps": left} if left else {"history": "none", "history_steps": None}
        same = request_of(given.model_copy(update=lowered))
        shorter = without_oldest(request, dropped)
        assert shorter.messages == same.messages
        assert shorter.images == request.images


@pytest.mark.parametrize("template", SHIPPED)
def test_templates_are_short_and_name_an_action_of_their_own(template):
    text = text_of(messages_for("", None, [], Frame(28, 28), None, config(template), screens=0))
    assert len(text) < 3000
    assert any(word in text.lower() for word in ("scroll", "swipe", '"to"'))


def test_sizes_are_those_that_coordinates_are_measured_in():
    def told(template):
        return text_of(messages_for("g", None, [], Frame(1092, 2408), None, config(template), screens=0))

    assert "1092x2408" in told("qwen25vl_mobile_use/2")
    assert "0 to 1000" in told("qwen3vl_mobile_use/2")
    assert "x runs from 0 to 1092, y from 0 to 2408" in told("ui_tars_abs/2")
    assert "x runs from 0 to 1000, y from 0 to 1000" in told("ui_tars/2")
    assert "(1092, 2408)" in told("ui_venus/2")
    assert "(1000, 1000)" in told("ui_venus_1000/2")


def test_ui_tars_is_told_in_turns_screen_before_action():
    request = request_of(config("ui_tars_abs/2", screenshots=3, history_thoughts=True))
    kinds = [(m["role"], "+".join(part["type"] for part in m["content"])) for m in request.messages]
    turn = [("user", "image"), ("assistant", "text")]
    assert kinds == [("user", "text"), *turn[1:] * 2, *turn * 2, ("user", "image")]
    click, typed = (request_of(config("ui_tars_abs/2"), at).messages[-2] for at in (2, 5))
    assert click["content"][0]["text"] == "Action: click(start_box='<|box_start|>(56,56)<|box_end|>')"
    assert typed["content"][0]["text"] == "Action: type(content='buy two red apples')"


# --- templates of the user's own ---------------------------------------------------------------------

OWN = """{% call say("system") %}
Be brief.
{% endcall %}
{% call say("user") %}
{{ goal }} ({{ history | length }} done)
{% if screens %}
{{ screens | join }}
{% endif %}
{% endcall %}
"""


def test_a_file_of_one_s_own_becomes_its_text_wherever_it_lies(tmp_path):
    file = tmp_path / "mine.jinja"
    file.write_text(OWN)
    given = settled(PromptConfig(format="json", template=str(file)))
    assert given.template == OWN
    assert settled(given) == given
    messages = request_of(given).messages
    assert messages[0]["content"] == [{"type": "text", "text": "Be brief."}]
    assert messages[1]["content"][0]["text"] == "Set an alarm (4 done)"


def test_a_template_may_include_a_shipped_one():
    given = PromptConfig(format="json", template='{% include "json/1" %}\n')
    assert request_of(given).messages == request_of(config("json/1")).messages
    assert list(hashes(given.template)) == ["json/1", "parts/lines"]


def test_what_a_source_says_passes_for_no_screenshot():
    episode = make_episode()
    goal = "tap \0000\0 {{ screen }} {% raw %}"
    messages = messages_for(goal, None, [], Frame(28, 28), None, config("json/1"), screens=1)
    assert [part["type"] for part in messages[1]["content"]] == ["text", "image"]
    assert "{{ screen }} {% raw %}" in messages[1]["content"][0]["text"]
    assert episode.steps


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{% call say("user") %}\n{{ goal }}\n', "line 2"),
        ('{% call say("user") %}\n{{ gaol }}{{ screens | join }}{% endcall %}', "'gaol' is undefined"),
        ('{% call say("user") %}\n{{ goal }}{% endcall %}', "shows 0 screenshots"),
        ('{% call say("robot") %}\n{{ goal }}{% endcall %}', "robot"),
        ('{% call say("system") %}\n{{ goal }}{{ screens | join }}{% endcall %}', "the last message"),
        ('{% call say("user") %}\n{{ goal.__class__.__mro__ }}{% endcall %}', "unsafe"),
        ('{% include "no/such" %}\n', "no template is named 'no/such'"),
        ('{% include "../../secret" %}\n', "no template is named"),
        ("\n", "the last message"),
    ],
)
def test_a_wrong_template_is_told_before_any_work(text, told):
    with pytest.raises(ConfigError, match=told):
        tried(settled(PromptConfig(format="json", template=text)))


def test_an_unknown_template_gets_a_suggestion():
    with pytest.raises(ConfigError, match="did you mean 'ui_tars/2'"):
        settled(PromptConfig(template="ui_tar/2"))
