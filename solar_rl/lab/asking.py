"""How the lab puts a step to its policies, on every dataset and in closed loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solar_rl.lab.plan import Plan
from solar_rl.shipped import shipped_path

ANSWER_TOKENS = 24
"""Longest answer: the longest of the demonstrations take 17."""
THOUGHT_TOKENS = 16
"""Beside them, where answers think aloud."""


def prompt_block(plan: Plan) -> dict[str, Any]:
    """Return how steps are put to the policy: goal, the last actions, the screen as a list."""
    return {
        "format": "json",
        "observation": "text",
        "history_steps": plan.history_steps,
        "history_thoughts": plan.thoughts,
        "template": shipped_path("recipes", "lab", "prompt.jinja").read_text(encoding="utf-8"),
    }


def sampler_block(plan: Plan, policy: Path, n: int) -> dict[str, Any]:
    """Return a sampler of this policy: n answers at temperature 1, or one greedy answer."""
    return {
        "type": "transformers",
        "model": str(policy),
        "n": n,
        "temperature": 1.0 if n > 1 else 0.0,
        "max_new_tokens": ANSWER_TOKENS + THOUGHT_TOKENS * plan.thoughts,
        "max_prompt_tokens": plan.prompt_tokens,
        "batch_size": plan.measure.batch,
    }


def phone_options(plan: Plan, **more: Any) -> dict[str, Any]:
    """Return the options of the phone builder."""
    return {**plan.phone, "thoughts": plan.thoughts, **more}
