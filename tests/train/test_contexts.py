"""Prompts rebuilt from the tables are the requests that the sampler answered, whatever the history."""

from dataclasses import replace

import polars as pl
import pytest
from small_dataset import LABELS, SCREEN, screen

from solar_rl.columns import candidates_frame, episodes_frame, polars_schema, steps_frame
from solar_rl.config import DatasetConfig
from solar_rl.errors import InputError
from solar_rl.formats import get_format
from solar_rl.prompts import without_oldest
from solar_rl.sampling.base import Completion
from solar_rl.sampling.drive import draw
from solar_rl.sampling.judged import Judged
from solar_rl.schema import Episode, Step
from solar_rl.train.contexts import make_contexts

pytestmark = pytest.mark.train

N = 3
ANSWERS = (
    '{"thought": "Down there.", "action": "scroll", "direction": "down"}',
    '{"action": "wait"}',
    "I can not see it.",
    '{"thought": "Ann at ann@shop.com", "action": "input_text", "text": "ann@shop.com"}',
    '{"action": "click", "x": 250, "y": 500}',
)


def nearly(action, frame) -> str:
    """Write an action that is valid and, where it has a point, not the recorded one."""
    moved = replace(action, x=action.x + 0.01) if action.x is not None else action
    return get_format("json").render(moved, frame)


class Noting:
    """Answers by rote, notes what it was asked, and leaves out the oldest actions of every other request."""

    sampler_id = "noting"

    def __init__(self, drop: bool):
        self.drop, self.asked = drop, {}

    def sample(self, requests):
        for request in requests:
            dropped = min(1, request.shown) if self.drop and request.step.step_index % 2 else 0
            shorter = without_oldest(request, dropped) if dropped else request
            completions = []
            for k in range(request.n):
                index = request.first + k
                key = (request.episode.episode_id, request.step.step_index, index)
                self.asked[key] = (shorter.messages, shorter.images)
                number = int(request.episode.episode_id[1:]) + 2 * request.step.step_index + index
                text = ANSWERS[number % len(ANSWERS)] if index else nearly(request.step.action, request.frame)
                completions.append(Completion(text, seed=request.seed + k, history_dropped=dropped))
            yield completions


def episode(number: int, screenshots: bool = True) -> Episode:
    steps = tuple(
        Step(
            t,
            LABELS[(number + t) % len(LABELS)],
            *SCREEN,
            instruction=f"step {t}",
            screenshot=screen(10 * number + t, SCREEN) if screenshots else None,
            screen_text=f"Mail to bob@shop.com, page {t}",
            thought=f"I must do {t}." if t != 1 else None,
        )
        for t in range(4)
    )
    return Episode(f"e{number}", "small", "android", f"Open page {number}", steps, app="notes")


PROMPTS = {
    "expert": {},
    "low, both, thoughts": {"level": "low", "observation": "both", "history_thoughts": True},
    "text": {"observation": "text"},
    "none": {"history": "none"},
    "candidate": {"history": "candidate"},
    "candidate's own": {"history": "candidate", "after_mismatch": "own", "history_thoughts": True},
    "candidate, two screens": {"history": "candidate", "screenshots": 2, "history_steps": 2},
    "expert, three screens": {"screenshots": 3},
}


@pytest.mark.parametrize("drop", [False, True], ids=["whole", "dropped"])
@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
def test_rebuilt_prompts_are_the_samplers_requests(tmp_path, prompt, drop):
    config = DatasetConfig(
        name="small",
        source={"builder": "phone"},
        sampler={"type": "scripted", "n": N},
        privacy={"mask": True},
        prompt={"format": "json", "max_pixels": 28 * 28 * 32} | prompt,
    )
    sampler, episodes = Noting(drop), [episode(number) for number in range(3)]
    drawn = [candidate for _, found in draw(config, sampler, episodes) for candidate in found]
    assert any("ann@shop.com" not in c.completion and "invalid" in c.completion for c in drawn), "masked"
    contexts = rebuilt(tmp_path, config, episodes, drawn)
    assert len(contexts) == 12 * contexts.stride
    own = config.prompt.history == "candidate"
    assert contexts.stride == (N if own else 1)
    prompts = set()
    for (name, t, k), (messages, images) in sampler.asked.items():
        index = (4 * int(name[1:]) + t) * contexts.stride + (k if own else 0)
        assert contexts.messages(index) == messages
        assert contexts.encoded(index) == images
        prompts.add((name, t, str(messages)))
    assert own == (len(prompts) > 12), "own histories differ, the expert's doesn't"


def rebuilt(tmp_path, config, episodes, drawn, lost=()):
    candidates = candidates_frame(drawn)
    verdicts = Judged(config.validity, episodes).valid(drawn)
    rewards = candidates.select("episode_id", "step_index", "candidate_index")
    rewards = rewards.with_columns(
        pl.Series("valid", verdicts, pl.Boolean)  # drawn is sorted by key, as the table is
    )
    assert {True, False} <= set(verdicts)
    goals = episodes_frame(episodes).select("episode_id", "goal")
    steps = steps_frame(episodes).join(goals, on="episode_id", maintain_order="left")
    kept = candidates.filter(~pl.col("candidate_index").is_in(list(lost)))
    return make_contexts(steps, kept, rewards, Shots(episodes), config)


class Shots:
    """Stands for train/images.Screens."""

    def __init__(self, episodes):
        shots = [step.screenshot for each in episodes for step in each.steps if step.screenshot]
        self.by_hash = {shot.sha256: shot for shot in shots}

    def size(self, sha256):
        return self.by_hash[sha256].width, self.by_hash[sha256].height

    def encoded(self, sha256):
        return self.by_hash[sha256].data


def test_a_screenshot_of_another_size_than_the_screen_gives_the_frame(tmp_path):
    config = DatasetConfig(
        name="small",
        source={"builder": "phone"},
        sampler={"type": "scripted", "n": N},
        prompt={"format": "qwen25vl_mobile_use", "observation": "text"},
    )
    first = episode(0)
    small = replace(first.steps[0], screen_width=56, screen_height=84)
    sampler, episodes = Noting(False), [replace(first, steps=(small, *first.steps[1:]))]
    drawn = [c for _, found in draw(config, sampler, episodes) for c in found]
    contexts = make_contexts(
        steps_frame(episodes).with_columns(goal=pl.lit(first.goal)),
        candidates_frame(drawn),
        pl.DataFrame(schema=polars_schema("rewards")),
        Shots(episodes),
        config,
    )
    assert contexts.messages(0) == sampler.asked["e0", 0, 0][0]


def test_a_history_with_a_missing_answer_is_refused(tmp_path):
    config = DatasetConfig(
        name="small",
        source={"builder": "phone"},
        sampler={"type": "scripted", "n": N},
        prompt={"format": "json", "history": "candidate"},
    )
    episodes = [episode(0)]
    drawn = [c for _, found in draw(config, Noting(False), episodes) for c in found]
    with pytest.raises(InputError, match="step 0, candidate 1: an answer is missing"):
        rebuilt(tmp_path, config, episodes, drawn, lost=(1,))
