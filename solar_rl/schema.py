"""The records that flow through a build and the tables that it writes: one definition of each.

A builder turns a source into ``Episode``s of ``Step``s. Everything after that is columns: the tables
below are the public contract (docs/schema.md is generated from them). Types are spelled as strings so
that reading this module needs neither pyarrow nor polars; ``arrow_schema`` makes the real thing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from solar_rl.actions import ACTION_FIELDS, Action, Box
from solar_rl.images import Screenshot as Screenshot
from solar_rl.records import record

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 2
SPLITS = ("train", "validation", "test")
PLATFORMS = ("android", "desktop", "web")
SCREEN_SIZES = ("stated", "assumed", "inferred")
POSITIONS = ("prefix", "breakdown", "after")
LENGTH_BUCKETS: dict[str, tuple[tuple[int | None, str], ...]] = {
    "androidcontrol": ((5, "short (1-5)"), (10, "long (6-10)"), (None, "super long (> 10)")),
    "phone": ((5, "short (1-5)"), (14, "long (6-14)"), (None, "super long (> 14)")),
    "ui_genie": ((4, "easy (< 5)"), (9, "medium (5-9)"), (None, "hard (>= 10)")),
}
"""Rule to (longest length, name) of each bucket of episode lengths, short ones first; a rule's name is
printed beside every number. androidcontrol and phone: ours; ui_genie: UI-Genie's evaluation."""


@record(frozen=True, slots=True)
class Alternative:
    """Another action that is right at a step, with its element's box in the unit square."""

    action: Action
    box: Box | None = None


@record(frozen=True, slots=True)
class Step:
    """One recorded decision of the expert.

    Args:
        step_index: Position in the episode, from 0.
        action: What the expert did, in the unit square.
        screen_width: Pixels of the screen the action was recorded on.
        screen_height: The same down the height.
        instruction: Low-level instruction for this step alone, if the source has one.
        screenshot: The screen before the action, if the source has one.
        screen_text: Text rendering of the accessibility tree, for text-only policies.
        app: App in the foreground, if known (default: the episode's).
        target_box: The element that the label means, in the unit square.
        candidate_boxes: Every box that the source or its tree offers for the label.
        screen_size: Where width and height come from: stated, assumed or inferred.
        box_rule: Which rule chose ``target_box``, such as source or smallest_clickable.
        thought: What the source says the expert thought, if it does.
        alternatives: Other actions that the source calls right at this step.
    """

    step_index: int
    action: Action
    screen_width: int
    screen_height: int
    instruction: str | None = None
    screenshot: Screenshot | None = None
    screen_text: str | None = None
    app: str | None = None
    target_box: Box | None = None
    candidate_boxes: tuple[Box, ...] = ()
    screen_size: str = "stated"
    box_rule: str | None = None
    thought: str | None = None
    alternatives: tuple[Alternative, ...] = ()


@record(frozen=True, slots=True)
class Episode:
    """One expert demonstration: a goal and the steps that reach it.

    Args:
        episode_id: Unique within a dataset.
        source: Name of the source dataset.
        platform: android, desktop or web.
        goal: What the user wants, in words.
        steps: The recorded decisions, in order.
        split: train, validation or test.
        app: Main app, if known.
        license: Licence of the source.
        category: The source's own kind of task, if it has one.
        subsplits: The source's own finer splits that hold the episode, such as app_unseen.
        recorded_success: Whether the source says that the demonstration reached its goal.
    """

    episode_id: str
    source: str
    platform: str
    goal: str
    steps: tuple[Step, ...]
    split: str = "train"
    app: str | None = None
    license: str | None = None
    category: str | None = None
    subsplits: tuple[str, ...] = ()
    recorded_success: bool | None = None

    @property
    def ref_len(self) -> int:
        """Return N_ref, the number of recorded steps."""
        return len(self.steps)


@dataclass(frozen=True)
class Reject:
    """One record that could not be built, as it is written to rejects.jsonl."""

    file: str
    record: str
    reason: str
    message: str
    episode_id: str | None = None


@dataclass(frozen=True)
class Candidate:
    """One sampled answer to one step, parsed or with the reason why not."""

    episode_id: str
    step_index: int
    candidate_index: int
    completion: str
    sampler_id: str
    seed: int
    action: Action | None = None
    parse_error: str | None = None
    token_ids: tuple[int, ...] | None = None
    sampling_logprobs: tuple[float, ...] | None = None
    finish_reason: str | None = None
    history_dropped: int = 0


class Column(NamedTuple):
    """One column: its Arrow type as a string, its meaning, and whether it may be null."""

    name: str
    dtype: str
    doc: str
    nullable: bool = True


@dataclass(frozen=True)
class Table:
    """One table of the star schema: its key, which is also its sort order, and its columns."""

    name: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    doc: str
    row_group: int = 100_000
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))


_ACTION_TYPES = {"x": "float64", "y": "float64", "x2": "float64", "y2": "float64", "keys": "list<string>"}
_ACTION_DOCS = {
    "action_type": "canonical action type",
    "x": "point or start of the path, share of the width",
    "y": "point or start of the path, share of the height",
    "x2": "end of the path, share of the width",
    "y2": "end of the path, share of the height",
    "direction": "content direction of a scroll (down = show what is lower)",
    "text": "typed text, or the answer given by finished",
    "app_name": "app that open_app launches",
    "keys": "keys of a press that is no system button",
    "button": "system button of a press: back, home, recent, enter",
    "status": "outcome that finished declares: complete, infeasible",
}


def _action_columns(prefix: str, who: str) -> tuple[Column, ...]:
    return tuple(
        Column(f"{prefix}{name}", _ACTION_TYPES.get(name, "string"), f"{who}: {_ACTION_DOCS[name]}")
        for name in ACTION_FIELDS
    )


_EPISODE = Column("episode_id", "string", "id of the expert demonstration", False)
_STEP = Column("step_index", "int32", "position of the step in its episode, from 0", False)
_CANDIDATE = Column("candidate_index", "int32", "which of the N candidates, from 0", False)

EPISODES = Table(
    "episodes",
    ("episode_id",),
    (
        _EPISODE,
        Column("source", "string", "name of the source dataset", False),
        Column("platform", "string", "android, desktop or web", False),
        Column("goal", "string", "what the user wants, in words", False),
        Column("app", "string", "main app of the episode, if known"),
        Column("ref_len", "int32", "N_ref, the number of recorded steps", False),
        Column("split", "string", "train, validation or test", False),
        Column("license", "string", "licence of the source"),
        Column("category", "string", "the source's own kind of task, if it has one"),
        Column("subsplits", "list<string>", "the source's own finer splits, such as app_unseen", False),
        Column("recorded_success", "bool", "whether the source says that the goal was reached"),
        Column("goal_words", "list<int32>", "a hash of each different word of the goal", False),
        Column("screen_hash", "string", "perceptual hash of the middle screen, 16 hex digits"),
    ),
    "One row per expert demonstration.",
)
STEPS = Table(
    "steps",
    ("episode_id", "step_index"),
    (
        _EPISODE,
        _STEP,
        Column("instruction", "string", "low-level instruction of this step"),
        Column("image_sha256", "string", "key of the screenshot in images"),
        Column("screen_width", "int32", "pixels of the recorded screen", False),
        Column("screen_height", "int32", "pixels of the recorded screen", False),
        *_action_columns("", "label"),
        Column("target_box", "list<float64>", "x1, y1, x2, y2 of the element the label means"),
        Column("candidate_boxes", "list<list<float64>>", "every box offered for the label", False),
        Column("screen_size", "string", "where the size comes from: stated, assumed, inferred", False),
        Column("app", "string", "app in the foreground, if known"),
        Column("screen_text", "string", "the screen as text, for text-only policies"),
        Column("box_rule", "string", "which rule chose target_box"),
        Column("thought", "string", "the expert's recorded thought, if the source has one"),
        Column("alternatives", "list<string>", "other right actions, each as JSON with its box", False),
    ),
    "One row per recorded step, with the expert's action as the label.",
)
IMAGES = Table(
    "images",
    ("sha256",),
    (
        Column("sha256", "string", "hash of the encoded bytes as stored", False),
        Column("image", "image", "the screenshot, stored once", False),
        Column("width", "int32", "pixels", False),
        Column("height", "int32", "pixels", False),
    ),
    "One row per distinct screenshot.",
    row_group=100,
)
CANDIDATES = Table(
    "candidates",
    ("episode_id", "step_index", "candidate_index"),
    (
        _EPISODE,
        _STEP,
        _CANDIDATE,
        Column("completion", "string", "the raw answer", False),
        Column("token_ids", "list<int32>", "token ids of the answer, if the sampler has them"),
        Column("sampling_logprobs", "list<float32>", "log-prob of each token at the sampling temperature"),
        Column("parse_error", "string", "why the answer is no action; null when it parsed"),
        *_action_columns("pred_", "prediction"),
        Column("sampler_id", "string", "which sampler, model and settings answered", False),
        Column("seed", "int64", "seed of this candidate", False),
        Column("finish_reason", "string", "stop, or length where the answer was cut; null: not known"),
        Column("history_dropped", "int32", "oldest actions left out to fit the context", False),
    ),
    "One row per sampled answer.",
)
SCORE_COLUMNS = (
    Column("raw_score", "float64", "s in [0, 1]; null when unscored"),
    Column("valid", "bool", "whether the action counts as right; null when unscored"),
    Column("unscored_reason", "string", "why this step can't be judged; null when scored"),
    Column("rule", "string", "which validity rule judged"),
    Column("distance", "float64", "distance from the label point in the unit square"),
    Column("box_x1", "float64", "left edge of the box used"),
    Column("box_y1", "float64", "top edge of the box used"),
    Column("box_x2", "float64", "right edge of the box used"),
    Column("box_y2", "float64", "bottom edge of the box used"),
    Column("matched_text", "string", "tokens found in both texts"),
    Column("failure_reason", "string", "why it is not valid; null when valid"),
)
REWARDS = Table(
    "rewards",
    ("episode_id", "step_index", "candidate_index"),
    (
        _EPISODE,
        _STEP,
        _CANDIDATE,
        Column("app", "string", "app in the foreground"),
        Column("action_type", "string", "action type of the label", False),
        *SCORE_COLUMNS,
        Column("position", "string", "prefix, breakdown or after, within its segment"),
        Column("segment_index", "int32", "number of earlier breakdowns in the trajectory"),
        Column("base_reward", "float64", "s, or -(1 - s) for a breakdown"),
        Column("gap_share", "float64", "this step's share of the gap to the target"),
        Column("reward", "float64", "base_reward + gap_share"),
        Column("advantage", "float64", "reward minus the mean of its group (episode, step)"),
        Column("pred_action_type", "string", "action type of the prediction; null when unparsable"),
    ),
    "One row per candidate: its validity with evidence, and its shaped reward.",
)
TRAJECTORIES = Table(
    "trajectories",
    ("episode_id", "candidate_index"),
    (
        _EPISODE,
        _CANDIDATE,
        Column("ref_len", "int32", "N_ref", False),
        Column("first_failure_step", "int32", "t*, first step that is not valid; null: none"),
        Column("valid_prefix_len", "int32", "K, steps before t*", False),
        Column("success", "bool", "no step failed", False),
        Column("mean_raw_score", "float64", "mean s over the kept steps of the first prefix"),
        Column("trajectory_reward", "float64", "R_traj"),
        Column("target_reward", "float64", "what the rewards must sum to"),
        Column("reward_sum", "float64", "what they do sum to", False),
        Column("alignment", "string", "aligned, no_prefix or off", False),
        Column("failure_action_type", "string", "action type of the label at t*"),
        Column("failure_app", "string", "app at t*"),
        Column("failure_reason", "string", "why the step at t* is not valid"),
    ),
    "One row per candidate trajectory: candidates of equal index through an episode.",
)
PREVIEW = Table(
    "preview",
    ("episode_id", "candidate_index", "step_index"),
    (
        _EPISODE,
        _CANDIDATE,
        _STEP,
        Column("image", "image", "the screenshot"),
        Column("goal", "string", "what the user wants", False),
        Column("instruction", "string", "low-level instruction of this step"),
        Column("expert", "string", "the expert's action in words", False),
        Column("candidate", "string", "the candidate's action in words, or why it did not parse", False),
        Column("raw_score", "float64", "s in [0, 1]"),
        Column("valid", "bool", "whether the action counts as right"),
        Column("position", "string", "prefix, breakdown or after"),
        Column("reward", "float64", "shaped reward"),
        Column("trajectory_reward", "float64", "R_traj of the whole trajectory"),
        Column("success", "bool", "no step of the trajectory failed", False),
    ),
    "About 200 readable rows with their screenshots, for the Hub's viewer.",
    row_group=100,
)
LARGEST_LOGPROB = 2.0**-10
"""Above this no number is a log-prob; samplers' rounding may give one a little over 0."""
TABLES: dict[str, Table] = {
    table.name: table for table in (EPISODES, STEPS, IMAGES, CANDIDATES, REWARDS, TRAJECTORIES, PREVIEW)
}


def arrow_type(dtype: str) -> pa.DataType:
    """Turn a type string of this module into the Arrow type."""
    import pyarrow as pa

    if dtype == "image":
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    if dtype.startswith("list<"):
        return pa.list_(arrow_type(dtype[5:-1]))
    return {"bool": pa.bool_()}.get(dtype) or getattr(pa, dtype)()


def arrow_schema(table: str) -> pa.Schema:
    """Return the one explicit Arrow schema of a table.

    Raises:
        KeyError: No such table.

    >>> arrow_schema("trajectories").field("ref_len").type
    DataType(int32)
    """
    import pyarrow as pa

    return pa.schema(
        [pa.field(c.name, arrow_type(c.dtype), nullable=c.nullable) for c in TABLES[table].columns]
    )
