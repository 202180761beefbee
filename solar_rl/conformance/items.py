"""Read a sample once and check every episode and reject in it, in the memory of one episode."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Self

import orjson

from solar_rl.actions import Box
from solar_rl.builder import Builder
from solar_rl.conformance.finding import Finding
from solar_rl.episodes import check_episode
from solar_rl.errors import RecordError
from solar_rl.images import decode_image
from solar_rl.schema import Episode, Reject, Screenshot, Step

_DECODED = 50
_OF_THE_DATA = {"duplicate_id", "off_screen", "bad_image", "empty_text", "no_steps"}
"""What the build's own check behind every builder may well find in good faith: the data's faults."""


@dataclass
class Reading:
    """What a sample holds, item by item as a digest, and what is wrong with it."""

    digests: dict[str, list[str]] = field(default_factory=dict)
    episodes: int = 0
    rejects: int = 0
    ids: set[str] = field(default_factory=set)
    images: set[str] = field(default_factory=set)
    pointed: int = 0
    strangers: list[str] = field(default_factory=list)
    no_iterators: list[str] = field(default_factory=list)
    malformed: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    first_refused: str = ""
    off_screen: list[str] = field(default_factory=list)
    boxes: list[str] = field(default_factory=list)
    undecodable: list[str] = field(default_factory=list)
    bad_rejects: list[str] = field(default_factory=list)
    other_source: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, builder: Builder, shards: Sequence[str]) -> Self:
        """Read a whole sample."""
        reading = cls()
        for shard in shards:
            items = builder.read(shard)
            if not isinstance(items, Iterator):
                reading.no_iterators.append(
                    f"read({shard!r}) gives a {type(items).__name__}, expected to yield"
                )
            reading.digests[shard] = [reading._add(item, shard) for item in items]
        return reading

    def _add(self, item: Any, shard: str) -> str:
        if isinstance(item, Episode):
            self._add_episode(item, f"shard {shard}, episode {item.episode_id}")
        elif isinstance(item, Reject):
            self.rejects += 1
            self.bad_rejects += _reject_faults(item, f"shard {shard}, {item.record}")
        else:
            self.strangers.append(f"shard {shard}: {type(item).__name__}, expected Episode or Reject")
        return digest(item)

    def _add_episode(self, episode: Episode, where: str) -> None:
        self.episodes += 1
        try:
            check_episode(episode, self.ids)
        except RecordError as error:
            self.refused[error.reason] += 1
            text = f"{where}: {error}"
            self.first_refused = self.first_refused or f"{error.reason}: {text}"
            if error.reason not in _OF_THE_DATA:
                self.malformed.append(text)
        except (TypeError, AttributeError, ValueError) as error:
            self.malformed.append(f"{where}: {error}")
            return
        self.ids.add(episode.episode_id)
        for step in episode.steps:
            self._add_step(step, f"{where}, step {step.step_index}")

    def _add_step(self, step: Step, where: str) -> None:
        if step.action.x is not None:
            self.pointed += 1
            if step.action.off_screen:
                self.off_screen.append(f"{where}: {step.action.describe()}")
        for box in (step.target_box, *step.candidate_boxes, *(each.box for each in step.alternatives)):
            if box is not None and not _in_unit_square(box):
                self.boxes.append(f"{where}: box {tuple(box)}")
        shot = step.screenshot
        if shot is not None and shot.sha256 not in self.images:
            self.images.add(shot.sha256)
            if len(self.images) <= _DECODED:
                self.undecodable += _image_faults(shot, where)


def contents(builder: Builder, reading: Reading) -> Iterator[Finding]:
    """Judge what was read."""
    found = f"{reading.episodes:,} episodes, {reading.rejects:,} rejects, {len(reading.images):,} images"
    yield Finding.of(
        "reads_the_sample", [] if reading.episodes else [f"not one episode: {found}"], note=found
    )
    yield Finding.of("yields_one_by_one", reading.no_iterators)
    yield Finding.of("yields_episodes_and_rejects", reading.strangers)
    yield Finding.of("episodes_are_well_formed", reading.malformed)
    refused = ", ".join(f"{reason} {count}" for reason, count in reading.refused.most_common())
    told = [f"{refused}; the first: {reading.first_refused}"] if refused else []
    yield Finding.of("a_build_keeps_every_episode", told, only_warn=True)
    many = 2 * len(reading.off_screen) > reading.pointed
    asked = "; are points divided by the screen's size?" if many else ""
    off = [f"{len(reading.off_screen)} of {reading.pointed}: {each}{asked}" for each in reading.off_screen]
    yield Finding.of("points_lie_in_the_unit_square", off, only_warn=not many)
    yield Finding.of("boxes_lie_in_the_unit_square", reading.boxes)
    yield Finding.of("images_decode", reading.undecodable)
    yield Finding.of("rejects_are_well_formed", reading.bad_rejects)


def digest(item: Any) -> str:
    """Return a digest of an item that two processes agree on, screenshots by their hash."""
    return hashlib.sha256(
        orjson.dumps(item, default=_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS)
    ).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Screenshot):
        return [value.sha256, value.width, value.height]
    if is_dataclass(value):
        return [type(value).__name__, *(getattr(value, each.name) for each in fields(value))]
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    return repr(value)


def _in_unit_square(box: Box) -> bool:
    return len(box) == 4 and 0 <= box[0] <= box[2] <= 1 and 0 <= box[1] <= box[3] <= 1


def _image_faults(shot: Screenshot, where: str) -> Iterator[str]:
    try:
        decode_image(shot.data)
    except RecordError as error:
        yield f"{where}: {error}"


def _reject_faults(reject: Reject, where: str) -> Iterator[str]:
    texts = {"file": reject.file, "record": reject.record, "reason": reject.reason, "message": reject.message}
    for name, value in texts.items():
        if not isinstance(value, str) or not value.strip():
            yield f"{where}: {name} is {value!r}, expected a text"
            return
    if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", reject.reason):
        yield f"{where}: reason is {reject.reason!r}, expected a short name such as bad_json"
