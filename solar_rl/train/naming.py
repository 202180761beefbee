"""Say what a run is called and where it goes, by the words that its script was started with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from solar_rl.shipped import shipped_path


def recipe_name(words: Sequence[str]) -> str | None:
    """Return the name of a run's recipe: that of a shipped one, or the file's own; None where it has no file.

    >>> recipe_name(["grpo.py", "--config", "/home/me/mine.yaml"])
    'mine.yaml'
    """
    words = list(words)
    if "--config" not in words[:-1]:
        return None
    path, root = Path(words[words.index("--config") + 1]).resolve(), shipped_path("recipes").resolve()
    return str(path.relative_to(root).with_suffix("")) if path.is_relative_to(root) else path.name


def default_output(words: Sequence[str]) -> str:
    """Return where a run goes that names no output_dir: ``runs`` and the recipe's folder and name.

    >>> default_output(["grpo.py", "--config", "recipes/phone_cpu/log_step.yaml"])
    'runs/phone_cpu/log_step'
    """
    words = list(words)
    if "--config" not in words[:-1]:
        return "runs/grpo"
    path = Path(words[words.index("--config") + 1]).absolute()
    return f"runs/{path.parent.name}/{path.stem}"
