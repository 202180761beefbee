"""Check a version before its manifest is written: every law, and private strings in its texts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from solar_rl.config import DatasetConfig
from solar_rl.store.manifest import CheckEntry, Manifest

if TYPE_CHECKING:
    from solar_rl.query import Connection


def run_checks(
    con: Connection, folder: Path, config: DatasetConfig, base: Manifest | None
) -> tuple[CheckEntry, ...]:
    """Run the checks that need no manifest; what ``validate`` does beside them is compare files with it.

    Args:
        con: A connection to the folder.
        folder: A version whose tables are written.
        config: Its config.
        base: The version whose episodes, steps, images and candidates it keeps, if it does: what held of
            those holds still, and isn't looked at again.
    """
    from solar_rl.validate.laws import SAMPLED_LAWS, laws_in
    from solar_rl.validate.texts import NAMES, judge, scan

    known = {entry.name: entry for entry in base.checks} if base else {}
    kept = {name: known[name] for name in SAMPLED_LAWS if name in known}
    found = {
        check.name: CheckEntry(name=check.name, passed=check.passed, count=check.count)
        for check in laws_in(con, config.model_dump(mode="json"), skip=kept)
    }
    allow = {str(kind): why for kind, why in config.privacy.allow.items()}
    same = base is not None and base.config.get("privacy") == config.privacy.model_dump(mode="json")
    if same and all(name in known for name in NAMES.values()):
        texts = [known[name] for name in NAMES.values()]
    else:
        texts = [
            CheckEntry(name=c.name, passed=c.passed, count=c.count, note=c.detail)
            for c in judge(scan(folder), allow)
        ]
    laws = found | kept  # in one order, whichever of them were looked at
    return (*(laws[name] for name in sorted(laws)), *texts)
