"""AndroidControl's own files: GZIP TFRecords, one Example an episode, screenshots and trees included.

An episode has T actions and T + 1 screens; screen T is the state after the last action and belongs to no
step, unless ``finished_step`` asks for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from solar_rl.actions import Action
from solar_rl.builder import Builder, Sign
from solar_rl.config import Config, SourceConfig
from solar_rl.errors import ConfigError, RecordError
from solar_rl.schema import Episode, Reject, Screenshot, Step

from .forest import Forest, app_name
from .messages import parse_example
from .screen import Screen
from .splits import read_splits, read_subsplits
from .tfrecord import is_tfrecord, read_records
from .vocabulary import each_step, read_action, read_json, read_point

_FILES = "android_control-*-of-*"
_SPLITS, _SUBSPLITS = "splits.json", "test_subsplits.json"
_FINISHED = Action("finished", status="complete")

CITATION = """@article{li2024effects,
  title   = {On the Effects of Data Scale on UI Control Agents},
  author  = {Li, Wei and Bishop, William and Li, Alice and Rawles, Chris and Campbell-Ajala, Folawiyo
             and Tyamagundlu, Divya and Riva, Oriana},
  journal = {arXiv preprint arXiv:2406.03679},
  year    = {2024}
}"""


class Options(Config):
    """Options of builder ``android_control``."""

    splits: str | None = None
    """splits.json of the release (default: the one beside the files, if any). Ids outside it: train."""
    subsplits: str | None = None
    """test_subsplits.json of the release (default: the one beside the files, if any): which test episodes
    are in-domain (IDD), or of an app, task or category that training never saw."""
    finished_step: bool = False
    """Add a last step, finished, on the screen after the last action. The release has no such action."""


class AndroidControl(Builder):
    """Reads AndroidControl as released by Google Research."""

    name = "android_control"
    # The data set's own README says Apache-2.0, google-research's says CC BY 4.0 for all its data sets.
    license = "cc-by-4.0"
    homepage = "https://github.com/google-research/google-research/tree/master/android_control"
    citation = CITATION
    known_private = {
        "email": "in goals and typed texts of the public release",
        "phone": "in goals and typed texts of the public release",
    }
    Options = Options

    def __init__(self, source: SourceConfig) -> None:
        super().__init__(source)
        self._split_of = read_splits(self._splits_file)
        self._subsplits_of = read_subsplits(self._subsplits_file)
        if not self.shards():
            raise ConfigError(
                f"holds no file {_FILES}",
                where=f"source.path {self.path}",
                hint="name the folder of the shards",
            )

    @classmethod
    def recognises(cls, path: Path) -> Sign | None:
        """Tell the format by its files' names, or a file by its compressed TFRecord framing."""
        if path.is_dir():
            count = sum(file.is_file() for file in path.glob(_FILES))
            return Sign(0.95, f"files {_FILES}: {count}") if count else None
        if not is_tfrecord(path):
            return None
        named = path.match(_FILES)
        return Sign(0.95 if named else 0.6, "a GZIP TFRecord" + (" named as the release's" if named else ""))

    @property
    def _folder(self) -> Path:
        return self.path if self.path.is_dir() else self.path.parent

    @cached_property
    def _splits_file(self) -> Path | None:
        return self._beside(self.options.splits, _SPLITS)

    @cached_property
    def _subsplits_file(self) -> Path | None:
        return self._beside(self.options.subsplits, _SUBSPLITS)

    def _beside(self, given: str | None, name: str) -> Path | None:
        if given is not None:
            return Path(given)
        beside = self._folder / name
        return beside if beside.is_file() else None

    def source_files(self) -> list[Path]:
        """List the shards, and the files of splits where there are any."""
        files = [self._folder / shard for shard in self.shards()]
        return files + [file for file in (self._splits_file, self._subsplits_file) if file]

    def shards(self) -> list[str]:
        """List the TFRecord files by name."""
        if not self.path.is_dir():
            return [self.path.name]
        return sorted(file.name for file in self.path.glob(_FILES) if file.is_file())

    def read(self, shard: str) -> Iterator[Episode | Reject]:
        """Yield each record of one file as an Episode, or as a Reject that says why not."""
        for index, record in enumerate(read_records(self._folder / shard)):
            yield self._read_record(record, shard, f"record {index}")

    def _read_record(self, record: bytes | RecordError, file: str, name: str) -> Episode | Reject:
        episode_id = None
        try:
            if isinstance(record, RecordError):
                raise record
            features = parse_example(record)
            episode_id = str(_only("episode_id", _integers(features, "episode_id")))
            return self._episode(episode_id, features)
        except RecordError as error:
            return Reject(file, name, error.reason, str(error), episode_id)

    def _episode(self, episode_id: str, features: dict[str, Any]) -> Episode:
        goal = _text(_only("goal", _blobs(features, "goal")), "goal")
        if not goal.strip():
            raise RecordError("empty_text", "the goal is empty")
        steps = self._steps(features)
        opened = next((s.action.app_name for s in steps if s.action.action_type == "open_app"), None)
        subsplits = self._subsplits_of.get(episode_id, ())
        return Episode(
            episode_id,
            source=self.name,
            platform="android",
            goal=goal,
            steps=steps,
            split=self._split_of.get(episode_id, "test" if subsplits else "train"),
            app=opened or _main_app(steps),
            license=self.license,
            subsplits=subsplits,
        )

    def _steps(self, features: dict[str, Any]) -> tuple[Step, ...]:
        actions = [read_json(data, f"action {i}") for i, data in enumerate(_blobs(features, "actions"))]
        if not actions:
            raise RecordError("no_steps", "the episode has no actions")
        instructions = _blobs(features, "step_instructions")
        context = f" for {len(actions)} actions"
        _check_count("step_instructions", instructions, len(actions), context, "lengths_mismatch")
        screens = _Screens(features, len(actions))
        opened = [str(fields["app_name"]) for fields in actions if fields.get("app_name")]
        jobs: list[tuple[dict[str, Any] | None, bytes | None]] = [*zip(actions, instructions, strict=True)]
        if self.options.finished_step:
            jobs.append((None, None))
        return tuple(each_step(jobs, lambda index, job: screens.step(index, *job, opened)))


class _Screens:
    """The T + 1 screens of one record; a screenshot is copied out only when its step is read."""

    def __init__(self, features: dict[str, Any], actions: int) -> None:
        self._images = _blobs(features, "screenshots")
        self._trees = _blobs(features, "accessibility_trees")
        self._widths = _integers(features, "screenshot_widths")
        self._heights = _integers(features, "screenshot_heights")
        found = {
            "screenshots": self._images,
            "accessibility_trees": self._trees,
            "screenshot_widths": self._widths,
            "screenshot_heights": self._heights,
        }
        for name, values in found.items():
            _check_count(name, values, actions + 1, f" for {actions} actions", "screens_mismatch")

    def step(
        self, index: int, fields: dict[str, Any] | None, instruction: bytes | None, opened: Sequence[str]
    ) -> Step:
        """Read one step; ``fields`` None stands for the finished step."""
        screen, image = Screen(self._widths[index], self._heights[index]), self._images[index]
        shot = Screenshot.of(image)
        size = shot.encoded_size
        if size != screen[:2]:
            raise RecordError("bad_image", f"the screenshot is {size[0]}x{size[1]}, stated is {screen}")
        point = read_point(fields) if fields is not None else None
        action = read_action(fields, point, screen) if fields is not None else _FINISHED
        forest = Forest(self._trees[index], screen)
        rule, boxes = forest.boxes(*point) if point else (None, ())
        text = _text(instruction, "step_instruction") if instruction else ""
        return Step(
            index,
            action,
            *size,
            instruction=text if text.strip() else None,
            screenshot=shot,
            screen_text=forest.text(),
            app=app_name(forest.package(), opened),
            target_box=boxes[0] if boxes else None,
            candidate_boxes=boxes,
            box_rule=rule,
        )


def _feature(features: dict[str, Any], name: str) -> Any:
    if name not in features:
        raise RecordError("missing_field", f"feature {name} is missing")
    return features[name]


def _blobs(features: dict[str, Any], name: str) -> Sequence[bytes]:
    values: Sequence[bytes] = _feature(features, name).bytes_list.value
    return values


def _integers(features: dict[str, Any], name: str) -> Sequence[int]:
    values: Sequence[int] = _feature(features, name).int64_list.value
    return values


def _only(name: str, values: Sequence[Any]) -> Any:
    if not values:
        raise RecordError("missing_field", f"feature {name} is empty")
    _check_count(name, values, 1, "", "lengths_mismatch")
    return values[0]


def _check_count(name: str, values: Sequence[Any], expected: int, context: str, reason: str) -> None:
    if len(values) != expected:
        raise RecordError(reason, f"{len(values)} {name}{context}, expected {expected}")


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RecordError("bad_text", f"{what} is not UTF-8 ({error})") from error


def _main_app(steps: Sequence[Step]) -> str | None:
    """Return the app that most steps are taken in, the earlier one when two tie."""
    counts = Counter(step.app for step in steps if step.app)
    return max(counts, key=lambda app: counts[app], default=None)


BUILDER = AndroidControl
