"""Draw one dataset from several sources, or the better part of one: filters, targets, and what they left out.

A mix is a builder made of builders, so a build needs no other path for it. Which episodes are drawn hangs on
a hash of (seed, episode id) alone, never on order, shards or workers; a larger target draws the same episodes and
more. For that every source is read once before the build: ``prepare`` leaves the result where the build's
other processes find it.
"""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import orjson

from solar_rl.builder import Builder, load_builder, read_shard
from solar_rl.config import SourceConfig
from solar_rl.config.source import MIX, FilterConfig, MixedSource
from solar_rl.episodes import checked
from solar_rl.errors import CheckFailed, ConfigError, InputError
from solar_rl.schema import Episode, Reject

_DRAW = "draw.json"
REJECT_RATE_FROM = 200


@dataclass
class Drawn:
    """What was found in one source, and which of its episodes are in the mix.

    Args:
        episode_ids: Drawn episodes by the source's own ids.
        left_out: Good episodes that are not in the mix, by reason.
        rejects: Number of broken records.
        good: Number of good episodes: those that the check behind every builder lets pass.
    """

    episode_ids: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    rejects: int = 0
    good: int = 0


class Mix(Builder):
    """Reads several sources as one, or one through filters.

    With several, each episode's id is led by its source's name: ``gui_odyssey:0000``, since two sources may
    number theirs alike.

    Args:
        source: With ``sources``, or with ``filters``.

    Raises:
        ConfigError: One of the builders refuses its block, or a reference is no dataset.
    """

    name = MIX
    needs_path = False

    def __init__(self, source: SourceConfig) -> None:
        self._rate = source.max_reject_rate
        super().__init__(source.model_copy(update={"options": {}}))
        blocks = source.sources or {"": _alone(source)}
        self._blocks: dict[str, MixedSource] = dict(sorted(blocks.items()))
        self._parts = {name: _load(name, block) for name, block in self._blocks.items()}
        self._filters = {
            name: [each for each in (block.filters, source.filters) if each.any]
            for name, block in self._blocks.items()
        }
        self._validity = {
            each.reference: _read_validity(Path(each.reference))
            for filters in self._filters.values()
            for each in filters
            if each.reference
        }
        self._drawn: dict[str, Drawn] | None = None
        self._takes_all = not (
            source.splits
            or any(self._filters.values())
            or any(b.splits or b.episodes or b.share for b in self._blocks.values())
        )
        if not self._takes_all:  # the survey holds the rate against every record that it meets
            self.source = self.source.model_copy(update={"max_reject_rate": 1.0})

    def parts(self) -> dict[str, Builder]:
        """Return the builders of the sources, by name."""
        return self._parts

    def source_files(self) -> list[Path]:
        """List the files of every source, and the manifests of the references."""
        return [file for _, file in self.named_files()]

    def named_files(self) -> list[tuple[str, Path]]:
        """List the files of every source, each under the source's name, and the manifests of the references."""
        files = [
            (_under(part, name), file)
            for part, builder in self._parts.items()
            for name, file in builder.named_files()
        ]
        references = [Path(reference) / "manifest.json" for reference in sorted(self._validity)]
        return files + [(f"reference-{at}/{file.name}", file) for at, file in enumerate(references)]

    def shards(self) -> list[str]:
        """List the shards of every source, each under the source's name."""
        return [_under(name, shard) for name, part in self._parts.items() for shard in part.shards()]

    def prepare(self, folder: Path) -> None:
        """Decide which episodes are drawn, or find what another process of this build has decided."""
        if self._takes_all:
            return
        file = folder / _DRAW
        if file.exists():
            self._drawn = {name: Drawn(**found) for name, found in orjson.loads(file.read_bytes()).items()}
            return
        drawn = {name: asdict(found) for name, found in self.drawn.items()}
        temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        temporary.write_bytes(orjson.dumps(drawn))
        temporary.replace(file)

    @property
    def drawn(self) -> dict[str, Drawn]:
        """Return what was found and drawn of each source; reads every source once, unless it is known.

        Raises:
            CheckFailed: More records of a source are broken than ``max_reject_rate`` allows.
        """
        if self._drawn is None:
            found = {name: self._survey(name) for name in self._parts}
            for name, ids in self._shortened(
                {name: each.episode_ids for name, each in found.items()}
            ).items():
                if missed := len(found[name].episode_ids) - len(ids):
                    found[name].left_out["not_drawn"] = missed
                found[name].episode_ids = ids
            self._drawn = found
        return self._drawn

    def filtered(self) -> dict[str, dict[str, int]]:
        """Count, by source and reason, the good episodes that are not in the mix, and those that are."""
        found: dict[str, dict[str, int]] = {}
        if self._takes_all:
            return found
        for name, each in self.drawn.items():
            short = self._missing(name, len(each.episode_ids))
            counts = {"good": each.good, **each.left_out, "drawn": len(each.episode_ids)}
            found[name or self._parts[name].name] = counts | ({"missing": short} if short else {})
        return found

    def _missing(self, name: str, drawn: int) -> int:
        """Return how many episodes a source has too few for its target."""
        block = self._blocks[name]
        wanted = block.episodes
        if block.share is not None and self.source.episodes is not None:
            wanted = _apportion(self._shares, self.source.episodes)[name]
        return max(0, (wanted or 0) - drawn)

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield the drawn episodes of one shard, and a Reject for each broken record."""
        part, own = self._locate(shard)
        for item in read_shard(self._parts[part], own):
            known = isinstance(item, Reject) or self._takes_all or item.episode_id in self._wanted_ids[part]
            if known or _is_broken(item):  # the check behind every builder tells what is wrong
                yield self._renamed(part, item)

    @cached_property
    def _wanted_ids(self) -> dict[str, set[str]]:
        return {name: set(each.episode_ids) for name, each in self.drawn.items()}

    def _locate(self, shard: str) -> tuple[str, str]:
        if "" in self._parts:
            return "", shard
        part, _, wanted = shard.partition("/")
        return part, wanted

    def _renamed(self, part: str, item: Episode | Reject) -> Episode | Reject:
        if not part:
            return item
        if isinstance(item, Episode):
            return replace(item, episode_id=mixed_id(part, item.episode_id))
        known = None if item.episode_id is None else mixed_id(part, item.episode_id)
        return replace(item, file=_under(part, item.file), episode_id=known)

    def _survey(self, name: str) -> Drawn:
        """Read a source and keep the ids of what passes its filters."""
        found, left_out = Drawn(), Counter[str]()
        seen: set[str] = set()
        for shard in self._parts[name].shards():
            for item in checked(read_shard(self._parts[name], shard), file=shard, seen=seen):
                if isinstance(item, Reject):
                    found.rejects += 1
                    self._check_rejects(name, found.rejects, len(seen), item)
                else:
                    reason = self._reason(name, item)
                    if reason is None:
                        found.episode_ids.append(item.episode_id)
                    else:
                        left_out[reason] += 1
        found.good = len(seen)
        found.left_out = dict(sorted(left_out.items()))
        return found

    def _check_rejects(self, name: str, bad: int, good: int, last: Reject) -> None:
        if good + bad >= REJECT_RATE_FROM and bad > self._rate * (good + bad):
            raise CheckFailed(
                f"{bad} of {good + bad} episodes are broken, more than max_reject_rate {self._rate:.0%}; "
                f"the last: {last.file}, {last.record}: {last.message}",
                where=f"source {name}" if name else None,
                hint="mend the source, or raise --source.max_reject_rate",
            )

    def _reason(self, name: str, episode: Episode) -> str | None:
        """Say why an episode is left out; None for one that is kept."""
        for splits in (self._blocks[name].splits, self.source.splits):
            if splits and episode.split not in splits:
                return "split"
        for filters in self._filters[name]:
            if reason := reason_to_drop(episode, filters):
                return reason
            if filters.reference:
                known = self._validity[filters.reference]
                validity = known.get(episode.episode_id, known.get(mixed_id(name, episode.episode_id)))
                if reason := _doubt(validity, filters):
                    return reason
        return None

    @property
    def _shares(self) -> dict[str, float]:
        return {name: block.share for name, block in self._blocks.items() if block.share is not None}

    def _shortened(self, kept: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """Draw from the kept episodes of each source as many as its target says, in the order of their hash."""
        counts = {name: len(ids) for name, ids in kept.items()}
        targets = counts | {n: b.episodes for n, b in self._blocks.items() if b.episodes is not None}
        if self._shares:
            total = self.source.episodes or _largest_mix(self._shares, counts)
            targets |= _apportion(self._shares, total)
        seed = self.source.seed
        return {
            name: sorted(ids, key=partial(_rank, seed, name))[: targets[name]] for name, ids in kept.items()
        }


def _is_broken(item: Episode | Reject) -> bool:
    return any(isinstance(each, Reject) for each in checked([item], file="", seen=set()))


def mixed_id(source: str, episode_id: str) -> str:
    """Return an episode's id in a mix.

    >>> mixed_id("gui_odyssey", "12"), mixed_id("", "12")
    ('gui_odyssey:12', '12')
    """
    return f"{source}:{episode_id}" if source else episode_id


def draw_key(seed: int, episode_id: str) -> bytes:
    """Return what orders episodes for a draw: a hash of the seed and the id in the mix."""
    return hashlib.sha256(f"{seed}\0{episode_id}".encode()).digest()


def _rank(seed: int, source: str, episode_id: str) -> bytes:
    return draw_key(seed, mixed_id(source, episode_id))


def reason_to_drop(episode: Episode, filters: FilterConfig) -> str | None:
    """Say which filter an episode falls through, the reference's apart; None for none.

    >>> reason_to_drop(Episode("7", "s", "web", "Öffne", ()), FilterConfig(goal_scripts=("cjk",)))
    'goal_script'
    """
    return next((reason for reason, falls in _checks(episode, filters) if falls), None)


def _checks(episode: Episode, filters: FilterConfig) -> Iterator[tuple[str, bool]]:
    length, steps = episode.ref_len, episode.steps
    yield "too_short", filters.min_steps is not None and length < filters.min_steps
    yield "too_long", filters.max_steps is not None and length > filters.max_steps
    yield "platform", filters.platforms is not None and episode.platform not in filters.platforms
    yield "license", filters.licenses is not None and episode.license not in filters.licenses
    yield "subsplit", filters.subsplits is not None and not set(filters.subsplits) & set(episode.subsplits)
    yield "failed", filters.success != "any" and episode.recorded_success is False
    yield "success_unknown", filters.success == "recorded" and episode.recorded_success is None
    yield "no_screenshot", filters.screenshots and any(step.screenshot is None for step in steps)
    kinds = filters.action_types
    yield "action_type", kinds is not None and any(s.action.action_type not in kinds for s in steps)
    scripts = filters.goal_scripts
    yield "goal_script", scripts is not None and not scripts_of(episode.goal) <= {s.lower() for s in scripts}


def scripts_of(text: str) -> set[str]:
    """Name the scripts that a text's letters belong to, by the first word of their Unicode names.

    >>> sorted(scripts_of("Öffne 微信, 3 times"))
    ['cjk', 'latin']
    """
    return {unicodedata.name(letter, "unnamed").split()[0].lower() for letter in text if letter.isalpha()}


def _doubt(validity: float | None, filters: FilterConfig) -> str | None:
    if validity is None:
        return "not_in_reference"
    if filters.min_validity is not None and validity < filters.min_validity:
        return "validity_below"
    if filters.max_validity is not None and validity > filters.max_validity:
        return "validity_above"
    return None


def _read_validity(folder: Path) -> dict[str, float]:
    """Return the share of valid candidates of each episode of a dataset that has a scored one."""
    import polars as pl

    files = sorted((folder / "data" / "rewards").glob("*.parquet"))
    if not files or not (folder / "manifest.json").is_file():
        raise ConfigError(
            "holds no finished dataset with table rewards",
            where=f"filters.reference {folder}",
            hint="name a folder that `solar-rl build` wrote",
        )
    rates = pl.scan_parquet(files).drop_nulls("valid").group_by("episode_id").agg(pl.col("valid").mean())
    return dict(rates.collect(engine="in-memory").iter_rows())


def _alone(source: SourceConfig) -> MixedSource:
    """Return a single source as the only part of a mix; its filters stand in the source itself."""
    return MixedSource(builder=source.builder, path=source.path, splits=source.splits, options=source.options)


def _load(name: str, block: MixedSource) -> Builder:
    plain = SourceConfig(builder=block.builder or name, path=block.path, options=block.options)
    try:
        return load_builder(plain)
    except (ConfigError, InputError) as error:
        if not name:
            raise
        where = f"source '{name}'" + (f", {error.where}" if error.where else "")
        hint = error.hint and error.hint.replace("--source.", f"--sources.{name}.")
        raise ConfigError(error.message, where=where, hint=hint) from None


def _under(name: str, what: str) -> str:
    return f"{name}/{what}" if name else what


def _largest_mix(shares: Mapping[str, float], counts: Mapping[str, int]) -> int:
    """Return the size of the largest mix in which every source can give its share."""
    whole = sum(shares.values())
    size = int(min(counts[name] * whole / share for name, share in shares.items()))
    while size and any(n > counts[name] for name, n in _apportion(shares, size).items()):
        size -= 1  # the rounding gave one source more than it has
    return size


def _apportion(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """Divide a whole number by shares: rounded down, what is left goes to the largest remainders.

    >>> _apportion({"a": 1, "b": 1, "c": 1}, 11)
    {'a': 4, 'b': 4, 'c': 3}
    """
    whole = sum(shares.values())
    exact = {name: total * share / whole for name, share in shares.items()}
    parts = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (parts[name] - exact[name], name))
    for name in by_remainder[: total - sum(parts.values())]:
        parts[name] += 1
    return parts
