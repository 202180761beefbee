"""Publish a release: send what changed, one commit, read it back, then the tag.

``main`` changes in one commit or not at all, and the tag is set only on a commit that was read back. A run
that is cut off anywhere leaves nothing half done, and the same command again sends only what is missing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from solar_rl.errors import CheckFailed, InputError
from solar_rl.store.hub.faults import (
    bars_only_on_screens,
    may_pass,
    no_token_shown,
    patiently,
    speaking,
    status_of,
)
from solar_rl.store.hub.names import require_repo
from solar_rl.store.hub.plan import Plan, Release, Watch, compare, make_plan, require_unchanged, tree
from solar_rl.store.manifest import MANIFEST, FileEntry, file_entry, list_files, read_manifest, sha256_file

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi


@dataclass(frozen=True)
class Published:
    """What publishing did."""

    repo: str
    url: str
    commit: str
    tag: str | None
    created: bool = False
    changed: bool = True
    """False: that version was there already, with the same bytes."""
    sent: tuple[str, ...] = ()
    sent_bytes: int = 0
    unchanged: int = 0
    deleted: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def _silent(what: str, count: int) -> None:
    """Show no progress."""


def dataset_release(folder: str | Path, tag: str | None = None, message: str | None = None) -> Release:
    """Describe a built dataset as a release: the files of its manifest, and the manifest.

    Raises:
        InputError: No complete dataset lies there.
        CheckFailed: A file lies there that the manifest doesn't list.
    """
    manifest = read_manifest(folder)
    listed = {entry.path for entry in manifest.files}
    if unlisted := [path for path in list_files(folder) if path not in listed]:
        raise CheckFailed(
            "the manifest doesn't list this file, so nothing was published",
            where=str(Path(folder) / unlisted[0]),
            hint="move it elsewhere, or build again",
        )
    return Release(
        folder=Path(folder),
        files=(*manifest.files, file_entry(folder, MANIFEST)),
        message=message or f"Publish {manifest.name} {manifest.version} (build {manifest.build_id[:12]})",
        tag=tag or f"v{manifest.version}",
        owned=("data/*",),
        listing=MANIFEST,
    )


def folder_release(
    folder: str | Path, message: str, *, tag: str | None = None, repo_type: str = "model"
) -> Release:
    """Describe any folder as a release: every file in it, hidden ones left out, such as a checkpoint's.

    The repository then holds these files and no others.

    Raises:
        InputError: No such folder, or no file in it.
    """
    root = Path(folder)
    paths = sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())
    shown = [path for path in paths if not any(part.startswith(".") for part in path.parts)]
    if not shown:
        raise InputError("no such folder, or no file in it", where=str(folder))
    return Release(
        root, tuple(file_entry(root, path) for path in shown), message, tag, repo_type, owned=("*",)
    )


def plan_release(release: Release, repo: str, *, private: bool = False, watch: Watch = _silent) -> Plan:
    """Say what ``publish_release`` would do, and do nothing.

    Raises:
        InputError: The name, the version or the token is wrong.
        CheckFailed: A file isn't what the release says, or the Hub can't be reached.
    """
    from huggingface_hub import HfApi

    repo = require_repo(repo)
    with no_token_shown():
        require_unchanged(release, watch)
        return make_plan(HfApi(), release, repo, private=private)


def publish_release(
    release: Release,
    repo: str,
    *,
    private: bool = False,
    create: bool = True,
    watch: Watch = _silent,
) -> Published:
    """Publish a release in one commit, read it back, and tag it.

    Args:
        release: From ``dataset_release`` or ``folder_release``.
        repo: OWNER/NAME.
        private: Make the repository private where it is created; refuse one that is public.
        create: Create the repository where there is none.
        watch: Told about progress.

    Raises:
        InputError: The name, version, token or rights are wrong, or that version is published with other bytes.
        CheckFailed: A file changed since the release was described; somebody else committed meanwhile; the
            Hub is out of reach; or what was read back differs. Nothing is tagged then.
    """
    from huggingface_hub import HfApi

    repo = require_repo(repo)
    bars_only_on_screens()
    with no_token_shown():
        api = HfApi()
        _require_token(api, repo)
        require_unchanged(release, watch)
        plan = make_plan(api, release, repo, private=private)
        created = not plan.exists
        if created:
            plan = _create(api, plan, private=private, create=create)
        if plan.done:
            return _published(api, plan, str(plan.tagged), changed=False)
        commit = _commit(api, plan, watch) if plan.send or plan.delete else str(plan.head)
        read_back(api, release, repo, commit)
        _tag(api, plan, commit)
        return _published(api, plan, commit, created=created)


def _require_token(api: HfApi, repo: str) -> None:
    """Ask the Hub who we are, before anything is sent."""
    from huggingface_hub.errors import LocalTokenNotFoundError

    with speaking(repo):
        try:
            patiently(api.whoami)
        except LocalTokenNotFoundError:
            raise InputError(
                "publishing needs an access token", where=repo, hint="`hf auth login`, or set HF_TOKEN"
            ) from None


def _create(api: HfApi, plan: Plan, *, private: bool, create: bool) -> Plan:
    kind = plan.release.repo_type
    if not create:
        raise InputError(
            f"the Hub has no such {kind} repository", where=plan.repo, hint="leave out --no-create"
        )
    with speaking(plan.repo):
        patiently(lambda: api.create_repo(plan.repo, repo_type=kind, private=private, exist_ok=True))
    return make_plan(api, plan.release, plan.repo, private=private)


def _commit(api: HfApi, plan: Plan, watch: Watch) -> str:
    """Send the contents, then make the one commit that shows them."""
    from huggingface_hub import CommitOperationDelete

    release, kind = plan.release, plan.release.repo_type
    additions = [_addition(release, entry) for entry in plan.send]
    with speaking(plan.repo):
        watch("sending", 0)
        api.preupload_lfs_files(plan.repo, additions, repo_type=kind, revision="main")
        for entry, addition in zip(plan.send, additions, strict=True):
            if addition.upload_info.sha256.hex() != entry.sha256:
                raise CheckFailed(
                    "this file changed while it was being sent, so nothing was published",
                    where=str(release.folder / entry.path),
                    hint="build again, then publish",
                )
        deletions = [CommitOperationDelete(path, is_folder=False) for path in plan.delete]
        return _send_commit(api, plan, [*additions, *deletions])


def _addition(release: Release, entry: FileEntry) -> CommitOperationAdd:
    from huggingface_hub import CommitOperationAdd

    return CommitOperationAdd(entry.path, release.folder / entry.path)


def _send_commit(api: HfApi, plan: Plan, operations: list[CommitOperationAdd | CommitOperationDelete]) -> str:
    """Commit on top of the planned head; a commit whose answer got lost is found again."""
    import httpx2

    def commit() -> str:
        made = api.create_commit(
            plan.repo,
            operations,
            commit_message=plan.release.message,
            repo_type=plan.release.repo_type,
            parent_commit=plan.head,
        )
        return made.oid

    try:
        return patiently(commit)
    except httpx2.HTTPError as error:
        refused = error  # looked into below: what is asked meanwhile must not drag this one along
    # 412 after a cut line may be our own commit, whose answer never arrived
    landed = _landed(api, plan) if status_of(refused) == 412 or may_pass(refused) else None
    if landed is None:
        raise refused
    return landed


def _landed(api: HfApi, plan: Plan) -> str | None:
    """Return the head of ``main`` where it is the commit that we asked for."""
    kind = plan.release.repo_type
    head = patiently(lambda: api.repo_info(plan.repo, repo_type=kind, revision="main")).sha
    if head is None or head == plan.head:
        return None
    found = compare(plan.release, plan.repo, tree(api, plan.repo, kind, head), set(plan.delete))
    return None if found.send or found.delete else head


def read_back(api: HfApi, release: Release, repo: str, commit: str) -> None:
    """Compare every file of a commit with the release: large ones by the Hub's hash, small ones byte by byte.

    Raises:
        CheckFailed: A file is missing or has other bytes, or one is there that shouldn't be.
    """
    with speaking(repo), TemporaryDirectory() as cache:
        there = tree(api, repo, release.repo_type, commit)
        found = compare(release, repo, there, set())
        wrong = [*(entry.path for entry in found.send), *found.delete]
        for entry in release.files if not wrong else ():
            if (
                there[entry.path].lfs is None
                and _downloaded(api, release, repo, commit, entry, cache) != entry.sha256
            ):
                wrong.append(entry.path)
    if wrong:
        raise CheckFailed(
            f"read back from the Hub, {len(wrong)} files differ (such as {wrong[0]}), so no tag was set",
            where=f"{repo}@{commit[:12]}",
            hint="run the same command again",
        )


def _downloaded(api: HfApi, release: Release, repo: str, commit: str, entry: FileEntry, cache: str) -> str:
    """Return the sha256 of a file as the Hub gives it out."""
    kind = release.repo_type
    path = api.hf_hub_download(repo, entry.path, repo_type=kind, revision=commit, cache_dir=cache)
    return sha256_file(Path(path))


def _tag(api: HfApi, plan: Plan, commit: str) -> None:
    """Set the tag; one that is there already must stand at this commit."""
    from huggingface_hub.errors import HfHubHTTPError

    tag, kind = plan.release.tag, plan.release.repo_type
    if tag is None:
        return

    def set_tag() -> bool:
        try:
            api.create_tag(
                plan.repo, tag=tag, revision=commit, repo_type=kind, tag_message=plan.release.message
            )
        except HfHubHTTPError as error:
            if status_of(error) != 409:
                raise
            return False
        return True

    with speaking(plan.repo):
        if patiently(set_tag):
            return
        refs = patiently(lambda: api.list_repo_refs(plan.repo, repo_type=kind))
    if commit not in (ref.target_commit for ref in refs.tags if ref.name == tag):
        raise InputError(
            f"{tag} exists already, at another commit, and a tag never moves",
            where=plan.repo,
            hint="raise the version and build again",
        )


def _published(
    api: HfApi, plan: Plan, commit: str, *, created: bool = False, changed: bool = True
) -> Published:
    release = plan.release
    prefix = "" if release.repo_type == "model" else f"{release.repo_type}s/"
    return Published(
        repo=plan.repo,
        url=f"{api.endpoint}/{prefix}{plan.repo}/tree/{release.tag or commit}",
        commit=commit,
        tag=release.tag,
        created=created,
        changed=changed,
        sent=tuple(entry.path for entry in plan.send),
        sent_bytes=plan.bytes_to_send,
        unchanged=len(release.files) - len(plan.send),
        deleted=plan.delete,
        strangers=plan.strangers,
    )
