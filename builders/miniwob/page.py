"""A page as its elements: what an expert reads, what a text policy is shown, and where everything lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from solar_rl.actions import Box

_MASK = "\N{BULLET}"
_LONGEST = 60
"""Letters that a list keeps of what an element says."""


class Scroll(NamedTuple):
    """How far an element is scrolled down and how far it can be, in pixels of the page."""

    top: float
    hidden: float


@dataclass(frozen=True, eq=False)
class Element:
    """One element, or one line of text that stands beside elements.

    Args:
        ref: MiniWoB++'s number of it within the episode; negative for a line of text.
        parent: The element that holds it; None for the body.
        tag: Its tag in lower case; ``input_TYPE`` for an input.
        text: Its text if it holds nothing else.
        value: What is typed into it, or whether it is checked.
        id: Its id.
        classes: Its classes.
        focused: Whether it takes what is typed.
        whole: Its place in the unit square of the screen, which it may lie outside of.
        box: The part that can be seen and touched; None where there is none.
        point: A point in ``box`` that touches it.
        scroll: Set where it scrolls.
    """

    ref: int
    parent: Element | None = field(repr=False)
    tag: str
    text: str
    value: str | bool | None
    id: str
    classes: tuple[str, ...]
    focused: bool
    whole: Box
    box: Box | None
    point: tuple[float, float] | None
    scroll: Scroll | None

    def above(self) -> Iterator[Element]:
        """Yield the elements around it, innermost first."""
        around = self.parent
        while around is not None:
            yield around
            around = around.parent

    @property
    def place(self) -> tuple[float, float] | None:
        """Return the point that a list of the page names, in hundredths where such a point lies on it."""
        if self.point is None or self.box is None:
            return None
        rough = round(self.point[0], 2), round(self.point[1], 2)
        return rough if self.box.contains(*rough) else (round(self.point[0], 3), round(self.point[1], 3))

    @property
    def named(self) -> str:
        """Return what it is called in a list: its text, or its id and classes where it has none."""
        said = self.text or " ".join((self.id, *self.classes)) or self.tag
        return " ".join(said.split())[:_LONGEST]

    def short_line(self) -> str:
        """Say in a few words what it is called, what is in it, and where a click touches it, in thousandths."""
        words = [self.named]
        if isinstance(self.value, bool):
            words.append("on" if self.value else "off")
        elif self.value:
            words.append(f"({_MASK * len(self.value) if self.tag == 'input_password' else self.value})")
        if self.focused:
            words.append("focused")
        if self.place is not None:
            words += [f"{share * 1000:.0f}" for share in self.place]
        return " ".join(words)

    def line(self) -> str:
        """Describe it: number, tag, text, what is in it, its place in the unit square."""
        words = [f"[{self.ref}]", self.tag]
        if self.text:
            words.append(f'"{self.text}"')
        elif self.value is None and (self.id or self.classes):
            words.append(".".join((self.id, *self.classes)))
        if isinstance(self.value, bool):
            words.append("checked" if self.value else "unchecked")
        elif self.value is not None:
            shown = _MASK * len(self.value) if self.tag == "input_password" else self.value
            words.append(f'value "{shown}"')
        if self.box is not None:
            words.append("box " + " ".join(f"{edge:.3f}" for edge in self.box))
        return " ".join([*words, "focused"] if self.focused else words)


@dataclass(frozen=True)
class Page:
    """Everything on a page at one moment.

    Args:
        goal: The instruction in the yellow bar.
        elements: In the order of the document.
        scroll: Set where the page itself scrolls.
    """

    goal: str
    elements: tuple[Element, ...]
    scroll: Scroll | None

    def all(
        self,
        cls: str | None = None,
        *,
        tag: str | None = None,
        id: str | None = None,
        text: str | None = None,
        inside: Element | None = None,
    ) -> list[Element]:
        """Return the elements that have all that is asked for, whether they can be seen or not."""
        return [
            element
            for element in self.elements
            if (cls is None or cls in element.classes)
            and (tag is None or element.tag == tag)
            and (id is None or element.id == id)
            and (text is None or element.text.strip() == text)
            and (inside is None or inside in element.above())
        ]

    def words(self, element: Element) -> str:
        """Return all text in an element."""
        return " ".join(e.text for e in self.elements if e.text and (e is element or element in e.above()))

    @cached_property
    def visible(self) -> tuple[Element, ...]:
        """Return what can be seen and is more than a frame around other things."""
        frames = {element.parent.ref for element in self.elements if element.parent}
        return tuple(e for e in self.elements if e.box and (e.ref not in frames or e.value is not None))

    def text(self) -> str:
        """Return the screen as text: one visible element a line."""
        return "\n".join(element.line() for element in self.visible)

    def listed(self, element: Element) -> Element:
        """Return what a list names of an element: itself, or the first thing in it that can be touched."""
        if element in self.visible:
            return element
        return next((e for e in self.visible if element in e.above() and e.place), element)

    def listing(self) -> str:
        """Return the screen as a short list: what can be seen, its state, and the point to touch."""
        return "\n".join(element.short_line() for element in self.visible)


def read_page(seen: dict[str, Any], width: int, height: int) -> Page:
    """Read what the script returned.

    Args:
        seen: Its goal, dom, places and page.
        width: Pixels of the task area.
        height: The same down the height.
    """
    elements: list[Element] = []
    _read(seen["dom"], None, seen["places"], (width, height), elements)
    return Page(seen["goal"], tuple(elements), Scroll(*seen["page"]) if seen["page"] else None)


def _read(
    raw: dict[str, Any],
    parent: Element | None,
    places: dict[str, Any],
    size: tuple[int, int],
    found: list[Element],
) -> None:
    left, top = raw["left"], raw["top"]
    whole = _unit((left, top, left + raw["width"], top + raw["height"]), size)
    if raw["tag"] == "t":
        box, point, scroll = _within(whole, parent), None, None
    else:
        place = places[str(raw["ref"])]
        box = _unit(place["box"], size) if place["box"] else None
        point = (place["point"][0] / size[0], place["point"][1] / size[1]) if place["point"] else None
        scroll = Scroll(*place["scroll"]) if place["scroll"] else None
    children = raw["children"]
    text = raw.get("text") or ""
    if children and all(child["tag"] == "t" for child in children):
        # As in miniwob.dom: text broken over lines beside something hidden is the element's own text.
        text, children = " ".join(child["text"] for child in children), []
    classes = raw.get("classes") or ""
    element = Element(
        ref=raw["ref"],
        parent=parent,
        tag=raw["tag"].lower(),
        text=text,
        value=raw.get("value"),
        id=raw.get("id") or "",
        classes=tuple(classes.split()) if isinstance(classes, str) else (),
        focused=bool(raw.get("focused")),
        whole=whole,
        box=box,
        point=point,
        scroll=scroll,
    )
    found.append(element)
    for child in children:
        _read(child, element, places, size, found)


def _unit(edges: Any, size: tuple[int, int]) -> Box:
    x1, y1, x2, y2 = edges
    return Box(x1 / size[0], y1 / size[1], x2 / size[0], y2 / size[1])


def _within(whole: Box, parent: Element | None) -> Box | None:
    """Return the part of a line of text that its element shows."""
    if parent is None or parent.box is None:
        return None
    frame = parent.box
    box = Box(
        max(whole.x1, frame.x1), max(whole.y1, frame.y1), min(whole.x2, frame.x2), min(whole.y2, frame.y2)
    )
    return box if box.area > 0 else None
