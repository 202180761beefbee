"""Check a version before its manifest is written: the laws, and private strings in its texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from solar_rl.config import DatasetConfig
from solar_rl.store.manifest import CheckEntry, Manifest

if TYPE_CHECKING:
    from solar_rl.query import Connection
    from solar_rl.validate import Check


def run_checks(
    con: Connection, folder: Path, config: DatasetConfig, base: Manifest | None
) -> tuple[CheckEntry, ...]:
    """Check the laws of single rewards, trajectories and groups, and all that was read and sampled.

    ``validate`` has more: laws that join tables, and files against the manifest. These here are cheap enough for
    a version that is re-shaped in seconds, and the same whether it was re-shaped or built anew.

    Args:
        con: A connection to the folder.
        folder: A version whose tables are written.
        config: Its config.
        base: The version whose episodes, steps, images and candidates it keeps, if it does: what was found
            there isn't looked for again.
    """
    from solar_rl.validate.laws import quick_laws, sampled_laws, select_laws
    from solar_rl.validate.texts import NAMES

    quick, resolved = [_entry(check) for check in quick_laws(con)], config.model_dump(mode="json")
    laws = sampled_laws(resolved)
    if base is not None and base.config.get("privacy") == resolved["privacy"]:
        known = {entry.name: entry for entry in base.checks}
        if all(name in known for name in (*laws, *NAMES.values())):
            return (*quick, *(known[name] for name in (*laws, *NAMES.values())))
    return (*quick, *map(_entry, select_laws(con, laws)), *map(_entry, _private(folder, config)))


def _private(folder: Path, config: DatasetConfig) -> Iterator[Check]:
    from solar_rl.validate.laws import SAMPLED
    from solar_rl.validate.texts import judge, scan

    yield from judge(scan(folder, SAMPLED), {str(kind): why for kind, why in config.privacy.allow.items()})


def _entry(check: Check) -> CheckEntry:
    found = check.detail if check.passed or check.name.startswith("no_") else ""
    return CheckEntry(name=check.name, passed=check.passed, count=check.count, note=found)
