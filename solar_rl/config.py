"""Describe a dataset build: frozen pydantic models whose field docs are the help.

A dataset.yaml is read into ``DatasetConfig``. Unknown keys are errors with a suggestion. ``digest``
hashes what changes results and leaves out what only changes speed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from solar_rl.errors import ConfigError
from solar_rl.yaml_file import parse_scalar, read_yaml

SPEED_ONLY: dict[str, Any] = {"speed_only": True}
"""``json_schema_extra`` of a field that changes how fast a build runs but not what it gives."""


class Config(BaseModel):
    """Base of every config model: frozen, no unknown keys, field docstrings as help."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def digest(self) -> str:
        """Return a hex digest of every field that can change a result."""
        text = json.dumps(_results_only(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


C = TypeVar("C", bound=Config)


class SourceConfig(Config):
    """Which demonstrations are read."""

    builder: str
    """Short name of a builder of ours (phone, android_control, ...) or an import string module:Class."""
    path: str | None = None
    """File or folder of the source; relative to the current directory. Not needed by phone."""
    splits: tuple[Literal["train", "validation", "test"], ...] | None = None
    """Keep only these splits (default: all)."""
    limit: int | None = Field(default=None, ge=1)
    """Stop after this many good episodes (default: all)."""
    max_reject_rate: float = Field(default=0.05, ge=0, le=1)
    """From 200 episodes on, a larger share of broken ones stops the build with exit 1."""
    options: dict[str, Any] = {}
    """Options of the builder, checked against the builder's own model."""

    @field_validator("splits", mode="before")
    @classmethod
    def _one_split(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class PromptConfig(Config):
    """How a step is put to a policy."""

    format: str = "qwen25vl_mobile_use"
    """Output format that is asked for and parsed (contract: output formats)."""
    level: Literal["high", "low"] = "high"
    """high: the goal alone; low: the step's instruction is given too."""
    history: Literal["expert", "none"] = "expert"
    """Earlier actions in the prompt: the recorded ones, or none."""
    history_steps: int | None = Field(default=None, ge=1)
    """At most this many earlier actions, the newest kept (default: all)."""
    observation: Literal["image", "text", "both"] = "image"
    """What the policy sees of the screen: the screenshot, the accessibility tree as text, or both."""
    min_pixels: int = Field(default=3136, ge=784)
    """Smallest image area after smart_resize (Qwen2.5-VL's default: 56 * 56)."""
    max_pixels: int = Field(default=12_845_056, ge=784)
    """Largest image area after smart_resize (Qwen2.5-VL's default: 16384 * 28 * 28)."""


class _Sampler(Config):
    n: int = Field(default=8, ge=1, le=64)
    """N, candidates a step. The paper: 8. At most 64, so that neighbouring seeds never meet."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature. The paper: 1.0."""


class ScriptedSampler(_Sampler):
    """A noisy expert: it writes the recorded action, or a seeded mistake of a named kind."""

    type: Literal["scripted"] = "scripted"
    error_rate: float = Field(default=0.3, ge=0, le=1)
    """Chance of a mistake at a step."""
    error_rates: dict[str, float] = {}
    """The same by action type of the label, where it differs."""
    errors: dict[str, float] = {
        "near_miss": 3.0,
        "far_miss": 3.0,
        "wrong_type": 2.0,
        "wrong_direction": 2.0,
        "wrong_text": 2.0,
        "unparsable": 1.0,
    }
    """Weight of each kind of mistake; kinds that an action type can't make are left out."""
    policy: str | None = None
    """Folder of a local model that gives token ids and log-probs of the scripted answers, so that this
    very model can be trained on them. Default: UTF-8 bytes as token ids, the script's own log-probs."""
    batch_size: int = Field(default=8, ge=1, json_schema_extra=SPEED_ONLY)
    """Answers a forward pass of the policy."""


class TransformersSampler(_Sampler):
    """Any local causal or vision-language model through transformers."""

    type: Literal["transformers"] = "transformers"
    model: str
    """Folder of the model and its processor or tokenizer."""
    revision: str | None = None
    """Revision, where the model comes from the Hub."""
    max_new_tokens: int = Field(default=128, ge=1)
    """Longest answer in tokens."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Precision of the weights; float32 repeats exactly on a CPU."""
    device: str = Field(default="auto", json_schema_extra=SPEED_ONLY)
    """auto, cpu, cuda, cuda:1, ..."""
    trust_remote_code: bool = False
    """Run code that comes with the model. Only for repositories that you trust."""


class RecordedSampler(_Sampler):
    """Answers that were sampled elsewhere, by episode, step and candidate."""

    type: Literal["recorded"] = "recorded"
    path: str
    """JSONL or parquet with episode_id, step_index, candidate_index, completion and, if known,
    token_ids, sampling_logprobs, seed, sampler_id."""


Sampler = Annotated[ScriptedSampler | TransformersSampler | RecordedSampler, Field(discriminator="type")]
_VARIANTS = ("scripted", "transformers", "recorded")


class ValidityConfig(Config):
    """When an action counts as right (docs/method.md, section 2). All values are ours."""

    preset: Literal["strict", "lenient"] = "strict"
    """strict: click_sigma 0.034 (s = 0.5 at 0.04); lenient: 0.119 (s = 0.5 at 0.14)."""
    click_sigma: float | None = Field(default=None, gt=0)
    """s0 of the Gaussian kernel, in the unit square (default: the preset's)."""
    click_threshold: float = Field(default=0.5, ge=0, le=1)
    """A point action is valid from this score on."""
    box_sigma: float = Field(default=0.5, gt=0)
    """Sigma of an axis is at least this times the box's side (the constant of GUI-G2)."""
    box_floor: float = Field(default=0.5, ge=0, le=1)
    """Score of a point inside the chosen box is at least this."""
    max_box_area: float = Field(default=0.25, gt=0, le=1)
    """A candidate box that covers this share of the screen or more is a container and isn't used."""
    text_threshold: float = Field(default=0.5, ge=0, le=1)
    """Typed text is valid from this token F1 on."""
    launch_threshold: float = Field(default=0.8, ge=0, le=1)
    """An app name is valid from this similarity on; 1.0 is the exact match."""

    verifier: str | None = None
    """Import string of a verifier that judges in the place of these rules (docs/verifier.md); default: the
    rules. Raise the dataset's version when the verifier changes: its code is not part of the build id."""

    @property
    def sigma0(self) -> float:
        """Return the kernel's s0: ``click_sigma`` if given, else the preset's."""
        return self.click_sigma or {"strict": 0.034, "lenient": 0.119}[self.preset]


class ShapingConfig(Config):
    """How rewards are aligned with the trajectory's return (docs/method.md, section 3)."""

    alignment: Literal["off", "paper", "prefix_mean", "segments"] = "segments"
    """off: base rewards; paper: sum = R_traj; prefix_mean: mean prefix reward = R_traj; segments (ours):
    the same for each stretch between breakdowns, nothing thrown away."""
    suffix: Literal["discard", "penalise"] = "discard"
    """What happens after t* in off, paper and prefix_mean: thrown away (the authors' text), or each invalid
    step gets -(1 - s) and a valid one 0 (the notes' text). segments has no suffix."""
    normalisation: Literal["none", "unit_mass"] = "none"
    """unit_mass: positive bases divided by their sum, negative by its absolute value (truncated modes)."""
    score_weight: float = Field(default=0.3, ge=0)
    """Weight of the mean score in R_traj. [ours]"""
    progress_weight: float = Field(default=0.3, ge=0)
    """Weight of min(1, K / N_ref) in R_traj. [ours]"""
    success_weight: float = Field(default=0.4, ge=0)
    """Weight of success in R_traj. [ours]"""

    @model_validator(mode="after")
    def _modes_fit(self) -> ShapingConfig:
        if self.alignment == "segments" and self.normalisation == "unit_mass":
            raise ValueError(
                "normalisation: unit_mass works with the truncated alignments only; "
                "use normalisation: none with segments, or alignment: paper / prefix_mean"
            )
        return self


class AdvantageConfig(Config):
    """How rewards are compared within their group (episode, step)."""

    scale: Literal["none", "std"] = "none"
    """Divide by the group's standard deviation, or not (default; method.md, section 4)."""


class DatasetConfig(Config):
    """A whole dataset build: what a dataset.yaml holds."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """Name of the dataset, also of its folder."""
    version: str = Field(default="1.0.0", pattern=r"^\d+\.\d+\.\d+([-+][A-Za-z0-9.-]+)?$")
    """Version of the dataset (semantic)."""
    description: str = ""
    """One or two sentences for the card."""
    license: str | None = None
    """Licence of the built dataset, as the Hub spells it (default: the source's)."""
    seed: int = Field(default=0, ge=0, lt=2**31)
    """Build seed: every candidate's seed comes from it, the episode and the step."""
    source: SourceConfig
    prompt: PromptConfig = PromptConfig()
    sampler: Sampler = ScriptedSampler()
    validity: ValidityConfig = ValidityConfig()
    shaping: ShapingConfig = ShapingConfig()
    advantage: AdvantageConfig = AdvantageConfig()
    preview_rows: int = Field(default=200, ge=0)
    """About this many rows in table preview."""
    shard_episodes: int = Field(default=64, ge=1, json_schema_extra=SPEED_ONLY)
    """Episodes a unit of work: what a kill can cost."""

    @field_validator("sampler", mode="before")
    @classmethod
    def _scripted_by_default(cls, value: Any) -> Any:
        return {"type": "scripted"} | value if isinstance(value, dict) else value


def load_dataset_config(path: str | Path, overrides: Mapping[str, str] | None = None) -> DatasetConfig:
    """Read a dataset.yaml and apply dotted overrides.

    Args:
        path: The YAML file.
        overrides: Dotted key to YAML scalar, such as {"shaping.alignment": "paper"}.

    Raises:
        ConfigError: Missing file, broken YAML, unknown key (with a suggestion) or wrong value.
    """
    data = read_yaml(path)
    kind = (overrides or {}).get("sampler.type")
    if kind is not None and kind != data.get("sampler", {}).get("type", "scripted"):
        # another sampler: what the file says of its own kind alone means nothing to it
        data["sampler"] = {
            name: value for name, value in data.get("sampler", {}).items() if name in _Sampler.model_fields
        }
    for key, text in (overrides or {}).items():
        set_dotted(data, key, text)
    return validate_config(DatasetConfig, data, where=str(path), overrides=tuple(overrides or ()))


def validate_config(
    model: type[C], data: Mapping[str, Any], *, where: str, overrides: tuple[str, ...] = ()
) -> C:
    """Validate data as a config model; the first problem becomes one clear line.

    Args:
        model: The model.
        data: What a file holds, with the command line's values put over it.
        where: The file.
        overrides: Dotted keys that come from the command line.

    Raises:
        ConfigError: With the dotted key, what was expected and, for an unknown key, a suggestion.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _first_problem(model, error, where, overrides) from None


def field_docs(model: type[BaseModel], prefix: str = "") -> list[tuple[str, str, str]]:
    """List every field as (dotted name, default, meaning); the variants of a sampler follow each other."""
    rows: list[tuple[str, str, str]] = []
    for name, info in model.model_fields.items():
        inner = [
            part
            for part in (info.annotation, *get_args(info.annotation))
            if isinstance(part, type) and issubclass(part, BaseModel)
        ]
        if inner:
            for part in inner:
                rows += field_docs(part, f"{prefix}{name}.")
        else:
            default = "required" if info.is_required() else str(info.default)
            rows.append((f"{prefix}{name}", default, info.description or ""))
    return rows


def _first_problem(
    model: type[Config], error: ValidationError, where: str, overrides: tuple[str, ...]
) -> ConfigError:
    problems = error.errors()
    problem = next((p for p in problems if p["type"] == "extra_forbidden"), problems[0])
    key = _dotted(problem["loc"])
    where = "command line" if any(key == name or key.startswith(f"{name}.") for name in overrides) else where
    others = sorted({_dotted(each["loc"]) for each in problems} - {key, ""})
    more = f"; wrong too: {', '.join(others)}" if others else ""
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        known = sorted(_all_field_names(model))
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean '{close[0]}'?" if close else "`solar-rl build --fields` lists every key"
        return ConfigError(f"unknown key '{key}'{more}", where=where, hint=hint)
    if problem["type"] == "missing":
        return ConfigError(f"key '{key}' is missing{more}", where=where)
    message = problem["msg"].removeprefix("Value error, ")
    got = "" if problem["type"] == "value_error" else f", got {problem['input']!r}"
    return ConfigError(f"'{key}': {message}{got}{more}" if key else f"{message}{more}", where=where)


def _dotted(location: tuple[int | str, ...]) -> str:
    """Spell a place in the config as a user does: pydantic puts a union's variant in between."""
    return ".".join(str(part) for part in location if part not in _VARIANTS)


def _all_field_names(model: type[BaseModel]) -> set[str]:
    names: set[str] = set()
    for name, info in model.model_fields.items():
        names.add(name)
        for part in (info.annotation, *get_args(info.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                names |= _all_field_names(part)
    return names


def set_dotted(data: dict[str, Any], key: str, text: str) -> None:
    """Set a dotted key of nested mappings to a YAML scalar.

    Raises:
        ConfigError: A parent of the key is a value.
    """
    *parents, last = key.split(".")
    for part in parents:
        data = data.setdefault(part, {})
        if not isinstance(data, dict):
            raise ConfigError(f"'{key}' does not name a field: '{part}' is a value", where=f"--{key}")
    data[last] = parse_scalar(text)


def _results_only(value: Any) -> Any:
    if isinstance(value, Config):
        fields = type(value).model_fields
        kept = (n for n, f in fields.items() if (f.json_schema_extra or {}) != SPEED_ONLY)
        return {name: _results_only(getattr(value, name)) for name in kept}
    if isinstance(value, (list, tuple)):
        return [_results_only(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _results_only(item) for key, item in value.items()}
    return value
