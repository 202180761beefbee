"""Three ways to ask for candidates: all steps at once, a pilot first, step by step with a history of one's own."""

import itertools
import math
from dataclasses import replace

import pytest
from demonstration import make_episode

from solar_rl.actions import Action
from solar_rl.config import DatasetConfig, validate_config
from solar_rl.errors import ConfigError
from solar_rl.sampling import make_sampler
from solar_rl.sampling.base import Completion
from solar_rl.sampling.drive import draw

CLICKS = tuple(Action("click", x=0.1 * k, y=0.5) for k in range(1, 6))


def config(*, n=4, history="expert", adaptive=False, error_rate=0.5, **prompt):
    return DatasetConfig(
        name="drawn",
        source={"builder": "phone"},
        prompt={"format": "json", "history": history, "observation": "text", **prompt},
        sampler={"type": "scripted", "n": n, "adaptive": adaptive, "error_rate": error_rate},
    )


def episodes(count=3):
    base = make_episode(CLICKS, images=False)
    for k in range(count):
        yield type(base)(f"e{k}", "test", "android", "Tap along", base.steps[: 2 + k])


class Watching:
    """A scripted sampler that keeps what it was asked."""

    def __init__(self, settings):
        self._inner = make_sampler(settings.sampler, settings.prompt)
        self.sampler_id, self.asked = self._inner.sampler_id, []

    def sample(self, requests):
        def noted():
            for request in requests:
                self.asked.append(request)
                yield request

        return self._inner.sample(noted())


def drawn(settings):
    sampler = Watching(settings)
    return list(draw(settings, sampler, episodes())), sampler.asked


def right(action, t):
    """Strict validity of a click without a box, worked out by hand: s = 0.5 at a distance of 0.034 * sqrt(2 ln 2)."""
    if action is None or action.action_type != "click":
        return False
    return math.hypot(action.x - CLICKS[t].x, action.y - CLICKS[t].y) <= 0.034 * math.sqrt(2 * math.log(2))


def key(candidate):
    return candidate.step_index, candidate.candidate_index


def test_episodes_come_in_order_with_all_candidates_sorted():
    found, asked = drawn(config())
    assert [episode.episode_id for episode, _ in found] == ["e0", "e1", "e2"]
    for episode, candidates in found:
        assert [key(c) for c in candidates] == list(itertools.product(range(len(episode.steps)), range(4)))
        assert {c.episode_id for c in candidates} == {episode.episode_id}
    assert len(asked) == 2 + 3 + 4


def test_episodes_are_read_only_as_far_as_the_sampler_asks():
    settings, read = config(), []

    def counted():
        for episode in episodes():
            read.append(episode.episode_id)
            yield episode

    results = draw(settings, Watching(settings), counted())
    next(results)
    assert read == ["e0"]


def test_a_sampler_that_reads_ahead_gets_its_answers_to_the_right_steps():
    settings = config(n=1, error_rate=0.0)

    class Greedy:
        sampler_id = "greedy"

        def sample(self, requests):
            for request in list(requests):
                yield [Completion(f"{request.episode.episode_id}/{request.step.step_index}", request.seed)]

    for episode, candidates in draw(settings, Greedy(), episodes()):
        assert [c.completion for c in candidates] == [
            f"{episode.episode_id}/{t}" for t in range(len(episode.steps))
        ]


def test_adaptive_draws_the_rest_only_where_the_pilot_is_wrong_and_the_very_same_candidates():
    everything = {
        (e.episode_id, *key(c)): replace(c, sampler_id="") for e, found in drawn(config())[0] for c in found
    }
    found, asked = drawn(config(adaptive=True))
    sizes = set()
    for episode, candidates in found:
        for t in range(len(episode.steps)):
            group = [c for c in candidates if c.step_index == t]
            pilot_is_right = right(group[0].action, t)
            assert len(group) == (1 if pilot_is_right else 4)
            sizes.add(len(group))
        for c in candidates:
            assert replace(c, sampler_id="") == everything[episode.episode_id, *key(c)]
    assert sizes == {1, 4}
    assert sum(request.n for request in asked) == sum(len(candidates) for _, candidates in found)


@pytest.mark.parametrize("after", ["expert", "own"])
def test_a_candidates_history_is_its_own_and_a_mismatch_is_patched(after):
    settings = config(history="candidate", after_mismatch=after)
    found, asked = drawn(settings)
    candidates = {(c.episode_id, *key(c)): c for _, group in found for c in group}
    later = [request for request in asked if request.step.step_index > 0]
    assert len(later) == (1 + 2 + 3) * 4
    patched = kept = 0
    for request in later:
        for t, past in enumerate(request.past):
            recorded = request.episode.steps[t].action
            own = candidates[request.episode.episode_id, t, request.first].action
            expected = recorded if own is None or (not right(own, t) and after == "expert") else own
            assert past.action == expected
            patched += past.action == recorded != own
            kept += past.action == own != recorded
        assert [request.seed] == [
            candidates[request.episode.episode_id, request.step.step_index, request.first].seed
        ]
    assert patched if after == "expert" else kept


def test_step_by_step_gives_first_steps_that_equal_the_other_ways():
    own, plain = drawn(config(history="candidate"))[0], drawn(config())[0]
    for (_, mine), (_, theirs) in zip(own, plain, strict=True):
        assert [c for c in mine if c.step_index == 0] == [c for c in theirs if c.step_index == 0]
        assert [key(c) for c in mine] == [key(c) for c in theirs]


@pytest.mark.parametrize("history", ["expert", "none"])
def test_pilots_need_a_history_that_all_candidates_share(history):
    """Which candidates of a step are asked hangs on the pilot; an own history needs every one at every step."""
    assert config(adaptive=True, history=history).sampler.adaptive
    described = config(history="candidate").model_dump(mode="json")
    assert validate_config(DatasetConfig, described, where="a.yaml").prompt.history == "candidate"
    described["sampler"]["adaptive"] = True
    with pytest.raises(ConfigError, match=r"sampler.adaptive .* prompt.history candidate") as caught:
        validate_config(DatasetConfig, described, where="a.yaml")
    assert caught.value.exit_code == 2
