"""Read the name of a repository as users write it."""

from __future__ import annotations

import re

from solar_rl.errors import InputError

SCHEME = "hf://"
_NAME = r"[A-Za-z0-9](?:[\w.-]*[A-Za-z0-9])?"
_REPO = re.compile(rf"^(hf://)?(datasets/)?(?P<repo>{_NAME}/{_NAME})(@(?P<revision>[\w./+-]+))?$")
_NO_TAG = re.compile(
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|^[./-]|[./]$|\.lock(/|$)|^@$"  # git's rules for the name of a tag
)
COMMIT = re.compile(r"^[0-9a-f]{40}$")


def parse_repo(text: str) -> tuple[str, str | None] | None:
    """Read a dataset repository's name and revision; None where the text is no such name.

    >>> parse_repo("hf://datasets/owner/name@v1.0.0")
    ('owner/name', 'v1.0.0')
    >>> parse_repo("./somewhere/else/deeper") is None
    True
    """
    match = _REPO.match(text)
    return (match["repo"], match["revision"]) if match else None


def require_repo(text: str) -> str:
    """Return the name of a repository to publish to.

    Raises:
        InputError: It isn't of the form OWNER/NAME, or names a revision.
    """
    found = parse_repo(text)
    if found is None or found[1] is not None:
        raise InputError("this is no name of a repository", where=text, hint="expected OWNER/NAME")
    return found[0]


def require_tag(text: str) -> str:
    """Return the name of a tag as git can have it.

    Raises:
        InputError: git refuses such a name.
    """
    if not text or _NO_TAG.search(text):
        raise InputError(
            f"a tag can't be named {text!r}", hint="such as v1.0.0: no blank, no .., none of ~^:?*["
        )
    return text
