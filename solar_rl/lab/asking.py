"""How the lab puts a step to its policies, on every dataset and in closed loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from solar_rl.shipped import shipped_path

PROMPT_TOKENS = 448
"""Longest prompt: a screen of 256 tokens at most (44 lines, see prompt.jinja), the goal and three actions. Older actions
are left out until it fits."""
ANSWER_TOKENS = 24
"""Longest answer."""


def prompt_block() -> dict[str, Any]:
    """Return how steps are put to the policy: goal, the last three actions, the screen as a list."""
    template = shipped_path("recipes", "lab", "prompt.jinja").read_text(encoding="utf-8")
    return {"format": "json", "observation": "text", "history_steps": 3, "template": template}


def sampler_block(policy: Path, n: int, batch: int) -> dict[str, Any]:
    """Return a sampler of this policy: n answers at temperature 1, or one greedy answer."""
    return {
        "type": "transformers",
        "model": str(policy),
        "n": n,
        "temperature": 1.0 if n > 1 else 0.0,
        "max_new_tokens": ANSWER_TOKENS,
        "max_prompt_tokens": PROMPT_TOKENS,
        "batch_size": batch,
    }
