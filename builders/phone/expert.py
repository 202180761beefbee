"""The expert: from the state of the phone to the next action, with what was meant and where.

It plans from any state, so it also shows the way back after somebody's mistakes.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from solar_rl.actions import Action, Box

from .apps import App, Intent
from .goals import Look, Task, shows
from .listing import listed_point
from .phone import Phone
from .widgets import HEIGHT, WIDTH, Rect, Seen, boxes_at, find, hit, visible

_ENOUGH = 0.6
"""A widget is touched only when at least this share of its height can be seen."""


class Demonstration(NamedTuple):
    """One action of the expert with its low-level instruction and what it was aimed at."""

    action: Action
    instruction: str
    target_box: Box | None = None
    candidate_boxes: tuple[Box, ...] = ()


def demonstrate(phone: Phone, task: Task, *, by_name: bool = False, listed: bool = False) -> Demonstration:
    """Return what the expert does now.

    Args:
        phone: The phone in any state.
        task: The goal on it.
        by_name: Whether apps are opened by name rather than by their icon.
        listed: Whether it touches exactly what the list of the screen names (``listing``), and scrolls without a path.
    """
    shown = _demonstrate(phone, task, by_name)
    return _as_listed(phone, shown) if listed else shown


def _demonstrate(phone: Phone, task: Task, by_name: bool) -> Demonstration:
    if phone.loading:
        return Demonstration(Action("wait"), "Wait for the page to load")
    if phone.popup is not None:
        return _touch(phone, Intent("tap", "popup:dismiss", f"Dismiss the pop-up with {phone.popup.dismiss}"))
    need = _next(phone, task)
    if need is None:
        return _finish(task)
    app, look = need
    if phone.front is not app:
        return _open(phone, app, by_name)
    intent = app.look(look.route) if look else app.guide(task.want[app.name])
    if intent is None:
        assert look is not None, "guide always has an intent"
        return _scroll_to(phone, look.key, "you see it")
    return _perform(phone, intent)


def _as_listed(phone: Phone, shown: Demonstration) -> Demonstration:
    action = shown.action
    if action.action_type == "scroll":
        return shown._replace(action=Action("scroll", direction=action.direction))
    if action.x is None or action.y is None:
        return shown
    tree = phone.screen.tree
    seen = hit(tree, action.x * WIDTH, action.y * HEIGHT)
    point = listed_point(tree, seen) if seen is not None else None
    return (
        shown if point is None else shown._replace(action=Action(action.action_type, x=point[0], y=point[1]))
    )


def _next(phone: Phone, task: Task) -> tuple[App, Look | None] | None:
    """Return the app that is needed next, and what to look at there; None when all is done."""
    facts = phone.facts()
    for part in task.goal.parts:
        for look in part.looks:
            if look not in task.seen and not shows(phone, look):
                return phone.apps[look.app], look
        if facts[part.app] != frozenset(task.want[part.app]):
            return phone.apps[part.app], None
    spoilt = (name for name in phone.apps if facts[name] != frozenset(task.want[name]))
    name = next(spoilt, None)
    return None if name is None else (phone.apps[name], None)


def _finish(task: Task) -> Demonstration:
    goal = task.goal
    said = {"complete": "The task is done", "infeasible": "The task can't be done on this phone"}[goal.status]
    if goal.answer is not None:
        said = f"Answer: {goal.answer}"
    return Demonstration(Action("finished", status=goal.status, text=goal.answer), said)


def _open(phone: Phone, app: App, by_name: bool) -> Demonstration:
    if by_name:
        return Demonstration(Action("open_app", app_name=app.title), f"Open the {app.title} app")
    launcher = phone.launcher
    if phone.front is not launcher or launcher.route != ("home",):
        return Demonstration(Action("press", button="home"), "Go to the home screen")
    way = launcher.holds(app.name)
    if way:
        return _swipe(phone, way, f"Swipe to the page of icons with {app.title}")
    return _touch(phone, Intent("tap", f"launch:{app.name}", f"Open the {app.title} app"))


def _perform(phone: Phone, intent: Intent) -> Demonstration:
    if intent.kind in ("back", "enter"):
        return Demonstration(Action("press", button=intent.kind), intent.say)
    if intent.kind == "type":
        return _type(phone, intent)
    seen = find(phone.screen.tree, intent.key)
    if seen is None or not _enough(phone, seen):
        if intent.key not in phone.screen.places:  # it doesn't scroll: a menu lies over it
            return Demonstration(Action("press", button="back"), "Close what is in the way")
        return _scroll_to(phone, intent.key, f"you can {intent.say[0].lower()}{intent.say[1:]}")
    return _touch(phone, intent)


def _type(phone: Phone, intent: Intent) -> Demonstration:
    field = next((s for s in visible(phone.screen.tree) if s.widget.focused), None)
    box = field.box.unit() if field else None
    return Demonstration(Action("input_text", text=intent.text), intent.say, box)


def _enough(phone: Phone, seen: Seen) -> bool:
    shown = seen.box.height >= _ENOUGH * seen.widget.box.height
    return shown and _point(phone, seen) is not None


def _touch(phone: Phone, intent: Intent) -> Demonstration:
    seen = find(phone.screen.tree, intent.key)
    assert seen is not None, f"{intent.key} can't be seen"
    point = _point(phone, seen)
    assert point is not None, f"{intent.key} is covered"
    x, y = point
    kind = "long_press" if intent.kind == "hold" else "click"
    action = Action(kind, x=round(x / WIDTH, 4), y=round(y / HEIGHT, 4))
    return Demonstration(action, intent.say, seen.box.unit(), boxes_at(phone.screen.tree, x, y))


def _point(phone: Phone, seen: Seen) -> tuple[int, int] | None:
    """Return a point that touches the widget: near its middle, or where nothing covers it."""
    box = seen.box
    noise = zlib.crc32(f"{seen.widget.key} {phone.actions} {box}".encode())
    shares = (
        (0.35 + 0.3 * (noise % 101) / 100, 0.35 + 0.3 * (noise // 101 % 101) / 100),
        (0.5, 0.5),
        (0.25, 0.5),
        (0.15, 0.3),
        (0.6, 0.2),
    )
    for across, down in shares:
        x, y = round(box.x1 + across * (box.width - 1)), round(box.y1 + down * (box.height - 1))
        touched = hit(phone.screen.tree, x, y)
        if touched is not None and touched.widget.key == seen.widget.key:
            return x, y
    return None


def _scroll_to(phone: Phone, key: str, until: str) -> Demonstration:
    screen = phone.screen
    top, bottom = screen.places[key]
    middle = (top + bottom) / 2 - screen.scroll
    down = middle > screen.viewport.height / 2
    view = screen.viewport
    ends = (view.y1 + 0.8 * view.height, view.y1 + 0.2 * view.height)
    start, end = ends if down else ends[::-1]
    x = WIDTH // 2
    action = Action(
        "scroll",
        x=x / WIDTH,
        y=round(start / HEIGHT, 4),
        x2=x / WIDTH,
        y2=round(end / HEIGHT, 4),
        direction="down" if down else "up",
    )
    say = f"Scroll {action.direction} until {until}"
    return Demonstration(action, say, view.unit(), boxes_at(screen.tree, x, start))


def _swipe(phone: Phone, way: str, say: str) -> Demonstration:
    view: Rect = phone.screen.viewport
    y = view.y1 + view.height // 2
    start, end = (0.8, 0.2) if way == "right" else (0.2, 0.8)
    action = Action("scroll", x=start, y=round(y / HEIGHT, 4), x2=end, y2=round(y / HEIGHT, 4), direction=way)
    return Demonstration(action, say, view.unit(), boxes_at(phone.screen.tree, start * WIDTH, y))
