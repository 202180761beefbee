"""The ``privacy`` block: what texts may hold, and whether it is replaced before anything is sampled."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from solar_rl.config.base import Config

PrivateKind = Literal["email", "phone", "secret"]


class PrivacyConfig(Config):
    """What ``validate`` lets texts hold, and what a build replaces (docs/validate.md)."""

    allow: dict[PrivateKind, str] = {}
    """Kinds that texts may hold (email, phone, secret), each with the reason why, which the card tells."""
    mask: bool = False
    """Replace e-mail addresses, phone numbers and access keys by stand-ins, the same one everywhere, in
    what is read and in what is answered. Screenshots are not masked."""
    key_id: str | None = Field(default=None, pattern=r"^[0-9a-f]{8}$")
    """Which secret key the stand-ins come from: filled in from the environment variable SOLAR_RL_MASK_KEY
    (default: none; they come from the build seed, and who guesses an address can confirm it)."""
