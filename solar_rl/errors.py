"""Say what went wrong, where, and what to do: one root, leaves that are also builtin errors."""

from __future__ import annotations


class SolarError(Exception):
    """Root of every error that solar-rl raises on purpose.

    Args:
        message: What happened and what was expected, in one sentence.
        where: The file, episode, step, row or key it happened at.
        hint: What the user can do about it.
    """

    exit_code = 3

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.message, self.where, self.hint = message, where, hint
        super().__init__(message)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.message}{advice}"


class InputError(SolarError, ValueError):
    """The user's command, file or value is wrong: exit 2, one clear line, no traceback."""

    exit_code = 2


class ConfigError(InputError):
    """A dataset.yaml, recipe or override is wrong; raised before any work starts."""


class NothingToCompare(InputError):
    """A dataset on which a credit compares nothing, such as sparse success without a success."""


class ActionError(InputError):
    """An action is not one of the canonical ones or lacks what its type requires."""


class ParseError(SolarError, ValueError):
    """A model's answer can't be read as one action; ``message`` is the stored reason."""


class RecordError(InputError):
    """A record of a source is broken; the build writes it to rejects.jsonl and goes on.

    Args:
        reason: Short machine-readable kind, such as ``bad_crc`` (counted in the manifest).
        message: What was found and what was expected.
        where: File and record.
        hint: What the user can do about it.
    """

    def __init__(
        self, reason: str, message: str, *, where: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message, where=where, hint=hint)
        self.reason = reason


class CheckFailed(SolarError):
    """A check said no (validate, too many rejects): exit 1."""

    exit_code = 1


class MissingExtra(SolarError, ImportError):
    """A feature needs an optional dependency that isn't installed.

    Args:
        feature: What the user asked for.
        extra: The extra of solar-rl that brings it.
    """

    exit_code = 2

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra '{extra}'", hint=f"pip install 'solar-rl[{extra}]'")
