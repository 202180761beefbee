"""Android in the Wild's action numbers, which AITZ and CAGUI write as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from solar_rl.actions import Action
from solar_rl.errors import RecordError

from .._touch import Point, dual_point, point_action

Points = Callable[[], tuple[Point, Point]]
"""Reads where the finger went down and came up; only asked for by the actions that have such points."""

_BUTTONS = {5: "back", 6: "home", 7: "enter"}
_STATUSES = {10: "complete", 11: "infeasible"}
LONG_PRESS, NO_ACTION, TYPE, DUAL_POINT = 0, 1, 3, 4
"""0 and 1 are CAGUI's; Android in the Wild reserves both."""
_NUMBERS = (TYPE, DUAL_POINT, *_BUTTONS, *_STATUSES)


def coded_action(code: Any, text: Callable[[], str], points: Points, *, cagui: bool = False) -> Action:
    """Make an action from its number.

    Args:
        code: The number.
        text: Reads what is typed.
        points: Reads touch and lift, in the unit square.
        cagui: Whether the two numbers that CAGUI added mean something.

    Raises:
        RecordError: ``unknown_action``, or what the readers raise.

    Source: google-research/android_in_the_wild (action_type.py); OpenBMB/AgentCPM-GUI for CAGUI's two.
    """
    known = (LONG_PRESS, NO_ACTION, *_NUMBERS) if cagui else _NUMBERS
    if isinstance(code, bool) or not isinstance(code, int) or code not in known:
        names = ", ".join(map(str, known))
        raise RecordError("unknown_action", f"unknown action type {code!r}, expected one of {names}")
    if code == TYPE:
        return Action("input_text", text=text())
    if code == DUAL_POINT:
        return dual_point(*points())
    if code == LONG_PRESS:
        return point_action("long_press", points()[0])
    if code == NO_ACTION:
        return Action("wait")
    if code in _BUTTONS:
        return Action("press", button=_BUTTONS[code])
    return Action("finished", status=_STATUSES[code])
