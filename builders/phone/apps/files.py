"""Files: folders with files that can be moved, starred and thrown away."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ..blocks import Block, Cell, Lead, Trail, empty, field, header, row
from ..screen import Dialog, Page, Tool
from ..stock import FILES, FOLDERS
from .base import App, Fact, Intent, Route, tap

TRASH = "Trash"
_ICONS = {"pdf": ("file", "#ba1a1a"), "jpg": ("image", "#00838f"), "png": ("image", "#00838f"), "mp3": ("music", "#7b3fb5"), "doc": ("note", "#1a73e8")}  # fmt: skip


class Files(App):
    """A file browser with one level of folders; nothing is ever gone for good."""

    name, title, icon, color = "files", "Files", "folder", "#00796b"

    def fill_in(self, rng: Random) -> None:
        """Draw five folders and a dozen files in them."""
        self.folders = [*sorted(rng.sample(FOLDERS, 5)), TRASH]
        self.files = {name: rng.choice(self.folders[:5]) for name in sorted(rng.sample(FILES, 13))}
        self.starred: set[str] = set()

    def facts(self) -> frozenset[Fact]:
        """Return ("file", name, folder), ("folder", name) and ("starred", file)."""
        facts: set[Fact] = {("file", name, folder) for name, folder in self.files.items()}
        facts |= {("folder", name) for name in self.folders}
        return frozenset(facts | {("starred", name) for name in self.starred})

    def page(self) -> Page:
        """Return the folders, one folder, the choice of a folder, or the name of a new one."""
        name = self.route[0]
        if name == "folder":
            return self._folder(self.route[1])
        if name == "move":
            rows = [row(f"into:{f}", f, "", Lead("tinted", "folder")) for f in self.folders if f != TRASH]
            return Page("Move to", (header(self.route[1]), *rows), up=True)
        if name == "new":
            typed = field("name", "Folder name", self.draft("name"), self.focus == "name")
            return Page("New folder", (typed,), up=True, tools=(Tool("save:", "check", "Save"),))
        rows = [self._folder_row(folder) for folder in self.folders]
        recent = [self._file_row(file) for file in list(self.files)[:4]]
        blocks = (header("Folders"), *rows, header("Recent"), *recent)
        return Page("Files", blocks, fab=Tool("new:", "add", "New folder"), dialog=self.menu_dialog())

    def _folder_row(self, folder: str) -> Block:
        count = sum(place == folder for place in self.files.values())
        lead = Lead("tinted", "delete" if folder == TRASH else "folder")
        return row(
            f"open:{folder}", folder, "1 file" if count == 1 else f"{count} files", lead, hold=folder != TRASH
        )

    def _file_row(self, file: str) -> Block:
        icon, color = _ICONS[file.rpartition(".")[2]]
        trail = Trail("icon", "star") if file in self.starred else None
        return row(
            f"file:{file}", file, f"In {self.files[file]}", Lead("square", icon, color), trail, hold=True
        )

    def _folder(self, folder: str) -> Page:
        rows = tuple(self._file_row(file) for file in sorted(self.files) if self.files[file] == folder)
        return Page(
            folder, rows or (empty("folder", "This folder is empty"),), up=True, dialog=self.menu_dialog()
        )

    def menu_dialog(self) -> Dialog | None:
        """Return the menu of a file or folder."""
        if self.menu is None:
            return None
        kind, name = self.menu[1:]
        if kind == "open":
            return Dialog(name, items=(Cell(f"remove:{name}", "Delete folder", "delete"),))
        star = Cell(f"star:{name}", "Remove star" if name in self.starred else "Add star", "star")
        items = (
            star,
            Cell(f"move:{name}", "Move to", "folder"),
            Cell(f"trash:{name}", "Move to trash", "delete"),
        )
        return Dialog(name, items=items)

    def on_open(self, folder: str) -> None:
        """Open a folder."""
        self.go("folder", folder)

    def on_file(self, _: str) -> None:
        """Say that there is no viewer."""
        self.toast = "Long press a file for options"

    def on_star(self, file: str) -> None:
        """Star or unstar a file."""
        self.starred ^= {file}
        self.menu = None

    def on_move(self, file: str) -> None:
        """Ask for the folder."""
        self.go("move", file)

    def on_into(self, folder: str) -> None:
        """Move the file."""
        self.files[self.route[1]] = folder
        self.back()
        self.toast = f"Moved to {folder}"

    def on_trash(self, file: str) -> None:
        """Throw a file away."""
        self.files[file] = TRASH
        self.menu = None
        self.toast = "Moved to trash"

    def on_new(self, _: str) -> None:
        """Ask for the name of a folder."""
        self.drafts = {}
        self.go("new")

    def on_save(self, _: str) -> None:
        """Make the folder."""
        name = self.draft("name").strip()
        if not name or name in self.folders:
            self.toast = "This name is taken" if name else "Enter a name"
            return
        self.folders = [*sorted([*self.folders[:-1], name]), TRASH]
        self.back()
        self.back()

    def on_remove(self, folder: str) -> None:
        """Delete an empty folder."""
        self.menu = None
        if folder in self.files.values():
            self.toast = "The folder is not empty"
        else:
            self.folders.remove(folder)

    def look(self, thing: Route) -> Intent | None:
        """Lead to a folder."""
        if self.route == thing and self.menu is None:
            return None
        if self.menu is not None or self.route != ("home",):
            return self.leave()
        return tap(f"open:{thing[1]}", f"Open the folder {thing[1]}")

    def guide(self, want: Sequence[Fact]) -> Intent:
        """Make folders, move files, set stars, and delete folders that are too many."""
        folders = self.missing(want, "folder")
        if folders:
            return self._make(folders[0][1])
        moves = self.missing(want, "file")
        if moves:
            return self._move(moves[0][1], moves[0][2])
        stars = self.missing(want, "starred") or self.extra(want, "starred")
        if stars:
            file = stars[0][1]
            return self._from_menu(file, f"star:{file}", "Tap the star in the menu")
        folder = self.extra(want, "folder")[0][1]
        if self.menu == ("menu", "open", folder):
            return tap(f"remove:{folder}", "Tap Delete folder")
        if self.menu is not None or self.route != ("home",):
            return self.leave()
        return Intent("hold", f"open:{folder}", f"Long press the folder {folder}")

    def _make(self, name: str) -> Intent:
        if self.route == ("new",):
            return self.fill("name", name, "Folder name") or tap("save:", "Save the folder")
        if self.menu is not None or self.route != ("home",):
            return self.leave()
        return tap("new:", "Tap the add button")

    def _move(self, file: str, folder: str) -> Intent:
        if self.route == ("move", file):
            return tap(f"into:{folder}", f"Choose {folder}")
        if folder == TRASH:
            return self._from_menu(file, f"trash:{file}", "Tap Move to trash")
        return self._from_menu(file, f"move:{file}", "Tap Move to")

    def _from_menu(self, file: str, key: str, say: str) -> Intent:
        if self.menu == ("menu", "file", file):
            return tap(key, say)
        return self.look(("folder", self.files[file])) or Intent("hold", f"file:{file}", f"Long press {file}")
