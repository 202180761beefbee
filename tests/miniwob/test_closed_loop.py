"""Agents in closed loop: experts reach everything, doing nothing reaches nothing, and the counts are right."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from builders.miniwob import MiniWobEnv, expert_action
from builders.phone import PhoneEnv, PhoneOptions
from builders.phone import expert_action as phone_expert
from solar_rl.actions import Action
from solar_rl.closed_loop import Played, evaluate_suite, run_episode, summarise
from solar_rl.environment import Environment, Observation
from solar_rl.errors import InputError


class Counter(Environment):
    """Wants as many waits as the seed says, then ``finished``; task ``sudden`` ends by itself."""

    tasks = ("said", "sudden")

    def reset(self, task: str, seed: int) -> Observation:
        self.task, self.wanted, self.waits, self.over = task, seed, 0, False
        return self.look()

    def look(self) -> Observation:
        return Observation(f"Wait {self.wanted} times", None, str(self.waits), 10, 10)

    def act(self, action: Action) -> Observation:
        self.waits += action.action_type == "wait"
        self.over = action.action_type == "finished"
        return self.look()

    @property
    def done(self) -> bool:
        return self.over or (self.task == "sudden" and self.waits == self.wanted)

    @property
    def success(self) -> bool:
        return self.done and self.waits == self.wanted


def counts(goal: str, history: Sequence[Action | None], seen: Observation) -> Action | None:
    """An agent that reads the goal, and stammers once in every third answer."""
    if len(history) % 3 == 2:
        return None
    done = int(seen.screen_text) == int(goal.split()[1])
    return Action("finished", status="complete") if done else Action("wait")


def nothing(goal: str, history: Sequence[Action | None], seen: Observation) -> Action | None:
    return Action("wait")


def mute(goal: str, history: Sequence[Action | None], seen: Observation) -> Action | None:
    return None


def test_an_episode_says_how_it_went():
    played = run_episode(Counter(), counts, "said", 3)
    assert played.actions == ("wait", "wait", None, "wait", "finished complete")
    assert (played.success, played.steps, played.invalid, played.ended) == (True, 5, 1, "finished")
    assert played.progress is None and played.goal == "Wait 3 times"


@pytest.mark.parametrize(
    ("agent", "task", "steps", "ended", "success"),
    [
        (nothing, "sudden", 2, "environment", True),
        (nothing, "said", 7, "max_steps", False),
        (mute, "said", 7, "max_steps", False),
    ],
)
def test_an_episode_ends_one_way_or_another(agent, task, steps, ended, success):
    played = run_episode(Counter(), agent, task, 2, max_steps=7)
    assert (played.steps, played.ended, played.success) == (steps, ended, success)
    assert played.invalid == (7 if agent is mute else 0)


def test_a_suite_counts_by_task_with_intervals():
    heard: list[Played] = []
    result = evaluate_suite(Counter(), nothing, seeds=range(1, 5), max_steps=2, progress=heard.append)
    assert [rate.task for rate in (result.overall, *result.tasks)] == ["all", "said", "sudden"]
    assert [rate.success for rate in (result.overall, *result.tasks)] == [0.25, 0.0, 0.5]
    assert (result.tasks[0].low, result.tasks[0].high) == (0.0, 0.0)
    assert 0.0 <= result.tasks[1].low < 0.5 < result.tasks[1].high <= 1.0
    assert len(heard) == 8 and tuple(heard) == result.episodes
    assert json.loads(json.dumps(result.as_dict()))["overall"]["episodes"] == 8
    assert evaluate_suite(Counter(), nothing, seeds=range(1, 5), max_steps=2) == result, "the same each time"


def test_a_task_named_all_is_not_the_total():
    one = Played("all", 0, "", True, 0.5, 2, 1, "finished", ())
    result = summarise([one], resamples=10)
    assert (result.overall, *result.tasks) == (result.overall, result.overall)
    assert (result.overall.progress, result.overall.steps, result.overall.invalid) == (0.5, 2.0, 0.5)


def test_an_empty_suite_and_an_unknown_task_are_refused():
    for asked in ({"tasks": ()}, {"seeds": ()}):
        with pytest.raises(InputError, match="at least one"):
            evaluate_suite(Counter(), nothing, **asked)
    with pytest.raises(InputError, match="max_steps"):
        run_episode(Counter(), nothing, "said", 1, max_steps=0)
    with pytest.raises(InputError, match="no task 'fly'"):
        run_episode(PhoneEnv(), nothing, "fly", 1)


def test_the_phone_s_expert_reaches_everything_and_doing_nothing_nothing():
    env = PhoneEnv(PhoneOptions(popup_rate=0.1))
    assert env.tasks == ("short", "long", "super_long")
    result = evaluate_suite(env, lambda *_: phone_expert(env).action, seeds=range(3), max_steps=90)
    assert result.overall.success == result.overall.progress == 1.0
    lengths = [rate.steps for rate in result.tasks]
    assert lengths == sorted(lengths) and lengths[0] < lengths[2]
    idle = evaluate_suite(env, nothing, tasks=("short",), seeds=range(3), max_steps=3)
    assert idle.overall.success == 0.0 and idle.overall.progress < 1.0


@pytest.mark.browser
def test_miniwob_s_expert_reaches_everything_and_doing_nothing_nothing(env: MiniWobEnv):
    tasks = ("click-button", "enter-text", "phone-book")
    result = evaluate_suite(env, lambda *_: expert_action(env).action, tasks=tasks, seeds=range(2))
    assert result.overall.success == 1.0 and result.overall.progress is None
    assert {played.ended for played in result.episodes} == {"environment"}
    idle = evaluate_suite(env, nothing, tasks=tasks, seeds=[0], max_steps=2)
    assert idle.overall.success == 0.0
