"""Agents for closed loop: a policy, asked as its sampler asks it on recorded steps, and an environment's expert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from solar_rl.actions import Action
from solar_rl.closed_loop import Answer, Turn
from solar_rl.config import PromptConfig
from solar_rl.errors import ConfigError, InputError
from solar_rl.formats import get_format, parse_completion
from solar_rl.prompts import Past, Request, build_request
from solar_rl.sampling.base import Sampler, candidate_seed
from solar_rl.schema import Episode, Step
from solar_rl.shipped import shipped_module

NOTHING = Action("wait")
"""What the history tells of an answer that couldn't be read: a step passed, and nothing was done."""


@dataclass
class _Life:
    """What an agent has seen and done since its episode began."""

    steps: list[Step] = field(default_factory=list)
    past: list[Past] = field(default_factory=list)


class PolicyAgent:
    """A policy as an agent. Prompts are those of ``prompts.build_request``, with its own history.

    Args:
        prompt: How a step is put; ``history: none`` shows no history, everything else the agent's own.
        sampler: Who answers; greedy where its temperature is 0.
        seed: What candidates' seeds come from, beside the episode and the step.

    Raises:
        ConfigError: The prompt wants step instructions, which no environment gives.
    """

    def __init__(self, prompt: PromptConfig, sampler: Sampler, seed: int = 0) -> None:
        if prompt.level == "low":
            raise ConfigError(
                "an environment gives no step instructions",
                where="prompt.level",
                hint="level high gives the goal alone",
            )
        self._prompt, self._sampler, self._seed = prompt, sampler, seed
        self._format = get_format(prompt.format)
        self._lives: dict[int, _Life] = {}

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Answer all turns in one go: the sampler has them side by side."""
        requests = [self._request(turn) for turn in turns]
        drawn = self._sampler.sample(requests)
        return [
            self._read(turn, request, completions[0].text)
            for turn, request, completions in zip(turns, requests, drawn, strict=True)
        ]

    def _request(self, turn: Turn) -> Request:
        if not turn.history:
            self._lives[turn.slot] = _Life()
        life, seen = self._lives[turn.slot], turn.seen
        step = Step(
            len(life.steps),
            NOTHING,  # what will be done is not known yet, and no prompt shows it
            seen.width,
            seen.height,
            screenshot=seen.screenshot,
            screen_text=seen.screen_text,
        )
        life.steps.append(step)
        name = f"{turn.job.task}/{turn.job.seed}"
        episode = Episode(name, "environment", "android", turn.goal, tuple(life.steps))
        seed = candidate_seed(self._seed, name, step.step_index)
        return build_request(episode, step, self._prompt, n=1, seed=seed, past=life.past)

    def _read(self, turn: Turn, request: Request, text: str) -> Answer:
        action, fault = parse_completion(self._prompt.format, text, request.frame)
        thought = None if action is None else self._format.aside(text, action).thought
        self._lives[turn.slot].past.append(Past(action or NOTHING, thought))
        return Answer(action, text, fault)


class ExpertAgent:
    """An environment's own expert: the ceiling of a suite.

    Args:
        environment: Name of a shipped environment with a function ``expert_action``, such as phone.

    Raises:
        InputError: It has none.
    """

    def __init__(self, environment: str) -> None:
        module = shipped_module("builders", environment)
        if not hasattr(module, "expert_action"):
            raise InputError(f"environment '{environment}' has no expert")
        self._expert = module.expert_action

    def answer(self, turns: Sequence[Turn]) -> list[Answer]:
        """Ask the expert in each environment."""
        return [Answer(self._expert(turn.environment).action) for turn in turns]
