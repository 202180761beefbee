"""The request cache asks only for what isn't known, survives kills, and changes no answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from solar_rl.actions import Action
from solar_rl.config import PromptConfig
from solar_rl.prompts import build_request
from solar_rl.sampling.base import Completion, Request, candidate_seed
from solar_rl.sampling.cache import Cached, RequestStore
from solar_rl.schema import Episode, Step


class Costly:
    """Answers with its seeds, looks a few requests ahead as an engine does, and counts."""

    sampler_id = "costly/1"

    def __init__(self, ahead: int = 1) -> None:
        self.asked: list[tuple[int, int]] = []
        self.ahead = ahead

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        waiting: list[Request] = []
        for request in requests:
            waiting.append(request)
            if len(waiting) >= self.ahead:
                yield self._answer(waiting.pop(0))
        while waiting:
            yield self._answer(waiting.pop(0))

    def _answer(self, request: Request) -> list[Completion]:
        self.asked.append((request.seed, request.n))
        return [
            Completion(f"wait {seed}", seed, (seed % 7, 2), (-0.1, float("-inf")), "stop", 1)
            for seed in range(request.seed, request.seed + request.n)
        ]


def requests(count: int, n: int = 4, goal: str = "wait") -> list[Request]:
    made = []
    for number in range(count):
        step = Step(0, Action("wait"), 90, 160)
        episode = Episode(f"e{number}", "toy", "android", goal, (step,))
        seed = candidate_seed(0, episode.episode_id, 0)
        made.append(build_request(episode, step, PromptConfig(format="json"), n=n, seed=seed))
    return made


def cached(folder: Path, inner: Costly, identity: str = "model") -> Cached:
    return Cached(lambda: inner, identity, "settings", folder)


@pytest.mark.parametrize("ahead", [1, 3, 50])
def test_answers_are_those_of_the_sampler_itself_and_are_asked_once(tmp_path: Path, ahead: int) -> None:
    straight = list(Costly().sample(requests(20)))
    first, second = Costly(ahead), Costly(ahead)
    for inner in (first, second):
        sampler = cached(tmp_path, inner)
        assert list(sampler.sample(requests(20))) == straight
        assert sampler.sampler_id == "costly/1"
        sampler.close()
    assert len(first.asked) == 20
    assert second.asked == []
    assert (sampler.asked, sampler.hits) == (80, 80)


@pytest.mark.parametrize("ahead", [1, 4])
def test_known_and_unknown_requests_mix_in_order(tmp_path: Path, ahead: int) -> None:
    some = cached(tmp_path, Costly(ahead))
    known = [r for number, r in enumerate(requests(900)) if number % 3 or 300 < number < 700]
    list(some.sample(known))
    some.close()
    inner = Costly(ahead)
    sampler = cached(tmp_path, inner)
    assert list(sampler.sample(requests(900))) == list(Costly().sample(requests(900)))
    assert len(inner.asked) == 900 - len(known)


def test_more_candidates_draw_only_those_that_are_missing(tmp_path: Path) -> None:
    four, eight = Costly(), Costly()
    first = cached(tmp_path, four)
    list(first.sample(requests(3, n=4)))
    first.close()
    found = list(cached(tmp_path, eight).sample(requests(3, n=8)))
    assert found == list(Costly().sample(requests(3, n=8)))
    assert all(n == 4 for _, n in eight.asked)
    again = Costly()
    assert [len(c) for c in cached(tmp_path, again).sample(requests(3, n=2))] == [2, 2, 2]
    assert again.asked == []


@pytest.mark.parametrize("change", ["identity", "goal"])
def test_another_model_or_prompt_is_another_request(tmp_path: Path, change: str) -> None:
    list(cached(tmp_path, Costly()).sample(requests(2)))
    inner = Costly()
    sampler = cached(tmp_path, inner, "other" if change == "identity" else "model")
    list(sampler.sample(requests(2, goal="wait longer" if change == "goal" else "wait")))
    assert len(inner.asked) == 2


def test_what_was_answered_before_a_kill_is_kept(tmp_path: Path) -> None:
    sampler = cached(tmp_path, Costly())
    answers = sampler.sample(requests(10))
    for _ in range(6):
        next(answers)  # and never closed: as a kill leaves it
    inner = Costly()
    assert list(cached(tmp_path, inner).sample(requests(10))) == list(Costly().sample(requests(10)))
    assert len(inner.asked) == 4


def test_torn_and_damaged_records_are_asked_again(tmp_path: Path) -> None:
    sampler = cached(tmp_path, Costly())
    list(sampler.sample(requests(10)))
    sampler.close()
    (segment,) = tmp_path.glob("*.segment")
    data = segment.read_bytes()
    for cut in range(0, len(data), 17):
        segment.write_bytes(data[:cut])
        assert len(RequestStore(tmp_path)._places) <= 10
    middle = len(data) // 2
    segment.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    inner = Costly()
    assert list(cached(tmp_path, inner).sample(requests(10))) == list(Costly().sample(requests(10)))
    assert 1 <= len(inner.asked) <= 9


def test_ranks_write_files_of_their_own_and_read_all(tmp_path: Path) -> None:
    one, two = cached(tmp_path, Costly()), cached(tmp_path, Costly())
    list(one.sample(requests(10)[:5]))
    list(two.sample(requests(10)[5:]))
    assert len(list(tmp_path.glob("*.segment"))) == 2
    inner = Costly()
    list(cached(tmp_path, inner).sample(requests(10)))
    assert inner.asked == []
