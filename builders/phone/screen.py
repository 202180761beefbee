"""Put a page together: status bar, app bar, content, buttons, keyboard, dialog, navigation bar."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from .blocks import Block, Cell, Choice
from .lettering import wrap
from .theme import TEXT_SIZES
from .widgets import HEIGHT, SCREEN, WIDTH, Rect, Widget

STATUS, BAR, NAV, TABS, KEYBOARD = 28, 56, 40, 64, 222
_KEY_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")


class Tool(NamedTuple):
    """An icon button: key, icon, description, and a number on it where it counts something."""

    key: str
    icon: str
    label: str
    badge: str = ""


@dataclass(frozen=True)
class Dialog:
    """A box over the page that takes every touch: text, a list to choose from, or buttons."""

    title: str
    text: str = ""
    items: tuple[Cell, ...] = ()
    choices: tuple[Choice, ...] = ()
    icon: str = ""


@dataclass(frozen=True)
class Page:
    """What an app wants to show.

    Args:
        title: In the app bar; None for a page without a bar.
        blocks: The content, from top to bottom.
        up: Whether an arrow in the bar goes back.
        tools: Icon buttons in the bar.
        fab: The floating action button.
        tabs: The bar of tabs at the bottom; the chosen one is marked.
        bottom: A block that stays at the bottom.
        dialog: A box over it all.
        wallpaper: Number of the picture behind, for the launcher.
        sideways: Whether the content moves left and right.
    """

    title: str | None
    blocks: tuple[Block, ...]
    up: bool = False
    tools: tuple[Tool, ...] = ()
    fab: Tool | None = None
    tabs: tuple[Cell, ...] = ()
    bottom: Block | None = None
    dialog: Dialog | None = None
    wallpaper: int | None = None
    sideways: bool = False


class Look(NamedTuple):
    """How widgets are moved about: the same phone with another layout."""

    inset: int = 0
    spacing: int = 0
    top: int = 4
    fab_left: bool = False


@dataclass(frozen=True)
class Status:
    """What the system shows around a page."""

    time: str
    battery: int
    icons: tuple[tuple[str, str], ...]
    dark: bool
    color: str
    keyboard: bool = False
    toast: str = ""
    popup: Dialog | None = None
    loading: str = ""


@dataclass(frozen=True)
class Screen:
    """A page laid out: the tree, how far it scrolls, and where each key lies in the content."""

    tree: Widget
    viewport: Rect
    scroll: int
    max_scroll: int
    places: dict[str, tuple[int, int]] = field(default_factory=dict)


def lay_out(page: Page, status: Status, look: Look, scroll: int) -> Screen:
    """Turn a page into a screen; ``scroll`` is cut to what there is."""
    floor = HEIGHT - NAV - (KEYBOARD if status.keyboard else 0)
    ceiling = STATUS + (BAR if page.title is not None else 0)
    tabs = _tabs(page.tabs, floor) if page.tabs and not status.keyboard else ()
    floor -= TABS if tabs else 0
    bottom: tuple[Widget, ...] = ()
    if page.bottom is not None:
        floor -= page.bottom.height
        band = Rect(0, floor, WIDTH, floor + page.bottom.height)
        bottom = (Widget("panel", band, style="panel", children=(page.bottom.build(band),)),)
    viewport = Rect(0, ceiling, WIDTH, floor)
    body, places, scroll, room = _body(page, viewport, look, scroll)
    fab = (_fab(page.fab, floor, look),) if page.fab else ()
    bar = (_bar(page),) if page.title is not None else ()
    layers = (body, *fab, *bar, *bottom, *tabs, *_overlays(page, status, floor))
    style = ("dark" if status.dark else "light") + (
        f" wallpaper{page.wallpaper}" if page.wallpaper is not None else ""
    )
    tree = Widget("screen", SCREEN, style=style, color=status.color, children=layers)
    return Screen(tree, viewport, scroll, room, places)


def _body(
    page: Page, viewport: Rect, look: Look, scroll: int
) -> tuple[Widget, dict[str, tuple[int, int]], int, int]:
    """Build the blocks that can be seen, and tell where all of them are."""
    places: dict[str, tuple[int, int]] = {}
    tops, top = [], look.top
    for block in page.blocks:
        tops.append(top)
        places.update(dict.fromkeys(block.keys, (top, top + block.height)))
        top += block.height + look.spacing
    margin = 84 if page.fab else 12
    room = 0 if page.sideways else max(0, top + margin - viewport.height)
    scroll = min(max(scroll, 0), room)
    shown = []
    for block, start in zip(page.blocks, tops, strict=True):
        y = viewport.y1 + start - scroll
        if y < viewport.y2 and y + block.height > viewport.y1:
            shown.append(block.build(Rect(look.inset, y, WIDTH - look.inset, y + block.height)))
    moves = "horizontal" if page.sideways else "vertical" if room else ""
    return Widget("list", viewport, scrollable=moves, children=tuple(shown)), places, scroll, room


def _bar(page: Page) -> Widget:
    title = page.title or ""
    left = 56 if page.up else 20
    parts = []
    if page.up:
        parts.append(
            Widget("button", Rect(6, STATUS + 6, 50, STATUS + 50), "Navigate up", "up", "back", "icon")
        )
    right = WIDTH - 6
    for tool in reversed(page.tools):
        spot = Rect(right - 44, STATUS + 6, right, STATUS + 50)
        corner = Rect(spot.x2 - 20, spot.y1 + 4, spot.x2 - 3, spot.y1 + 21)
        badge = (Widget("badge", corner, tool.badge, style="badge"),) if tool.badge else ()
        parts.append(Widget("button", spot, tool.label, tool.key, tool.icon, "icon", children=badge))
        right -= 44
    parts.append(Widget("heading", Rect(left, STATUS + 12, right - 4, STATUS + 44), title, style="title"))
    return Widget("bar", Rect(0, STATUS, WIDTH, STATUS + BAR), style="bar", children=tuple(parts))


def _fab(tool: Tool, floor: int, look: Look) -> Widget:
    left = 20 if look.fab_left else WIDTH - 76
    return Widget(
        "button", Rect(left, floor - 72, left + 56, floor - 16), tool.label, tool.key, tool.icon, "fab"
    )


def _tabs(tabs: tuple[Cell, ...], floor: int) -> tuple[Widget, ...]:
    width = WIDTH // len(tabs)
    made = tuple(
        Widget(
            "tab",
            Rect(i * width, floor - TABS, (i + 1) * width, floor),
            tab.label,
            tab.key,
            tab.icon,
            "tab",
            checked=tab.chosen,
        )
        for i, tab in enumerate(tabs)
    )
    return (Widget("panel", Rect(0, floor - TABS, WIDTH, floor), style="panel", children=made),)


def _overlays(page: Page, status: Status, floor: int) -> tuple[Widget, ...]:
    layers: list[Widget] = []
    if status.keyboard:
        layers.append(keyboard())
    if status.toast:
        spot = Rect(16, floor - 58, WIDTH - 16, floor - 12)
        layers.append(Widget("toast", spot, status.toast, style="toast"))
    if status.loading:
        layers.append(_loading(status.loading))
    layers += [_status_bar(status), _nav_bar()]
    if page.dialog is not None and not status.loading:
        layers.append(_dialog(page.dialog, "dismiss"))
    if status.popup is not None:
        layers.append(_dialog(status.popup, "popup:outside"))
    return tuple(layers)


def _loading(text: str) -> Widget:
    middle = HEIGHT // 2
    return Widget(
        "loading",
        Rect(0, STATUS, WIDTH, HEIGHT - NAV),
        style="loading",
        modal=True,
        children=(
            Widget("progress", Rect(152, middle - 60, 208, middle - 4), "Loading", style="spinner"),
            Widget("text", Rect(20, middle + 12, 340, middle + 36), text, style="hero_detail"),
        ),
    )


def _status_bar(status: Status) -> Widget:
    parts = [Widget("text", Rect(18, 5, 70, 23), status.time, style="status")]
    percent = Widget("text", Rect(304, 5, 348, 23), f"{status.battery}%", style="status_right")
    left = 292
    for icon, said in reversed(status.icons):
        parts.append(Widget("image", Rect(left, 6, left + 16, 22), said, icon=icon, style="status"))
        left -= 20
    return Widget("system", Rect(0, 0, WIDTH, STATUS), style="status", children=(*parts, percent))


def _nav_bar() -> Widget:
    top = HEIGHT - NAV
    names = (
        ("Back", "nav:back", "nav_back"),
        ("Home", "nav:home", "nav_home"),
        ("Recent apps", "nav:recent", "nav_recent"),
    )
    made = tuple(
        Widget("button", Rect(48 + 96 * i, top, 120 + 96 * i, HEIGHT), said, key, icon, "nav")
        for i, (said, key, icon) in enumerate(names)
    )
    return Widget("system", Rect(0, top, WIDTH, HEIGHT), style="nav", children=made)


def keyboard() -> Widget:
    """Return the on-screen keyboard; it lies above the navigation bar."""
    top = HEIGHT - NAV - KEYBOARD
    keys = []
    for line, letters in enumerate(_KEY_ROWS):
        left = (WIDTH - 35 * len(letters)) // 2
        y = top + 6 + 42 * line
        for i, letter in enumerate(letters):
            spot = Rect(left + 35 * i + 2, y + 2, left + 35 * i + 33, y + 40)
            keys.append(Widget("key", spot, letter, f"type:{letter}", style="key"))
    y = top + 6 + 42 * 3
    keys.append(Widget("key", Rect(307, y + 2, 353, y + 40), "Delete", "erase", "erase", "special"))
    y += 42
    for left, right, said, key, icon, style in (
        (7, 51, "Hide keyboard", "hide", "down", "special"),
        (55, 87, ",", "type:,", "", "key"),
        (91, 261, "space", "type: ", "", "space"),
        (265, 297, ".", "type:.", "", "key"),
        (301, 353, "Enter", "enter", "enter", "accent"),
    ):
        keys.append(Widget("key", Rect(left, y + 2, right, y + 40), said, key, icon, style))
    return Widget(
        "keyboard", Rect(0, top, WIDTH, HEIGHT - NAV), "Keyboard", style="keyboard", children=tuple(keys)
    )


def _dialog(dialog: Dialog, outside: str) -> Widget:
    """Centre the dialog and put a scrim behind it that takes the touches beside it."""
    lines = wrap(dialog.text, TEXT_SIZES["body"], 250) if dialog.text else ()
    head = 36 if dialog.icon else 0
    height = 24 + head + 32 + (len(lines) * 22 + 8) + 52 * len(dialog.items) + (60 if dialog.choices else 12)
    top = (HEIGHT - height) // 2
    box = Rect(28, top, WIDTH - 28, top + height)
    parts: list[Widget] = []
    y = top + 22
    if dialog.icon:
        parts.append(Widget("image", Rect(164, y, 196, y + 32), icon=dialog.icon, style="accent"))
        y += head
    title = "dialog_title" if dialog.icon else "title"
    parts.append(Widget("heading", Rect(50, y, 310, y + 32), dialog.title, style=title))
    y += 32
    if lines:
        parts.append(Widget("text", Rect(50, y, 314, y + len(lines) * 22), dialog.text, style="muted"))
        y += len(lines) * 22 + 8
    for item in dialog.items:
        spot = Rect(36, y, WIDTH - 36, y + 52)
        parts.append(_dialog_item(item, spot))
        y += 52
    width = 272 // max(1, len(dialog.choices))
    for i, choice in enumerate(dialog.choices):
        spot = Rect(48 + i * width, y + 8, 48 + (i + 1) * width - 8, y + 50)
        parts.append(Widget("button", spot, choice.label, choice.key, style=choice.style))
    card = Widget("dialog", box, dialog.title, style="dialog", children=tuple(parts))
    return Widget("scrim", SCREEN, "Outside the dialog", outside, style="scrim", modal=True, children=(card,))


def _dialog_item(item: Cell, spot: Rect) -> Widget:
    mark: tuple[Widget, ...] = ()
    if item.mark:
        radio = Rect(spot.x2 - 42, spot.y1 + 15, spot.x2 - 20, spot.y1 + 37)
        mark = (Widget("radio", radio, style="radio", checked=item.chosen),)
    return Widget("item", spot, item.label, item.key, item.icon, "item", children=mark)
