"""Compare a folder with what the Hub has: what to send, what is there already, what goes. Changes nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from solar_rl.errors import CheckFailed, InputError
from solar_rl.store.hub.faults import holds_secret, patiently, speaking
from solar_rl.store.hub.names import require_tag
from solar_rl.store.manifest import FileEntry, sha256_file

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

Watch = Callable[[str, int], None]
"""Told what is being done, and how many more bytes of it are done."""
HUBS_OWN = ".gitattributes"
"""A file that the Hub makes and no release lists."""
_TEXTS = {".md", ".json", ".jsonl", ".sql", ".html", ".yaml", ".yml", ".txt"}


@dataclass(frozen=True)
class Release:
    """What is to be published, and which of the repository's paths belong to it.

    Args:
        folder: Where the files lie.
        files: Every file with its hash and size.
        message: First line of the commit.
        tag: Name of the version (None: no tag).
        repo_type: dataset or model.
        owned: Patterns of paths that are the release's alone: what else lies there is deleted.
        listing: A JSON file whose ``files`` name the paths of a release: those that an earlier release
            listed and this one doesn't are deleted.

    Raises:
        InputError: git refuses the tag's name.
    """

    folder: Path
    files: tuple[FileEntry, ...]
    message: str
    tag: str | None = None
    repo_type: str = "dataset"
    owned: tuple[str, ...] = ()
    listing: str | None = None

    def __post_init__(self) -> None:
        if self.tag is not None:
            require_tag(self.tag)


@dataclass(frozen=True)
class Plan:
    """What publishing would do."""

    release: Release
    repo: str
    exists: bool = False
    head: str | None = None
    """Commit of ``main``, which the new commit must follow."""
    tagged: str | None = None
    """Commit that the tag stands at already."""
    done: bool = False
    """The tag is there, and stands at these very bytes."""
    send: tuple[FileEntry, ...] = ()
    replaced: tuple[str, ...] = ()
    """Those of ``send`` that the repository has with other bytes."""
    delete: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    """Files of the repository that belong to no release: they stay."""

    @property
    def bytes_to_send(self) -> int:
        """Return the size of what would be sent."""
        return sum(entry.bytes for entry in self.send)

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        files = [{"path": entry.path, "bytes": entry.bytes} for entry in self.send]
        return {
            "repo": self.repo,
            "tag": self.release.tag,
            "create": not self.exists,
            "nothing_to_do": self.done,
            "send": files,
            "bytes": self.bytes_to_send,
            "replaced": list(self.replaced),
            "unchanged": len(self.release.files) - len(self.send),
            "delete": list(self.delete),
            "strangers": list(self.strangers),
        }


def require_unchanged(release: Release, watch: Watch) -> None:
    """Hash every file, and refuse one that isn't what the release says, or that holds an access token.

    Raises:
        CheckFailed: A file is missing, has changed, or holds a token.
    """
    for entry in release.files:
        path = release.folder / entry.path
        if not path.is_file():
            raise CheckFailed("a file of the release is missing", where=str(path), hint="build it again")
        if path.stat().st_size != entry.bytes or sha256_file(path) != entry.sha256:
            raise CheckFailed(
                "this file has changed since the manifest was written, so nothing was published",
                where=str(path),
                hint="`solar-rl validate` lists what is wrong; build it again",
            )
        if path.suffix in _TEXTS and holds_secret(path.read_bytes()):
            raise CheckFailed(
                "this file holds an access token, so nothing was published",
                where=str(path),
                hint="remove it from the config, build again, and revoke the token",
            )
        watch("checking", entry.bytes)


def make_plan(api: HfApi, release: Release, repo: str, *, private: bool = False) -> Plan:
    """Look at the repository and plan the release.

    Raises:
        InputError: The version is published with other bytes, the repository is public where a private one
            was asked for, or the Hub refuses.
        CheckFailed: The Hub can't be reached.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    kind = release.repo_type
    with speaking(repo):
        try:
            info = patiently(lambda: api.repo_info(repo, repo_type=kind, revision="main"))
        except RepositoryNotFoundError as error:
            if error.response.status_code != 404:
                raise
            return Plan(release, repo, send=release.files)
        if private and not info.private:
            raise InputError(
                "this repository is public and --private was asked for",
                where=repo,
                hint="make it private on its settings page, or leave --private out",
            )
        refs = patiently(lambda: api.list_repo_refs(repo, repo_type=kind))
        tagged = {ref.name: ref.target_commit for ref in refs.tags}.get(release.tag or "")
        if tagged is not None:
            _require_same(release, repo, tree(api, repo, kind, tagged))
            return Plan(release, repo, True, info.sha, tagged, done=True)
        there = tree(api, repo, kind, str(info.sha))
        earlier = _listed(api, release, repo, str(info.sha)) if release.listing in there else set()
    return compare(release, repo, there, earlier, head=info.sha)


def compare(
    release: Release, repo: str, there: Mapping[str, RepoFile], earlier: set[str], head: str | None = None
) -> Plan:
    """Compare the files of a release with those of a commit."""
    ours = {entry.path for entry in release.files}
    send = tuple(e for e in release.files if e.path not in there or not same(release, e, there[e.path]))
    others = sorted(path for path in there if path not in ours and path != HUBS_OWN)
    gone = [p for p in others if p in earlier or any(fnmatchcase(p, pattern) for pattern in release.owned)]
    return Plan(
        release,
        repo,
        exists=True,
        head=head,
        send=send,
        replaced=tuple(entry.path for entry in send if entry.path in there),
        delete=tuple(gone),
        strangers=tuple(path for path in others if path not in gone),
    )


def tree(api: HfApi, repo: str, repo_type: str, commit: str) -> dict[str, RepoFile]:
    """List the files of a commit by path."""
    from huggingface_hub.hf_api import RepoFile

    entries = api.list_repo_tree(repo, repo_type=repo_type, revision=commit, recursive=True)
    return {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}


def same(release: Release, entry: FileEntry, remote: RepoFile) -> bool:
    """Tell whether the Hub's file has these bytes, by the hash that it keeps: of contents, or git's."""
    if remote.lfs is not None:
        return remote.lfs.sha256 == entry.sha256
    if remote.size != entry.bytes:
        return False
    data = (release.folder / entry.path).read_bytes()
    return remote.blob_id == hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def _require_same(release: Release, repo: str, there: Mapping[str, RepoFile]) -> None:
    plan = compare(release, repo, there, set())
    if plan.send or plan.delete:
        differing = [*(entry.path for entry in plan.send), *plan.delete]
        raise InputError(
            f"{release.tag} is published already, with other bytes in {len(differing)} files "
            f"(such as {differing[0]}), and a tag never moves",
            where=repo,
            hint="raise the version and build again",
        )


def _listed(api: HfApi, release: Release, repo: str, commit: str) -> set[str]:
    """Read the paths that the release at a commit lists."""
    name = str(release.listing)
    with TemporaryDirectory() as cache:
        path = api.hf_hub_download(repo, name, repo_type=release.repo_type, revision=commit, cache_dir=cache)
        try:
            return {str(entry["path"]) for entry in json.loads(Path(path).read_bytes())["files"]}
        except (json.JSONDecodeError, KeyError, TypeError):
            return set()  # no listing of ours: then what it names isn't ours either
