"""Say what the Hub's refusals mean, try again what may pass, and never repeat a token.

Exit codes follow from the leaf: what the user can mend (name, token, rights, version) is an
``InputError``; what another run may mend (a conflict, an overloaded or unreachable Hub) a ``CheckFailed``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, TypeVar

from solar_rl.errors import CheckFailed, InputError, SolarError

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError
    from tenacity import RetryCallState

T = TypeVar("T")
TRANSIENT = (408, 429, 500, 502, 503, 504)
"""Answers that may be another one a moment later."""
ATTEMPTS = 6
LONGEST_PAUSE = 300.0
"""Seconds that are waited at most, whatever a Retry-After asks for."""
_SECRET = re.compile(r"hf_[A-Za-z0-9]{8,}|(?<=Bearer )\S+|(?<=bearer )\S+|(?<=X-Amz-Signature=)\w+")


def redact(text: str) -> str:
    """Blot out the token in use and whatever else looks like one.

    >>> redact("sent Bearer abc with hf_0123456789abcdef")
    'sent Bearer *** with ***'
    """
    from huggingface_hub import get_token

    token = get_token()
    return _SECRET.sub("***", text.replace(token, "***") if token else text)


def holds_secret(data: bytes) -> bool:
    """Tell whether a text to be published holds the token in use or another access token of the Hub."""
    from huggingface_hub import get_token

    token = get_token()
    return bool(token and token.encode() in data) or bool(re.search(rb"\bhf_[A-Za-z0-9]{30,}\b", data))


@contextmanager
def speaking(repo: str) -> Iterator[None]:
    """Turn what goes wrong between us and the Hub into one clear line, without any token in it.

    Raises:
        InputError: Name, revision, token or rights are wrong.
        CheckFailed: A conflict, or a Hub that is overloaded, broken or out of reach: run it again.
    """
    import httpx2
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RevisionResolutionError

    try:
        yield
    except RuntimeError as error:  # uploads run in threads, which wrap what they meet
        cause = error.__cause__
        if not isinstance(cause, httpx2.HTTPError):
            raise
        raise _meaning(cause, repo) from None
    except httpx2.HTTPError as error:
        raise _meaning(error, repo) from None
    except (LocalEntryNotFoundError, RevisionResolutionError, ConnectionError) as error:
        raise _unreachable(repo, error) from None
    except UnicodeEncodeError:
        raise InputError(
            "the access token has characters that no token has", where=repo, hint="look at HF_TOKEN"
        ) from None
    except HFValidationError as error:
        raise InputError(redact(_first(error)), where=repo, hint="expected OWNER/NAME") from None


def bars_only_on_screens() -> None:
    """Keep huggingface_hub's progress bars out of logs: they are for a terminal alone."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars

    if not sys.stderr.isatty() and not are_progress_bars_disabled():
        disable_progress_bars()


@contextmanager
def no_token_shown() -> Iterator[None]:
    """Blot a token out of any exception that escapes, whoever raised it and whoever prints it."""
    try:
        yield
    except Exception as error:
        link: BaseException | None = error
        while link is not None:
            if not isinstance(link, SolarError):
                link.args = tuple(redact(arg) if isinstance(arg, str) else arg for arg in link.args)
            link = link.__cause__ or link.__context__
        raise


def patiently(call: Callable[[], T]) -> T:
    """Call the Hub; wait and try again where it is busy or the line is cut, as long as it asks for."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt

    return Retrying(
        stop=stop_after_attempt(ATTEMPTS),
        retry=retry_if_exception(may_pass),
        wait=_pause,
        reraise=True,
    )(call)


def may_pass(error: BaseException) -> bool:
    """Tell whether the same call may work a moment later."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in TRANSIENT
    lines = (httpx2.TimeoutException, httpx2.NetworkError, httpx2.RemoteProtocolError)
    return isinstance(error, lines)


def status_of(error: BaseException | None) -> int | None:
    """Return the HTTP status that an error stands for; None where there was no answer."""
    response = getattr(error, "response", None)
    return None if response is None else int(response.status_code)


def _pause(state: RetryCallState) -> float:
    from tenacity import wait_exponential_jitter

    error = state.outcome.exception() if state.outcome else None
    response = getattr(error, "response", None)
    asked = None if response is None else retry_after(response.headers.get("Retry-After"))
    if asked is not None:
        return min(asked, LONGEST_PAUSE)
    return wait_exponential_jitter(multiplier=0.5, max=30, jitter=0.5)(state)


def retry_after(header: str | None) -> float | None:
    """Read a Retry-After header, seconds or a date; None where there is none or it can't be read.

    >>> retry_after("3"), retry_after("soon"), retry_after("Mon, 01 Jan 2001 00:00:00 GMT")
    (3.0, None, 0.0)
    """
    if header is None:
        return None
    if header.strip().isdigit():
        return float(header)
    try:
        until = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def _meaning(error: Exception, repo: str) -> SolarError:
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(error, HfHubHTTPError):
        return _refusal(error, repo)
    return _unreachable(repo, error)


def _refusal(error: HfHubHTTPError, repo: str) -> SolarError:
    from huggingface_hub import get_token
    from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, RevisionNotFoundError

    status = error.response.status_code
    login = "`hf auth login`, or set HF_TOKEN"
    if isinstance(error, RevisionNotFoundError):
        return InputError("the Hub has no such revision", where=repo, hint="is the tag or commit right?")
    if isinstance(error, EntryNotFoundError):
        return InputError("the Hub has no such file there", where=repo)
    if isinstance(error, GatedRepoError):
        return InputError("this repository is gated", where=repo, hint="ask for access on its page")
    if status == 401 and get_token():
        return InputError(
            "the Hub doesn't accept this token", where=repo, hint=f"it may have expired: {login}"
        )
    if status == 401:
        return InputError("this needs a token, or there is no such repository", where=repo, hint=login)
    if status == 403:
        return InputError(
            "this token has no right to do that",
            where=repo,
            hint="it needs write access to that owner's repositories",
        )
    if status == 404:
        return InputError(
            "the Hub has no such repository, or it is private and this token doesn't open it",
            where=repo,
            hint=f"is the name right? is it private: {login}",
        )
    if status == 412:
        return CheckFailed(
            "somebody else committed there while this ran, so nothing was published",
            where=repo,
            hint="run the same command again",
        )
    if status in TRANSIENT:
        return CheckFailed(
            f"the Hub is too busy or down (status {status}, {ATTEMPTS} attempts)",
            where=repo,
            hint="run the same command again later; what was uploaded needn't be sent twice",
        )
    said = redact(error.server_message or _first(error))
    return InputError(f"the Hub refuses: {said} (status {status})", where=repo)


def _unreachable(repo: str, error: Exception) -> SolarError:
    from huggingface_hub import constants

    if constants.is_offline_mode():
        return InputError(
            "not in the cache, and HF_HUB_OFFLINE is set", where=repo, hint="fetch it once while online"
        )
    return CheckFailed(
        f"the Hub can't be reached ({type(error).__name__})",
        where=repo,
        hint="are you online? is HF_ENDPOINT right? then run the same command again",
    )


def _first(error: Exception) -> str:
    """Return the first line of a message that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
