"""The ``sampler`` block: who answers, one model a kind of sampler."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from solar_rl.config.base import SPEED_ONLY, Config


class AnySampler(Config):
    """What every sampler has."""

    n: int = Field(default=8, ge=1, le=64)
    """N, candidates a step. The paper: 8. At most 64, so that neighbouring seeds never meet."""
    temperature: float = Field(default=1.0, gt=0)
    """Sampling temperature. The paper: 1.0."""
    adaptive: bool = False
    """Draw one candidate a step, and the other n - 1 only where that one is not valid (docs/method.md,
    section 4b): groups have 1 or n members, for the credits step_local and atomic. [ours]"""


class ScriptedSampler(AnySampler):
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


class TransformersSampler(AnySampler):
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


class RecordedSampler(AnySampler):
    """Answers that were sampled elsewhere, by episode, step and candidate."""

    type: Literal["recorded"] = "recorded"
    path: str
    """JSONL or parquet with episode_id, step_index, candidate_index, completion and, if known,
    token_ids, sampling_logprobs, seed, sampler_id."""


Sampler = Annotated[ScriptedSampler | TransformersSampler | RecordedSampler, Field(discriminator="type")]
SAMPLER_TYPES = ("scripted", "transformers", "recorded")
"""Value of ``sampler.type`` for each."""
