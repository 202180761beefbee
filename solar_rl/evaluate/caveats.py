"""Say what to know before quoting a figure, where it hangs on the data and not on the protocol alone."""

from __future__ import annotations

import polars as pl

EVERY_BOX = ("uis1_eval", "agentcpm_eval_ac004", "agentcpm_eval_014", "infigui_eval")
"""Protocols under which an answer may lie in any box of the screen, whichever it is (docs/protocols.md)."""
_WHOLE = 0.95
"""Share of the screen from which on a box counts as all of it; ours."""
_OFTEN = 0.05
"""Share of the pointed steps from which on it is told; ours."""


def caveat(protocol: str, rows: pl.DataFrame) -> str | None:
    """Say that a protocol takes most points for right on these screens; None where it doesn't.

    Faithful to the peer's code, a box that covers the whole screen, as the root of a layout does, holds every
    point. The figure then measures little more than the type of the action.

    Args:
        protocol: Name of a protocol.
        rows: The judged steps, with ``action_type`` and ``candidate_boxes``.
    """
    if protocol not in EVERY_BOX:
        return None
    pointed = rows.filter(pl.col("action_type").is_in(["click", "long_press"]))
    box = pl.element()
    area = (box.list.get(2) - box.list.get(0)) * (box.list.get(3) - box.list.get(1))
    covered = pointed.select(pl.col("candidate_boxes").list.eval(area >= _WHOLE).list.any().sum()).item()
    if covered <= _OFTEN * pointed.height:
        return None
    return (
        f"at {covered:,} of {pointed.height:,} steps that point, a box covers the whole screen and {protocol} may take any "
        "point for right: there it measures the type of the action"
    )
