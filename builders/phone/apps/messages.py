"""Messages: conversations in bubbles, with a composer at the bottom."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..blocks import Block, Cell, Lead, bubble, field, header, row
from ..screen import Dialog, Page, Tool
from ..stock import INCOMING, MESSAGES
from ..widgets import Rect, Widget
from .base import App, Fact, Intent, Route, tap
from .contacts import full_name


def _composer(value: str, focused: bool) -> Block:
    """Show the message field with a send button on its right."""
    inner = field("text", "Message", value, focused)

    def build(box: Rect) -> Widget:
        send = Rect(box.x2 - 54, box.y1 + 12, box.x2 - 10, box.y1 + 56)
        typed = inner.build(Rect(box.x1, box.y1, box.x2 - 44, box.y2))
        button = Widget("button", send, "Send", "send:", "send", "round")
        return Widget("group", box, children=(typed, button))

    return Block(inner.height + 4, build, inner.keys)


class Messages(App):
    """Conversations."""

    name, title, icon, color = "messages", "Messages", "chat", "#18794e"

    def fill_in(self, rng: Random) -> None:
        """Draw a dozen people or more, most of whom have written something."""
        names = sorted({full_name(rng) for _ in range(rng.randint(12, 16))})
        self.people = names
        self.chats: dict[str, list[tuple[str, str]]] = {name: [] for name in names}
        for name in names[: len(names) - 2]:
            lines = rng.sample(INCOMING, rng.randint(1, 2))
            self.chats[name] = [("them", line) for line in lines]
            if rng.random() < 0.4:
                self.chats[name].insert(1, ("me", rng.choice(MESSAGES)))
        self.order = rng.sample(names, len(names))

    def facts(self) -> frozenset[Fact]:
        """Return ("message", name, text) for what the user has sent."""
        return frozenset(
            ("message", name, text) for name, chat in self.chats.items() for who, text in chat if who == "me"
        )

    def page(self) -> Page:
        """Return the conversations, one of them, or the list of people."""
        if self.route[0] == "chat":
            return self._chat(self.route[1])
        if self.route[0] == "people":
            rows = [row(f"write:{name}", name, "", Lead("avatar", name)) for name in self.people]
            return Page("New message", (header("To"), *rows), up=True)
        rows = [
            row(f"open:{name}", name, self.chats[name][-1][1], Lead("avatar", name))
            for name in self.order
            if self.chats[name]
        ]
        return Page("Messages", tuple(rows), fab=Tool("new:", "edit", "New message"))

    def _chat(self, name: str) -> Page:
        lines = self.chats[name]
        shown = tuple(
            bubble(
                text, who == "me", f"{9 + i // 60:02d}:{i * 7 % 60:02d}", f"own:{i}" if who == "me" else ""
            )
            for i, (who, text) in enumerate(lines)
        )
        composer = _composer(self.draft("text"), self.focus == "text")
        return Page(name, shown, up=True, bottom=composer, dialog=self.menu_dialog())

    def menu_dialog(self) -> Dialog | None:
        """Return the menu of a message."""
        if self.menu is None:
            return None
        text = self.chats[self.route[1]][int(self.menu[2])][1]
        return Dialog("Message", text, items=(Cell(f"delete:{self.menu[2]}", "Delete", "delete"),))

    def on_open(self, name: str) -> None:
        """Open a conversation."""
        self.drafts = {}
        self.go("chat", name)

    def on_new(self, _: str) -> None:
        """Open the list of people."""
        self.go("people")

    def on_write(self, name: str) -> None:
        """Open the conversation with a person."""
        self.drafts = {}
        self.routes = [("home",), ("chat", name)]

    def on_own(self, _: str) -> None:
        """Tell how to delete."""
        self.toast = "Long press a message for options"

    def on_send(self, _: str) -> None:
        """Send what was typed."""
        text = self.drafts.pop("text", "").strip()
        if text:
            self.chats[self.route[1]].append(("me", text))
            self.focus = None

    def on_delete(self, place: str) -> None:
        """Delete a message."""
        del self.chats[self.route[1]][int(place)]
        self.menu = None

    def look(self, thing: Route) -> Intent | None:
        """Lead to a conversation."""
        if self.route == thing and self.menu is None:
            return None
        if self.menu is not None or self.route[0] == "chat":
            return self.leave()
        name = thing[1]
        if self.route == ("people",):
            return tap(f"write:{name}", f"Choose {name}")
        if self.chats[name]:
            return tap(f"open:{name}", f"Open the conversation with {name}")
        return tap("new:", "Start a new message")

    def guide(self, want: Sequence[Fact]) -> Intent:
        """Send what is missing, then delete what shouldn't have been sent."""
        missing = self.missing(want)
        if missing:
            _, name, text = missing[0]
            return self.look(("chat", name)) or self.fill("text", text, "Message") or tap("send:", "Tap Send")
        _, name, text = self.extra(want)[0]
        place = self.chats[name].index(("me", text))
        if self.route == ("chat", name) and self.menu == ("menu", "own", str(place)):
            return tap(f"delete:{place}", "Tap Delete")
        return self.look(("chat", name)) or Intent("hold", f"own:{place}", "Long press the message")
