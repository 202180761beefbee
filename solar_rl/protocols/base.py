"""What a protocol is: one peer's rule as a function from neutral rows to verdicts, and what to know about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import polars as pl

from solar_rl.errors import InputError
from solar_rl.protocols.neutral import NEUTRAL, neutral_frame

VERDICT: dict[str, pl.DataType] = {
    "type_match": pl.Int8(),
    "exact_match": pl.Int8(),
    "reward": pl.Float64(),
    "dropped": pl.String(),
}
"""Columns of every verdict: 0 or 1, null where the protocol has no such notion or the step is dropped;
the training reward, null for an evaluation; why the protocol can't contain the step, else null."""

Judge = Callable[[pl.DataFrame], pl.DataFrame]


class Rules(NamedTuple):
    """The rule in a few words: one row of the table in docs/protocols.md."""

    radius: str
    boxes: str
    text: str
    scroll: str
    open_app: str
    wait_finish: str
    dropped: str
    faults: str


@dataclass(frozen=True)
class Protocol:
    """One way to judge an answer, and where it comes from.

    Args:
        name: Name on the command line.
        kind: Whether the peer evaluates or trains with it.
        source: Repository, commit and file of the rule.
        rules: The rule in a few words.
        rows: The rule itself: columns ``NEUTRAL`` in, ``VERDICT`` and ``evidence`` out, same order. What
            it leaves out of these is null.
        evidence: Further columns of its verdicts.
        canonical: The same rule on canonical columns, if they say more than neutral ones.
        version: Raised by every change of a verdict.
    """

    name: str
    kind: Literal["evaluation", "training reward"]
    source: str
    rules: Rules
    rows: Judge = field(repr=False)
    evidence: Mapping[str, pl.DataType] = field(default_factory=dict)
    canonical: Judge | None = field(default=None, repr=False)
    version: int = 1

    @property
    def columns(self) -> dict[str, pl.DataType]:
        """Return the columns of its verdicts with their types."""
        return VERDICT | dict(self.evidence)

    @property
    def help(self) -> str:
        """Return what a user should know before quoting a number: source, rule, and known faults."""
        facts = "\n".join(
            f"  {name.replace('_', ' ')}: {fact}" for name, fact in self.rules._asdict().items()
        )
        return f"{self.name}, version {self.version} ({self.kind})\n  source: {self.source}\n{facts}"

    def judge(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Judge neutral rows.

        Args:
            frame: The columns ``NEUTRAL``; more are ignored.

        Returns:
            ``columns``, one row for each in the same order.

        Raises:
            InputError: A column is missing.
        """
        missing = [name for name in NEUTRAL if name not in frame.columns]
        if missing:
            raise InputError(f"protocol {self.name} needs the columns {', '.join(missing)}")
        return self._complete(
            self.rows(frame.select(pl.col(name).cast(dtype) for name, dtype in NEUTRAL.items()))
        )

    def judge_canonical(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Judge canonical candidates: rows as ``validity.score`` reads them, with the screen's size.

        Returns:
            ``columns``, one row for each in the same order.
        """
        if self.canonical is None:
            return self.judge(neutral_frame(frame))
        return self._complete(self.canonical(frame))

    def _complete(self, verdicts: pl.DataFrame) -> pl.DataFrame:
        """Null the verdicts of dropped steps, and add the columns that the rule left out."""
        given = set(verdicts.columns)
        kept = pl.col("dropped").is_null() if "dropped" in given else pl.lit(True)
        return verdicts.select(
            (
                pl.lit(None, dtype)
                if name not in given
                else pl.col(name).cast(dtype)
                if name == "dropped"
                else pl.when(kept).then(pl.col(name).cast(dtype))
            ).alias(name)
            for name, dtype in self.columns.items()
        )
