"""A policy in closed loop: asked as on recorded steps, counted fairly, and the same whoever plays beside it."""

import pytest

from builders.phone import PhoneEnv, PhoneOptions, expert_action
from builders.phone import build_episode as recorded
from solar_rl.actions import Action
from solar_rl.agents import NOTHING, ExpertAgent, PolicyAgent
from solar_rl.closed_loop import Answer, Job, play, summarise
from solar_rl.config import PromptConfig
from solar_rl.errors import ConfigError, InputError
from solar_rl.formats import FORMATS, get_format
from solar_rl.formats.base import Frame
from solar_rl.prompts import Past, build_request, messages_for
from solar_rl.sampling.base import Completion

OPTIONS = PhoneOptions(popup_rate=0.0, buckets={"short": 1.0})
PROMPT = PromptConfig(format="json", observation="both", screenshots=2)


class Script:
    """A sampler that says what a function of the request says, and keeps every request."""

    sampler_id = "script"

    def __init__(self, say):
        self.say, self.requests, self.calls = say, [], []

    def sample(self, requests):
        requests = list(requests)
        self.calls.append(len(requests))
        for request in requests:
            self.requests.append(request)
            yield [Completion(self.say(request), request.seed)]


class Led(PolicyAgent):
    """A policy that is told, turn by turn, what the expert would do."""

    def __init__(self, prompt, change=lambda turn, action: action):
        self.change, self.told = change, {}
        self.script = Script(self.say)
        super().__init__(prompt, self.script)

    def answer(self, turns):
        for turn in turns:
            action = self.change(turn, expert_action(turn.environment).action)
            self.told[f"{turn.job.task}/{turn.job.seed}"] = action
        return super().answer(turns)

    def say(self, request):
        action = self.told[request.episode.episode_id]
        return action if isinstance(action, str) else get_format("json").render(action, request.frame)


def test_prompts_are_those_of_the_recorded_steps():
    agent = Led(PROMPT)
    [played] = play([PhoneEnv(OPTIONS)], agent, [Job("any", 3)])
    episode = recorded(OPTIONS, 3)
    assert played.success and played.steps == episode.ref_len
    for step, asked in zip(episode.steps, agent.script.requests, strict=True):
        expected = build_request(episode, step, PROMPT, n=1, seed=0)
        assert (asked.messages, asked.images) == (expected.messages, expected.images)
        assert (asked.frame, asked.n) == (expected.frame, 1)


def test_side_by_side_changes_nothing_but_the_number_of_calls():
    jobs = [Job("short", seed) for seed in range(5)]
    alone, together = Led(PROMPT), Led(PROMPT)
    one = list(play([PhoneEnv(OPTIONS)], alone, jobs))
    many = list(play([PhoneEnv(OPTIONS) for _ in range(3)], together, jobs))
    assert sorted(many, key=lambda p: p.seed) == one
    assert max(together.script.calls) == 3 and set(alone.script.calls) == {1}
    assert len(together.script.calls) < len(alone.script.calls)


def test_an_unreadable_answer_costs_a_step_and_is_told_as_a_wait():
    agent = Led(PROMPT, lambda turn, action: "hm" if len(turn.history) == 1 else action)
    [played] = play([PhoneEnv(OPTIONS)], agent, [Job("any", 3)], recovery=True)
    assert (played.invalid, played.success, played.wrong, played.recovered) == (1, True, 1, 1)
    assert played.actions[1] is None and played.answers[1] == "hm" and played.faults[1]
    assert played.steps == played.ref_len + 1
    assert [past.action for past in agent.script.requests[2].past][1] == NOTHING


def test_recovery_is_told_from_the_expert_s_count():
    def astray(turn, action):
        return Action("press", button="home") if len(turn.history) in (1, 2) else action

    [played] = play([PhoneEnv(OPTIONS)], Led(PROMPT, astray), [Job("any", 3)], recovery=True)
    assert played.success and played.wrong >= 2 and played.recovered == played.wrong
    lost = Led(PROMPT, lambda turn, action: Action("finished", status="infeasible"))
    [gone] = play([PhoneEnv(OPTIONS)], lost, [Job("any", 3)], recovery=True)
    assert (gone.success, gone.wrong, gone.recovered, gone.ended) == (False, 1, 0, "finished")
    found = summarise([played, gone], resamples=20, bucket_rule="phone")
    assert found.overall.success_after_wrong == 0.5
    assert found.overall.recovered == pytest.approx(played.recovered / (played.wrong + 1))
    assert [rate.task for rate in found.lengths] == ["short (1-5)"]
    assert found.overall.progress_low <= found.overall.progress <= found.overall.progress_high


def test_the_expert_is_the_ceiling_and_limits_are_by_task():
    env = PhoneEnv(OPTIONS)
    assert all(p.success for p in play([env], ExpertAgent("phone"), [Job("short", k) for k in range(3)]))
    idle = Led(PROMPT, lambda turn, action: Action("wait"))
    [played] = play([env], idle, [Job("short", 0)], max_steps={"short": 4})
    assert (played.steps, played.ended) == (4, "max_steps")
    with pytest.raises(InputError, match="says nothing about task 'short'"):
        list(play([env], idle, [Job("short", 0)], max_steps={"long": 4}))
    with pytest.raises(InputError, match="no expert"):
        ExpertAgent("android_control")


def test_step_instructions_are_refused():
    with pytest.raises(ConfigError, match="no step instructions"):
        PolicyAgent(PromptConfig(level="low"), Script(str))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_can_tell_that_nothing_was_done(name):
    frame = Frame(336, 672)
    told = messages_for("Go", None, [Past(NOTHING)], frame, None, PromptConfig(format=name))
    assert told[-1]["role"] == "user"


def test_goals_of_one_split_alone():
    options = PhoneOptions(only="test", buckets={"short": 1.0})
    env = PhoneEnv(options)
    for seed in range(3):
        env.reset("short", seed)
        assert env.spec.split == "test"


def test_an_answer_says_why_it_is_none():
    assert Answer(None, "x", "why").fault == "why"
