"""How the lab puts a step to its policies, on every dataset and in closed loop."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from solar_rl.config import DatasetConfig, validate_config
from solar_rl.lab.plan import Plan
from solar_rl.lab.worlds import WORLDS
from solar_rl.shipped import shipped_path

THOUGHT_TOKENS = 16
"""Beside an answer's own, where answers think aloud."""
PIXELS = 28 * 28 * 64
"""Largest area of a screenshot as the tiny Qwen2.5-VL sees it: 64 tokens."""


def prompt_block(plan: Plan) -> dict[str, Any]:
    """Return how steps are put to the policy: the screen as a list or a picture, the last actions, the goal."""
    block: dict[str, Any] = {
        "format": "json",
        "observation": plan.observation,
        "history_steps": plan.history_steps,
        "history_thoughts": plan.thoughts,
    }
    if plan.observation == "image":
        return block | {"max_pixels": PIXELS}
    template = shipped_path("recipes", "lab", "prompt.jinja").read_text(encoding="utf-8")
    return block | {"template": template}


def sampler_block(plan: Plan, policy: Path, n: int) -> dict[str, Any]:
    """Return a sampler of this policy: n answers at temperature 1, or one greedy answer."""
    return {
        "type": "transformers",
        "model": str(policy),
        "n": n,
        "temperature": 1.0 if n > 1 else 0.0,
        "max_new_tokens": WORLDS[plan.world].answer_tokens + THOUGHT_TOKENS * plan.thoughts,
        "max_prompt_tokens": plan.prompt_tokens,
        "batch_size": plan.measure.batch,
    }


def dataset_config(plan: Plan, name: str, options: Mapping[str, Any], **blocks: Any) -> DatasetConfig:
    """Describe a dataset of the lab's world.

    Args:
        plan: The lab run.
        name: Name of the dataset.
        options: Options of the world's builder.
        blocks: More blocks of the config, such as sampler.
    """
    data = {
        "name": name,
        "seed": plan.seed,
        "source": {"builder": plan.world, "options": dict(options), "screen_hash": False},
        "prompt": prompt_block(plan),
        "preview_rows": 0,
        **blocks,
    }
    return validate_config(DatasetConfig, data, where=f"lab: {name}")
