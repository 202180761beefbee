"""Rebuild the prompts that candidates were sampled from, out of the tables of a dataset.

A prompt is a *context*, known by a number. Where the history is the expert's, the candidates of a step share
one; where it is the candidate's own, each has its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from solar_rl.actions import ACTION_FIELDS
from solar_rl.columns import action_of
from solar_rl.config import DatasetConfig, PromptConfig
from solar_rl.errors import InputError
from solar_rl.formats.base import Frame
from solar_rl.prompts import Past, frame_for, messages_for, shown_steps
from solar_rl.sampling.drive import remembered
from solar_rl.schema import Candidate, Step
from solar_rl.train.images import Screens

GROUP = ["episode_id", "step_index"]
MEMBER = [*GROUP, "candidate_index"]
_PROMPTED = (
    *GROUP,
    "goal",
    "instruction",
    "image_sha256",
    "screen_width",
    "screen_height",
    "screen_text",
    "thought",
)


@dataclass(frozen=True)
class Answers:
    """What candidates did at each step, from which their own histories are told.

    Args:
        rows: Rows of table ``candidates`` with ``valid`` of table ``rewards``, sorted by key, exactly
            ``size`` a step.
        size: N.
        config: The dataset's config.
    """

    rows: pl.DataFrame
    size: int
    config: DatasetConfig

    def past(self, steps: list[dict[str, Any]], first: int, candidate: int) -> list[Past]:
        """Return the own history of a candidate over consecutive steps.

        Args:
            steps: Rows of table ``steps``, from an episode's beginning on.
            first: Number of the first of them in the table.
            candidate: The candidate's index.
        """
        at = [(first + t) * self.size + candidate for t in range(len(steps))]
        answers = self.rows[at].to_dicts()
        return [self._told(step, answer) for step, answer in zip(steps, answers, strict=True)]

    def _told(self, row: dict[str, Any], answer: dict[str, Any]) -> Past:
        label = action_of(row)
        assert label is not None, "a recorded step has an action"
        step = Step(
            row["step_index"], label, row["screen_width"], row["screen_height"], thought=row["thought"]
        )
        candidate = Candidate(
            **{name: answer[name] for name in (*MEMBER, "completion")},
            sampler_id="",
            seed=0,
            action=action_of(answer, "pred_"),
        )
        return remembered(self.config, step, candidate, answer["valid"])


class Contexts:
    """Prompts and screenshots, each rebuilt as it was put to the sampler.

    Args:
        steps: Rows of table ``steps`` with the episode's ``goal``, sorted by key, whole episodes.
        screens: Where screenshots are read from.
        prompt: The dataset's prompt block.
        answers: What candidates did, where the history is their own.
        dropped: How many of the oldest actions each context left out to fit the policy, by context.
    """

    def __init__(
        self,
        steps: pl.DataFrame,
        screens: Screens,
        prompt: PromptConfig,
        *,
        answers: Answers | None = None,
        dropped: list[int] | None = None,
    ) -> None:
        self.prompt, self._screens, self._answers = prompt, screens, answers
        self._rows = steps.select(*_PROMPTED, *ACTION_FIELDS).to_dicts()
        self._dropped = dropped

    def __len__(self) -> int:
        return len(self._rows) * self.stride

    @property
    def stride(self) -> int:
        """Return how many contexts a step has: 1, or N where each candidate has a history of its own."""
        return self._answers.size if self._answers else 1

    def step(self, index: int) -> dict[str, Any]:
        """Return the row of table ``steps`` that a context belongs to, with the goal."""
        return self._rows[index // self.stride]

    def frame(self, index: int) -> Frame:
        """Return the size of the screen as the policy sees it: what its coordinates are divided by."""
        row = self.step(index)
        sha = row["image_sha256"]
        width, height = self._screens.size(sha) if sha else (row["screen_width"], row["screen_height"])
        return frame_for(width, height, self.prompt, image=bool(self._shown(index)))

    def messages(self, index: int) -> list[dict[str, Any]]:
        """Return the chat messages of a context, images left as placeholders."""
        row, past = self.step(index), self._past(index)
        return messages_for(
            row["goal"],
            row["instruction"],
            past,
            self.frame(index),
            row["screen_text"],
            self._shortened(index, len(past)),
            screens=len(self._shown(index)),
        )

    def encoded(self, index: int) -> tuple[bytes, ...]:
        """Return the encoded screenshots of a context, in the order of the messages' image parts."""
        return tuple(self._screens.encoded(sha) for sha in self._shown(index))

    def inputs(self, index: int) -> dict[str, Any]:
        """Return what TRL reads from a row: ``prompt`` and, for a policy that sees, ``images``."""
        images = [self._screens.decoded(sha) for sha in self._shown(index)]
        return {"prompt": self.messages(index), **({"images": images} if images else {})}

    def turn(self) -> None:
        """Begin a new batch: screenshots that only earlier ones needed may go."""
        self._screens.turn()

    def _past(self, index: int) -> list[Past]:
        number, candidate = divmod(index, self.stride)
        first = number - self._rows[number]["step_index"]
        if self._answers is None:
            return self._recorded[first:number]
        return self._answers.past(self._rows[first:number], first, candidate)

    @cached_property
    def _recorded(self) -> list[Past]:
        actions = ((action_of(row), row) for row in self._rows)
        told = [Past(action, row["thought"]) for action, row in actions if action is not None]
        assert len(told) == len(self._rows), "a recorded step has an action"
        return told

    def _shortened(self, index: int, past: int) -> PromptConfig:
        """Return the prompt block that shows so many actions as the sampler could fit."""
        dropped = self._dropped[index] if self._dropped else 0
        if not dropped:
            return self.prompt
        kept = shown_steps(past, self.prompt) - dropped
        return self.prompt.model_copy(update={"history_steps": kept} if kept else {"history": "none"})

    def _shown(self, index: int) -> tuple[str, ...]:
        number = index // self.stride
        row = self._rows[number]
        if row["image_sha256"] is None or self.prompt.observation == "text":
            return ()
        first = number - min(row["step_index"], self.prompt.screenshots - 1)
        around = (each["image_sha256"] for each in self._rows[first : number + 1])
        return tuple(sha for sha in around if sha is not None)


def make_contexts(
    steps: pl.DataFrame,
    candidates: pl.DataFrame,
    rewards: pl.DataFrame,
    screens: Screens,
    config: DatasetConfig,
) -> Contexts:
    """Rebuild every context of a split.

    Args:
        steps: Rows of table ``steps`` with the episode's ``goal``, sorted by key.
        candidates: Rows of table ``candidates``.
        rewards: Rows of table ``rewards``.
        screens: Where screenshots are read from.
        config: The dataset's config.

    Raises:
        InputError: A candidate's own history can't be told, because one of its answers isn't there.
    """
    own = config.prompt.history == "candidate"
    answers = _answers(steps, candidates, rewards, config) if own else None
    cut = candidates.filter(pl.col("history_dropped") > 0)
    if cut.is_empty():
        return Contexts(steps, screens, config.prompt, answers=answers)
    if answers is not None:
        dropped = answers.rows["history_dropped"]
    else:
        most = cut.group_by(GROUP).agg(pl.col("history_dropped").max())
        dropped = steps.select(GROUP).join(most, on=GROUP, how="left", maintain_order="left")[
            "history_dropped"
        ]
    return Contexts(steps, screens, config.prompt, answers=answers, dropped=dropped.fill_null(0).to_list())


def _answers(
    steps: pl.DataFrame, candidates: pl.DataFrame, rewards: pl.DataFrame, config: DatasetConfig
) -> Answers:
    size = config.sampler.n
    told = candidates.select(
        *MEMBER, "completion", *(f"pred_{name}" for name in ACTION_FIELDS), "history_dropped"
    )
    rows = (
        steps.select(GROUP)
        .join(
            pl.DataFrame({"candidate_index": range(size)}, schema={"candidate_index": pl.Int32}),
            how="cross",
            maintain_order="left_right",
        )
        .join(told, on=MEMBER, how="left", maintain_order="left")
        .join(rewards.select(*MEMBER, "valid"), on=MEMBER, how="left", maintain_order="left")
    )
    absent = rows.filter(pl.col("completion").is_null())
    if absent.height:
        episode, step, candidate = absent.row(0)[:3]
        raise InputError(
            "an answer is missing, so the candidate's own history can't be told",
            where=f"episode {episode}, step {step}, candidate {candidate}",
            hint="build the dataset again",
        )
    return Answers(rows, size, config)
