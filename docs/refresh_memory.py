"""Write the tables of docs/memory.md anew: run it after a change of a recipe or of the arithmetic."""

from __future__ import annotations

import re
from pathlib import Path

from solar_rl.train.keys import read_settings
from solar_rl.train.launch import find_recipe
from solar_rl.train.memory import GB, PAPER_CONTEXT, SHARINGS, memory, read_job, smallest_card
from solar_rl.train.shapes import first_model, read_shape

PAGE = Path(__file__).parent / "memory.md"
STAGE1 = "qwen2_5_vl_7b/stage1_atomic"
SMALL_ROWS = "--per_device_train_batch_size 1 --gradient_accumulation_steps 128 --steps_per_generation 32"
TABLES = (  # recipe, overrides, GPUs, tokens: each table of the page in its order
    ((STAGE1, "", 32, PAPER_CONTEXT),),
    ((STAGE1, "--gradient_accumulation_steps 32", 8, PAPER_CONTEXT),),
    ((STAGE1, SMALL_ROWS, 8, PAPER_CONTEXT),),
    ((f"{STAGE1}_lora_80gb", "", 1, PAPER_CONTEXT), (f"{STAGE1}_lora_24gb", "", 1, 2136)),
)
_HEAD = re.compile(r"(\| sharing \|.*\n\|(?:---\|)+\n)((?:\|.*\n)*)")


def table(recipe: str, words: str, gpus: int, context: int) -> list[str]:
    """Return the rows of one plan in Markdown."""
    settings = read_settings(find_recipe(recipe), words.split())
    shape = read_shape(first_model(settings), settings)
    job = read_job(settings, shape, context)
    return [
        _row(sharing, memory(shape, job, sharing, gpus), gpus)
        for sharing in SHARINGS[: gpus if gpus == 1 else None]
    ]


def _row(sharing: str, parts: dict[str, float], gpus: int) -> str:
    total = sum(parts.values())
    figures = " | ".join(f"{value / GB:.1f}" for value in (*parts.values(), total))
    return f"| {sharing if gpus > 1 else 'one GPU'} | {figures} | {smallest_card(total) or 'none'} |"


def refreshed(text: str) -> str:
    """Return the page with its tables made anew."""
    made = iter(["\n".join(row for plan in plans for row in table(*plan)) + "\n" for plans in TABLES])
    return _HEAD.sub(lambda found: found[1] + next(made), text)


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
