"""What the verb publish does: describe a release, plan or publish it, and say what happened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import orjson
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from solar_rl.commands import log
from solar_rl.errors import InputError

if TYPE_CHECKING:
    from solar_rl.store.hub import Plan, Published
    from solar_rl.store.hub.plan import Release, Watch


def publish(
    folder: Path,
    repo: str,
    *,
    kind: str | None,
    reports: Sequence[Path],
    private: bool,
    create: bool,
    tag: str | None,
    message: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Publish a built dataset or a checkpoint, or say what that would do."""
    with _release(folder, repo, kind or _kind_of(folder), reports, tag, message) as release:
        _send(release, repo, private=private, create=create, dry_run=dry_run, as_json=as_json)


@contextmanager
def _release(
    folder: Path, repo: str, kind: str, reports: Sequence[Path], tag: str | None, message: str | None
) -> Iterator[Release]:
    """Describe what is published; a checkpoint's files are laid out with their card for as long as it takes."""
    from solar_rl.store.checkpoint_card import stage_checkpoint
    from solar_rl.store.hub import dataset_release, folder_release

    if kind == "dataset":
        if reports:
            raise InputError("a dataset's card shows no reports", hint="--report goes with --type model")
        yield dataset_release(folder, tag, message)
        return
    with TemporaryDirectory() as staged:
        stage_checkpoint(folder, Path(staged), repo.rpartition("/")[2], reports)
        yield folder_release(staged, message or f"Publish {folder.resolve().name}", tag=tag)


def _kind_of(folder: Path) -> str:
    """Tell a run's output folder from a dataset's by what lies in it."""
    files = ("training.json", "config.json", "adapter_config.json")
    holds_model = any((folder / name).is_file() for name in files)
    return "model" if holds_model and not (folder / "manifest.json").is_file() else "dataset"


def _send(release: Release, repo: str, *, private: bool, create: bool, dry_run: bool, as_json: bool) -> None:
    from solar_rl.store.hub import plan_release, publish_release

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
        f"leave {unchanged} as they are, and {f'tag it {plan.release.tag}' if plan.release.tag else 'set no tag'}"
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
        f"commit {done.commit[:12]} read back{f' and tagged {done.tag}' if done.tag else ', no tag asked for'}"
    )
    return "\n".join([*lines, done.url])
