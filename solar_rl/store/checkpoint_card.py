"""Say what made a checkpoint: dataset version, recipe, code and figures, as the model card of its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RECORD = "training.json"
"""What a training run leaves beside the weights."""


def prompt_of(model: str) -> dict[str, Any] | None:
    """Return the prompt block that a checkpoint was trained with; None where its folder doesn't say.

    Args:
        model: Folder of a checkpoint, or anything else that names a model.
    """
    path = Path(model) / RECORD
    if not path.is_file():
        return None
    prompt = json.loads(path.read_text(encoding="utf-8")).get("prompt")
    return prompt if isinstance(prompt, dict) else None
