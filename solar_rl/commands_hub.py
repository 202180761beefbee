"""What the verb publish does: describe a release, plan or publish it, and say what happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from solar_rl.commands import log

if TYPE_CHECKING:
    from solar_rl.store.hub import Plan, Published
    from solar_rl.store.hub.plan import Watch


def publish(
    folder: Path,
    repo: str,
    *,
    private: bool,
    create: bool,
    tag: str | None,
    message: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Publish a built dataset, or say what that would do."""
    from solar_rl.store.hub import dataset_release, plan_release, publish_release

    release = dataset_release(folder, tag, message)
    total = sum(entry.bytes for entry in release.files)
    if dry_run:
        with _progress(total) as watch:
            plan = plan_release(release, repo, private=private, watch=watch)
        print(
            orjson.dumps(plan.as_dict(), option=orjson.OPT_INDENT_2).decode() if as_json else _planned(plan)
        )
        return
    with _progress(total) as watch:
        done = publish_release(release, repo, private=private, create=create, watch=watch)
    print(orjson.dumps(done.as_dict(), option=orjson.OPT_INDENT_2).decode() if as_json else _told(done))


@contextmanager
def _progress(total: int) -> Iterator[Watch]:
    """Show a bar of the bytes that are checked; the Hub's own bars show those that are sent."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=log, transient=True) as bar:
        task = bar.add_task("checking", total=total)

        def watch(what: str, count: int) -> None:
            bar.update(task, description=what, advance=count)
            if what != "checking":
                bar.stop()

        yield watch


def _planned(plan: Plan) -> str:
    if plan.done:
        return f"{plan.repo}: {plan.release.tag} is published already, with the same bytes; nothing to do"
    lines = [] if plan.exists else [f"would create the repository {plan.repo}"]
    for entry in plan.send:
        word = "replace" if entry.path in plan.replaced else "send"
        lines.append(f"{word:8} {decimal(entry.bytes):>10}  {entry.path}")
    lines += [f"{'delete':8} {'':>10}  {path}" for path in plan.delete]
    lines += [f"{'keep':8} {'':>10}  {path} (no file of a release)" for path in plan.strangers]
    unchanged = len(plan.release.files) - len(plan.send)
    lines.append(
        f"{plan.repo}: would send {len(plan.send)} files, {decimal(plan.bytes_to_send)}, in one commit, "
        f"leave {unchanged} as they are, and tag it {plan.release.tag}"
    )
    return "\n".join(lines)


def _told(done: Published) -> str:
    if not done.changed:
        return f"{done.repo}: {done.tag} is published already, with the same bytes; nothing to do\n{done.url}"
    lines = [f"created the repository {done.repo}"] if done.created else []
    if done.strangers:
        lines.append(f"left alone, since no release lists them: {', '.join(done.strangers)}")
    deleted = f", deleted {len(done.deleted)} of the version before" if done.deleted else ""
    lines.append(
        f"{done.repo}: sent {len(done.sent)} files, {decimal(done.sent_bytes)}, {done.unchanged} unchanged{deleted}; "
        f"commit {done.commit[:12]} read back and tagged {done.tag}"
    )
    return "\n".join([*lines, done.url])
