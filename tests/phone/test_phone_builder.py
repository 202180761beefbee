"""The phone as a source: what its episodes hold, that they repeat, and what its options refuse."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from PIL import Image

from builders.phone import (
    BUCKETS,
    TEMPLATES,
    EpisodeSpec,
    Goal,
    PhoneBuilder,
    PhoneOptions,
    build_episode,
    draw_episode,
)
from builders.phone.apps import APPS
from builders.phone.draw import rollout
from builders.phone.phone import SYSTEM_VERBS, Phone
from builders.phone.templates import INFEASIBLE
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig, load_dataset_config
from solar_rl.errors import ConfigError
from solar_rl.schema import Episode

ROOT = Path(__file__).parents[2]
OPTIONS = PhoneOptions(seed=5)


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return [build_episode(OPTIONS, index) for index in range(24)]


def test_every_step_is_complete(episodes: list[Episode]) -> None:
    for episode in episodes:
        assert [step.step_index for step in episode.steps] == list(range(episode.ref_len))
        assert 2 <= episode.ref_len <= 40
        for step in episode.steps:
            assert step.instruction and step.screen_text and step.app
            assert (step.screen_width, step.screen_height, step.screen_size) == (360, 720, "stated")
            assert not step.action.off_screen


def test_only_the_last_step_finishes(episodes: list[Episode]) -> None:
    for episode in episodes:
        kinds = [step.action.action_type for step in episode.steps]
        assert kinds.index("finished") == len(kinds) - 1


def test_points_lie_in_the_target_and_in_every_candidate_box(episodes: list[Episode]) -> None:
    points = 0
    for step in (s for e in episodes for s in e.steps if s.action.x is not None):
        assert step.action.x is not None and step.action.y is not None
        points += 1
        assert step.target_box is not None and step.target_box in step.candidate_boxes
        for box in (step.target_box, *step.candidate_boxes):
            assert box.contains(step.action.x, step.action.y)
            assert 0 <= box.x1 < box.x2 <= 1 and 0 <= box.y1 < box.y2 <= 1
    assert points > 80


def test_screenshots_are_small_whole_pngs_of_the_stated_size(episodes: list[Episode]) -> None:
    sizes = []
    for step in (s for e in episodes for s in e.steps):
        assert step.screenshot is not None
        image = Image.open(io.BytesIO(step.screenshot.data))
        image.load()
        assert (image.format, image.size) == ("PNG", (360, 720))
        sizes.append(len(step.screenshot.data))
    assert sum(sizes) / len(sizes) < 12_000


def test_a_screen_changes_when_something_was_done(episodes: list[Episode]) -> None:
    steps = [pair for e in episodes for pair in zip(e.steps, e.steps[1:], strict=False)]
    same = [
        a.instruction for a, b in steps if a.screenshot == b.screenshot and a.action.action_type != "wait"
    ]
    assert not same


def test_every_length_and_many_templates_occur() -> None:
    drawn = [draw_episode(OPTIONS, index) for index in range(150)]
    lengths = Counter(
        bucket for _, shots in drawn for bucket, (lo, hi) in BUCKETS.items() if lo <= len(shots) <= hi
    )
    assert min(lengths[bucket] for bucket in BUCKETS) >= 15
    assert len({name for spec, _ in drawn for name in spec.goal.templates}) > 35
    kinds = {shot.demonstration.action.action_type for _, shots in drawn for shot in shots}
    assert kinds == {
        *("click", "long_press", "scroll", "input_text", "open_app", "press", "wait", "finished"),
    }


def test_a_goal_is_in_one_split_only() -> None:
    splits: dict[str, set[str]] = {}
    for seed in range(3):
        for index in range(60):
            spec, _ = draw_episode(PhoneOptions(seed=seed), index)
            splits.setdefault(spec.goal.text, set()).add(spec.split)
    assert all(len(found) == 1 for found in splits.values())
    assert {split for found in splits.values() for split in found} == {"train", "validation", "test"}


def test_unseen_apps_and_templates_are_in_the_test_split_only() -> None:
    options = PhoneOptions(unseen_apps=("shop",), unseen_templates=("clock.alarm",), test_share=0)
    drawn = [draw_episode(options, index)[0] for index in range(60)]
    for spec in drawn:
        held_out = "shop" in spec.goal.apps or "clock.alarm" in spec.goal.templates
        assert (spec.split == "test") == held_out
    assert any(spec.split == "test" for spec in drawn)


def test_shards_cover_every_episode_once_and_do_not_change_it() -> None:
    builder = load_builder(SourceConfig(builder="phone", options={"episodes": 18, "seed": 5}))
    assert builder.shards() == ["000000-000015", "000016-000017"]
    (first, second) = builder.read(builder.shards()[1])
    assert first == build_episode(OPTIONS, 16) and second == build_episode(OPTIONS, 17)
    assert builder.name == "phone" and not builder.source_files()


def test_moved_widgets_change_the_screens_and_not_the_goal() -> None:
    still, moved = (build_episode(PhoneOptions(seed=1, moved=m), 1) for m in ("never", "always"))
    assert still.goal == moved.goal
    boxes = [[s.target_box for s in e.steps] for e in (still, moved)]
    assert boxes[0] != boxes[1]


def test_scale_changes_the_pixels_and_not_the_labels() -> None:
    small, large = (build_episode(PhoneOptions(scale=scale), 3) for scale in (1.0, 1.5))
    assert [s.action for s in small.steps] == [s.action for s in large.steps]
    assert (large.steps[0].screen_width, large.steps[0].screen_height) == (540, 1080)
    assert "[0,0,540,1080]" in (large.steps[0].screen_text or "")


def test_step_limits_are_kept() -> None:
    options = PhoneOptions(min_steps=7, max_steps=9)
    assert all(7 <= len(draw_episode(options, index)[1]) <= 9 for index in range(12))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"episode": 3}, "did you mean 'episodes'"),
        ({"min_steps": 9, "max_steps": 4}, "min_steps 9 is more than max_steps 4"),
        ({"buckets": {"short": 1}, "min_steps": 8}, "no bucket"),
        ({"unseen_apps": ["shops"]}, "'shops' is none of calendar"),
        ({"validation_share": 0.7, "test_share": 0.7}, "more than 1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        PhoneBuilder(SourceConfig(builder="phone", options=options))


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_goal_of_every_template_is_reached(name: str) -> None:
    parts = 0
    for seed in range(8):
        part = TEMPLATES[name](Phone(f"phone {seed}"), Random(seed), 1 + seed % 4)
        if part is None:
            continue
        parts += 1
        assert part.template == name and part.app == name.partition(".")[0]
        assert part.infeasible == (name in INFEASIBLE)
        assert part.infeasible or part.adds or part.removes or part.answer
        shots = list(rollout(EpisodeSpec("one", f"phone {seed}", Goal((part,)), "train"), 80))
        assert shots[-1].demonstration.action.action_type == "finished", part.text
    assert parts


def test_no_app_uses_a_verb_of_the_system() -> None:
    taken = [(app, verb) for app in APPS.values() for verb in SYSTEM_VERBS if hasattr(app, f"on_{verb}")]
    assert not taken


_HASH = """
import hashlib
from builders.phone import PhoneOptions, build_episode
digest = hashlib.sha256()
for index in range(6):
    digest.update(repr(build_episode(PhoneOptions(seed=2, moved="test"), index)).encode())
print(digest.hexdigest())
"""


def test_the_bytes_do_not_depend_on_the_process() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", _HASH],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "4242")
    }
    digest = hashlib.sha256()
    for index in range(6):
        digest.update(repr(build_episode(PhoneOptions(seed=2, moved="test"), index)).encode())
    assert found == {digest.hexdigest() + "\n"}


def test_the_shipped_dataset_can_be_read() -> None:
    config = load_dataset_config(ROOT / "datasets" / "phone" / "dataset.yaml")
    assert config.sampler.n == 8 and config.prompt.max_pixels == 28 * 28 * 64
    assert isinstance(load_builder(config.source), PhoneBuilder)
