"""Read pyautogui code: parsed, never run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from solar_rl.errors import RecordError

from .._hand import Hand, Point
from ..android_control.screen import number

STATUSES = {"success": "complete", "failure": "infeasible"}
_LONGEST = 20_000
"""Characters of the longest code that is parsed. Source: ours; a recorded step is a few lines."""
_MOST_PRESSES = 1000

Arguments = Mapping[str, Any]


def perform(code: str, hand: Hand, triple_click: str) -> None:
    """Do with a hand what the code says, call by call.

    Args:
        code: Calls of ``pyautogui`` and ``computer`` with literal arguments, one a line; points in 0..1.
        hand: Mouse and keyboard of the step.
        triple_click: ``double_click``: what a triple click is read as. ``reject``: it is an unknown action.

    Raises:
        RecordError: ``bad_code``: it is no Python, or something else than such calls; ``unknown_action``; and
            what ``Hand`` raises.
    """
    for name, arguments, keywords in _calls(code):
        call(name, bound(name, arguments, keywords), hand, triple_click)


def call(name: str, given: Arguments, hand: Hand, triple_click: str) -> None:
    """Do one call by its name, in any spelling: tripleClick is triple_click."""
    known = plain(name)
    if known == "tripleclick" and triple_click == "reject":
        hint = "source.options.triple_click double_click takes it for one"
        raise RecordError("unknown_action", "a triple click is no canonical action", hint=hint)
    act = _ACTS.get(known)
    if act is None:
        raise RecordError("unknown_action", f"unknown action {name!r}, expected one of {', '.join(_ACTS)}")
    act(given, hand)


def plain(name: str) -> str:
    """Return a call's name without case and underscores."""
    return name.replace("_", "").lower()


def _calls(code: str) -> list[tuple[str, list[Any], dict[str, Any]]]:
    if len(code) > _LONGEST:
        raise RecordError("bad_code", f"the code has {len(code):,} characters, expected at most {_LONGEST:,}")
    try:
        body = _parsed(code.strip())
        return [_call(node) for node in body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    except RecordError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RecordError("bad_code", f"{code[:80]!r} is no Python ({error})") from error


def _parsed(code: str) -> list[ast.stmt]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "\d" and 1x warn; the texts are as good as any
        return ast.parse(code).body


def _call(node: ast.stmt) -> tuple[str, list[Any], dict[str, Any]]:
    found = node.value if isinstance(node, ast.Expr) else None
    if isinstance(found, ast.Call) and isinstance(found.func, ast.Attribute):
        module, name = found.func.value, found.func.attr
        plain_names = all(keyword.arg for keyword in found.keywords)
        if isinstance(module, ast.Name) and module.id in _MODULES and plain_names:
            name = "wait" if (module.id, name) == ("time", "sleep") else name
            keywords = {str(keyword.arg): _literal(keyword.value) for keyword in found.keywords}
            return name, [_literal(argument) for argument in found.args], keywords
    raise RecordError("bad_code", f"{ast.unparse(node)[:80]!r} is no call of {', '.join(_MODULES)}")


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError) as error:
        raise RecordError("bad_code", f"{ast.unparse(node)[:80]!r} is no literal") from error


def bound(name: str, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Name a call's positional arguments.

    Raises:
        RecordError: ``bad_code``: more of them than the function has.
    """
    known = plain(name)
    if known == "hotkey":
        return {"keys": list(arguments), **keywords}
    order = _ORDER.get(known, ("x", "y"))
    if len(arguments) > len(order):
        raise RecordError("bad_code", f"{name} has {len(arguments)} arguments, expected at most {len(order)}")
    return {**dict(zip(order, arguments, strict=False)), **keywords}


def _point(given: Arguments) -> Point | None:
    if given.get("x") is None and given.get("y") is None:
        return None
    return number(given.get("x"), "x"), number(given.get("y"), "y")


def _must_point(given: Arguments) -> Point:
    return number(given.get("x"), "x"), number(given.get("y"), "y")


def _count(given: Arguments, name: str) -> int:
    value = given.get(name, 1)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_PRESSES:
        raise RecordError("bad_number", f"{name} is {value!r}, expected a count")
    return value


def _click(given: Arguments, hand: Hand) -> None:
    button, clicks = given.get("button", "left"), _count(given, "clicks")
    kinds = {("left", 1): "click", ("primary", 1): "click", ("left", 2): "double_click"}
    kinds |= {("right", 1): "right_click", ("secondary", 1): "right_click"}
    kind = kinds.get((button, clicks)) if isinstance(button, str) else None
    if kind is None:
        message = f"{clicks} clicks of the {button} button are no canonical action"
        raise RecordError("unknown_action", message)
    hand.click(kind, _point(given))


def _clicks(kind: str) -> Callable[[Arguments, Hand], None]:
    return lambda given, hand: hand.click(kind, _point(given))


def _drag(given: Arguments, hand: Hand) -> None:
    if given.get("button", "left") not in ("left", "primary"):
        raise RecordError(
            "unknown_action", f"a drag with the {given['button']} button is no canonical action"
        )
    hand.drag_to(_must_point(given))


def _scroll(given: Arguments, hand: Hand) -> None:
    _turn(given, hand, "up", "down")


def _hscroll(given: Arguments, hand: Hand) -> None:
    _turn(given, hand, "right", "left")


def _turn(given: Arguments, hand: Hand, positive: str, negative: str) -> None:
    amount = number(given.get("clicks"), "the amount of a scroll")
    if not amount:
        raise RecordError("bad_value", "the scroll is by 0")
    hand.scroll(positive if amount > 0 else negative, _point(given))


def _write(given: Arguments, hand: Hand) -> None:
    text = given.get("message")
    if isinstance(text, list):
        _press({"keys": text}, hand)  # typewrite(["enter"]) presses keys
    else:
        hand.type(_string(text, "the typed text"))


def _press(given: Arguments, hand: Hand) -> None:
    keys = given.get("keys")
    names = [_string(key, "a key") for key in (keys if isinstance(keys, list) else [keys])]
    if not names:
        raise RecordError("missing_field", "no key is pressed")
    times = _count(given, "presses")
    if len(set(names)) == 1:
        hand.press(names * times)
        return
    for name in names * times:
        hand.press([name])


def _hotkey(given: Arguments, hand: Hand) -> None:
    keys = given.get("keys")
    if isinstance(keys, list) and len(keys) == 1 and isinstance(keys[0], list):
        keys = keys[0]
    hand.press([_string(key, "a key") for key in (keys if isinstance(keys, list) else [keys])])


def _left_only(act: Callable[[Hand, Point | None], None]) -> Callable[[Arguments, Hand], None]:
    def perform_it(given: Arguments, hand: Hand) -> None:
        if given.get("button", "left") not in ("left", "primary"):
            message = f"the {given['button']} button held down is no canonical action"
            raise RecordError("unknown_action", message)
        act(hand, _point(given))

    return perform_it


def _finish(given: Arguments, hand: Hand) -> None:
    status = given.get("status")
    if not isinstance(status, str) or status not in STATUSES:
        raise RecordError("bad_value", f"status is {status!r}, expected one of {', '.join(STATUSES)}")
    answer = given.get("answer")
    hand.finish(STATUSES[status], None if answer is None else _string(answer, "the answer"))


def _string(value: Any, what: str) -> str:
    if value is None:
        raise RecordError("missing_field", f"{what} is missing")
    if not isinstance(value, str):
        raise RecordError("bad_text", f"{what} is {value!r}, expected a text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise RecordError("bad_text", f"{what} is no valid Unicode ({error})") from error
    return value


_MODULES = ("pyautogui", "computer", "time")
_ACTS: dict[str, Callable[[Arguments, Hand], None]] = {
    "click": _click,
    "leftclick": _clicks("click"),
    "doubleclick": _clicks("double_click"),
    "tripleclick": _clicks("double_click"),
    "rightclick": _clicks("right_click"),
    "moveto": lambda given, hand: hand.move(_must_point(given)),
    "dragto": _drag,
    "scroll": _scroll,
    "vscroll": _scroll,
    "hscroll": _hscroll,
    "write": _write,
    "typewrite": _write,
    "press": _press,
    "hotkey": _hotkey,
    "keydown": lambda given, hand: hand.key_down(_string(given.get("key"), "a key")),
    "keyup": lambda given, hand: hand.key_up(_string(given.get("key"), "a key")),
    "mousedown": _left_only(Hand.button_down),
    "mouseup": _left_only(Hand.button_up),
    "wait": lambda given, hand: hand.wait(),
    "terminate": _finish,
}
_ORDER = {
    "scroll": ("clicks", "x", "y"),
    "vscroll": ("clicks", "x", "y"),
    "hscroll": ("clicks", "x", "y"),
    "click": ("x", "y", "clicks", "interval", "button"),
    "dragto": ("x", "y", "duration"),
    "moveto": ("x", "y", "duration"),
    "write": ("message", "interval"),
    "typewrite": ("message", "interval"),
    "press": ("keys", "presses", "interval"),
    "keydown": ("key",),
    "keyup": ("key",),
    "wait": ("seconds",),
    "terminate": ("status", "answer"),
}
