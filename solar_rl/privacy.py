"""Find e-mail addresses, phone numbers and access keys in texts, and replace them by stand-ins.

A stand-in depends on the key and on what it stands for alone, so that the same address has the same one in
goals, labels and answers, and texts that were equal stay equal. It is made piece by piece: addresses that
share a word share its stand-in, so that token F1 between two addresses stays what it was. Masking a masked
text changes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from solar_rl.actions import Action
from solar_rl.config import validate_config
from solar_rl.config.privacy import PrivacyConfig, PrivateKind
from solar_rl.errors import ConfigError
from solar_rl.schema import Alternative, Episode, Reject, Step

if TYPE_CHECKING:
    from solar_rl.sampling.base import Completion

MASK_KEY = "SOLAR_RL_MASK_KEY"
"""Environment variable that holds the secret key of ``privacy.mask``."""
_SHORTEST_KEY = 16
_STAND_IN_DOMAIN = "invalid"  # RFC 2606: no address ends in it
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"

# Valid in Python's re and in Rust's regex alike: no look-around. What is found is the one group; before it
# stands what may not be part of it, where a JSON text has escapes such as \n.
PATTERNS: dict[PrivateKind, str] = {
    "email": r"(?:\\[nrt])?([A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})",
    "phone": r"(?:^|\\[nrt]|[^\w.+-])("
    r"\+[0-9](?:[ ().-]{0,2}[0-9]){7,14}"  # +49 170 1234567
    r"|(?:1[-. ])?\(?[0-9]{3}\)?[-. ]{1,2}[0-9]{3}[-. ][0-9]{4}"  # (212) 555-0123
    r"|[6-9][0-9]{4}[ -][0-9]{5}"  # 98765 43210
    r"|[0-9]{10,11}"  # 2125550123
    r")\b",
    "secret": r"(?:^|\\[nrt]|[^\w])("
    r"sk-[A-Za-z0-9_-]{20,}|hf_[A-Za-z0-9]{30,}|gh[opsur]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{35}|xox[abprs]-[0-9A-Za-z-]{10,}"
    r"|eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{10,}"  # a JSON web token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r")",
}
"""Kind to regular expression."""
_COMPILED = {kind: re.compile(pattern) for kind, pattern in PATTERNS.items()}


class Found(NamedTuple):
    """One private string in a text."""

    kind: PrivateKind
    text: str


def find(text: str) -> list[Found]:
    """List what is private in a text, kind by kind; stand-ins are not.

    >>> find("mail ann@shop.com or call (212) 555-0123")
    [Found(kind='email', text='ann@shop.com'), Found(kind='phone', text='(212) 555-0123')]
    """
    return [
        Found(kind, match[1])
        for kind, pattern in _COMPILED.items()
        for match in pattern.finditer(text)
        if not _is_stand_in(kind, match[1])
    ]


@dataclass(frozen=True)
class Masker:
    """Replaces what is private, the same string by the same stand-in.

    Args:
        key: Secret, or the build seed's text.
    """

    key: bytes

    def text(self, text: str) -> str:
        """Return the text with a stand-in for everything private.

        >>> masker = Masker(b"0")
        >>> masker.text("mail ann@shop.com") == masker.text(masker.text("mail ann@shop.com"))
        True
        """
        for kind, pattern in _COMPILED.items():
            text = pattern.sub(lambda match, kind=kind: self._replaced(kind, match), text)  # type: ignore[misc]
        return text

    def episode(self, episode: Episode) -> Episode:
        """Mask the goal and every text of every step."""
        return replace(
            episode, goal=self.text(episode.goal), steps=tuple(self._step(step) for step in episode.steps)
        )

    def reject(self, reject: Reject) -> Reject:
        """Mask what a reject quotes of the source."""
        return replace(reject, record=self.text(reject.record), message=self.text(reject.message))

    def completion(self, completion: Completion) -> Completion:
        """Mask an answer; one that changes loses its tokens, which would spell the original."""
        text = self.text(completion.text)
        if text == completion.text:
            return completion
        return replace(completion, text=text, token_ids=None, logprobs=None)

    def _step(self, step: Step) -> Step:
        return replace(
            step,
            action=self._action(step.action),
            instruction=self._maybe(step.instruction),
            screen_text=self._maybe(step.screen_text),
            thought=self._maybe(step.thought),
            alternatives=tuple(Alternative(self._action(a.action), a.box) for a in step.alternatives),
        )

    def _action(self, action: Action) -> Action:
        text, app_name = self._maybe(action.text), self._maybe(action.app_name)
        if (text, app_name) == (action.text, action.app_name):
            return action
        return replace(action, text=text, app_name=app_name)

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def _replaced(self, kind: PrivateKind, match: re.Match[str]) -> str:
        before = match[0][: match.start(1) - match.start()]
        return before + (match[1] if _is_stand_in(kind, match[1]) else self._stand_in(kind, match[1]))

    def _stand_in(self, kind: PrivateKind, text: str) -> str:
        if kind == "phone":
            return _in_format(text, "".join(self._digits(run) for run in re.findall("[0-9]+", text)))
        if kind == "secret":
            return f"key-{self._word(text)}"
        *pieces, _ = text.split(".")
        masked = re.sub("[A-Za-z0-9]+", lambda piece: self._word(piece[0].casefold()), ".".join(pieces))
        return f"{masked}.{_STAND_IN_DOMAIN}"

    def _word(self, text: str) -> str:
        return _word(self.key, text)

    def _digits(self, run: str) -> str:
        return str(_number(self.key, run) % 10 ** len(run)).zfill(len(run))


def make_masker(config: PrivacyConfig, seed: int) -> Masker | None:
    """Return the masker that a build's config asks for, None where it asks for none.

    Args:
        config: The ``privacy`` block.
        seed: The build seed: the key where there is no secret one.

    Raises:
        ConfigError: The config names a key that SOLAR_RL_MASK_KEY doesn't hold.
    """
    if not config.mask:
        return None
    if config.key_id is None:
        return Masker(str(seed).encode())
    key = os.environ.get(MASK_KEY, "")
    if fingerprint(key) != config.key_id:
        found = "holds another key" if key else "is not set"
        raise ConfigError(f"the stand-ins come from key {config.key_id}, and {MASK_KEY} {found}")
    return Masker(key.encode())


def allowing(config: PrivacyConfig, known: Mapping[str, Mapping[PrivateKind, str]]) -> PrivacyConfig:
    """Let texts hold what their sources are known to hold; a reason that the config gives stands.

    Args:
        config: The ``privacy`` block.
        known: ``known_private`` of every source, by its name in the mix.

    Raises:
        ConfigError: A builder names a kind that there isn't.

    >>> allowing(PrivacyConfig(), {"a": {"email": "in goals"}, "b": {}}).allow
    {'email': 'a: in goals'}
    """
    reasons: dict[str, str] = {}
    for name, kinds in known.items():
        for kind, why in kinds.items():
            told = why if len(known) == 1 else f"{name}: {why}"
            reasons[kind] = f"{reasons[kind]}; {told}" if kind in reasons else told
    data = config.model_dump() | {"allow": reasons | config.allow}
    return validate_config(PrivacyConfig, data, where="privacy, with known_private of the builders")


def keyed(config: PrivacyConfig) -> PrivacyConfig:
    """Fill in which key the stand-ins come from, where texts are masked and the environment has one.

    Raises:
        ConfigError: The key is so short that its fingerprint would give it away.
    """
    if not config.mask or config.key_id is not None:
        return config
    return config.model_copy(update={"key_id": key_id_of_environment()})


def key_id_of_environment() -> str | None:
    """Return the fingerprint of the key in SOLAR_RL_MASK_KEY, None where it isn't set.

    Raises:
        ConfigError: The key is so short that its fingerprint would give it away.
    """
    key = os.environ.get(MASK_KEY)
    if key is None:
        return None
    if len(key) < _SHORTEST_KEY:
        raise ConfigError(
            f"{MASK_KEY} has {len(key)} characters, expected {_SHORTEST_KEY} or more",
            hint='python -c "import secrets; print(secrets.token_hex())" makes one',
        )
    return fingerprint(key)


def fingerprint(key: str) -> str:
    """Return 8 hex digits that tell keys apart; they stand in the manifest, the key never does."""
    return hashlib.sha256(b"solar-rl mask key\0" + key.encode()).hexdigest()[:8]


def masked(items: Iterable[Episode | Reject], masker: Masker | None) -> Iterator[Episode | Reject]:
    """Mask what a builder reads, item by item; without a masker they pass as they are."""
    for item in items:
        if masker is None:
            yield item
        else:
            yield masker.episode(item) if isinstance(item, Episode) else masker.reject(item)


def _is_stand_in(kind: PrivateKind, text: str) -> bool:
    if kind == "email":
        return text.endswith(f".{_STAND_IN_DOMAIN}")
    # no telephone network has a number that begins with three zeros
    return kind == "phone" and re.sub("[^0-9]", "", text).startswith("000")


def _in_format(text: str, digits: str) -> str:
    """Put digits into the places of a number's own, the first three of them zeros: nobody's number."""
    new = iter("000" + digits[3:])
    return re.sub("[0-9]", lambda _: next(new), text)


@cache
def _number(key: bytes, text: str) -> int:
    return int.from_bytes(hmac.digest(key, text.encode(), "sha256")[:8], "big")


@cache
def _word(key: bytes, text: str) -> str:
    """Return a word of four syllables that can be spoken."""
    rest, word = _number(key, text), ""
    for _ in range(4):
        rest, consonant = divmod(rest, len(_CONSONANTS))
        rest, vowel = divmod(rest, len(_VOWELS))
        word += _CONSONANTS[consonant] + _VOWELS[vowel]
    return word
