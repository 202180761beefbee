"""Find what travels with solar-rl: builders, recipes and dataset descriptions.

In a checkout they are the top-level folders; in a wheel they lie under ``solar_rl/_shipped``, so that no
generic name such as ``recipes`` or ``datasets`` lands in site-packages.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from solar_rl.errors import InputError

_PACKAGE = Path(__file__).parent
_CHECKOUT = _PACKAGE.parent


def in_checkout() -> bool:
    """Tell whether this solar_rl runs from a checkout rather than from an installed wheel."""
    return not (_PACKAGE / "_shipped").is_dir()


def shipped_path(kind: str, *parts: str) -> Path:
    """Return the path of a shipped file or folder.

    Args:
        kind: builders, recipes or datasets.
        parts: Path below it, such as ("phone", "dataset.yaml").

    Raises:
        InputError: Nothing of that name is shipped.
    """
    root = _CHECKOUT if in_checkout() else _PACKAGE / "_shipped"
    path = root.joinpath(kind, *parts)
    if not path.exists():
        folder = next(
            p for p in path.parents if p.is_dir()
        )  # the nearest that exists says what could be meant
        there = sorted(p.name for p in folder.glob("*") if not p.name.startswith(("_", ".")))
        raise InputError(f"no {kind}/{'/'.join(parts)} is shipped", hint=f"there is: {', '.join(there)}")
    return path


def shipped_names(kind: str) -> list[str]:
    """List the shipped modules of a kind, such as every builder, by name."""
    root = _CHECKOUT if in_checkout() else _PACKAGE / "_shipped"
    return sorted(
        p.stem
        for p in (root / kind).glob("*")
        if not p.stem.startswith(("_", ".")) and (p.suffix == ".py" or (p / "__init__.py").exists())
    )


def shipped_module(kind: str, name: str) -> ModuleType:
    """Import a shipped module, such as builder ``phone``.

    In a checkout ``builders`` is imported as a top-level package from the checkout itself, whatever
    the current directory holds.

    Raises:
        InputError: No such module is shipped.
    """
    root = _CHECKOUT if in_checkout() else _PACKAGE / "_shipped"
    names = shipped_names(kind)
    if name not in names:
        raise InputError(f"no {kind[:-1]} is named '{name}'", hint=f"there is: {', '.join(names)}")
    if not in_checkout():
        return importlib.import_module(f"solar_rl._shipped.{kind}.{name}")
    if kind not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            kind, root / kind / "__init__.py", submodule_search_locations=[str(root / kind)]
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[kind] = module
        spec.loader.exec_module(module)
    return importlib.import_module(f"{kind}.{name}")
