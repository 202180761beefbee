"""Notes: texts and checklists, pinned or not."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..blocks import Block, Cell, Choice, Lead, Trail, buttons, empty, field, header, paragraph, row
from ..screen import Dialog, Page, Tool
from ..stock import ITEMS, LINES, TITLES
from .base import App, Fact, Intent, Route, tap


class Notes(App):
    """Texts and checklists."""

    name, title, icon, color = "notes", "Notes", "note", "#b26a00"

    def fill_in(self, rng: Random) -> None:
        """Draw ten to fifteen notes, two or three of them with a checklist."""
        titles = rng.sample(TITLES, rng.randint(10, 15))
        self.bodies = {title: rng.choice(LINES) for title in titles}
        self.items: dict[str, dict[str, bool]] = {
            title: {item: rng.random() < 0.3 for item in rng.sample(ITEMS, rng.randint(4, 6))}
            for title in titles[: rng.randint(2, 3)]
        }
        self.pinned = {titles[-1]}

    def thin_out(self, rng: Random, most: int) -> None:
        """Keep at most so many notes, those with a checklist among them."""
        first = {
            title.split()[0]: title for title in (*self.bodies, *self.items)
        }  # those with a checklist win
        others = sorted(set(first.values()) - set(self.items))
        some = rng.sample(others, min(len(others), max(0, most - len(self.items))))
        kept = [title for title in self.bodies if title in some or title in self.items]
        self.bodies = {title: self.bodies[title] for title in kept}
        self.pinned &= set(kept)

    def facts(self) -> frozenset[Fact]:
        """Return ("note", title, text), ("pin", title), ("item", title, item), ("done", title, item)."""
        facts: set[Fact] = {("note", title, body) for title, body in self.bodies.items()}
        facts |= {("pin", title) for title in self.pinned}
        for title, items in self.items.items():
            facts |= {("item", title, item) for item in items}
            facts |= {("done", title, item) for item, done in items.items() if done}
        return frozenset(facts)

    def page(self) -> Page:
        """Return the list, a note or the editor."""
        if self.route[0] == "edit":
            return self._editor()
        return self._note(self.route[1]) if self.route[0] == "note" else self._list()

    def _list(self) -> Page:
        def line(title: str) -> Block:
            items = self.items.get(title)
            lead = Lead("square", "list" if items else "note")
            trail = Trail("icon", "pin") if title in self.pinned else None
            detail = ", ".join(items) if items else self.bodies[title]
            return row(f"open:{title}", title, detail or "Empty note", lead, trail, hold=True)

        pinned = sorted(self.pinned)
        blocks = [header("Pinned"), *map(line, pinned), header("Others")] if pinned else []
        blocks += [line(title) for title in sorted(self.bodies) if title not in self.pinned]
        shown = tuple(blocks) or (empty("note", "No notes"),)
        return Page("Notes", shown, fab=Tool("new:", "add", "New note"), dialog=self.menu_dialog())

    def _note(self, title: str) -> Page:
        blocks = [paragraph(self.bodies[title] or "No text", indent=20)]
        items = self.items.get(title, {})
        if items:
            blocks.append(header("Checklist"))
        blocks += [
            row(f"check:{item}", item, "", None, Trail("checkbox", on=done), hold=True)
            for item, done in items.items()
        ]
        blocks.append(field("item", "New item", self.draft("item"), self.focus == "item"))
        blocks.append(buttons(Choice("add:", "Add item")))
        tools = (Tool(f"edit:{title}", "edit", "Edit note"),)
        return Page(title, tuple(blocks), up=True, tools=tools, dialog=self.menu_dialog())

    def _editor(self) -> Page:
        blocks = (
            field("title", "Title", self.draft("title"), self.focus == "title"),
            field("body", "Text", self.draft("body"), self.focus == "body", "area"),
        )
        title = "Edit note" if self.route[1] else "New note"
        return Page(title, blocks, up=True, tools=(Tool("save:", "check", "Save"),))

    def menu_dialog(self) -> Dialog | None:
        """Return the menu of a note or of an item."""
        if self.menu is None:
            return None
        kind, name = self.menu[1:]
        if kind == "check":
            return Dialog(name, items=(Cell(f"drop:{name}", "Remove item", "delete"),))
        pin = Cell(f"pin:{name}", "Unpin" if name in self.pinned else "Pin to top", "pin")
        return Dialog(name, items=(pin, Cell(f"delete:{name}", "Delete", "delete")))

    def on_open(self, title: str) -> None:
        """Open a note."""
        self.drafts = {}
        self.go("note", title)

    def on_new(self, _: str) -> None:
        """Open the empty editor."""
        self.drafts = {}
        self.go("edit", "")

    def on_edit(self, title: str) -> None:
        """Open the editor on a note."""
        self.drafts = {"title": title, "body": self.bodies[title]}
        self.go("edit", title)

    def on_save(self, _: str) -> None:
        """Store the note under its title, which must be its own."""
        title, old = self.draft("title").strip(), self.route[1]
        if not title or (title != old and title in self.bodies):
            self.toast = "This title is taken" if title else "Enter a title"
            return
        if old:
            del self.bodies[old]
            self.items = {title if key == old else key: items for key, items in self.items.items()}
            if old in self.pinned:
                self.pinned = self.pinned - {old} | {title}
        self.bodies[title] = self.draft("body").strip()
        self.routes, self.focus, self.drafts = [("home",)], None, {}
        self.toast = "Note saved"

    def on_check(self, item: str) -> None:
        """Tick or untick an item."""
        items = self.items[self.route[1]]
        items[item] = not items[item]

    def on_add(self, _: str) -> None:
        """Add the typed item to the checklist."""
        item = self.drafts.pop("item", "").strip()
        if item:
            self.items.setdefault(self.route[1], {}).setdefault(item, False)

    def submit(self) -> None:
        """Add the typed item on enter and wait for the next one; elsewhere close the keyboard."""
        if self.focus == "item":
            self.on_add("")
        else:
            self.focus = None

    def on_drop(self, item: str) -> None:
        """Remove an item."""
        title = self.route[1]
        del self.items[title][item]
        if not self.items[title]:
            del self.items[title]
        self.menu = None

    def on_pin(self, title: str) -> None:
        """Pin or unpin a note."""
        self.pinned ^= {title}
        self.menu = None

    def on_delete(self, title: str) -> None:
        """Delete a note with its checklist."""
        del self.bodies[title]
        self.items.pop(title, None)
        self.pinned.discard(title)
        self.menu = None
        self.toast = "Note deleted"

    def look(self, thing: Route) -> Intent | None:
        """Lead to a note."""
        if self.route == thing and self.menu is None:
            return None
        if self.menu is not None or self.route != ("home",):
            return self.leave()
        return tap(f"open:{thing[1]}", f"Open the note {thing[1]}")

    def guide(self, want: Sequence[Fact]) -> Intent:
        """Write what is missing, delete what is too much, then items, ticks and pins."""
        missing, wrong = self.missing(want, "note"), self.extra(want, "note")
        if missing:
            return self._write(missing[0][1], missing[0][2])
        if wrong:
            return self._from_menu(wrong[0][1], "delete", "Delete")
        for fact in (*self.missing(want, "item"), *self.extra(want, "item")):
            return self._item(fact[1], fact[2])
        for fact in (*self.missing(want, "done"), *self.extra(want, "done")):
            return self.look(("note", fact[1])) or tap(f"check:{fact[2]}", f"Tap the box of {fact[2]}")
        title = (self.missing(want, "pin") or self.extra(want, "pin"))[0][1]
        return self._from_menu(title, "pin", "Unpin" if title in self.pinned else "Pin to top")

    def _write(self, title: str, body: str) -> Intent:
        old = title if title in self.bodies else ""
        if self.route == ("edit", old):
            return (
                self.fill("title", title, "Title")
                or self.fill("body", body, "Text")
                or tap("save:", "Save the note")
            )
        if old:
            return self.look(("note", title)) or tap(f"edit:{title}", "Tap the pencil")
        return tap("new:", "Tap the add button") if self.route == ("home",) else self.leave()

    def _item(self, title: str, item: str) -> Intent:
        if item not in self.items.get(title, {}):
            return self.look(("note", title)) or self.fill("item", item, "New item") or self._confirm()
        if self.menu == ("menu", "check", item):
            return tap(f"drop:{item}", "Tap Remove item")
        return self.look(("note", title)) or Intent("hold", f"check:{item}", f"Long press {item}")

    def _confirm(self) -> Intent:
        if self.focus == "item":
            return Intent("enter", "", "Press enter to add the item")
        return tap("add:", "Tap Add item")

    def _from_menu(self, title: str, verb: str, label: str) -> Intent:
        if self.menu == ("menu", "open", title):
            return tap(f"{verb}:{title}", f"Tap {label}")
        if self.menu is not None or self.route != ("home",):
            return self.leave()
        return Intent("hold", f"open:{title}", f"Long press the note {title}")
