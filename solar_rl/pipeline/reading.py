"""Read one shard of a source: checked, masked episodes that can be sampled, and rejects, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from solar_rl.builder import Builder, read_shard
from solar_rl.config import DatasetConfig
from solar_rl.episodes import checked
from solar_rl.errors import ActionError, CheckFailed
from solar_rl.formats import get_format
from solar_rl.privacy import make_masker, masked
from solar_rl.prompts import frame_of
from solar_rl.schema import Episode, Reject

REJECT_RATE_FROM = 200


def read_items(config: DatasetConfig, builder: Builder, shard: str) -> Iterator[Episode | Reject]:
    """Yield a shard's episodes of the wanted splits, and its rejects; what it yields hangs on the shard alone.

    An id that another shard has too is settled when all are read (``settle``).
    """
    items = masked(read_shard(builder, shard), make_masker(config.privacy, config.seed))
    for item in checked(items, file=shard, seen=set()):
        if isinstance(item, Reject):
            yield item
        elif not config.source.splits or item.split in config.source.splits:
            yield _sayable(config, item, shard)


def _sayable(config: DatasetConfig, episode: Episode, shard: str) -> Episode | Reject:
    """Reject an episode with an action that has to be written in the format, and can't be."""
    told = config.prompt.history != "none"
    written = episode.steps if config.sampler.type == "scripted" else episode.steps[:-1] if told else ()
    fmt = get_format(config.prompt.format)
    for step in written:
        try:
            fmt.render(step.action, frame_of(step, config.prompt))
        except ActionError as error:
            record = f"episode {episode.episode_id}, step {step.step_index}"
            return Reject(shard, record, "format_lacks_action", error.message, episode.episode_id)
    return episode


@dataclass
class Tally:
    """Counts good and broken records in the source's order, and stops a build whose source is broken.

    Args:
        allowed: ``source.max_reject_rate``.
    """

    allowed: float
    good: int = 0
    bad: int = 0
    _last: Reject | None = None

    def add(self, item: Episode | Reject) -> None:
        """Count the next record.

        Raises:
            CheckFailed: From 200 records on, more are broken than allowed.
        """
        if isinstance(item, Reject):
            self.add_bad(item)
        else:
            self.add_good(1)

    def add_good(self, count: int) -> None:
        """Count so many good episodes in a row."""
        short = max(0, REJECT_RATE_FROM - self.good - self.bad)  # the rate is looked at first after 200
        if 0 < short <= count:
            self.good += short
            self._check()
            count -= short
        self.good += count

    def add_bad(self, reject: Reject) -> None:
        """Count a broken record."""
        self.bad, self._last = self.bad + 1, reject
        self._check()

    def _check(self) -> None:
        seen = self.good + self.bad
        if self._last and seen >= REJECT_RATE_FROM and self.bad > self.allowed * seen:
            last = self._last
            raise CheckFailed(
                f"{self.bad} of {seen} episodes are broken, more than max_reject_rate {self.allowed:.0%}; "
                f"the last: {last.file}, {last.record}: {last.message}",
                hint="mend the source, or raise --source.max_reject_rate",
            )
