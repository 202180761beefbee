"""Read the result files that peers' own scripts write, as lines of predictions.

``agentcpm``: predict.jsonl and all.jsonl of AgentCPM-GUI's eval/run_predict_*.py (OpenBMB/AgentCPM-GUI, eval/README.md).
Each line is a step of their test set with ``pred``: the answer in AgentCPM-GUI's schema, whatever model gave it, or
the raw text where it had none. ``step_id`` is the index of AndroidControl's step; open_app steps are left out, and
each episode has one step more than AndroidControl, a "finish" (result_action_type 10), which is set aside here.

UI-S1's and GUI-R1's scripts write no file from which single steps could be judged again by key: UI-S1 keeps sums of
episodes alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from solar_rl.parsing import json_object

_FINISH = 10
Lines = Iterable[bytes | str]


def agentcpm_lines(lines: Lines, *, where: str) -> Iterator[str]:
    """Yield a line for each line; an empty one, which readers pass over, for their added last steps.

    Raises:
        InputError: A line is no JSON object.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            yield ""
            continue
        row = json_object(line, where=f"{where}:{number}")
        yield "" if row.get("result_action_type") == _FINISH else json.dumps(_prediction(row))


def _prediction(row: dict[str, Any]) -> dict[str, Any]:
    pred = row.get("pred")
    raw = json.dumps(pred, ensure_ascii=False) if isinstance(pred, dict) else pred
    return {"episode_id": row.get("episode_id"), "step_index": row.get("step_id"), "raw": raw}


PEERS: dict[str, tuple[str, Callable[..., Iterator[str]]]] = {"agentcpm": ("agentcpm_gui", agentcpm_lines)}
"""Name of a peer's layout to the format of its answers, and its reader."""
