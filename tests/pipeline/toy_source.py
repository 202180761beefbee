"""A builder made for the tests: a few small episodes with screenshots, and every fault on request."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace

from PIL import Image, ImageDraw

from solar_rl.actions import Action, Box
from solar_rl.builder import Builder
from solar_rl.config import Config
from solar_rl.schema import Episode, Reject, Screenshot, Step

LABELS = (
    Action("open_app", app_name="Clock"),
    Action("click", x=0.5, y=0.3),
    Action("scroll", direction="down"),
    Action("input_text", text="buy some milk"),
    Action("press", button="back"),
    Action("finished", status="complete"),
)


class ToyOptions(Config):
    """Options of the toy source."""

    episodes: int = 12
    """How many episodes."""
    fault: str | None = None
    """What is broken."""
    broken: tuple[int, ...] = (3,)
    """Which episodes are broken."""
    screenshots: bool = True
    """Whether there are any."""


def screenshot(shade: int) -> Screenshot:
    """Draw a small screen."""
    image = Image.new("RGB", (90, 160), (240, 240, 240))
    ImageDraw.Draw(image).rectangle((20, 30, 70, 60), fill=(shade % 256, shade * 7 % 256, 120))
    data = io.BytesIO()
    image.save(data, "PNG")
    return Screenshot(data.getvalue(), 90, 160)


class ToyBuilder(Builder):
    """Reads nothing: makes its episodes up, the same ones every time."""

    name = "toy"
    license = "apache-2.0"
    needs_path = False
    Options = ToyOptions

    def shards(self) -> list[str]:
        """Two shards of interleaved episodes, so that the source's order isn't the sorted one."""
        return ["even", "odd"]

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield every second episode."""
        start = 0 if shard == "even" else 1
        for index in range(start, self.options.episodes, 2):
            episode = _episode(index, self.options.screenshots)
            yield _break(episode, self.options.fault) if index in self.options.broken else episode


def _episode(index: int, screenshots: bool) -> Episode:
    length = 2 + index % 5
    actions = [*LABELS[: length - 1], LABELS[-1]]
    steps = tuple(
        Step(
            position,
            action,
            90,
            160,
            instruction=f"step {position}",
            screenshot=screenshot(index // 2 * 8 + position) if screenshots else None,
            target_box=Box(0.2, 0.2, 0.8, 0.4) if action.action_type == "click" else None,
            candidate_boxes=(Box(0.2, 0.2, 0.8, 0.4), Box(0, 0, 1, 1))
            if action.action_type == "click"
            else (),
        )
        for position, action in enumerate(actions)
    )
    split = ("train", "train", "validation", "test")[index % 4]
    return Episode(
        f"e{index:03d}", "toy", "android", f"do thing {index}", steps, split, "Clock", "apache-2.0"
    )


def _break(episode: Episode, fault: str | None) -> Episode:
    first = episode.steps[0]
    broken_steps = {
        "off_screen": replace(first, action=Action("click", x=1.5, y=0.5)),
        "off_screen_inferred": replace(first, action=Action("click", x=1.5, y=0.5), screen_size="inferred"),
        "empty_text": replace(first, action=Action("input_text", text="")),
        "bad_image": replace(first, screenshot=Screenshot(b"\x89PNG\r\n\x1a\nbroken", 90, 160)),
        "wrong_image_size": replace(first, screenshot=replace(screenshot(1), width=91)),
        "bad_number": replace(first, candidate_boxes=(Box(0.1, float("nan"), 0.5, 0.5),)),
        "step_gap": replace(first, step_index=1),
        "screen_size": replace(first, screen_size="guess"),
        "short_box": replace(first, candidate_boxes=((0.1, 0.2, 0.3),)),
    }
    if fault in broken_steps:
        return replace(episode, steps=(broken_steps[fault], *episode.steps[1:]))
    broken = {
        "duplicate_id": replace(episode, episode_id="e000"),
        "no_steps": replace(episode, steps=()),
        "bad_split": replace(episode, split="dev"),
        "empty_goal": replace(episode, goal="  "),
    }
    return broken.get(fault or "", episode)


BUILDER = ToyBuilder
