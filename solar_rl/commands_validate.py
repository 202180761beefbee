"""What the verb ``validate`` does with a dataset: run every check, print them, fail when one does."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import orjson
from rich.console import Console
from rich.markup import escape

from solar_rl.errors import CheckFailed

if TYPE_CHECKING:
    from solar_rl.validate import Check


def validate(dataset: str, *, all_images: bool, allow: Collection[str], as_json: bool) -> None:
    """Run every check on a dataset.

    Raises:
        CheckFailed: Some check failed; every one is printed first.
    """
    from solar_rl.store.dataset import open_dataset
    from solar_rl.validate import validate as run_checks

    checks = run_checks(open_dataset(dataset).path, all_images=all_images, allow=allow)
    if as_json:
        print(orjson.dumps([check._asdict() for check in checks], option=orjson.OPT_INDENT_2).decode())
    else:
        _print(checks)
    failed = [check.name for check in checks if not check.passed]
    if failed:
        raise CheckFailed(
            f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}",
            where=dataset,
            hint=_hint(failed),
        )
    if not as_json:
        print(f"all {len(checks)} checks passed")


def _print(checks: list[Check]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for check in checks:
        mark = "[green]ok  [/]" if check.passed else f"[red]FAIL[/] {check.count:,}"
        console.print(f"{mark} {check.name} [dim]{escape(check.detail)}[/]")


def _hint(failed: Collection[str]) -> str | None:
    """Say what to do about private strings, the one fault that a config can allow or mend."""
    from solar_rl.validate.texts import NAMES

    kinds = [kind for kind, name in NAMES.items() if name in failed]
    if not kinds:
        return None
    kind = kinds[0]
    return (
        f"build again with --privacy.mask true, or say why they may stay: "
        f"--privacy.allow.{kind} WHY in the build, --allow {kind} here"
    )
