"""Contacts: an alphabetical list with many names that look alike, a card each, and an editor."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..blocks import Choice, Lead, Trail, banner, buttons, empty, field, header, row
from ..screen import Dialog, Page, Tool
from ..stock import FIRST, LAST
from .base import App, Fact, Intent, Route, tap


def phone_number(rng: Random) -> str:
    """Draw a phone number of the form 555 0143 27."""
    return f"555 {rng.randint(0, 9999):04d} {rng.randint(10, 99)}"


def full_name(rng: Random) -> str:
    """Draw a first and a last name."""
    return f"{rng.choice(FIRST)} {rng.choice(LAST)}"


class Contacts(App):
    """The address book."""

    name, title, icon, color = "contacts", "Contacts", "person", "#1a73e8"

    def fill_in(self, rng: Random) -> None:
        """Draw up to 22 people, among them pairs with the same first or last name."""
        names = {full_name(rng) for _ in range(rng.randint(14, 19))}
        for name in rng.sample(sorted(names), 3):
            names.add(f"{name.split()[0]} {rng.choice(LAST)}")
        self.people = {name: phone_number(rng) for name in sorted(names)}
        self.starred = set(rng.sample(sorted(names), 2))

    def thin_out(self, rng: Random, most: int) -> None:
        """Keep at most so many people, by their first names."""
        numbers = {name.split()[0]: number for name, number in self.people.items()}
        kept = rng.sample(sorted(numbers), min(most, len(numbers)))
        self.people = {name: numbers[name] for name in sorted(kept)}
        self.starred = {name.split()[0] for name in self.starred} & set(kept)

    def facts(self) -> frozenset[Fact]:
        """Return ("contact", name, number) and ("star", name)."""
        people = {("contact", name, number) for name, number in self.people.items()}
        return frozenset(people | {("star", name) for name in self.starred})

    def page(self) -> Page:
        """Return the list, a card or the editor."""
        if self.route[0] == "edit":
            return self._editor()
        return self._card(self.route[1]) if self.route[0] == "card" else self._list()

    def _list(self) -> Page:
        blocks = []
        letter = ""
        for name in sorted(self.people):
            if name[0] != letter:
                letter = name[0]
                blocks.append(header(letter))
            trail = Trail("icon", "star") if name in self.starred else None
            blocks.append(row(f"open:{name}", name, "", Lead("avatar", name), trail))
        return Page("Contacts", tuple(blocks), fab=Tool("new:", "add", "Add contact"))

    def _card(self, name: str) -> Page:
        star = "star" if name in self.starred else "star_off"
        said = "Remove from favourites" if name in self.starred else "Add to favourites"
        if name not in self.people:
            return Page(name, (empty("person", "This contact is gone"),), up=True)
        blocks = (
            banner(name, self.people[name], ""),
            buttons(Choice("call:", "Call"), Choice("write:", "Message")),
            header("Contact info"),
            row("", self.people[name], "Mobile", Lead("tinted", "phone")),
            buttons(Choice(f"remove:{name}", "Delete contact", "outlined")),
        )
        tools = (Tool(f"star:{name}", star, said), Tool(f"edit:{name}", "edit", "Edit contact"))
        return Page("", blocks, up=True, tools=tools, dialog=self.menu_dialog())

    def _editor(self) -> Page:
        blocks = (
            field("name", "Name", self.draft("name"), self.focus == "name"),
            field("phone", "Phone", self.draft("phone"), self.focus == "phone"),
        )
        title = "Edit contact" if self.route[1] else "New contact"
        return Page(title, blocks, up=True, tools=(Tool("save:", "check", "Save"),))

    def menu_dialog(self) -> Dialog | None:
        """Ask before a contact is deleted."""
        if self.menu is None:
            return None
        choices = (Choice("dismiss", "Cancel", "tonal"), Choice(f"delete:{self.menu[1]}", "Delete", "danger"))
        return Dialog("Delete contact?", f"{self.menu[1]} will be removed from this phone.", choices=choices)

    def on_open(self, name: str) -> None:
        """Open a card."""
        self.go("card", name)

    def on_new(self, _: str) -> None:
        """Open the empty editor."""
        self.drafts = {}
        self.go("edit", "")

    def on_edit(self, name: str) -> None:
        """Open the editor on a contact."""
        self.drafts = {"name": name, "phone": self.people[name]}
        self.go("edit", name)

    def on_call(self, _: str) -> None:
        """Pretend to call."""
        self.toast = "Calls are off in this simulation"

    def on_write(self, _: str) -> None:
        """Point to the messages app."""
        self.toast = "Open Messages to write"

    def on_star(self, name: str) -> None:
        """Mark or unmark a favourite."""
        self.starred ^= {name}

    def on_remove(self, name: str) -> None:
        """Ask whether to delete."""
        self.menu = ("remove", name)

    def on_delete(self, name: str) -> None:
        """Delete, and go back to the list."""
        del self.people[name]
        self.starred.discard(name)
        self.menu = None
        self.routes = [("home",)]
        self.toast = f"{name} deleted"

    def on_save(self, _: str) -> None:
        """Store what the editor holds; a name is needed, and no two people share one."""
        name, old = self.draft("name").strip(), self.route[1]
        if not name or (name != old and name in self.people):
            self.toast = "This name is taken" if name else "Enter a name"
            return
        if old:
            del self.people[old]
            if old in self.starred:
                self.starred = self.starred - {old} | {name}
        self.people[name] = self.draft("phone").strip()
        self.routes = [("home",), ("card", name)]
        self.focus = None
        self.toast = "Contact saved"

    def look(self, thing: Route) -> Intent | None:
        """Lead to a card."""
        if self.route == thing and self.menu is None:
            return None
        if self.route != ("home",):
            return self.leave()
        return tap(f"open:{thing[1]}", f"Open the contact {thing[1]}")

    def guide(self, want: Sequence[Fact]) -> Intent:
        """Add or change what is missing, then delete what is too much, then set the stars."""
        missing = self.missing(want, "contact")
        if missing:
            return self._enter(*missing[0][1:])
        wrong = self.extra(want, "contact")
        if wrong:
            return self._remove(wrong[0][1])
        fact = (self.missing(want, "star") or self.extra(want, "star"))[0]
        return self.look(("card", fact[1])) or tap(f"star:{fact[1]}", f"Tap the star of {fact[1]}")

    def _enter(self, name: str, number: str) -> Intent:
        old = name if name in self.people else ""
        if self.route == ("edit", old):
            return (
                self.fill("name", name, "Name")
                or self.fill("phone", number, "Phone")
                or tap("save:", "Save the contact")
            )
        if old:
            return self.look(("card", name)) or tap(f"edit:{name}", f"Edit {name}")
        return tap("new:", "Tap the add button") if self.route == ("home",) else self.leave()

    def _remove(self, name: str) -> Intent:
        if self.menu == ("remove", name):
            return tap(f"delete:{name}", "Confirm the deletion")
        return self.look(("card", name)) or tap(f"remove:{name}", f"Tap delete for {name}")
