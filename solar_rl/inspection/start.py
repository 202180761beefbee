"""Write a dataset.yaml to start from, fitted to what was met: format, observation, options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from solar_rl.config import DatasetConfig, PromptConfig, validate_config
from solar_rl.errors import ActionError
from solar_rl.formats import FORMATS, get_format
from solar_rl.inspection.contents import Survey
from solar_rl.prompts import frame_of
from solar_rl.schema import Step


def start_yaml(path: Path, builder: str, source: Mapping[str, Any], found: Survey) -> str:
    """Return the text of a dataset.yaml that builds what was inspected.

    Args:
        path: What was inspected; it is written out in full, so that the file works from anywhere.
        builder: The builder's short name or import string.
        source: Other fields of the source block, such as options.
        found: What is in the source.
    """
    observation = _observation(found)
    name, lacking = best_format(found, observation)
    format_note = f"can't write {', '.join(lacking)}: such episodes are rejected" if lacking else ""
    blocks = {
        "name": _name_of(path),
        "version": "1.0.0",
        "source": {"builder": builder, "path": str(path.resolve()), **source},
        "prompt": {"format": name, "level": "high", "observation": observation},
        "sampler": {"type": "scripted", "n": 8},
    }
    validate_config(DatasetConfig, blocks, where="the dataset.yaml to start from")
    notes = {
        "  format": format_note,
        "  level": "low: the step's instruction too" if found.holds["instruction"] else "",
        "  observation": _observation_note(found),
        "  type": "a noisy expert, to try things out; `solar-rl build --fields` lists those that ask a model",
    }
    lines = yaml.safe_dump(blocks, sort_keys=False, allow_unicode=True, width=1000).splitlines()
    return "\n".join([_head(found), *(_noted(line, notes) for line in lines)]) + "\n"


def best_format(found: Survey, observation: str) -> tuple[str, list[str]]:
    """Return the output format that can write most of the actions met, and the types that it can't.

    The default format wins a tie, or plain JSON where the screens are no phone's: other formats tell of a phone.
    """
    default = PromptConfig().format if set(found.platforms) <= {"android"} else "json"
    names = [default, *(name for name in FORMATS if name != default)]
    prompt = PromptConfig(observation=observation)  # type: ignore[arg-type]
    lacking = {name: _unwritable(name, found, prompt) for name in names}
    best = min(names, key=lambda name: sum(found.actions[kind] for kind in lacking[name]))
    return best, lacking[best]


def _unwritable(name: str, found: Survey, prompt: PromptConfig) -> list[str]:
    return sorted(
        {s.action.action_type for s in found.kept_actions.values() if not _can_write(name, s, prompt)}
    )


def _can_write(name: str, step: Step, prompt: PromptConfig) -> bool:
    try:
        get_format(name).render(step.action, frame_of(step, prompt))
    except ActionError:
        return False
    return True


def _observation(found: Survey) -> str:
    return "image" if found.holds["screenshot"] or not found.steps else "text"


def _observation_note(found: Survey) -> str:
    if found.holds["screenshot"]:
        return "" if found.holds["screenshot"] == found.steps else "not every step has a screenshot"
    return "there are no screenshots" + (
        "" if found.holds["screen_text"] else ", and no screens as text either"
    )


def _name_of(path: Path) -> str:
    stem = path.resolve().name.split(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._-") or "my_dataset"


def _head(found: Survey) -> str:
    part = "" if found.whole else "the beginning of "
    text = f"# A start, from {part}the source: {len(found.lengths):,} episodes, {found.steps:,} steps"
    return f"{text}, {sum(found.rejects.values()):,} rejected.\n# solar-rl build THIS_FILE --limit 20 tries it out."


def _noted(line: str, notes: Mapping[str, str]) -> str:
    note = notes.get(line.partition(":")[0], "")
    return f"{line}  # {note}" if note else line
