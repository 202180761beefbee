"""How the lab puts a step to its policies, on every dataset and in closed loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solar_rl.lab.plan import Plan
from solar_rl.shipped import shipped_path

ANSWER_TOKENS = 24
"""Longest answer: the longest of the demonstrations take 17."""


def prompt_block() -> dict[str, Any]:
    """Return how steps are put to the policy: goal, the last three actions, the screen as a list."""
    template = shipped_path("recipes", "lab", "prompt.jinja").read_text(encoding="utf-8")
    return {"format": "json", "observation": "text", "history_steps": 3, "template": template}


def sampler_block(plan: Plan, policy: Path, n: int) -> dict[str, Any]:
    """Return a sampler of this policy: n answers at temperature 1, or one greedy answer."""
    return {
        "type": "transformers",
        "model": str(policy),
        "n": n,
        "temperature": 1.0 if n > 1 else 0.0,
        "max_new_tokens": ANSWER_TOKENS,
        "max_prompt_tokens": plan.prompt_tokens,
        "batch_size": plan.measure.batch,
    }
