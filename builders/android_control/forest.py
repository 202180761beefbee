"""What an accessibility forest says about a screen: the app, the element under a label, the screen as text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from solar_rl.actions import Box

from .messages import parse_forest
from .screen import Screen

CONTAINER_SHARE = 0.25
"""A clickable box that covers this share of the screen or more is a container. Source: ours, as the
``max_box_area`` of the validity rules."""
SMALLEST, CLICKABLE = "smallest", "smallest_clickable"
"""What ``steps.box_rule`` calls the two ways to a target: the smallest box that holds the label, or the
smallest clickable one around that."""
_LONGEST_LABEL = 100
_APPLICATION, _SYSTEM = 1, 3
"""Window types: an app's own window; status bar, navigation bar and notification shade."""

# Parts of a package that name no app: top-level domains, platforms, and what every app has.
_GENERIC = {"com", "org", "net", "io", "co", "in", "de", "uk", "jp", "us", "edu", "gov"}
_GENERIC |= {"android", "google", "apps", "app", "mobile", "client", "main"}
_KNOWN = {
    "com.android.vending": "Play Store",
    "com.google.android.gm": "Gmail",
    "com.google.android.apps.nexuslauncher": "Home screen",
    "com.google.android.googlequicksearchbox": "Google",
}


class Node(NamedTuple):
    """One visible element: its box in pixels, clipped to the screen, and the message with all that it says."""

    left: int
    top: int
    right: int
    bottom: int
    in_bar: bool
    raw: Any

    @property
    def area(self) -> int:
        """Return the pixels that the box covers."""
        return (self.right - self.left) * (self.bottom - self.top)

    def encloses(self, other: Node) -> bool:
        """Tell whether the other element lies wholly within this one."""
        return (
            self.left <= other.left
            and self.top <= other.top
            and self.right >= other.right
            and self.bottom >= other.bottom
        )


class Forest:
    """The decoded accessibility forest of one screen.

    Args:
        data: A serialised AndroidAccessibilityForest; empty for a screen without one.
        screen: The screen that its boxes belong to.

    Raises:
        RecordError: ``bad_tree``: the bytes are no forest.
    """

    def __init__(self, data: bytes, screen: Screen) -> None:
        self._windows = parse_forest(data).windows
        self._screen = screen
        self._nodes = self._visible()

    def _visible(self) -> list[Node]:
        # Plain comparisons: a screen has hundreds of elements, and this and ``_line`` are most of a reader's time.
        width, height, nodes = self._screen.width, self._screen.height, []
        for window in self._windows:
            in_bar = window.window_type == _SYSTEM and not window.is_active
            for raw in window.tree.nodes:
                if not raw.is_visible_to_user:
                    continue
                rect = raw.bounds_in_screen
                left, top, right, bottom = rect.left, rect.top, rect.right, rect.bottom
                left, right = (0 if left < 0 else left), (width if right > width else right)
                top, bottom = (0 if top < 0 else top), (height if bottom > height else bottom)
                if left < right and top < bottom:
                    nodes.append(Node(left, top, right, bottom, in_bar, raw))
        return nodes

    def package(self) -> str | None:
        """Return the package of the topmost application window, if there is one."""
        windows = [w for w in self._windows if w.window_type == _APPLICATION]
        for window in sorted(windows, key=lambda w: w.layer, reverse=True):
            for node in window.tree.nodes:
                if node.package_name:
                    return str(node.package_name)
        return None

    def boxes(self, x: float, y: float) -> tuple[str | None, tuple[Box, ...]]:
        """Find the element that a point means, and the boxes around it.

        The smallest visible box that holds the point is taken; when it doesn't react to a tap itself (a
        label, an icon), the smallest clickable box around the whole of it stands in, unless that covers a
        quarter of the screen or more. Invisible, empty and off-screen boxes are left out.

        Args:
            x: Pixels from the left edge.
            y: Pixels from the top edge.

        Returns:
            Which rule found the target (None where no box holds the point), and all boxes that hold the
            point from the target outwards, the smallest first, in the unit square. Smaller ones are parts
            of the target: whoever taps beside the word in a button still taps the button.

        Source: ours, because the smallest box alone is often the text inside a button, and the smallest
        clickable one can lie behind a pop-up (episode 20 of AndroidControl: "Close ad").
        """
        held = [n for n in self._nodes if n.left <= x <= n.right and n.top <= y <= n.bottom]
        if not held:
            return None, ()
        held.sort(key=lambda n: (n.area, not n.raw.is_clickable))
        limit = CONTAINER_SHARE * self._screen.width * self._screen.height
        around = (
            i for i, n in enumerate(held) if n.raw.is_clickable and n.area < limit and n.encloses(held[0])
        )
        found = next(around, None)
        boxes = tuple(dict.fromkeys(self._unit(node) for node in held[found or 0 :]))
        return SMALLEST if found is None else CLICKABLE, boxes

    def _unit(self, node: Node) -> Box:
        width, height = self._screen.width, self._screen.height
        return Box(node.left / width, node.top / height, node.right / width, node.bottom / height)

    def text(self) -> str | None:
        """Write the visible labelled elements one a line: class, label, box in pixels, state.

        Elements that say the same at the same place are written once. Left out are passwords and system bars
        that aren't in use, whose clock and notifications say nothing about the task.
        """
        lines = dict.fromkeys([_line(node) for node in self._nodes if not node.in_bar])
        return "\n".join(line for line in lines if line) or None


def _line(node: Node) -> str | None:
    left, top, right, bottom, _, raw = node
    label = (
        "" if raw.is_password else raw.text or raw.content_description or raw.hint_text or raw.tooltip_text
    )
    label = " ".join(label.split())
    if not label and not raw.is_editable:
        return None
    if len(label) > _LONGEST_LABEL:
        label = label[:_LONGEST_LABEL] + "…"
    said = f' "{label}"' if label else ""
    return f"{raw.class_name.rpartition('.')[2]}{said} [{left},{top},{right},{bottom}]{_flags(raw)}"


def _flags(raw: Any) -> str:
    flags = ""
    if raw.is_clickable:
        flags += " clickable"
    if raw.is_long_clickable:
        flags += " long-clickable"
    if raw.is_scrollable:
        flags += " scrollable"
    if raw.is_editable:
        flags += " editable"
    if raw.is_focused:
        flags += " focused"
    if raw.is_selected:
        flags += " selected"
    if raw.is_checkable:
        flags += " checked" if raw.is_checked else " unchecked"
    return flags


def app_name(package: str | None, opened: Iterable[str] = ()) -> str | None:
    """Turn a package into a name that people know.

    A name that the episode's own ``open_app`` steps use goes first, when a word of it is part of the
    package. Otherwise the package's first and last telling part, so ``in.amazon.mShop.android.shopping``
    becomes "Amazon Shopping".

    Args:
        package: Package of an app, such as ``com.zoho.meeting``.
        opened: App names that the episode opens.

    Source: ours, because AndroidControl names no app for its episodes.

    >>> app_name("com.zoho.meeting", ["Zoho Meeting"]), app_name("com.google.android.calendar")
    ('Zoho Meeting', 'Calendar')
    """
    if not package:
        return None
    if package in _KNOWN:
        return _KNOWN[package]
    letters = package.lower()
    for name in opened:
        words = re.findall(r"\w{3,}", name.lower())
        if any(word in letters for word in words if word not in _GENERIC):
            return name
    parts = [part for part in package.split(".") if part.lower() not in _GENERIC] or [package]
    telling = dict.fromkeys((parts[0], parts[-1]))
    return " ".join(word.replace("_", " ").capitalize() for word in telling)
