"""The noisy expert: seeded per candidate, its mistakes are of the kind that is named."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from demonstration import ACTIONS, make_episode, make_requests, said_by

from solar_rl.actions import Action, Box
from solar_rl.config import PromptConfig, ScriptedSampler
from solar_rl.errors import ActionError, ConfigError
from solar_rl.formats import FORMATS, parse_completion
from solar_rl.sampling import make_sampler
from solar_rl.sampling.mistakes import KINDS, MOVES, PROSE, possible

PROMPT = PromptConfig(format="json")
EPISODE = make_episode()


def answers(config: ScriptedSampler, prompt=PROMPT, n=8, episode=EPISODE, seed=0):
    requests = make_requests(episode, prompt, n, seed)
    return list(make_sampler(config, prompt).sample(requests))


def only(kind: str) -> ScriptedSampler:
    return ScriptedSampler(error_rate=1.0, errors={kind: 1.0})


def mistakes(kind: str, label: Action, n=400, box=None):
    episode = make_episode((label,), box=box)
    request = replace(make_requests(episode, PROMPT)[0], n=n)
    (drawn,) = make_sampler(only(kind), PROMPT).sample([request])
    return [parse_completion("json", c.text, request.frame)[0] for c in drawn]


@pytest.mark.parametrize("name", FORMATS)
def test_without_mistakes_every_answer_is_the_recorded_action(name):
    prompt, episode = PromptConfig(format=name), said_by(name)
    drawn_at = answers(ScriptedSampler(error_rate=0), prompt, episode=episode)
    for step, drawn in zip(episode.steps, drawn_at, strict=True):
        request = make_requests(episode, prompt)[step.step_index]
        for completion in drawn:
            action, reason = parse_completion(name, completion.text, request.frame)
            assert reason is None
            assert action.action_type == step.action.action_type


def test_one_call_for_n_equals_n_calls():
    config = ScriptedSampler(error_rate=0.6)
    requests = make_requests(EPISODE, PROMPT, 8)
    sampler = make_sampler(config, PROMPT)
    together = list(sampler.sample(requests))
    for request, drawn in zip(requests, together, strict=True):
        alone = [replace(request, n=1, seed=request.seed + k) for k in range(8)]
        assert [c for (c,) in sampler.sample(reversed(alone))] == drawn[::-1]
        assert [c.seed for c in drawn] == list(range(request.seed, request.seed + 8))


def test_another_build_seed_gives_other_answers():
    config = ScriptedSampler(error_rate=0.6)
    assert answers(config, seed=0) == answers(config, seed=0) != answers(config, seed=1)


def test_the_error_rate_is_met_and_may_differ_by_action_type():
    config = ScriptedSampler(error_rate=0.5, error_rates={"click": 0.1, "wait": 0.9})
    for step, drawn in zip(EPISODE.steps, answers(config, n=4000), strict=True):
        right = Counter(c.text for c in drawn).most_common(1)[0][1] / 4000
        rate = {"click": 0.1, "wait": 0.9}.get(step.action.action_type, 0.5)
        share = right if step.action.action_type != "wait" else 0.1
        assert abs(share - (1 - rate)) < 0.03


def test_near_misses_lie_between_one_and_two_sigma():
    label = Action("click", x=0.5, y=0.5)
    reach = [math.hypot(a.x - 0.5, a.y - 0.5) / 0.034 for a in mistakes("near_miss", label)]
    assert 0.95 < min(reach) < 1.1 < 1.9 < max(reach) < 2.05
    passing = sum(r < math.sqrt(2 * math.log(2)) for r in reach) / len(reach)
    assert 0.1 < passing < 0.28  # a kernel score of 0.5 or more


def test_near_misses_grow_with_the_target():
    box = Box(0.2, 0.45, 0.8, 0.55)
    moved = mistakes("near_miss", Action("click", x=0.5, y=0.5), box=box)
    assert max(abs(a.x - 0.5) for a in moved) > 0.4
    assert max(abs(a.y - 0.5) for a in moved) < 0.11


@pytest.mark.parametrize("corner", [0.0, 1.0])
def test_misses_stay_on_the_screen(corner):
    for kind in ("near_miss", "far_miss"):
        moved = mistakes(kind, Action("click", x=corner, y=corner))
        assert not any(a.off_screen for a in moved)


def test_far_misses_are_far_and_outside_the_box():
    box = Box(0.0, 0.4, 1.0, 0.6)
    for action in mistakes("far_miss", Action("click", x=0.5, y=0.5), box=box):
        assert math.hypot(action.x - 0.5, action.y - 0.5) > 0.249
        assert not 0.401 < action.y < 0.599


def test_far_misses_end_even_when_the_box_is_the_whole_screen():
    box = Box(0.0, 0.0, 1.0, 1.0)
    for action in mistakes("far_miss", Action("click", x=0.4, y=0.9), n=5, box=box):
        assert (action.x, action.y) == (1.0, 0.0)


@pytest.mark.parametrize("label", ACTIONS, ids=lambda a: a.action_type)
def test_wrong_types_are_other_types(label):
    found = {a.action_type for a in mistakes("wrong_type", label)}
    assert label.action_type not in found
    assert len(found) >= 5


def test_wrong_directions_are_the_three_others():
    label = Action("scroll", direction="down", x=0.5, y=0.7, x2=0.5, y2=0.3)
    assert {a.direction for a in mistakes("wrong_direction", label)} == {"up", "left", "right"}


def test_wrong_text_drops_words_in_order():
    words = ["buy", "two", "red", "apples"]
    kept = [a.text.split() for a in mistakes("wrong_text", Action("input_text", text=" ".join(words)))]
    assert {len(some) for some in kept} == {1, 2, 3}
    assert all(some == sorted(some, key=words.index) for some in kept)


@pytest.mark.parametrize("word", ["a", "ab", "Clock", "天気"])
def test_wrong_text_of_one_word_differs_and_is_not_empty(word):
    for action in mistakes("wrong_text", Action("open_app", app_name=word), n=50):
        assert action.app_name
        assert action.app_name != word


@pytest.mark.parametrize("name", FORMATS)
def test_unparsable_answers_do_not_parse_in_any_format(name):
    prompt, episode = PromptConfig(format=name), said_by(name)
    drawn = answers(only("unparsable"), prompt, n=64, episode=episode)
    texts = {c.text for row in drawn for c in row}
    assert PROSE in texts
    assert len(texts) > 5
    for text in texts:
        assert parse_completion(name, text, make_requests(episode, prompt)[0].frame)[0] is None


def test_every_kind_is_possible_for_some_action_and_made_by_something():
    assert {kind for action in ACTIONS for kind in possible(action)} == set(KINDS)
    assert set(MOVES) == set(KINDS) - {"unparsable"}


def test_kinds_that_an_action_can_not_make_are_left_out():
    drawn = answers(only("near_miss"))
    by_type = {
        s.action.action_type: len({c.text for c in row}) for s, row in zip(EPISODE.steps, drawn, strict=True)
    }
    assert by_type["wait"] == 1
    assert by_type["click"] > 1


def test_log_probs_are_the_script_s_own_and_sum_to_its_choice():
    config = ScriptedSampler(error_rate=0.4, errors={"wrong_type": 3.0, "unparsable": 1.0})
    for drawn in answers(config, n=32):
        for completion in drawn:
            assert completion.token_ids == tuple(completion.text.encode())
            assert len(completion.logprobs) == len(completion.token_ids)
            chance = math.exp(sum(completion.logprobs))
            assert min(abs(chance - c) for c in (0.6, 0.3, 0.1)) < 1e-12


def test_the_sampler_id_names_format_and_settings():
    one = make_sampler(ScriptedSampler(), PROMPT).sampler_id
    assert one.startswith("scripted/json/")
    assert one != make_sampler(ScriptedSampler(error_rate=0.2), PROMPT).sampler_id
    assert one == make_sampler(ScriptedSampler(batch_size=2), PROMPT).sampler_id


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ScriptedSampler(errors={"near_mis": 1}), "did you mean 'near_miss'"),
        (ScriptedSampler(error_rates={"tap": 0.5}), "'tap' is not known"),
        (ScriptedSampler(errors={"near_miss": -1}), "a weight is 0 or more"),
        (ScriptedSampler(error_rates={"click": 1.5}), r"lies in \[0, 1\]"),
    ],
)
def test_wrong_scripts_are_config_errors(config, message):
    with pytest.raises(ConfigError, match=message):
        make_sampler(config, PROMPT)


def test_a_label_that_the_format_lacks_names_the_step():
    prompt = PromptConfig(format="qwen25vl_mobile_use")
    odd = make_episode((Action("wait"), Action("hover", x=0.5, y=0.5)))
    with pytest.raises(ActionError, match="episode e, step 1"):
        answers(ScriptedSampler(error_rate=0), prompt, episode=odd)
