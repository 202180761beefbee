"""Find out which code a stage depends on: the modules behind it, each with the hash of its file.

The modules are found by following the import lines of solar_rl's own files, so that a change of the report
or of a trainer never samples again.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import solar_rl
from solar_rl.store.manifest import sha256_file, source_digest

_ROOT = Path(solar_rl.__file__).parent
_IMPORT = re.compile(
    r"^\s*(?:from\s+(solar_rl[\w.]*)\s+import\s+(\([^)]*\)|[^\n]*)|import\s+(solar_rl[\w.]*))", re.M
)
_NAME = re.compile(r"\w+")
_RESOURCES = {".sql", ".jinja", ".j2", ".css", ".html"}
_VALUES_COUNT = ("solar_rl", "solar_rl.config", "solar_rl.errors", "solar_rl.yaml_file", "solar_rl.shipped")
"""Left out: a config's values are part of a key, how they are read or told is not."""
_NOT_FOLLOWED = ("solar_rl.formats", "solar_rl.sampling", "solar_rl.protocols")
"""Packages that pick one module by its name: that one counts, not its neighbours. Nor is the pipeline followed,
which knows everything."""


def code_behind(roots: Iterable[str], without: Iterable[str] = ()) -> dict[str, str]:
    """Return every module of ours that the roots import, themselves included: name to 16 hex digits.

    Args:
        roots: Full names of modules.
        without: Modules that are left out, and so is what only they import.

    >>> sorted(code_behind(["solar_rl.advantage"]))[:2]
    ['solar_rl.actions', 'solar_rl.advantage']
    """
    found: dict[str, str] = {}
    waiting, unwanted = list(roots), set(without)
    while waiting:
        name = waiting.pop()
        if name in found or name in unwanted or _left_out(name):
            continue
        found[name] = _digest(name)
        if name not in _NOT_FOLLOWED and not name.startswith("solar_rl.pipeline"):
            waiting += _imports(name)
    return dict(sorted(found.items()))


def builder_code(builder: type) -> str:
    """Return the hash of a builder's sources: its whole package, whoever wrote it."""
    file = Path(inspect.getfile(builder))
    shipped = builder.__module__.split(".")[0] == "builders" or "._shipped." in builder.__module__
    inside = file.name == "__init__.py"
    root = next(p for p in file.parents if p.name == "builders") if shipped else file.parent
    return source_digest(root if shipped or inside else file)


def foreign_code(reference: str) -> str | None:
    """Return the hash of the file behind ``module:name``; None where it names no such file."""
    module, colon, _ = reference.partition(":")
    spec = importlib.util.find_spec(module) if colon and _NAME.fullmatch(module.split(".")[0]) else None
    return source_digest(Path(spec.origin)) if spec and spec.origin and Path(spec.origin).is_file() else None


def _left_out(name: str) -> bool:
    return any(name == each or (each != "solar_rl" and name.startswith(f"{each}.")) for each in _VALUES_COUNT)


@cache
def _file(name: str) -> Path | None:
    """Return a module's file; None where the name is no module (a class, a function)."""
    path = _ROOT.joinpath(*name.split(".")[1:])
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


def _digest(name: str) -> str:
    """Hash a module's file, and with a package (or a file that reads one beside it) its templates and SQL."""
    file = _file(name)
    assert file is not None, f"{name} is no module of ours"
    parts = [sha256_file(file)]
    if file.name == "__init__.py" or "resources.files" in file.read_text(encoding="utf-8"):
        parts += [sha256_file(p) for p in sorted(file.parent.iterdir()) if p.suffix in _RESOURCES]
    return _short(parts)


def _short(parts: list[str]) -> str:
    import hashlib

    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


@cache
def _imports(name: str) -> tuple[str, ...]:
    """List the modules that a module's import lines name, packages included."""
    file = _file(name)
    assert file is not None
    found: set[str] = set()
    for module, names, plain in _IMPORT.findall(file.read_text(encoding="utf-8")):
        base = module or plain
        found.add(base)
        found |= {f"{base}.{each}" for each in _NAME.findall(names)}
    parents = {name.rpartition(".")[0]} - {"solar_rl"}
    return tuple(each for each in sorted(found | parents) if _file(each) is not None)


def module_exists(name: str) -> bool:
    """Tell whether a dotted name is a module of ours."""
    return name.startswith("solar_rl.") and _file(name) is not None
