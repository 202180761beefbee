"""Write a screen as a short list: what it says, what can be touched, and where.

The tree of ``widgets.screen_text`` takes hundreds of tokens; this takes a few a line, so that a model of a few
hundred thousand weights can read it. A place is the point that the demonstration touches, in thousandths of the
screen, as format ``json`` writes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from solar_rl.actions import Action

from .widgets import HEIGHT, WIDTH, Seen, Widget, hit, visible

_LONGEST = 60
"""Letters that are kept of what a thing says."""
_SILENT = ("system", "scrim", "list", "panel", "bar", "grid", "group", "card", "dialog", "screen", "loading")
_SPOTS = ((0.5, 0.5), (0.25, 0.5), (0.15, 0.3), (0.6, 0.2))
"""Where on a widget a touch is tried: its middle, or where nothing covers it."""


def listed_point(tree: Widget, seen: Seen) -> tuple[float, float] | None:
    """Return the point of the unit square that stands for a widget, in hundredths; None where it is covered."""
    box = seen.box
    for across, down in _SPOTS:
        x = round((box.x1 + across * (box.width - 1)) / WIDTH, 2)
        y = round((box.y1 + down * (box.height - 1)) / HEIGHT, 2)
        touched = hit(tree, x * WIDTH, y * HEIGHT)
        if touched is not None and touched.widget.key == seen.widget.key:
            return x, y
    return None


def screen_list(tree: Widget) -> str:
    """Write what can be seen from top to bottom, one thing a line; touchable things end with x and y."""
    shown = visible(tree)
    inside = _spoken_for(shown)
    lines = [
        (seen.box.y1, seen.box.x1, place, line)
        for place, seen in enumerate(shown)
        if place not in inside and (line := _line(tree, seen))
    ]
    return "\n".join(line for *_, line in sorted(lines))


def _spoken_for(shown: list[Seen]) -> set[int]:
    """Return the places of widgets that belong to a line of another: the inside of rows, keys, the system's bars."""
    inside: set[int] = set()
    depth: int | None = None
    for place, seen in enumerate(shown):
        if depth is not None and seen.depth > depth:
            if not seen.widget.key or seen.widget.role == "key" or seen.widget.key.startswith("nav:"):
                inside.add(place)
            continue
        owns = seen.widget.role in ("row", "item", "keyboard", "system", "button", "tab", "chip", "icon")
        depth = seen.depth if owns else None
        if seen.widget.role == "system":
            inside.add(place)
    return inside


def _line(tree: Widget, seen: Seen) -> str:
    widget = seen.widget
    if widget.role == "heading":
        return f"# {widget.text}" if widget.text else ""
    if widget.role == "keyboard":
        return "keyboard"
    if widget.role == "list":
        return "scrolls" if widget.scrollable == "vertical" else ""
    if widget.role in _SILENT or widget.role in ("image", "avatar"):
        return ""
    said = " ".join(part for part in (widget.text[:_LONGEST], *_details(widget), *_state(widget)) if part)
    if not widget.key:
        return said
    point = listed_point(tree, seen)
    return said if point is None else f"{said} {point[0] * 1000:.0f} {point[1] * 1000:.0f}"


def _details(widget: Widget) -> Iterator[str]:
    """Yield the first word of each text below a row's title."""
    if widget.role == "row":
        texts = (part.text for part in widget.children if part.role == "text" and part.text != widget.text)
        yield from (f"({text.split()[0]})" for text in texts if text.strip())


def _state(widget: Widget) -> Iterator[str]:
    marks = [part.checked for part in (widget, *widget.children) if part.checked is not None]
    if marks and (marks[0] or widget.role == "row"):  # of chips and tabs only the chosen one is told
        yield "on" if marks[0] else "off"
    if widget.focused:
        yield "focused"


def named(tree: Widget, action: Action) -> str:
    """Say what an action is about: a verb, then the name of what is touched or what else the action tells."""
    return action.spoken(_touched(tree, action))


def _touched(tree: Widget, action: Action) -> str | None:
    if action.x is None or action.y is None or action.action_type not in ("click", "long_press"):
        return None
    seen = hit(tree, action.x * WIDTH, action.y * HEIGHT)
    return None if seen is None else seen.widget.text[:_LONGEST]
