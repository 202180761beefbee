"""What the loopback Hub keeps: contents by sha256, commits as trees of paths, and planted faults."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

LARGE = (".parquet", ".png", ".safetensors", ".bin")
"""Endings that go to large-file storage."""


@dataclass
class File:
    """One file of a tree."""

    sha256: str
    size: int
    oid: str
    large: bool

    def entry(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = {"type": "file", "path": path, "oid": self.oid, "size": self.size}
        if self.large:
            found["lfs"] = {"oid": self.sha256, "size": self.size, "pointerSize": 130}
        return found


@dataclass
class Commit:
    """One state of a repository."""

    parent: str | None
    title: str
    tree: dict[str, File]


@dataclass
class Repo:
    """One repository: commits by id, and where branches and tags stand."""

    private: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)

    def add(self, title: str, tree: dict[str, File]) -> str:
        parent = self.branches.get("main")
        body = json.dumps([parent, title, len(self.commits), sorted((p, f.oid) for p, f in tree.items())])
        oid = hashlib.sha1(body.encode()).hexdigest()
        self.commits[oid] = Commit(parent, title, tree)
        self.branches["main"] = oid
        return oid

    def resolve(self, revision: str) -> str | None:
        name = unquote(revision).removeprefix("refs/heads/").removeprefix("refs/tags/")
        known = self.branches.get(name) or self.tags.get(name)
        return known or (name if name in self.commits else None)


@dataclass
class Fault:
    """What the next matching requests meet.

    Args:
        match: Pattern of "METHOD /path".
        times: How many of them; the ``skip`` first ones pass.
        status: Answer with it, or
        cut: "before" (the line breaks and nothing happened) or "after" (it happened, the answer is lost).
        act: Called before the request is handled.
    """

    match: str
    times: int = 1
    skip: int = 0
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "planted"
    cut: str | None = None
    act: Callable[[], None] | None = None


class Store:
    """Repositories, contents, and what was asked of them."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.repos: dict[tuple[str, str], Repo] = {}
        self.faults: list[Fault] = []
        self.seen: list[str] = []
        self.sent: list[str] = []
        """sha256 of every upload that arrived whole."""
        self.lock = threading.RLock()

    def plant(self, match: str, **fault: Any) -> Fault:
        """Make the next requests that match meet a fault."""
        made = Fault(match, **fault)
        self.faults.append(made)
        return made

    def repo(self, name: str, kind: str = "datasets") -> Repo:
        return self.repos[kind, name]

    def files(self, name: str, revision: str = "main", kind: str = "datasets") -> dict[str, bytes]:
        """Return what a revision holds, without the Hub's own file."""
        repo = self.repo(name, kind)
        tree = repo.commits[str(repo.resolve(revision))].tree
        return {path: self.blobs[file.sha256] for path, file in tree.items() if path != ".gitattributes"}

    def commit(
        self, name: str, files: dict[str, bytes], kind: str = "datasets", title: str = "by hand"
    ) -> str:
        """Commit as somebody else would."""
        repo = self.repo(name, kind)
        tree = dict(repo.commits[repo.branches["main"]].tree)
        tree |= {path: self.store(path, data) for path, data in files.items()}
        return repo.add(title, tree)

    def create(self, name: str, kind: str = "datasets", private: bool = False) -> Repo:
        repo = self.repos[kind, name] = Repo(private)
        repo.add(
            "initial commit", {".gitattributes": self.store(".gitattributes", b"*.parquet filter=lfs\n")}
        )
        return repo

    def store(self, path: str, data: bytes) -> File:
        sha256 = hashlib.sha256(data).hexdigest()
        self.blobs[sha256] = data
        return self.file(path, sha256)

    def file(self, path: str, sha256: str) -> File:
        data, large = self.blobs[sha256], path.endswith(LARGE)
        shown = f"version 1\noid sha256:{sha256}\nsize {len(data)}\n".encode() if large else data
        return File(sha256, len(data), hashlib.sha1(b"blob %d\0" % len(shown) + shown).hexdigest(), large)

    def met(self, request: str) -> Fault | None:
        """Note a request, and return the fault that it meets."""
        with self.lock:
            self.seen.append(request)
            for fault in self.faults:
                if fault.times and re.search(fault.match, request):
                    if fault.skip:
                        fault.skip -= 1
                        continue
                    fault.times -= 1
                    return fault
        return None
