"""Check a version before its manifest is written: the laws, and private strings in its texts."""

from __future__ import annotations

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
    """Run the checks that need no manifest; what ``validate`` does beside them is compare files with it.

    A version that keeps another one's samples is made in seconds: of its new tables the laws without a join
    are checked, and what held of the tables that it keeps holds still.

    Args:
        con: A connection to the folder.
        folder: A version whose tables are written.
        config: Its config.
        base: The version whose episodes, steps, images and candidates it keeps, if it does.
    """
    from solar_rl.validate.laws import SAMPLED_LAWS, laws_in, quick_laws
    from solar_rl.validate.texts import NAMES, judge, scan

    known = {entry.name: entry for entry in base.checks} if base else {}
    resolved = config.model_dump(mode="json")
    if base is None:
        laws = [_entry(check) for check in laws_in(con, resolved)]
    else:
        laws = [_entry(check) for check in quick_laws(con)]
        laws += [entry for name, entry in known.items() if name in SAMPLED_LAWS]
    texts = [known[name] for name in NAMES.values() if name in known]
    if base is None or not texts or base.config.get("privacy") != resolved["privacy"]:
        reasons = {str(kind): why for kind, why in config.privacy.allow.items()}
        texts = [_entry(check) for check in judge(scan(folder), reasons)]
    return (*laws, *texts)


def _entry(check: Check) -> CheckEntry:
    found = check.detail if check.passed or check.name.startswith("no_") else ""
    return CheckEntry(name=check.name, passed=check.passed, count=check.count, note=found)
