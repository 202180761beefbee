"""Read a repository of the Hub through the local cache: one commit, and only the files asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from solar_rl.errors import InputError
from solar_rl.store.hub.faults import bars_only_on_screens, patiently, speaking
from solar_rl.store.hub.names import COMMIT


@dataclass(frozen=True)
class Snapshot:
    """One commit of a repository in the local cache of ``huggingface_hub``.

    Args:
        repo: "owner/name".
        commit: Its full hash: what was read once is read again without asking the Hub.
        folder: Where the files lie that were fetched so far.
        repo_type: dataset or model.
    """

    repo: str
    commit: str
    folder: Path
    repo_type: str = "dataset"

    def fetch(self, patterns: Iterable[str]) -> Path:
        """Download the files that match, except those that are here already; return the folder.

        Args:
            patterns: Paths in the repository, with ``*`` for anything.

        Raises:
            InputError: Offline, and not all of them are in the cache.
            CheckFailed: The Hub can't be reached, and not all of them are in the cache.
        """
        from huggingface_hub import snapshot_download

        bars_only_on_screens()
        wanted = sorted(patterns)
        with speaking(f"{self.repo}@{self.commit[:12]}"):
            patiently(
                lambda: snapshot_download(
                    self.repo,
                    repo_type=self.repo_type,
                    revision=self.commit,
                    allow_patterns=wanted,
                )
            )
        return self.folder


def open_snapshot(
    repo: str, revision: str | None, first: Iterable[str], repo_type: str = "dataset"
) -> Snapshot:
    """Resolve a revision to its commit, and fetch the files that say what there is.

    A tag or branch is looked up on the Hub; where that can't be reached, the commit that it last stood for
    is taken from the cache, and a line on stderr says so. A full commit hash is never looked up.

    Args:
        repo: "owner/name".
        revision: Tag, branch or commit (default: the newest of main).
        first: Patterns of the files to fetch.
        repo_type: dataset or model.

    Raises:
        InputError: No such repository, revision or file.
        CheckFailed: The Hub can't be reached, and the cache doesn't have it.
    """
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    known = revision is not None and COMMIT.match(revision)
    commit = revision if known and revision else _commit_of(repo, revision, repo_type)
    cache = Path(constants.HF_HUB_CACHE) / repo_folder_name(repo_id=repo, repo_type=repo_type)
    found = Snapshot(repo, commit, cache.expanduser().resolve() / "snapshots" / commit, repo_type)
    found.fetch(first)
    return found


def _commit_of(repo: str, revision: str | None, repo_type: str) -> str:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RevisionNotFoundError

    api = HfApi()
    with speaking(repo):
        try:
            resolved = patiently(lambda: api.resolve_revision(repo, repo_type=repo_type, revision=revision))
        except RevisionNotFoundError:
            refs = api.list_repo_refs(repo, repo_type=repo_type)
            names = [ref.name for ref in (*refs.tags, *refs.branches)]
            raise InputError(
                f"no revision '{revision}' of this repository",
                where=repo,
                hint=f"there is: {', '.join(names) or 'none'}",
            ) from None
    return resolved.resolved
