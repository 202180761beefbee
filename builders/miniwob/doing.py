"""Do a canonical action on a page; what makes no sense there changes nothing."""

from __future__ import annotations

from typing import Literal

from solar_rl.actions import Action

from .browser import HEIGHT, WIDTH, Browser

ActionSpace = Literal["dom", "pointer"]
SCROLL_SHARE = 0.6
"""How much of what a scroller shows one scroll moves it on."""
_WAYS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
_MODIFIERS = {"ctrl": "C-", "control": "C-", "shift": "S-", "alt": "A-", "meta": "M-", "cmd": "M-"}
_KEYS = {
    **{key: f"<{key.capitalize()}>" for key in ("backspace", "tab", "enter", "escape", "space", "delete")},
    **{key: f"<{key.capitalize()}>" for key in ("home", "end", "insert")},
    **{way: f"<Arrow{way.capitalize()}>" for way in _WAYS},
    **{f"arrow{way}": f"<Arrow{way.capitalize()}>" for way in _WAYS},
    "return": "<Enter>",
    "esc": "<Escape>",
    "del": "<Delete>",
    "pageup": "<PageUp>",
    "pagedown": "<PageDown>",
}
_PRIVATE = range(0xE000, 0xF900)
"""Code points that WebDriver takes for special keys."""


def do(browser: Browser, action: Action, space: ActionSpace) -> None:
    """Do an action.

    Args:
        browser: With the page.
        action: In the unit square of the screen.
        space: dom: a click is a scripted click on the element that lies on top at the point. pointer: the
            mouse is pressed there.
    """
    kind = action.action_type
    if kind == "input_text":
        if action.x is not None:
            _click(browser, action, space)
        browser.type("".join(c for c in action.text or "" if ord(c) <= 0xFFFF and ord(c) not in _PRIVATE))
    elif kind == "press":
        key = spelt(action)
        if key is not None:
            browser.press(key)
    elif kind == "scroll":
        across, down = _WAYS[action.direction or "down"]
        x, y = _place(action.x, action.y)
        browser.scroll(x, y, SCROLL_SHARE * across, SCROLL_SHARE * down)
    elif kind == "click":
        _click(browser, action, space)
    elif kind == "double_click":
        browser.click(*_place(action.x, action.y), times=2)
    elif kind == "hover":
        browser.move(*_place(action.x, action.y))
    elif kind == "drag":
        browser.drag(*_place(action.x, action.y), *_place(action.x2, action.y2))


def _click(browser: Browser, action: Action, space: ActionSpace) -> None:
    click = browser.click_element if space == "dom" else browser.click
    click(*_place(action.x, action.y))


def _place(x: float | None, y: float | None) -> tuple[float, float]:
    """Return a point in the page's pixels, the middle where none is given."""
    within = (min(max(share, 0.0), 1.0) for share in (0.5 if x is None else x, 0.5 if y is None else y))
    across, down = within
    return min(across * WIDTH, WIDTH - 1), min(down * HEIGHT, HEIGHT - 1)


def spelt(action: Action) -> str | None:
    """Return a press in ``miniwob``'s spelling; None for a key that a page doesn't have.

    >>> spelt(Action("press", keys=("ctrl", "a"))), spelt(Action("press", button="enter"))
    ('C-a', '<Enter>')
    """
    if action.button is not None:
        return "<Enter>" if action.button == "enter" else None
    *before, last = [key if len(key) == 1 else key.lower() for key in action.keys or ()]
    key = last if len(last) == 1 else _KEYS.get(last)
    if key is None or any(name not in _MODIFIERS for name in before):
        return None
    return "".join(_MODIFIERS[name] for name in before) + key
