"""What one line of the interchange format may hold: frozen pydantic models whose field docs are the reference."""

from __future__ import annotations

import difflib
import re
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from solar_rl.actions import ACTION_TYPES, BUTTONS, DIRECTIONS, POINT_ACTIONS, STATUSES
from solar_rl.errors import RecordError
from solar_rl.schema import PLATFORMS, SCREEN_SIZES, SPLITS

SCHEMA_ID = "urn:solar-rl:interchange-episode:1"
_REASONS = {"extra_forbidden": "unknown_key", "missing": "missing_field", "json_invalid": "bad_json"}
_OUT_OF_RANGE = ("less_than", "less_than_equal", "greater_than", "greater_than_equal")
_NEEDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (POINT_ACTIONS, ("x", "y")),
    (("scroll",), ("direction",)),
    (("drag",), ("x", "y", "x2", "y2")),
    (("input_text",), ("text",)),
    (("open_app",), ("app_name",)),
    (("finished",), ("status",)),
)
"""What a JSON schema can say of ``Action``'s own checks; a test holds the two together."""


def _one_of(choices: tuple[str, ...]) -> dict[str, Any]:
    return {"enum": list(choices)}


def _given(names: tuple[str, ...]) -> dict[str, Any]:
    return {"required": list(names), "properties": {name: {"not": {"type": "null"}} for name in names}}


def _needs(schema: dict[str, Any]) -> None:
    """Say in a JSON schema which arguments each action type needs."""
    either = {"oneOf": [_given(("button",)), _given(("keys",))]}
    rules = [(kinds, _given(names)) for kinds, names in _NEEDS] + [(("press",), either)]
    schema["allOf"] = [
        {"if": {"properties": {"action_type": {"enum": list(kinds)}}}, "then": then} for kinds, then in rules
    ]


Number = Annotated[float, Field(allow_inf_nan=False)]
Pixels = Annotated[int, Field(ge=1, lt=2**31)]
Edges = Annotated[tuple[Number, Number, Number, Number], Field(description="x1, y1, x2, y2")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


class InterchangeAction(_Model):
    """One canonical action; its coordinates are those that the episode's ``coordinates`` names."""

    model_config = ConfigDict(json_schema_extra=_needs)

    action_type: Annotated[str, Field(json_schema_extra=_one_of(ACTION_TYPES))]
    """What is done."""
    x: Number | None = None
    """The point, or the start of a path, from the left."""
    y: Number | None = None
    """The same from the top."""
    x2: Number | None = None
    """End of a drag, or of a scroll's finger path, from the left."""
    y2: Number | None = None
    """The same from the top."""
    direction: Annotated[str | None, Field(json_schema_extra=_one_of((*DIRECTIONS, None)))] = None  # type: ignore[arg-type]
    """Which way a scroll moves the content into view: down shows what is lower (the finger moves up)."""
    text: str | None = None
    """Text that input_text types, or the answer that finished gives."""
    app_name: str | None = None
    """Name of the app that open_app launches."""
    keys: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Keys of a press that is no system button, such as ["ctrl", "c"]."""
    button: Annotated[str | None, Field(json_schema_extra=_one_of((*BUTTONS, None)))] = None  # type: ignore[arg-type]
    """System button of a press; a press has either this or keys."""
    status: Annotated[str | None, Field(json_schema_extra=_one_of((*STATUSES, None)))] = None  # type: ignore[arg-type]
    """Outcome that finished declares."""


class InterchangeAlternative(InterchangeAction):
    """Another action that is right at a step, with its element's box."""

    box: Edges | None = None
    """The element that it means."""


class InterchangeStep(_Model):
    """One recorded decision of the expert."""

    action: InterchangeAction
    """What the expert did."""
    step_index: int | None = None
    """Position in the episode, from 0; only checked."""
    image: str | None = None
    """The screen before the action: path of a PNG, JPEG or WebP, relative to the file's folder, with forward
    slashes; it may not leave that folder. Absent: no screenshot."""
    image_sha256: Annotated[str | None, Field(pattern="^[0-9a-f]{64}$")] = None
    """Hash of the image's bytes. Where it is given, a changed image is a reject, and a changed line another
    build; without it a build doesn't notice that an image was replaced."""
    screen_width: Pixels | None = None
    """Pixels of the screen (default: the episode's, else the image's)."""
    screen_height: Pixels | None = None
    """The same down the height."""
    screen_size: Annotated[str, Field(json_schema_extra=_one_of(SCREEN_SIZES))] = "stated"
    """Where the size comes from. A point outside a stated screen is an error."""
    instruction: str | None = None
    """Low-level instruction of this step alone."""
    thought: str | None = None
    """What the expert is recorded to have thought."""
    app: str | None = None
    """App in the foreground (default: the episode's)."""
    screen_text: str | None = None
    """The screen as text, such as its accessibility tree, for text-only policies."""
    target_box: Edges | None = None
    """The element that the action means. Boxes are clipped to the screen."""
    candidate_boxes: tuple[Edges, ...] = ()
    """Every box that may be meant."""
    box_rule: str | None = None
    """Which rule chose target_box."""
    alternatives: tuple[InterchangeAlternative, ...] = ()
    """Other actions that are right at this step."""


class InterchangeEpisode(_Model):
    """One demonstration: a line of the file."""

    episode_id: str | int
    """Unique within the dataset; a whole number is read as its digits."""
    goal: str
    """What the user wants, in words."""
    platform: Annotated[str, Field(json_schema_extra=_one_of(PLATFORMS))]
    """Where it was recorded."""
    coordinates: Literal["unit", "pixels"]
    """What every x, y and box of this line is told in: unit (shares of the screen, 0 to 1 from the top left)
    or pixels of the step's screen."""
    steps: tuple[InterchangeStep, ...]
    """The decisions, in order; at least one."""
    split: Annotated[str, Field(json_schema_extra=_one_of(SPLITS))] = "train"
    """Which split the episode belongs to."""
    app: str | None = None
    """Main app, if known."""
    category: str | None = None
    """Kind of task."""
    subsplits: tuple[str, ...] = ()
    """Finer splits that hold the episode, such as app_unseen."""
    recorded_success: bool | None = None
    """Whether the demonstration reached its goal, if known."""
    source: str | None = None
    """Name of the source (default: jsonl)."""
    license: str | None = None
    """Licence of the episode (default: option license)."""
    screen_width: Pixels | None = None
    """Pixels of every step's screen that states none of its own."""
    screen_height: Pixels | None = None
    """The same down the height."""


def told_line(line: bytes | str) -> InterchangeEpisode:
    """Read one line as the model, and say what is wrong with one that is no such thing.

    Raises:
        RecordError: ``bad_json``, ``unknown_key``, ``missing_field`` or ``bad_value``; ``where`` is the key,
            such as ``steps.3.action.x``.
    """
    try:
        return InterchangeEpisode.model_validate_json(line)
    except ValidationError as error:
        raise _first_problem(error) from None


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a line (draft 2020-12), as ``episode.schema.json`` holds it."""
    schema = InterchangeEpisode.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA_ID} | schema


def _first_problem(error: ValidationError) -> RecordError:
    problems = error.errors(include_url=False)
    problem = next((each for each in problems if each["type"] == "extra_forbidden"), problems[0])
    kind = problem["type"]
    path = [str(part) for part in problem["loc"] if part not in ("str", "int")]  # a union's variants
    reason = _REASONS.get(kind, "bad_value")
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 and kind != "json_invalid" else ""
    if kind == "extra_forbidden":
        known = _keys_at(path[:-1])
        close = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean '{close[0]}'?" if close else f"known: {', '.join(known)}"
        return RecordError(reason, f"unknown key '{path[-1]}'{more}", where=_spelled(path), hint=hint)
    if kind == "missing" and isinstance(problem["loc"][-1], int):
        return RecordError("bad_value", f"has too few numbers{more}", where=_spelled(path[:-1]))
    if kind == "missing":
        return RecordError(reason, f"key '{path[-1]}' is missing{more}", where=_spelled(path[:-1]))
    if kind == "json_invalid":
        message = f"the line is no JSON ({problem['msg'].removeprefix('Invalid JSON: ')})"
        return RecordError(reason, message, hint=_spread(problem["input"]))
    if kind in _OUT_OF_RANGE:
        message = f"{re.sub('[0-9]+', _grouped, problem['msg'])}, got {problem['input']:,}{more}"
        return RecordError(reason, message, where=_spelled(path))
    found = "" if isinstance(problem["input"], dict | list) else f", got {problem['input']!r:.80}"
    spread = None if path else _spread(problem["input"])
    return RecordError(reason, f"{problem['msg']}{found}{more}", where=_spelled(path), hint=spread)


def _grouped(digits: re.Match[str]) -> str:
    """Group the digits of a limit or a size by thousands: in one row they look like a phone number."""
    return f"{int(digits[0]):,}"


def _spread(line: Any) -> str | None:
    """Say how episodes get on a line each, where a line is a list of them, or the first of many lines of one."""
    if isinstance(line, list) or (isinstance(line, str | bytes) and line.strip() in ("[", "{", b"[", b"{")):
        return "one episode a line: jq -c 'if type == \"array\" then .[] else . end' FILE writes it so"
    return None


def _keys_at(path: list[str]) -> list[str]:
    """Return the keys of the model that a path through lists and objects leads to."""
    model: type[BaseModel] = InterchangeEpisode
    for name in path:
        if name in model.model_fields:
            model = _model_in(model.model_fields[name].annotation) or model
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def _spelled(path: list[str]) -> str | None:
    return ".".join(path) or None
