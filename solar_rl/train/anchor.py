"""Write the recorded action as the answer that the policy should have given: the expert anchor.

The trainer adds lambda times its mean negative log-prob to the loss, an SFT term in the same forward pass.
Source: method.md, sections 4b and 5; leaving out steps whose thought isn't known: ours.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from solar_rl.columns import action_of
from solar_rl.errors import ActionError, ParseError
from solar_rl.formats import get_format, parse_completion
from solar_rl.formats.base import Frame
from solar_rl.train.contexts import Contexts

Thoughts = Literal["auto", "recorded", "none"]
"""Whether an anchor thinks aloud: as the sampled answers do, always with the recorded thought, or never."""
WRITTEN, NO_THOUGHT, UNSPEAKABLE = "written", "no recorded thought", "not in the format"
_LOOKED_AT = 256
"""Sampled answers that are read to see whether the policy thinks aloud."""


@dataclass(frozen=True)
class Anchor:
    """How the expert anchor enters the loss.

    Args:
        weight: Lambda, above 0.
        encode: Gives the token ids of a whole answer, its end included.
    """

    weight: float
    encode: Callable[[str], Sequence[int]]


def anchor_texts(
    contexts: Contexts, completions: pl.Series, thoughts: Thoughts = "auto"
) -> tuple[list[str | None], dict[str, int]]:
    """Write the recorded action of every step in the dataset's format.

    Args:
        contexts: The steps.
        completions: Sampled answers that parsed, by which ``auto`` tells whether the policy thinks aloud.
        thoughts: Whether anchors think aloud.

    Returns:
        A text a step, None where there can be no anchor; and how many steps have one, or none for which
        reason.
    """
    form = contexts.prompt.format
    looked_at = completions.gather_every(max(1, len(completions) // _LOOKED_AT))
    aloud = thoughts == "recorded" or (thoughts == "auto" and thinks_aloud(form, looked_at))
    steps = range(0, len(contexts), contexts.stride)
    anchors = [_anchor(contexts, index, aloud=aloud) for index in steps]
    return [text for text, _ in anchors], dict(Counter(reason for _, reason in anchors))


def thinks_aloud(format_name: str, completions: Iterable[str]) -> bool:
    """Tell whether more than half of some answers hold a thought beside the action.

    >>> thinks_aloud("json", ['{"thought": "It loads.", "action": "wait"}'])
    True
    """
    written, frame = get_format(format_name), Frame(100_000, 100_000)  # thoughts don't depend on the screen
    found = []
    for text in completions:
        action, _ = parse_completion(format_name, text, frame)
        if action is not None:
            found.append(written.aside(text, action).thought is not None)
    return sum(found) > len(found) / 2


def with_thought(format_name: str, thought: str, answer: str) -> str:
    r"""Put a thought before an answer, where the family's models put it.

    >>> with_thought("ui_tars", "It loads.", "Action: wait()")
    'Thought: It loads.\nAction: wait()'
    """
    if format_name in ("json", "agentcpm_gui"):
        compact = (",", ":") if format_name == "agentcpm_gui" else None
        return json.dumps({"thought": thought, **json.loads(answer)}, ensure_ascii=False, separators=compact)
    if format_name.startswith("ui_tars"):
        return f"Thought: {thought}\n{answer}"
    if format_name == "os_atlas":
        return f"thoughts:\n{thought}\n{answer}"
    return f"<think>\n{thought}\n</think>\n{answer}"


def _anchor(contexts: Contexts, index: int, *, aloud: bool) -> tuple[str | None, str]:
    row, form = contexts.step(index), contexts.prompt.format
    action, frame = action_of(row), contexts.frame(index)
    assert action is not None, "a recorded step has an action"
    try:
        answer = get_format(form).render(action, frame)
    except ActionError:
        return None, UNSPEAKABLE
    if not aloud:
        return answer, WRITTEN
    thought = (row["thought"] or "").strip()
    if not thought:
        return None, NO_THOUGHT
    answer = with_thought(form, thought, answer)
    return (answer, WRITTEN) if _says(form, answer, frame, thought) else (None, UNSPEAKABLE)


def _says(form: str, answer: str, frame: Frame, thought: str) -> bool:
    """Tell whether an answer reads back as an action with this thought: it may hold the format's own marks."""
    try:
        action = get_format(form).parse(answer, frame)
    except ParseError:
        return False
    return get_format(form).aside(answer, action).thought == thought
