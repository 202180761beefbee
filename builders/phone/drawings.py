"""How each kind of widget looks: one small function a role or style."""

from __future__ import annotations

from collections.abc import Callable

from .painter import Painter
from .theme import BOLD_STYLES, TEXT_SIZES, blend
from .widgets import Rect, Widget

Drawing = Callable[[Painter, Widget], None]


def _plain(style: str, *, color: str = "text", align: str = "left", size: str = "") -> Drawing:
    """Make the drawing of one line of text (or several, where the box is taller than two lines)."""
    points = TEXT_SIZES[size or style]
    bold = (size or style) in BOLD_STYLES

    def draw(p: Painter, w: Widget) -> None:
        ink = p.accent if color == "accent" else getattr(p.theme, color)
        if w.box.height > 2 * points * 1.4:
            p.lines(w.box, w.text, points, ink, round(points * 1.45))
        else:
            p.text(w.box, w.text, points, ink, bold=bold, align=align)

    return draw


def _heading(p: Painter, w: Widget) -> None:
    p.text(w.box, w.text, TEXT_SIZES["label"], p.accent, bold=True)


def _display(p: Painter, w: Widget) -> None:
    p.text(w.box, w.text, TEXT_SIZES["display"], p.theme.text, align="centre")


def _status(p: Painter, w: Widget) -> None:
    ink = p.theme.text
    if w.role == "system":
        if not p.over_picture:
            p.fill(w.box, p.theme.background)
    elif w.icon:
        p.icon(w.box, w.icon, ink, 14)
    else:
        p.text(w.box, w.text, 12, ink, bold=True)


def _status_right(p: Painter, w: Widget) -> None:
    p.text(w.box, w.text, 12, p.theme.text, bold=True, align="right")


def _nav(p: Painter, w: Widget) -> None:
    if w.role == "system":
        if not p.over_picture:
            p.fill(w.box, p.theme.background)
    else:
        p.icon(w.box, w.icon, p.theme.text if p.over_picture else p.theme.muted, 16)


def _bar(p: Painter, w: Widget) -> None:
    p.fill(Rect(0, 0, w.box.x2, w.box.y2), p.theme.background)


def _panel(p: Painter, w: Widget) -> None:
    p.fill(w.box, p.theme.surface)
    p.fill(Rect(w.box.x1, w.box.y1, w.box.x2, w.box.y1 + 1), p.theme.line)


def _row(p: Painter, w: Widget) -> None:
    b = w.box
    p.fill(Rect(b.x1 + 8, b.y1 + 1, b.x2 - 8, b.y2 - 1), p.theme.surface, 14)


def _avatar(p: Painter, w: Widget) -> None:
    p.fill(w.box, w.color, w.box.width / 2)
    p.text(w.box, w.text, round(w.box.width * 0.4), "#ffffff", bold=True, align="centre")


def _tinted(p: Painter, w: Widget) -> None:
    color = w.color or p.accent
    back = blend(color, p.theme.surface, 0.16 if not p.dark else 0.28)
    front = color if not p.dark else blend(color, "#ffffff", 0.6)
    p.fill(w.box, back, w.box.width / 2)
    p.icon(w.box, w.icon, front, w.box.width * 0.55)


def _square(p: Painter, w: Widget) -> None:
    color = w.color or p.accent
    p.fill(w.box, blend(color, p.theme.surface, 0.20), 10)
    p.icon(w.box, w.icon, color if not p.dark else blend(color, "#ffffff", 0.6), 24)


def _muted_icon(p: Painter, w: Widget) -> None:
    if w.icon:
        p.icon(w.box, w.icon, p.theme.muted, 18)
    else:
        p.lines(w.box, w.text, TEXT_SIZES["body"], p.theme.muted, 22)


def _accent_icon(p: Painter, w: Widget) -> None:
    if w.role == "key":
        p.fill(w.box, p.accent, 8)
        p.icon(w.box, w.icon, p.on_accent, 20)
    else:
        p.icon(w.box, w.icon, p.accent, 30)


def _switch(p: Painter, w: Widget) -> None:
    b = w.box
    if w.checked:
        p.fill(b, p.accent, 14)
        p.fill(Rect(b.x2 - 25, b.y1 + 3, b.x2 - 3, b.y2 - 3), p.on_accent, 11)
    else:
        p.outline(b, p.theme.muted, blend(p.theme.muted, p.theme.surface, 0.14), 14, 2)
        p.fill(Rect(b.x1 + 7, b.y1 + 7, b.x1 + 21, b.y1 + 21), p.theme.muted, 7)


def _checkbox(p: Painter, w: Widget) -> None:
    if w.checked:
        p.fill(w.box, p.accent, 5)
        p.icon(w.box, "check", p.on_accent, 18)
    else:
        p.outline(w.box, p.theme.muted, p.theme.surface, 5, 2)


def _radio(p: Painter, w: Widget) -> None:
    b = w.box
    p.outline(b, p.accent if w.checked else p.theme.muted, p.theme.surface, 11, 2)
    if w.checked:
        p.fill(Rect(b.x1 + 6, b.y1 + 6, b.x2 - 6, b.y2 - 6), p.accent, 5)


def _button(p: Painter, w: Widget) -> None:
    radius = w.box.height / 2
    label = TEXT_SIZES["label"]
    if w.style == "filled":
        p.fill(w.box, p.accent, radius)
        ink = p.on_accent
    elif w.style == "danger":
        p.fill(w.box, "#ba1a1a", radius)
        ink = "#ffffff"
    elif w.style == "outlined":
        p.outline(w.box, p.theme.muted, p.theme.surface, radius)
        ink = p.accent
    else:
        p.fill(w.box, p.tone, radius)
        ink = p.accent
    p.text(w.box, w.text, label, ink, bold=True, align="centre")


def _icon_button(p: Painter, w: Widget) -> None:
    p.icon(w.box, w.icon, p.theme.text, 22)


def _quiet(p: Painter, w: Widget) -> None:
    p.icon(w.box, w.icon, p.theme.muted, 16)


def _round(p: Painter, w: Widget) -> None:
    p.fill(w.box, p.tone, w.box.width / 2)
    p.icon(w.box, w.icon, p.accent, 18)


def _fab(p: Painter, w: Widget) -> None:
    p.shadow(w.box, 18, 10, 3)
    p.fill(w.box, p.accent, 18)
    p.icon(w.box, w.icon, p.on_accent, 26)


def _chip(p: Painter, w: Widget) -> None:
    b = w.box
    if w.checked:
        p.fill(b, p.accent, 12)
        ink = p.on_accent
    else:
        p.outline(b, p.theme.line, p.theme.surface, 12)
        ink = p.theme.text
    p.text(b, w.text, TEXT_SIZES["label"], ink, bold=bool(w.checked), align="centre")


def _day(p: Painter, w: Widget) -> None:
    _day_back(p, w)
    ink = p.on_accent if w.checked else p.theme.text if w.key else p.theme.muted
    p.text(w.box, w.text, TEXT_SIZES["label"], ink, align="centre")


def _marked(p: Painter, w: Widget) -> None:
    _day(p, w)
    middle = (w.box.x1 + w.box.x2) // 2
    dot = Rect(middle - 2, w.box.y2 - 9, middle + 3, w.box.y2 - 4)
    p.fill(dot, p.on_accent if w.checked else p.accent, 2.5)


def _day_back(p: Painter, w: Widget) -> None:
    if w.checked:
        middle, centre = (w.box.x1 + w.box.x2) // 2, (w.box.y1 + w.box.y2) // 2
        p.fill(Rect(middle - 19, centre - 19, middle + 19, centre + 19), p.accent, 19)


def _app(p: Painter, w: Widget) -> None:
    middle = (w.box.x1 + w.box.x2) // 2
    tile = Rect(middle - 28, w.box.y1 + 6, middle + 28, w.box.y1 + 62)
    p.shadow(tile, 18, 6, 2)
    p.fill(tile, w.color, 18)
    p.icon(tile, w.icon, "#ffffff", 32)
    p.text(Rect(w.box.x1, tile.y2 + 4, w.box.x2, tile.y2 + 22), w.text, 12, p.theme.text, align="centre")


def _field(p: Painter, w: Widget) -> None:
    b = w.box
    label, _, value = w.text.partition(": ")
    ink = p.accent if w.focused else p.theme.muted
    p.outline(b, ink, p.theme.surface, 12, 2 if w.focused else 1)
    if value or w.focused:
        p.text(Rect(b.x1 + 14, b.y1 + 4, b.x2 - 46, b.y1 + 20), label, TEXT_SIZES["small"], ink)
        inner = Rect(b.x1 + 14, b.y1 + 19, b.x2 - 46, b.y2)
        p.lines(inner, value, TEXT_SIZES["body"], p.theme.text, 22)
        if w.focused:
            _caret(p, inner, value)
    else:
        p.text(
            Rect(b.x1 + 14, b.y1, b.x2 - 20, min(b.y2, b.y1 + 50)), label, TEXT_SIZES["body"], p.theme.muted
        )


def _caret(p: Painter, inner: Rect, value: str) -> None:
    x, line = p.end_of(inner, value, TEXT_SIZES["body"])
    p.fill(Rect(x + 1, inner.y1 + 22 * line + 2, x + 3, inner.y1 + 22 * line + 20), p.accent)


def _card(p: Painter, w: Widget) -> None:
    p.shadow(w.box, 20, 8, 2)
    p.fill(w.box, p.theme.surface, 20)


def _tonal_card(p: Painter, w: Widget) -> None:
    p.fill(w.box, p.tone, 20)


def _bubble(p: Painter, w: Widget) -> None:
    mine = w.style == "mine"
    back = p.accent if mine else p.theme.raised if p.dark else p.theme.line
    p.fill(w.box, back, 16)
    inner = Rect(w.box.x1 + 14, w.box.y1 + 8, w.box.x1 + 234, w.box.y2)
    p.lines(inner, w.text, TEXT_SIZES["body"], p.on_accent if mine else p.theme.text, 22, wrap_at=220)


def _scrim(p: Painter, w: Widget) -> None:
    p.dim(0.5)


def _dialog(p: Painter, w: Widget) -> None:
    p.shadow(w.box, 26, 14, 4)
    p.fill(w.box, p.theme.raised, 26)


def _item(p: Painter, w: Widget) -> None:
    left = w.box.x1 + 14
    if w.icon:
        p.icon(Rect(left, w.box.y1 + 14, left + 24, w.box.y1 + 38), w.icon, p.theme.muted, 22)
        left += 40
    p.text(Rect(left, w.box.y1, w.box.x2 - 48, w.box.y2), w.text, TEXT_SIZES["body"], p.theme.text)


def _keyboard(p: Painter, w: Widget) -> None:
    p.fill(w.box, blend(p.theme.line, p.theme.background, 0.9))


def _key(p: Painter, w: Widget) -> None:
    if w.style == "special":
        p.fill(w.box, blend(p.theme.muted, p.theme.line, 0.25), 8)
        p.icon(w.box, w.icon, p.theme.text, 20)
    else:
        p.fill(w.box, p.theme.key, 8)
        if w.style == "key":
            p.text(w.box, w.text, TEXT_SIZES["subtitle"], p.theme.text, align="centre")


def _toast(p: Painter, w: Widget) -> None:
    p.fill(w.box, p.theme.text, 12)
    inner = Rect(w.box.x1 + 16, w.box.y1, w.box.x2 - 12, w.box.y2)
    p.text(inner, w.text, TEXT_SIZES["label"], p.theme.background)


def _loading(p: Painter, w: Widget) -> None:
    p.fill(w.box, p.theme.background)


def _spinner(p: Painter, w: Widget) -> None:
    p.fill(w.box, p.tone, w.box.width / 2)
    p.icon(w.box, "update", p.accent, 40)


def _tab(p: Painter, w: Widget) -> None:
    middle = (w.box.x1 + w.box.x2) // 2
    pill = Rect(middle - 28, w.box.y1 + 8, middle + 28, w.box.y1 + 36)
    if w.checked:
        p.fill(pill, p.tone, 14)
    ink = p.accent if w.checked else p.theme.muted
    p.icon(pill, w.icon, ink, 20)
    place = Rect(w.box.x1, w.box.y1 + 38, w.box.x2, w.box.y1 + 56)
    p.text(place, w.text, 12, ink, bold=bool(w.checked), align="centre")


def _search(p: Painter, w: Widget) -> None:
    b = w.box
    p.outline(b, p.accent if w.focused else p.tone, p.tone, b.height / 2, 2)
    p.icon(Rect(b.x1 + 10, b.y1, b.x1 + 46, b.y2), "search", p.theme.muted, 20)
    label, _, value = w.text.partition(": ")
    inner = Rect(b.x1 + 48, b.y1 + 16, b.x2 - 46, b.y1 + 38)
    if value or w.focused:
        p.text(inner, value, TEXT_SIZES["body"], p.theme.text)
        if w.focused:
            _caret(p, inner, value)
    else:
        p.text(inner, label, TEXT_SIZES["body"], p.theme.muted)


def _badge(p: Painter, w: Widget) -> None:
    p.fill(w.box, p.accent, 9)
    p.text(w.box, w.text, 11, p.on_accent, bold=True, align="centre")


def _dots(p: Painter, w: Widget) -> None:
    on, _, count = w.icon.partition("/")
    left = (w.box.x1 + w.box.x2) // 2 - 8 * int(count)
    for i in range(int(count)):
        spot = Rect(left + 16 * i + 4, w.box.y1, left + 16 * i + 12, w.box.y1 + 8)
        p.fill(spot, p.theme.text if i == int(on) else blend(p.theme.text, p.theme.background, 0.3), 4)


DRAWINGS: dict[str, Drawing] = {
    "body": _plain("body"),
    "title": _plain("title"),
    "subtitle": _plain("subtitle"),
    "label": _heading,
    "detail": _plain("detail", color="muted"),
    "small": _plain("small", color="muted"),
    "trail": _plain("detail", color="muted", align="right"),
    "centred": _plain("label", align="centre"),
    "hero": lambda p, w: (_tinted if w.icon else _plain("title", align="centre"))(p, w),
    "hero_detail": _plain("body", color="muted", align="centre"),
    "dialog_title": _plain("title", align="centre"),
    "display": _display,
    "stamp": _plain("small", color="muted"),
    "stamp_mine": _plain("small", color="muted", align="right"),
    "status": _status,
    "status_right": _status_right,
    "nav": _nav,
    "bar": _bar,
    "panel": _panel,
    "row": _row,
    "avatar": _avatar,
    "tinted": _tinted,
    "square": _square,
    "muted": _muted_icon,
    "accent": _accent_icon,
    "switch": _switch,
    "checkbox": _checkbox,
    "radio": _radio,
    "button": _button,
    "icon": _icon_button,
    "quiet": _quiet,
    "round": _round,
    "fab": _fab,
    "chip": _chip,
    "day": _day,
    "marked": _marked,
    "app": _app,
    "field": _field,
    "card": _card,
    "tonal_card": _tonal_card,
    "bubble": _bubble,
    "scrim": _scrim,
    "dialog": _dialog,
    "item": _item,
    "keyboard": _keyboard,
    "key": _key,
    "toast": _toast,
    "loading": _loading,
    "spinner": _spinner,
    "tab": _tab,
    "search": _search,
    "badge": _badge,
    "dots": _dots,
}
"""Looked up by style first, then by role; what is in neither is not drawn."""
