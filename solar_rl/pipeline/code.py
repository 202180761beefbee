"""Find out which code a stage depends on: the modules behind it, each with the hash of its file.

The modules are found by following import lines, so that a change of the report or of a trainer never samples
again, nor a change of one builder what another reads.
"""

from __future__ import annotations

import ast
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
    """Return the hash of what a builder runs: its own file or package, the shipped ones it imports, ours behind them."""
    file = Path(inspect.getfile(builder))
    own = file.parent if file.name == "__init__.py" else file
    sources = [own] if own.is_file() else sorted(own.rglob("*.py"))
    shipped = builder.__module__.split(".")[0] == "builders" or "._shipped." in builder.__module__
    if shipped:
        sources = _followed(sources)
    ours = code_behind({name for source in sources for name in _named(source)})
    neighbours = [sha256_file(source) for source in sources if not source.is_relative_to(own)]
    return _short([source_digest(own), *neighbours, *(f"{name} {digest}" for name, digest in ours.items())])


def _followed(sources: list[Path]) -> list[Path]:
    """Add the files that relative imports lead to, in a fixed order."""
    found: dict[Path, None] = {}
    waiting = list(sources)
    while waiting:
        source = waiting.pop()
        if source not in found:
            found[source] = None
            waiting += _neighbours(source)
    return sorted(found)


def _neighbours(source: Path) -> list[Path]:
    """List the files that a file imports relatively: modules, and packages that names are taken from."""
    found = []
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = source.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            named = (base, *(base / alias.name for alias in node.names))
            found += [file for path in named for file in (path.with_suffix(".py"), path / "__init__.py")]
    return [file for file in found if file.is_file()]


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
    parents = {name.rpartition(".")[0]} - {"solar_rl"}
    return tuple(sorted(_named(file) | {each for each in parents if _file(each) is not None}))


def _named(source: Path) -> set[str]:
    """Find the modules of ours that a file's import lines name."""
    found: set[str] = set()
    for module, names, plain in _IMPORT.findall(source.read_text(encoding="utf-8")):
        base = module or plain
        found |= {base} | {f"{base}.{each}" for each in _NAME.findall(names)}
    return {each for each in found if _file(each) is not None}


def module_exists(name: str) -> bool:
    """Tell whether a dotted name is a module of ours."""
    return name.startswith("solar_rl.") and _file(name) is not None
