"""Android in the Wild's own files: GZIP TFRecords, one Example a step, screenshots as raw pixels.

Steps are put together to episodes by their ids. Raw pixels are encoded once, as PNG.
"""

from __future__ import annotations

import re
import struct
import tempfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
from isal import isal_zlib

from solar_rl.actions import Action
from solar_rl.builder import Builder, Sign
from solar_rl.config import Config, SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.schema import Episode, Reject, Screenshot, Step

from .._episode_files import main_app, reached_goal
from .._touch import Point
from ..android_control.forest import app_name
from ..android_control.messages import parse_example
from ..android_control.screen import Screen, number
from ..android_control.splits import read_splits
from ..android_control.tfrecord import is_tfrecord, read_records
from ..android_control.vocabulary import read_optional_text, read_text
from .actions import coded_action
from .elements import BOX_RULE, Elements, read_elements
from .waiting import Waiting, WaitingRoom

_FILES = "*-of-*"
_SETS = ("google_apps", "install", "web_shopping", "general", "single")
_COLOURS = {1: 0, 3: 2, 4: 6}
"""Channels of raw pixels and PNG's colour type: grey, RGB, RGBA."""
_LONGEST = 10_000

CITATION = """@misc{rawles2023android,
  title  = {Android in the Wild: A Large-Scale Dataset for Android Device Control},
  author = {Christopher Rawles and Alice Li and Daniel Rodriguez and Oriana Riva and Timothy Lillicrap},
  year   = {2023},
  eprint = {2307.10088},
  archivePrefix = {arXiv}
}"""


class Options(Config):
    """Options of builder ``aitw``."""

    splits: str | None = None
    """A file of the release's folder ``splits``, such as standard.json. Ids outside it, or without a file: train."""
    incomplete: Literal["reject", "keep"] = "reject"
    """An episode of which a file holds fewer steps than episode_length: reject it, or keep what is there."""


class Aitw(Builder):
    """Reads Android in the Wild as released by Google Research."""

    name = "aitw"
    license = "cc-by-4.0"
    homepage = "https://github.com/google-research/google-research/tree/master/android_in_the_wild"
    citation = CITATION
    Options = Options

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        self._splits_file = Path(self.options.splits) if self.options.splits else None
        self._split_of = read_splits(self._splits_file)
        if not self.shards():
            raise ConfigError(
                f"holds no file {_FILES}, neither itself nor below",
                where=f"source.path {self.path}",
                hint="name the folder of the shards",
            )

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by the features of the first record."""
        for file in [path] if path.is_file() else _some_shards(path):
            if is_tfrecord(file) and "results/action_type" in _first_features(file):
                return Sign(0.95, f"{file.name} is a GZIP TFRecord with results/action_type")
        return None

    @cached_property
    def _shards(self) -> dict[str, Path]:
        if not self.path.is_dir():
            return {self.path.name: self.path}
        files = sorted(file for file in self.path.rglob(_FILES) if file.is_file())
        return {file.relative_to(self.path).as_posix(): file for file in files}

    def source_files(self) -> list[Path]:
        """List the shards, and the file of splits where there is one."""
        return [*self._shards.values(), *([self._splits_file] if self._splits_file else [])]

    def fingerprint(self) -> dict[str, str]:
        """Return what the bytes of PNGs depend on: another ISA-L may pack the same pixels otherwise."""
        return {"isal": version("isal")}

    def shards(self) -> list[str]:
        """List the TFRecord files, those of subfolders too."""
        return list(self._shards)

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield each episode of one file once its last step was read, and what is incomplete at the end."""
        file = self._shards[shard]
        with tempfile.TemporaryFile() as spilled:
            room = WaitingRoom(spilled)
            for place, record in enumerate(read_records(file)):
                try:
                    episode = _take(room, place, record)
                except RecordError as error:
                    yield Reject(shard, f"record {place}", error.reason, str(error))
                    continue
                if episode.records == episode.length:
                    yield self._finish(room, episode, file, shard)
            for episode in room.rest():
                yield self._finish(room, episode, file, shard)

    def _finish(self, room: WaitingRoom, waiting: Waiting, file: Path, shard: str) -> Episode | Reject:
        steps = tuple(room.leave(waiting))
        error = waiting.error
        if error is None and waiting.records != waiting.length and self.options.incomplete == "reject":
            message = f"{waiting.records} steps are in the file, episode_length is {waiting.length}"
            hint = "source.options.incomplete keep takes it as it is"
            error = RecordError("missing_steps", message, hint=hint)
        if error is not None:
            record = f"episode {waiting.episode_id} from record {waiting.place}"
            return Reject(shard, record, error.reason, str(error), waiting.episode_id)
        return Episode(
            waiting.episode_id,
            source=self.name,
            platform="android",
            goal=waiting.goal,
            steps=steps,
            split=self._split_of.get(waiting.episode_id, "train"),
            app=main_app(steps),
            license=self.license,
            category=_set_of(file),
            recorded_success=reached_goal(steps),
        )


def _some_shards(folder: Path) -> list[Path]:
    """Return the first shard of a folder, or of the folders in it."""
    found = sorted(folder.glob(_FILES)) or sorted(folder.glob(f"*/{_FILES}"))
    return [file for file in found[:1] if file.is_file()]


def _first_features(file: Path) -> dict[str, Any]:
    record = next(read_records(file), b"")
    try:
        return {} if isinstance(record, RecordError) else parse_example(record)
    except RecordError:
        return {}


def _set_of(file: Path) -> str | None:
    """Return which of the five data sets a file belongs to, by its name or its folder's."""
    words = (re.split(r"-\d", file.name)[0], file.absolute().parent.name)
    return next((word for word in words if word in _SETS), None)


def _take(room: WaitingRoom, place: int, record: bytes | RecordError) -> Waiting:
    """Read one record and let it wait for the rest of its episode.

    Raises:
        RecordError: It can't be told which episode it belongs to.
    """
    if isinstance(record, RecordError):
        raise record
    fields = _Fields(parse_example(record))
    episode_id = fields.text("episode_id")
    length, goal = _length(fields), fields.text("goal_info")
    episode = room.enter(episode_id, place, length, goal)
    episode.records += 1
    if episode.error is not None:
        return episode
    try:
        if (episode.length, episode.goal) != (length, goal):
            raise RecordError("mixed_episodes", "episode_length or goal_info is another one than before")
        step_id = fields.integer("step_id")
        if step_id in episode.steps:
            raise RecordError("repeated_step", f"step_id {step_id} is there twice")
        episode.steps[step_id] = _step(step_id, fields)
    except RecordError as error:
        episode.fail(RecordError(error.reason, error.message, where=f"record {place}"))
    return episode


def _length(fields: _Fields) -> int:
    length = fields.integer("episode_length")
    if not 0 < length <= _LONGEST:
        raise RecordError("bad_number", f"episode_length is {length}, expected 1 to {_LONGEST}")
    return length


def _step(step_id: int, fields: _Fields) -> Step:
    screenshot = _screenshot(fields)
    screen = Screen(screenshot.width, screenshot.height)
    action = coded_action(
        fields.integer("results/action_type"),
        lambda: fields.text("results/type_action"),
        lambda: (fields.point("results/yx_touch"), fields.point("results/yx_lift")),
    )
    boxes, text = _elements(fields, screen, action)
    return Step(
        step_id,
        action,
        screen.width,
        screen.height,
        screenshot=screenshot,
        screen_text=text,
        app=_app(fields.optional_text("current_activity")),
        target_box=boxes[0] if boxes else None,
        candidate_boxes=boxes,
        box_rule=BOX_RULE if boxes else None,
    )


def _elements(fields: _Fields, screen: Screen, action: Action) -> Elements:
    numbers = fields.floats("image/ui_annotations_positions")
    if len(numbers) % 4:
        raise RecordError("bad_box", f"{len(numbers)} numbers of boxes, expected four each")
    positions = [numbers[start : start + 4] for start in range(0, len(numbers), 4)]
    texts, kinds = fields.texts("image/ui_annotations_text"), fields.texts("image/ui_annotations_ui_types")
    return read_elements(positions, texts, kinds, screen, action, unit=True)


def _app(activity: str | None) -> str | None:
    """Return the app of an activity that is written with its package; else the activity as it is."""
    package, slash, _ = (activity or "").partition("/")
    return app_name(package) if slash else activity


def _screenshot(fields: _Fields) -> Screenshot:
    """Return the screenshot: raw pixels as PNG, an image that a copy of the data already encoded as it is."""
    width, height = fields.integer("image/width"), fields.integer("image/height")
    channels, data = fields.integer("image/channels"), fields.blob("image/encoded")
    if channels in _COLOURS and min(width, height) > 0 and len(data) == width * height * channels:
        return Screenshot(_png(_COLOURS[channels], channels, width, height, data), width, height)
    try:
        return Screenshot.of(data)
    except RecordError as error:
        expected = f"{width}x{height} pixels of {channels} bytes"
        raise RecordError("bad_image", f"{len(data)} bytes are neither {expected} nor an image") from error


def _png(colour: int, channels: int, width: int, height: int, pixels: bytes) -> bytes:
    """Write raw pixels as a PNG, rows as they are.

    Source: ours, because a phone's flat screens get smaller without the filters that Pillow always tries, and
    ISA-L's deflate takes a fifth of zlib's time at level 1 for a smaller file.
    """
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with a 0: no filter
    rows[:, 1:] = np.frombuffer(pixels, np.uint8).reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", isal_zlib.compress(rows, 1)), (b"IEND", b""))
    framed = (
        struct.pack(">I", len(d)) + k + d + struct.pack(">I", isal_zlib.crc32(k + d)) for k, d in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


class _Fields:
    """The features of one Example."""

    def __init__(self, features: dict[str, Any]) -> None:
        self._features = features

    def _only(self, name: str, values: Sequence[Any]) -> Any:
        if name not in self._features or not values:
            raise RecordError("missing_field", f"feature {name} is missing or empty")
        if len(values) > 1:
            raise RecordError("lengths_mismatch", f"feature {name} holds {len(values)} values, expected one")
        return values[0]

    def _values(self, name: str, kind: str) -> Sequence[Any]:
        return getattr(self._features[name], kind).value if name in self._features else ()

    def integer(self, name: str) -> int:
        """Return a feature's only whole number."""
        value: int = self._only(name, self._values(name, "int64_list"))
        return value

    def blob(self, name: str) -> bytes:
        """Return a feature's only bytes."""
        value: bytes = self._only(name, self._values(name, "bytes_list"))
        return value

    def text(self, name: str) -> str:
        """Return a feature's only text, which isn't blank."""
        return read_text({name: _decode(self.blob(name), name)}, name)

    def optional_text(self, name: str) -> str | None:
        """Return a feature's only text; None where it is missing or blank."""
        values = self.texts(name)
        return read_optional_text({name: values[0]}, name) if values else None

    def texts(self, name: str) -> list[str]:
        """Return all texts of a feature."""
        return [_decode(value, name) for value in self._values(name, "bytes_list")]

    def floats(self, name: str) -> list[float]:
        """Return all numbers of a feature."""
        return list(self._values(name, "float_list"))

    def point(self, name: str) -> Point:
        """Return a point that is written y first."""
        values = self.floats(name)
        if len(values) != 2:
            raise RecordError("bad_number", f"{name} holds {len(values)} numbers, expected y and x")
        y, x = (number(value, name) for value in values)
        return x, y


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RecordError("bad_text", f"{name} is not UTF-8 ({error})") from error


BUILDER = Aitw
