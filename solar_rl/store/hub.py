"""Talk to the Hub: the only file that imports ``huggingface_hub``."""

from __future__ import annotations

import re
from pathlib import Path

from solar_rl.errors import InputError

_REPO = re.compile(r"^(hf://)?(datasets/)?(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?$")


def parse_repo(text: str) -> tuple[str, str | None] | None:
    """Read a repository's name and revision; None where the text is no such name.

    >>> parse_repo("hf://datasets/owner/name@v1.0.0")
    ('owner/name', 'v1.0.0')
    >>> parse_repo("./somewhere/else/deeper") is None
    True
    """
    match = _REPO.match(text)
    return (match["repo"], match["revision"]) if match else None


def snapshot(repo: str, revision: str | None = None) -> Path:
    """Download a dataset repository once and return the local folder of that revision.

    Args:
        repo: "owner/name".
        revision: Tag, branch or commit (default: the newest).

    Raises:
        InputError: No such repository or revision, or the Hub can't be reached.
    """
    import httpx2
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repo, repo_type="dataset", revision=revision))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, httpx2.HTTPError) as error:
        where = f"{repo}@{revision}" if revision else repo
        raise InputError(
            f"this dataset can't be fetched from the Hub: {str(error).splitlines()[0]}",
            where=where,
            hint="is the name right, are you online, and is HF_TOKEN set where it is private?",
        ) from error
